// Statistics of the whole dataset: what it is, warnings, splits, classes, numbers.

import { get, stream, tiles } from "./api.js";
import { bdi, clear, drawn, h, icon, link, tool } from "./dom.js";
import * as figures from "./histogram.js";
import { change, data, fail, model } from "./model.js";
import { guessQuery, listen, state } from "./state.js";
import { bytes, num, short, t } from "./words.js";

class Stats extends HTMLElement {
	connectedCallback() {
		if (this.started) return;
		this.started = true;
		this.shown = new Map();
		listen((keys) => {
			if (state.view === "stats" && (keys.has("view") || keys.has("d"))) this.load();
			else if (keys.has("view")) this.end?.();
		});
		model.addEventListener("set", () => state.view === "stats" && this.load());
		model.addEventListener("count", () => state.view === "stats" && this.draw());
	}

	load() {
		this.end?.();
		this.answer = null;
		this.draw();
		const show = (answer) => {
			this.answer = answer;
			this.draw();
			drawn("stats", { is_exact: answer.is_exact });
			if (answer.is_exact) this.rare(answer);
		};
		if (!data.info.can.sql) return;
		this.end = stream("api/figures", guessQuery(), { sample: show, progress: (event) => this.progress(event), exact: (answer) => show({ ...answer, is_exact: true }), fail }, (name) => name === "exact");
	}

	progress({ done, total }) {
		if (this.bar) Object.assign(this.bar, { hidden: done >= total, max: total, value: done });
	}

	draw() {
		const { set } = data;
		if (!set) return;
		const size = set.files.reduce((sum, file) => sum + file.bytes, 0);
		const kinds = [...new Set(set.files.map((file) => (file.compression ?? "none") === "none" ? t("stats.plain") : file.compression))].join(", ");
		const fact = (value, name) => h("div.big-fact", null, h("dd", null, value), h("dt", null, name));
		this.bar = h("progress", { hidden: true, label: t("stats.progress") });
		clear(this,
			h("div.stats-page", null,
				h("h1", null, bdi(set.name)),
				h("dl.big-facts", null,
					fact(num(set.records), t("stats.records")), fact(num(set.files.length), t("stats.files")), fact(bytes(size), kinds), fact(num(set.features.length), t("stats.features")), fact(t(`kind.${set.kind}`), t("stats.kind"))),
				this.warnings(set), splits(set), this.figures(),
				h("section", null, h("h2", null, t("stats.table")), featureTable(set)),
				h("section", null, h("h2", null, t("stats.file_list")), fileTable(set)),
				this.check()));
	}

	/** What is wrong comes first. */
	warnings(set) {
		const list = [...(set.notes ?? [])];
		if (set.is_damaged) list.unshift(t("stats.damage", { n: set.damage }));
		if (!list.length) return null;
		return h("section.warnings", { label: t("stats.warnings") }, list.map((text) => h("p.alert", null, icon("warn"), bdi(text),
			set.is_damaged && text === list[0] ? link(() => change({ view: "grid", damaged: "1" }), t("stats.show")) : null)));
	}

	figures() {
		const { answer } = this;
		if (!data.info.can.sql) return h("p.note", null, t("filter.no_sql"));
		if (!answer) return h("section", null, h("h2", null, t("stats.figures")), h("p.note", { role: "status" }, t("stats.loading")), this.bar);
		const label = answer.is_exact ? t("figures.exact", { n: answer.total }) : t("figures.sample", { of: answer.of, n: answer.total });
		const isClass = (one) => one.type === "values";
		const list = [...answer.figures].sort((a, b) => Number(isClass(b)) - Number(isClass(a)));
		this.rareBox = h("div.rare", null);
		return h("section", null, h("h2", null, t("stats.figures")), h("p", { class: `note${answer.is_exact ? "" : " is-sample"}`, role: "status" }, label), this.bar, this.rareBox,
			h("div.stat-cards", null, list.map((figure) => this.card(figure))));
	}

