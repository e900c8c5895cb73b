// The state of the page is its address; a key at its default is left out.

const DEFAULTS = {
	view: "grid", // grid, stats, compare
	record: "", // number of the record that is open
	place: "", // position that is open, for broken places without a record number
	where: "", sort: "", order: "asc", split: "", damaged: "", tag: "", diff: "", d: "0",
	top: "0", // first position on screen
	size: "168", // width of tiles
	image: "", label: "", mask: "", boxes: "", box_order: "", box_units: "", shape: "", names: "",
	off: [], // overlays that are switched off: mask, boxes, keypoints
	hide: [], // names of classes that are not drawn
	opacity: "55",
	zoom: "fit",
	hex: "",
	panel: "1",
	lang: "", theme: "",
};

export const GUESSES = ["image", "label", "mask", "boxes", "box_order", "box_units", "shape", "names"];
export const SELECT = ["where", "sort", "order", "split", "damaged", "tag", "diff", "d"];

// A change of these is a step that the browser's Back undoes.
const STEPS = new Set(["view", "record", "place", "where", "sort", "order", "split", "damaged", "tag", "diff", "d"]);

export const state = { ...DEFAULTS };
const listeners = new Set();

function read() {
	const query = new URLSearchParams(location.search);
	for (const [key, value] of Object.entries(DEFAULTS)) {
		state[key] = Array.isArray(value) ? query.getAll(key) : query.get(key) ?? value;
	}
}

/** The query for `changes` on top of the present state. */
export function link(changes = {}) {
	const query = new URLSearchParams();
	for (const [key, value] of Object.entries({ ...state, ...changes })) {
		if (Array.isArray(value)) for (const one of value) query.append(key, one);
		else if (value !== DEFAULTS[key]) query.set(key, value);
	}
	return `?${query}`;
}

const same = (a, b) => (Array.isArray(a) ? a.length === b.length && a.every((value, i) => value === b[i]) : a === b);

/** Change the state, the address, and everything that listens. */
export function change(given, { replace = false } = {}) {
	const changes = SELECT.some(key => key in given) ? { top: "0", ...given } : { ...given };
	for (const [key, value] of Object.entries(changes)) if (typeof value === "number") changes[key] = String(value);
	const keys = Object.keys(changes).filter(key => !same(state[key], changes[key]));
	if (!keys.length) return;
	for (const key of keys) state[key] = changes[key];
	const step = !replace && keys.some(key => STEPS.has(key));
	history[step ? "pushState" : "replaceState"](null, "", link());
	for (const listener of [...listeners]) listener(new Set(keys));
}

/** Call `listener` with the set of changed keys; returns a function that ends it. */
export function listen(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

addEventListener("popstate", () => {
	const before = { ...state };
	read();
	const keys = Object.keys(state).filter(key => !same(state[key], before[key]));
	for (const listener of [...listeners]) listener(new Set(keys));
});

read();

/** Query with the guesses that differ from the server's, and `more`. */
export function guessQuery(more = {}) {
	const query = new URLSearchParams(more);
	if (state.d !== "0") query.set("d", state.d);
	for (const key of GUESSES) if (state[key]) query.set(key, state[key]);
	return query;
}
