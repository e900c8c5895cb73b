// The filter: one visible condition, and everything that writes it.

import { stream } from "./api.js";
import { bdi, clear, drawn, h, tool } from "./dom.js";
import * as figures from "./histogram.js";
import { change, data, fail, noteDamage, on } from "./model.js";
import { guessQuery, listen, state } from "./state.js";
import { short, t } from "./words.js";
import * as where from "./where.js";

/** Columns that a search for text looks into. */
const textColumns = () => data.set.features.filter(one => one.column && one.logical === "text" && !one.shape?.length && one.part !== "feature_lists").map(one => one.column).slice(0, 6);

class Filter extends HTMLElement {
	connectedCallback() {
		if (this.list) return;
		this.shown = new Map(); // feature: number of values that are unfolded
		this.open = new Map(); // feature: whether its figure is open
		this.label = h("p.note", { role: "status" });
		this.find = h("input", { type: "search", class: "field", placeholder: t("filter.search"), label: t("filter.search"), onchange: () => this.search() });
		this.list = h("div.figures");
		this.append(h("div.filter-head", this.find, this.label), this.list);
		on("set", () => this.load());
		on("selection", () => this.onSelection());
		listen(keys => {
			if (keys.has("where")) this.draw();
			if (keys.has("panel")) this.load();
		});
	}

	onSelection() {
		const key = data.selection ? (data.selection.phase === "exact" ? data.selection.sel : this.loaded) : "";
		if (key !== this.loaded) this.load();
	}

	/** Figures from a sample at once, exact ones later. */
	load() {
		this.end?.();
		if (!data.set || state.panel !== "1" || !data.info.can.sql) {
			if (data.set && !data.info.can.sql) clear(this.list, h("p.note", t("filter.no_sql")));
			return;
		}
		const sel = data.selection?.phase === "exact" ? data.selection.sel : "";
		this.loaded = sel;
		const show = answer => {
			this.answer = answer;
			noteDamage(answer);
			this.draw();
			drawn("figures", { is_exact: answer.is_exact, sel });
		};
		this.end = stream("api/figures", guessQuery(sel && { sel }), { sample: show, progress: () => {}, exact: show, fail }, name => name === "exact");
	}

	search() {
		const columns = textColumns();
		change({ where: where.search(state.where, columns, this.find.value.trim()) });
	}

	draw() {
		if (!this.answer || !data.set) return;
		const { answer } = this;
		const columns = textColumns();
		this.find.hidden = !columns.length;
		if (document.activeElement !== this.find) this.find.value = where.searched(state.where, columns);
		this.label.textContent = answer.is_exact ? withDamage(t("figures.exact", { n: answer.of }), answer.damaged) : t("figures.sample", { of: answer.of, n: answer.total });
		this.label.classList.toggle("is-sample", !answer.is_exact);
		const order = [...answer.figures].sort((a, b) => rank(a) - rank(b));
		const sample = order.find(figure => figure.values?.length)?.values[0].where ?? "_record < 1000";
		document.getElementById("where").placeholder = t("where.placeholder", { where: sample });
		const focus = document.activeElement?.closest("tfr-filter") ? document.activeElement.dataset.key : null;
		clear(this.list, order.map((figure, at) => this.figure(figure, at < 6 && rank(figure) < 5)));
		if (focus) this.list.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
	}

	figure(figure, isOpen) {
		const part = h("details.figure", { ontoggle: () => this.open.set(figure.feature, part.open) },
			h("summary", h("span.figure-name", bdi(figure.feature)), h("span.figure-fact", figures.about(figure))),
			figure.type === "numbers" ? this.numbers(figure) : this.values(figure),
			figure.missing ? h("p.note", t("figure.missing", { n: figure.missing })) : null);
		part.open = this.open.get(figure.feature) ?? isOpen;
		return part;
	}

	numbers(figure) {
		const range = where.brushed(state.where, figure.column);
		const write = range => change({ where: where.brush(state.where, figure.column, range) });
		const { bins } = figure;
		if (!bins?.length || figure.min === figure.max) return figures.bars(figure);
		const input = (name, value, label) => h("input", { type: "number", step: "any", class: "field small", value: value ?? "", placeholder: short(name === "from" ? figure.min : figure.max), label: label,
			"data-key": `${figure.feature}/${name}`, onchange: () => {
				const from = low.value === "" ? figure.min : Number(low.value);
				const to = high.value === "" ? figure.max : Number(high.value);
				if (low.value === "" && high.value === "") write(null);
				else write({ from, to, isLast: true });
			} });
		const low = input("from", range?.[0], t("figure.from", { name: figure.feature }));
		const high = input("to", range?.[1], t("figure.to", { name: figure.feature }));
		return [
			figures.bars(figure, { range, onbrush: (first, last) => write({ from: bins[first].from, to: bins[last].to, isLast: last === bins.length - 1 }) }),
			h("div.range", low, h("span", { "aria-hidden": true }, "–"), high,
				range ? tool("close", t("figure.clear", { name: figure.feature }), () => write(null)) : null)];
	}

	values(figure) {
		const conditions = figure.values.map(one => one.where);
		const ticked = where.ticked(state.where, conditions);
		const shown = this.shown.get(figure.feature) ?? 8;
		const onpick = (one, isOn) => {
			const chosen = isOn ? [...ticked, one.where] : ticked.filter(text => text !== one.where);
			change({ where: where.tick(state.where, conditions, chosen) });
		};
		const isFolded = shown < figure.values.length;
		const parts = figures.values(figure, { shown, ticked, onpick, onmore: isFolded ? () => {
			this.shown.set(figure.feature, shown + 40);
			this.draw();
		} : null });
		parts[0].querySelectorAll("input").forEach((box, i) => { box.dataset.key = `${figure.feature}/${i}`; });
		return parts;
	}
}

/** Classes first, then few values, then numbers. */
function rank(figure) {
	const feature = data.set.features.find(one => one.name === figure.feature);
	if (figures.isAllDifferent(figure) || figures.isConstant(figure)) return 5;
	if (feature?.name === data.set.guesses.label.value) return 0;
	if (feature?.logical === "class_label") return 1;
	return figure.type === "values" ? (feature?.logical === "text" || figure.num_values > 100 ? 4 : 2) : 3;
}

customElements.define("tfr-filter", Filter);

const withDamage = (text, n) => n ? `${text} · ${t("warn.damage", { n })}` : text;

/** How far the selection is, in words. */
export function selectionText() {
	const one = data.selection;
	const set = data.set;
	if (!one) return set.is_complete ? t("count.all", { n: set.count }) : t("count.growing", { n: set.count });
	switch (one.phase) {
		case "exact": return withDamage(t("count.exact", { n: one.count, total: one.total }), one.damaged);
		case "sample": return t("count.sample", { n: one.estimate ?? 0, total: one.total, of: one.of });
		case "progress": return t("count.progress", { percent: one.total ? Math.floor((100 * one.done) / one.total) : 0, n: one.estimate ?? 0 });
		case "failed": return t("count.failed");
		case "stopped": return t("count.stopped", { n: one.count });
		default: return t("count.begin");
	}
}