	card(figure) {
		const shown = this.shown.get(figure.feature) ?? 12;
		const mean = figure.mean == null ? null : `${t("stat.mean")} ${short(figure.mean)}`;
		const facts = [figures.about(figure), mean, figure.missing ? t("figure.missing", { n: figure.missing }) : null].filter(Boolean).join(" · ");
		const isFolded = figure.type === "values" && shown < figure.values.length;
		return h("article.stat-card", { "data-feature": figure.feature },
			h("header", null, h("h3", null, bdi(figure.feature)), h("span.note", null, facts)),
			figure.type === "values" ? figures.values(figure, { shown, onmore: isFolded ? () => {
				this.shown.set(figure.feature, shown + 60);
				this.draw();
			} : null }) : figures.bars(figure, { wide: 420, high: 130 }));
	}

	/** Pictures of the rarest classes: that is where labels are wrong. */
	async rare(answer) {
		const { set } = data;
		const isClass = (one) => one.type === "values" && one.values.length > 2 && one.values.at(-1).count < one.values[0].count;
		const figure = answer.figures.find((one) => isClass(one) && one.feature === set.guesses.label.value) ?? answer.figures.find(isClass);
		if (!figure || !set.guesses.image.value) return;
		const rarest = [...figure.values].sort((a, b) => a.count - b.count).slice(0, 4);
		const box = this.rareBox;
		const groups = await Promise.all(rarest.map((one) => this.examples(one)));
		if (box !== this.rareBox || !box.isConnected) return;
		clear(box, h("h3", null, t("stats.rare")), h("div.rare-groups", null, groups.filter(Boolean)));
		drawn("rare", { count: groups.length });
	}

	examples(one) {
		return new Promise((resolve) => {
			const query = guessQuery();
			query.set("where", one.where);
			stream("api/select", query, { exact: async ({ sel }) => {
				const found = [];
				const ask = guessQuery();
				for (const [key, value] of Object.entries({ sel, first: 0, count: 3, size: 128 })) ask.set(key, String(value));
				try {
					await tiles(ask, undefined, (row, parts) => parts.image && found.push({ row, blob: parts.image }));
				} catch {
					// the class is listed without pictures
				}
				found.sort((a, b) => a.row.position - b.row.position);
				const pictures = found.map(({ row, blob }) => {
					const url = URL.createObjectURL(blob);
					return h("button.rare-picture", { label: t("tile.record", { n: row.record }), onclick: () => change({ view: "grid", record: String(row.record) }) },
						h("img", { src: url, alt: "", onload: () => URL.revokeObjectURL(url) }));
				});
				resolve(h("div.rare-group", null, h("div.rare-pictures", null, pictures),
					link(() => change({ view: "grid", where: one.where }), bdi(one.text ?? String(one.value))), h("span.note", null, num(one.count))));
			}, begin: () => {}, fail: () => resolve(null) }, (name) => name === "exact");
		});
	}

	/** Check every record on request. */
	check() {
		const list = h("div.check-list", null);
		const bar = h("progress", { hidden: true, label: t("check.progress") });
		const note = h("p.note", { role: "status" }, t("check.note"));
		const button = h("button.button", { onclick: () => {
			button.disabled = true;
			clear(list);
			stream("api/damage", new URLSearchParams({ d: state.d }), {
				found: (one) => list.append(h("button.alert.as-button", { onclick: () => change({ view: "grid", place: String(one.position), record: "" }) }, icon("warn"), bdi(`${one.file} · ${t("damage.at", { n: one.offset })} · ${one.cause}`))),
				progress: ({ done, total }) => Object.assign(bar, { hidden: false, max: total, value: done }),
				done: ({ count }) => {
					bar.hidden = true;
					button.disabled = false;
					note.textContent = count ? t("check.found", { n: count }) : t("check.clean");
					drawn("check", { count });
				},
				fail: (error) => {
					button.disabled = false;
					fail(error);
				},
			}, (name) => name === "done");
		} }, t("check.do"));
		return h("section", null, h("h2", null, t("check.title")), note, button, bar, list);
	}
}

