// What the page knows: datasets, selection, failures.

import { get, stream } from "./api.js";
import { drawn } from "./dom.js";
import { GUESSES, SELECT, change, guessQuery, listen, state } from "./state.js";

export const model = new EventTarget();
export const data = {
	info: null, // answer of api/set
	set: null, // the dataset on screen
	tags: {},
	selection: null, // {sel, phase, count, total, ...}; null: all records
	failure: null,
	version: 0, // counts changes of what positions mean
};

const say = name => model.dispatchEvent(new Event(name));
export const on = (name, handler) => model.addEventListener(name, handler);

let endSelect = null;
let endCount = null;

export async function loadSet() {
	const query = guessQuery();
	query.delete("d");
	let info;
	try {
		info = await get("api/set", query);
	} catch (error) {
		if (error.status !== 400 || !String(query)) throw error;
		fail(error); // a wrong guess: the server's own are used
		info = await get("api/set");
	}
	data.info = info;
	data.tags = info.tags ?? {};
	data.set = info.sets[Number(state.d)] ?? info.sets[0];
	countOn();
	say("set");
}

function countOn() {
	endCount?.();
	endCount = null;
	if (data.set.is_complete) return;
	const set = data.set;
	endCount = stream("api/count", new URLSearchParams({ d: String(set.d) }), {
		count: event => {
			Object.assign(set, { count: event.count, records: event.records, is_complete: event.is_complete });
			say("count");
			drawn("count", event);
		},
		fail,
	}, (name, event) => event.is_complete);
}

export const count = () => (data.selection ? data.selection.count : data.set.count);
export const isFiltered = () => SELECT.some(key => key !== "d" && key !== "order" && state[key]);

/** Ask the server for the records that fit the state. */
export function select() {
	endSelect?.();
	endSelect = null;
	data.version += 1;
	if (!isFiltered()) {
		data.selection = null;
		say("selection");
		return;
	}
	const query = new URLSearchParams();
	for (const key of SELECT) if (state[key] && !(key === "order" && !state.sort)) query.set(key, state[key]);
	const selection = { sel: null, phase: "begin", count: 0, total: data.set.count };
	const update = changes => {
		if (data.selection !== selection) return;
		Object.assign(selection, changes);
		say("selection");
	};
	data.selection = selection;
	say("selection");
	endSelect = stream("api/select", query, {
		begin: event => update({ sel: event.sel, total: event.total }),
		// Until the answer is exact, the selection is what matched in the sample.
		sample: event => update({ phase: "sample", of: event.of, estimate: event.estimate, total: event.total, count: event.matched }),
		progress: event => update({ phase: "progress", done: event.done, total: event.total }),
		exact: event => {
			if (data.selection === selection) data.version += 1;
			noteDamage(event);
			update({ sel: event.sel, phase: "exact", count: event.count, seconds: event.seconds, damaged: event.damaged });
			drawn("selection", event);
		},
		fail: error => {
			update({ phase: "failed", error });
			drawn("selection", { error: error.message });
		},
	}, name => name === "exact");
}

/** Show the button for damage that a pass found. */
export function noteDamage({ damaged: damage }) {
	if (!damage) return;
	Object.assign(data.set, { damage, is_damaged: true });
	say("count");
}

export function stopSelect() {
	endSelect?.();
	if (data.selection) Object.assign(data.selection, { phase: "stopped" });
	say("selection");
}

/** Parameters for everything that counts positions. */
export function placeQuery(more = {}) {
	const sel = data.selection?.sel;
	return guessQuery(sel ? { sel, ...more } : more);
}

export function fail(error) {
	if (error?.name === "AbortError") return;
	if (error.status === 410) {
		select(); // the server forgot the selection
		return;
	}
	data.failure = error;
	say("failure");
}

export function setTags(tags) {
	data.tags = tags;
	say("tags");
}

listen(keys => {
	if (GUESSES.some(key => keys.has(key))) {
		loadSet().then(() => {
			data.version += 1;
			say("guesses");
		}, fail);
	}
	if (keys.has("d")) {
		data.set = data.info.sets[Number(state.d)] ?? data.info.sets[0];
		countOn();
		say("set");
	}
	if (SELECT.some(key => keys.has(key))) select();
});

export { change };
