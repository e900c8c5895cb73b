// Figures of a feature: bars with a brush, values with counts.

import { bdi, h, link, s, visible } from "./dom.js";
import { num, short, t } from "./words.js";

/** What a figure shows, in a few words. */
export const about = figure => figure.type === "values" ? t("figure.values", { n: figure.num_values }) : figure.min == null ? "" : `${short(figure.min)} – ${short(figure.max)}`;

/** Round numbers between `from` and `to` for an axis. */
export function ticks(from, to, wanted = 3) {
	const raw = (to - from) / wanted;
	if (!(raw > 0)) return [from];
	const power = 10 ** Math.floor(Math.log10(raw));
	const step = [1, 2, 2.5, 5, 10].map(one => one * power).find(one => one >= raw);
	const found = [];
	for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
	return found;
}

/** Numbers at the left and below, and lines. */
export const axes = ({ wide, high, left, x, y, rows, marks, unit = compact }) => [
	rows.map(value => [s("line.rule", { x1: left, x2: wide - 4, y1: y(value), y2: y(value) }), s("text.axis", { x: left - 4, y: y(value) + 3, "text-anchor": "end" }, unit(value))]),
	s("line.base", { x1: left, x2: wide - 4, y1: high, y2: high }), marks.map(value => s("text.axis", { x: x(value), y: high + 13, "text-anchor": "middle" }, compact(value)))];

/** Bars with axes. `range`: the brushed part; `onbrush(firstBin, lastBin)` or null for none. */
export function bars(figure, { range = null, onbrush = null, wide = 240, high = 74 } = {}) {
	const { bins } = figure;
	if (!bins?.length || figure.min === figure.max) return constant(figure);
	const [{ from }, { to }, left] = [bins[0], bins.at(-1), 34];
	// With splits, their shares are compared; otherwise records are counted.
	const splits = figure.splits?.length > 1 ? figure.splits : null;
	const shares = bin => splits.map((total, i) => bin.splits[i] / (total || 1));
	const most = splits ? Math.max(...bins.flatMap(shares)) || 1 : Math.max(1, ...bins.map(bin => bin.count));
	const x = value => left + ((value - from) / (to - from)) * (wide - left - 4);
	const y = value => 6 + (1 - value / most) * (high - 6);
	// One bin for each whole number: its name is below the middle.
	const middle = bins.length > 1 && bins.every(bin => bin.to - bin.from === 1) ? 0.5 : 0;
	const grid = ticks(0, most, 2).filter(value => splits || Number.isInteger(value));
	const marks = ticks(from, to, wide > 400 ? 6 : 3).filter(value => !middle || (Number.isInteger(value) && value < to));
	const part = (bin, key, name) => s("rect", { class: name, x: x(bin.from).toFixed(2), width: Math.max(0.6, x(bin.to) - x(bin.from) - 0.8).toFixed(2),
		y: y(bin[key]).toFixed(2), height: (bin[key] ? Math.max(1, high - y(bin[key])) : 0).toFixed(2) },
		s("title", `${short(bin.from)}${middle ? "" : ` – ${short(bin.to)}`}: ${num(bin[key])}`));
	const outline = i => `M${x(from)} ${high}${bins.map(bin => `V${y(shares(bin)[i]).toFixed(1)}H${x(bin.to).toFixed(1)}`).join("")}V${high}`;
	const svg = s("svg", { viewBox: `0 0 ${wide} ${high + 18}`, class: "bars", role: "img", label: t("figure.bars", { name: figure.feature, min: short(figure.min), max: short(figure.max) }) },
		axes({ wide, high, left, x: value => x(value + middle), y, rows: grid, marks, unit: splits ? value => `${compact(100 * value)} %` : compact }),
		splits ? splits.map((total, i) => s("path", { class: `outline tone-${i % 6}`, d: outline(i) }))
			: bins.map(bin => [part(bin, "count", "bar"), (bin.chosen ?? bin.count) !== bin.count ? part(bin, "chosen", "bar-chosen") : null]),
		range ? s("rect.brush", { x: x(Math.max(from, range[0])), width: Math.max(2, x(Math.min(to, range[1])) - x(Math.max(from, range[0]))), y: 2, height: high - 2 }) : null);
	if (onbrush) addBrush(svg, { wide, high, bins, x }, onbrush);
	return svg;
}