/** Splits as one bar with parts. */
function splits(set) {
	const list = Object.entries(set.splits ?? {});
	if (!list.length) return null;
	const total = list.reduce((sum, [, count]) => sum + count, 0) || 1;
	return h("section", null, h("h2", null, t("stats.splits")),
		h("div.split-bar", { "aria-hidden": "true" }, list.map(([, count], i) => h("span", { class: `tone-${i % 6}`, style: { "flex-grow": String(Math.max(count, total / 200)) } }))),
		h("ul.split-list", null, list.map(([name, count], i) => h("li", null, h("span", { class: `tone-mark tone-${i % 6}` }),
			link(() => change({ view: "grid", split: name }), bdi(name)), ` ${num(count)} · ${((100 * count) / total).toFixed(1)} %`))));
}

const table = (heads, rows, label) => h("div.table-box", { tabindex: "0", role: "region", label: label }, h("table.table", null,
	h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", null, rows)));

const featureTable = (set) => table([t("table.name"), t("table.kind"), t("table.shape"), t("table.meaning")],
	set.features.map((one) => h("tr", null, h("th", { scope: "row" }, bdi(one.name)), h("td", null, one.part === "feature_lists" ? `${one.kind} · ${t("table.frames")}` : one.kind),
		h("td", null, one.shape?.length ? `[${one.shape.join(", ")}]` : ""), h("td", null, bdi(one.meaning ?? "")))), t("stats.table"));

const fileTable = (set) => table([t("table.name"), t("stats.records"), t("fact.bytes"), t("table.compression")],
	set.files.slice(0, 500).map((one) => h("tr", null, h("th", { scope: "row" }, bdi(one.name)), h("td.right", null, one.records == null ? "" : num(one.records)), h("td.right", null, bytes(one.bytes)), h("td", null, one.compression ?? ""))), t("stats.file_list"));

customElements.define("tfr-stats", Stats);

// Two datasets next to each other: the rows of `tfr diff`.
class Compare extends HTMLElement {
	connectedCallback() {
		listen((keys) => keys.has("view") && state.view === "compare" && this.load(0));
		model.addEventListener("set", () => state.view === "compare" && this.load(0));
	}

	async load(first) {
		try {
			this.draw(await get("api/compare", new URLSearchParams({ first: String(first), count: "100" })));
		} catch (error) {
			fail(error);
		}
	}

	draw(page) {
		const to = (d, record) => record == null ? "–" : link(() => change({ view: "grid", d: String(d), record: String(record), place: "" }), num(record));
		const rows = page.rows.map((row) => h("tr", { class: `diff-${row.kind}` }, h("td", null, h("span.chip", null, t(`diff.${row.kind}`))), h("td.right", null, to(0, row.left)), h("td.right", null, to(1, row.right)),
			h("td", null, row.key == null ? "" : bdi(String(row.key))), h("td", null, bdi(row.text ?? (row.features ?? []).join(", ")))));
		const step = (name, key, first, isOff) => tool(name, t(key), () => this.load(first), { disabled: isOff });
		clear(this, h("div.stats-page", null, h("h1", null, t("compare.title")),
			h("p.note", null, data.info.sets.map((set) => set.name).join("  ↔  ")),
			page.is_same ? h("p.good", null, t("compare.same")) : h("p", null, t("compare.differ", { n: page.total })),
			page.total > 100 ? h("div.hex-pager", null, step("left", "hex.before", page.first - 100, page.first === 0), h("span", null, `${num(page.first)} – ${num(page.first + page.rows.length)} / ${num(page.total)}`), step("right", "hex.after", page.first + 100, page.first + 100 >= page.total)) : null,
			rows.length ? table([t("compare.kind"), t("compare.left"), t("compare.right"), t("compare.key"), t("compare.what")], rows, t("compare.title")) : null));
		drawn("compare", { total: page.total });
	}
}

customElements.define("tfr-compare", Compare);
