// Statistics of the whole dataset: of a sample at once, then of all records.

import { get, stream } from "./api.js";
import { bdi, clear, drawn, h, link, tool } from "./dom.js";
import { change, data, fail, on } from "./model.js";
import { draw, table } from "./report.js";
import { guessQuery, listen, state } from "./state.js";
import { num, t } from "./words.js";
import { literal } from "./where.js";

class Stats extends HTMLElement {
	connectedCallback() {
		if (this.note) return;
		this.note = h("p.note", { role: "status" });
		this.bar = h("progress", { hidden: true, label: t("stats.progress") });
		this.page = h("div.stats-page");
		this.append(this.page);
		const isShown = () => state.view === "stats";
		listen(keys => {
			if (isShown() && (keys.has("view") || keys.has("d"))) this.load();
			else if (keys.has("view")) this.end?.();
		});
		for (const name of ["set", "guesses"]) on(name, () => isShown() && this.load());
	}

	/** Read the statistics; `deep`: look for copies, too. */
	load(deep = "") {
		this.end?.();
		const { set } = data;
		if (!set) return;
		if (!deep) clear(this.page, h("h1", bdi(set.name)), this.note, this.bar);
		this.note.textContent = t("stats.loading");
		const show = (report, isExact) => {
			this.note.textContent = isExact ? t("figures.exact", { n: report.records }) : t("figures.sample", { of: report.records, n: set.records });
			this.note.classList.toggle("is-sample", !isExact);
			this.bar.hidden = isExact;
			const parts = draw(report, { src, open, pick, split: name => () => change({ view: "grid", split: name }) });
			clear(this.page, h("h1", bdi(set.name)), this.note, this.bar, parts, isExact ? this.check(report) : null);
			drawn("stats", { is_exact: isExact, deep });
		};
		this.end = stream("api/report", guessQuery({ deep }), { sample: report => show(report, false), progress: event => Object.assign(this.bar, { hidden: false, max: event.total, value: event.done }), exact: report => show(report, true), fail }, name => name === "exact");
	}

	/** Decode every picture and look for copies, on request. */
	check(report) {
		return report.copies ? null : h("section", h("p.note", t("check.note")), h("button.button", { onclick: () => this.load("1") }, t("check.do")));
	}
}

/** Pictures of the answer; the page's policy allows blobs only. */
function src({ type, data: encoded }) {
	const url = URL.createObjectURL(new Blob([Uint8Array.from(atob(encoded), c => c.charCodeAt(0))], { type }));
	setTimeout(() => URL.revokeObjectURL(url), 60000);
	return url;
}

const open = ({ number: record = "", position: place = "" }) => record === place ? null : () => change({ view: "grid", record, place });

/** Show the records of a class. */
function pick({ feature }, value) {
	const { column, shape } = data.set.features.find(one => one.name === feature) ?? {};
	if (!column || !data.info.can.sql || typeof value === "object") return null;
	return () => change({ view: "grid", where: shape.length ? `list_contains(${column}, ${literal(value)})` : `${column} = ${literal(value)}` });
}

customElements.define("tfr-stats", Stats);

// Two datasets next to each other: the rows of `tfr diff`.
class Compare extends HTMLElement {
	connectedCallback() {
		listen(keys => keys.has("view") && state.view === "compare" && this.load(0));
		on("set", () => state.view === "compare" && this.load(0));
	}

	async load(first) {
		try {
			this.draw(await get("api/compare", new URLSearchParams({ first: String(first), count: "100" })));
		} catch (error) {
			fail(error);
		}
	}

	draw(page) {
		const to = (d, record) => record == null ? "–" : link(() => change({ view: "grid", d, record, place: "" }), num(record));
		const rows = page.rows.map(row => [h("span.chip", t(`diff.${row.kind}`)), to(0, row.left), to(1, row.right), row.key == null ? "" : String(row.key), row.text ?? (row.features ?? []).join(", ")]);
		const step = (name, key, first, isOff) => tool(name, t(key), () => this.load(first), { disabled: isOff });
		clear(this, h("div.stats-page", h("h1", t("compare.title")),
			h("p.note", data.info.sets.map(set => set.name).join("  ↔  ")),
			page.is_same ? h("p.good", t("compare.same")) : h("p", t("compare.differ", { n: page.total })),
			page.total > 100 ? h("div.hex-pager", step("left", "hex.before", page.first - 100, page.first === 0), h("span", `${num(page.first)} – ${num(page.first + page.rows.length)} / ${num(page.total)}`), step("right", "hex.after", page.first + 100, page.first + 100 >= page.total)) : null,
			rows.length ? table([t("compare.kind"), t("compare.left"), t("compare.right"), t("compare.key"), t("compare.what")], rows, t("compare.title")) : null));
		drawn("compare", { total: page.total });
	}
}

customElements.define("tfr-compare", Compare);