const compact = value => (Math.abs(value) >= 10000 ? new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value) : String(Number(value.toPrecision(4))));

export const isConstant = figure => figure.type === "values" && figure.num_values === 1 && !figure.missing;

export const isAllDifferent = figure => figure.type === "values" && figure.num_values > 8 && figure.num_values === figure.count;

/** One value in every record, as a sentence. */
const constant = figure => h("p.constant", figure.values ? t("figure.constant", { value: visible(figure.values[0].text ?? figure.values[0].value) }) : figure.min == null ? t("figure.none") : t("figure.constant", { value: short(figure.min) }));

function addBrush(svg, { wide, high, bins, x }, onbrush) {
	svg.classList.add("can-brush");
	const binAt = event => {
		const box = svg.getBoundingClientRect();
		const at = ((event.clientX - box.left) / box.width) * wide;
		const found = bins.findIndex(bin => at < x(bin.to));
		return found < 0 ? bins.length - 1 : found;
	};
	let start = null;
	let shade = null;
	const span = event => [start, binAt(event)].sort((a, b) => a - b);
	svg.addEventListener("pointerdown", event => {
		start = binAt(event);
		svg.setPointerCapture(event.pointerId);
		shade = s("rect.brush", { y: 2, height: high - 2 });
		svg.append(shade);
	});
	svg.addEventListener("pointermove", event => {
		if (start === null) return;
		const [first, last] = span(event);
		shade.setAttribute("x", x(bins[first].from));
		shade.setAttribute("width", x(bins[last].to) - x(bins[first].from));
	});
	svg.addEventListener("pointerup", event => {
		if (start === null) return;
		const [first, last] = span(event);
		start = null;
		shade.remove();
		onbrush(first, last);
	});
}

/** Values as rows with a bar, largest first; `onpick(value)` makes them ticks. */
export function values(figure, { shown = 8, ticked = null, onpick = null, onmore = null } = {}) {
	if (isConstant(figure)) return [constant(figure), null];
	if (isAllDifferent(figure)) return [h("p.constant", t("figure.different")), null];
	const most = Math.max(1, ...figure.values.map(one => one.count));
	const list = figure.values.slice(0, shown);
	// A ticked value stays in sight.
	for (const one of figure.values.slice(shown)) if (ticked?.includes(one.where)) list.push(one);
	const rest = figure.values.length - list.length + (figure.rest?.num_values ?? 0);
	const row = one => {
		const label = h("span.value-text", one.text === "" ? h("i", t("value.empty")) : bdi(one.text ?? String(one.value)));
		const share = h("span.value-bar", { "aria-hidden": true },
			h("span.value-fill", { style: { width: `${(100 * one.count) / most}%` } }),
			one.chosen === one.count ? null : h("span.value-chosen", { style: { width: `${(100 * one.chosen) / most}%` } }));
		const count = h("span.value-count", one.chosen === one.count ? num(one.count) : `${num(one.chosen)} / ${num(one.count)}`);
		if (!onpick) return h("li.value", label, share, count);
		const box = h("input", { type: "checkbox", checked: ticked.includes(one.where), onchange: () => onpick(one, box.checked) });
		return h("li", h("label.value", box, label, share, count));
	};
	return [h("ul.values", list.map(row)),
		rest > 0 && onmore ? link(onmore, t("figure.more", { n: rest })) : null];
}

/** Numbers as a line: what a tensor or a long list looks like. */
export function spark(points, { wide = 300, high = 60 } = {}) {
	const numbers = points.map(point => (typeof point === "number" ? point : NaN));
	const real = numbers.filter(Number.isFinite);
	if (!real.length) return null;
	const low = Math.min(...real);
	const top = Math.max(...real);
	const span = top - low || 1;
	const x = i => 2 + (i / Math.max(1, numbers.length - 1)) * (wide - 4);
	const y = value => high - 4 - ((value - low) / span) * (high - 8);
	let path = "";
	let isDown = false;
	numbers.forEach((value, i) => {
		if (Number.isFinite(value)) path += `${isDown ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
		isDown = Number.isFinite(value);
	});
	return s("svg", { viewBox: `0 0 ${wide} ${high}`, class: "spark", role: "img", label: t("figure.spark", { min: short(low), max: short(top) }) },
		s("path", { d: path }));
}
