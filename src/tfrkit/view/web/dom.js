// Elements from data. Text is a text node, so no record becomes markup.

const HTML = "http://www.w3.org/1999/xhtml";
const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
	for (const [name, value] of Object.entries(props ?? {})) {
		if (value == null || (value === false && !name.startsWith("aria"))) continue;
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
		else if (name === "label") node.setAttribute("aria-label", value);
		else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
		else node.setAttribute(name, value === true && !name.startsWith("aria") ? "" : value);
	}
	node.append(...real(children));
	return node;
}

const real = children => children.flat(Infinity).filter(child => child != null && child !== false);

const make = space => (name, ...parts) => {
	const [tag, ...classes] = name.split(".");
	const node = document.createElementNS(space, tag);
	if (classes.length) node.setAttribute("class", classes.join(" "));
	return fill(node, parts[0]?.constructor === Object ? parts.shift() : null, parts);
};

/** An HTML element `tag.class`: attributes, `on…` listeners, styles, then children; `label` is for screen readers. */
export const h = make(HTML);

/** An SVG element. */
export const s = make(SVG);

export const clear = (node, ...children) => node.replaceChildren(...real(children));

const ICONS = {
	left: "M15 5l-7 7 7 7",
	right: "M9 5l7 7-7 7",
	close: "M6 6l12 12M18 6L6 18",
	down: "M12 4v12m-5-5l5 5 5-5M5 20h14",
	tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
	chart: "M5 20V11M12 20V4M19 20v-6",
	grid: "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
	search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.8-4.8",
	panel: "M4 5h16v14H4zM10 5v14",
	warn: "M12 4l9.5 16h-19zM12 10v4M12 17h.01",
	moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5z",
	help: "M9 9.2a3 3 0 1 1 4.2 2.8c-.8.4-1.2 1-1.2 1.8v.4M12 17.5h.01",
};

export const icon = name =>
	s("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": true }, s("path", { d: ICONS[name] }));

/** A button that is a picture. */
export const tool = (symbol, label, onclick, more) => h("button.tool", { label, title: label, onclick, ...more }, icon(symbol));

/** The colour of a class, if it has one. */
export const dot = ({ color }) => color && h("span.dot", { style: { "--dot": color } });

export const link = (onclick, ...children) => h("button.link", { onclick }, ...children);

/** Names with values; null leaves a row out. */
export const facts = (rows, name = "facts") =>
	h(`dl.${name}`, rows.filter(row => row[1] != null).map(([term, value]) => h("div", h("dt", term), h("dd", value))));

// Control characters and those that turn text around are shown, not obeyed.
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Text of a record for reading: odd characters are written as their code. */
export const visible = text =>
	String(text).replace(ODD, c => `⟨${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** Text of a record as an element of its own direction. */
export const bdi = (text, props) => h("bdi", props, visible(text));

const root = document.documentElement;
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);

/** Change from light to dark or back; returns what it is now. */
export const toggleTheme = () => (root.dataset.theme = isDark() ? "light" : "dark");

/** Report that something has been drawn, for tests and for measurements. */
export const drawn = (what, detail = {}) =>
	document.dispatchEvent(new CustomEvent("tfr:drawn", { detail: { what, ...detail } }));
