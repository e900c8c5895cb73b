// The page: bars, panels, keys.

import { bdi, clear, drawn, h, icon, link, toggleTheme, tool, visible } from "./dom.js";
import * as dialogs from "./dialogs.js";
import { selectionText } from "./filter.js";
import { change, data, isFiltered, loadSet, on, select, stopSelect } from "./model.js";
import { held } from "./overlay.js";
import { listen, state } from "./state.js";
import { lang, load as loadWords, num, t } from "./words.js";
import "./detail.js";
import "./grid.js";
import "./stats.js";
import "./switches.js";

class App extends HTMLElement {
	async connectedCallback() {
		this.theme();
		try {
			const words = loadWords(state.lang || navigator.language.slice(0, 2));
			await loadSet().finally(() => words);
			const { start } = data.info;
			if (data.info.lang && !state.lang && data.info.lang !== lang) await loadWords(data.info.lang);
			const given = {};
			if (start?.where && !state.where && !location.search) given.where = start.where;
			if (start?.record != null && !location.search) given.record = String(start.record);
			this.build();
			change(given, { replace: true });
		} catch (error) {
			this.broken(error);
			return;
		}
		select();
		this.drawTop();
		this.drawViews();
		this.grid.start();
		if (!this.grid.hidden) this.grid.scroller.focus();
		this.detail.load();
		if (state.view === "stats") this.stats.load();
		if (state.view === "compare") this.compare.load(0);
		this.filter.load();
		drawn("page");
	}

	broken(error) {
		const lost = error.status === 403;
		clear(this, h("main.broken", h("h1", lost ? t("broken.token") : t("broken.title")), h("p", bdi(error.message)), error.where?.hint ? h("p.note", bdi(error.where.hint)) : null));
		drawn("broken", { error: error.message });
	}

	build() {
		this.top = h("header.top");
		this.where = h("input.where", { id: "where", spellcheck: "false", autocomplete: "off", autocapitalize: "off", placeholder: t("where.placeholder", { where: "_record < 1000" }), label: t("where.label"), "aria-describedby": "where-note",
			onkeydown: event => {
				if (event.key === "Enter") change({ where: this.where.value.trim() });
				else if (event.key === "Escape") {
					this.where.value = state.where;
					this.grid.scroller.focus();
					event.stopPropagation();
				}
			}, onchange: () => change({ where: this.where.value.trim() }) });
		this.wipe = tool("close", t("where.clear"), () => change({ where: "", split: "", damaged: "", tag: "", diff: "", sort: "", order: "asc" }));
		this.status = h("span.status", { id: "where-note", role: "status" });
		this.stop = link(stopSelect, t("where.stop"));
		this.progress = h("progress.line-progress", { label: t("where.progress") });
		this.message = h("p.alert.message", { role: "alert", hidden: true });
		this.grid = h("tfr-grid");
		this.detail = h("tfr-detail");
		this.stats = h("tfr-stats");
		this.compare = h("tfr-compare");
		this.filter = h("tfr-filter");
		this.none = h("p.nothing", { hidden: true });
		this.aside = h("aside.panel", { label: t("panel.label"), tabindex: "0" }, this.filter, h("tfr-switches"));
		clear(this, h("a.skip", { href: "#where", onclick: event => { event.preventDefault(); this.grid.scroller.focus(); } }, t("skip")),
			this.top, h("div.where-bar", { role: "search" }, icon("search"), this.where, this.wipe, this.status, this.stop, this.progress), this.message,
			h("div.body", this.aside, h("main.main", { label: t("view.grid") }, this.grid, this.none, this.detail, this.stats, this.compare)));
		for (const name of ["set", "selection", "count", "tags", "guesses"]) on(name, () => this.drawTop());
		on("failure", () => this.drawFailure());
		this.grid.addEventListener("marks", () => this.drawTop());
		listen(keys => {
			if (keys.has("theme")) this.theme();
			if (keys.has("lang")) location.reload();
			if (!(keys.size === 1 && keys.has("top"))) {
				this.drawTop();
				this.drawViews();
			}
		});
		document.addEventListener("keydown", event => this.onKey(event));
		document.addEventListener("keyup", event => event.key === "h" && this.hold(false));
		addEventListener("blur", () => this.hold(false));
	}

	theme() {
		if (state.theme) document.documentElement.dataset.theme = state.theme;
		else delete document.documentElement.dataset.theme;
	}

	drawTop() {
		const { set, info } = data;
		document.title = `${visible(set.name)} · tfr view`;
		const focus = this.top.contains(document.activeElement) ? document.activeElement.dataset.key : null;
		const view = (name, symbol) => h("button", { "data-key": `view-${name}`, "aria-pressed": state.view === name, onclick: () => change({ view: name, record: "", place: "" }) }, icon(symbol), t(`view.${name}`));
		const choose = (key, label, options, extra = {}) => h("select.field", { "data-key": key, label: label, title: label, onchange: event => change({ [key]: event.target.value, ...extra }) },
			options.map(([value, text]) => h("option", { value, selected: state[key] === value }, visible(text))));
		const own = (key, symbol, label, action, pressed) => tool(symbol, label, action, { "data-key": key, "aria-pressed": pressed });
		const sorts = set.features.filter(one => one.can_sort).map(one => [one.name, t("sort.by", { name: one.name })]);
		const marked = this.grid.marked?.size ?? 0;
		clear(this.top,
			own("panel", "panel", t("panel.toggle"), () => change({ panel: state.panel === "1" ? "0" : "1" }), state.panel === "1"),
			h("h1.name", bdi(set.name)),
			info.sets.length > 1 ? choose("d", t("set.label"), info.sets.map(one => [String(one.d), one.name]), { record: "", place: "" }) : null,
			h("nav.segments", { label: t("view.label") }, view("grid", "grid"), view("stats", "chart"), info.can.compare ? view("compare", "panel") : null),
			h("span.spring"),
			Object.keys(set.splits ?? {}).length > 1 || state.split ? choose("split", t("split.label"), [["", t("split.all")], ...Object.entries(set.splits).map(([name, n]) => [name, `${name} (${num(n)})`])]) : null,
			sorts.length ? choose("sort", t("sort.label"), [["", t("sort.none")], ...sorts]) : null,
			state.sort ? h("button.button", { "data-key": "order", onclick: () => change({ order: state.order === "asc" ? "desc" : "asc" }) }, t(`order.${state.order === "desc" ? "desc" : "asc"}`)) : null,
			Object.keys(data.tags).length || state.tag ? choose("tag", t("tag.filter"), [["", t("tag.any")], ...Object.entries(data.tags).map(([name, n]) => [name, `${name} (${num(n)})`])]) : null,
			set.is_damaged || state.damaged ? h("button.button.danger", { "data-key": "damaged", "aria-pressed": state.damaged === "1", onclick: () => change({ damaged: state.damaged ? "" : "1" }) }, icon("warn"), t("damaged.only", { n: set.damage })) : null,
			h("label.size", h("span.hidden", t("size.label")), h("input", { type: "range", min: "72", max: "400", step: "8", value: state.size, "data-key": "size", title: t("size.label"), oninput: event => change({ size: event.target.value }) })),
			marked ? h("button.button.primary", { "data-key": "tag-marked", onclick: () => this.tag() }, icon("tag"), t("tag.marked", { n: marked })) : own("tag-all", "tag", t("tag.title"), () => this.tag()),
			own("export", "down", t("export.title"), dialogs.exportRecords),
			own("theme", "moon", t("theme.toggle"), () => change({ theme: toggleTheme() })),
			h("button.tool.text", { "data-key": "lang", label: t("lang.toggle"), lang: lang === "zh" ? "en" : "zh-CN", onclick: () => change({ lang: lang === "zh" ? "en" : "zh" }) }, lang === "zh" ? "EN" : "中"),
			own("help", "help", t("help.title"), dialogs.showHelp));
		if (focus) this.top.querySelector(`[data-key="${focus}"]`)?.focus();
		this.drawWhere();
	}

	drawWhere() {
		const one = data.selection;
		if (document.activeElement !== this.where || !one || one.phase === "begin") this.where.value = state.where;
		const isBusy = Boolean(one) && ["begin", "sample", "progress"].includes(one.phase);
		this.wipe.hidden = !isFiltered();
		this.stop.hidden = !isBusy;
		this.progress.hidden = !isBusy && data.set.is_complete;
		if (isBusy && one.done !== undefined) Object.assign(this.progress, { max: Math.max(1, one.total), value: one.done });
		else this.progress.removeAttribute("value");
		this.status.textContent = selectionText();
		this.status.classList.toggle("is-sample", one?.phase === "sample" || one?.phase === "progress");
		this.where.setAttribute("aria-invalid", one?.phase === "failed");
		this.none.hidden = !((one?.phase === "exact" && one.count === 0) || one?.phase === "failed" || (!one && data.set.is_complete && !data.set.count)) || this.detail.isOpen || state.view !== "grid";
		clear(this.none, one?.phase === "failed" ? [h("strong", t("where.wrong")), bdi(one.error.message), one.error.where?.hint ? bdi(one.error.where.hint) : null] : one ? t("where.none") : t("where.empty"));
	}

	drawViews() {
		const open = this.detail.isOpen && state.view === "grid";
		const was = !this.detail.hidden;
		this.detail.hidden = !open;
		this.grid.hidden = open || state.view !== "grid";
		this.stats.hidden = state.view !== "stats";
		this.compare.hidden = state.view !== "compare";
		this.aside.hidden = state.panel !== "1" || state.view !== "grid";
		this.drawWhere();
		if (was && !open && state.view === "grid" && this.detail.record) {
			const { position } = this.detail.record;
			if (position != null) {
				this.grid.measure();
				this.grid.goTo(position);
			}
			this.grid.scroller.focus();
			this.grid.showCursor();
			this.detail.record = null;
		}
	}

	drawFailure() {
		const { failure } = data;
		this.message.hidden = !failure;
		if (failure) clear(this.message, icon("warn"), bdi(failure.status === 403 ? t("broken.token") : failure.message), tool("close", t("dialog.close"), () => { this.message.hidden = true; }));
		drawn("failure", { error: failure?.message });
	}

	tag() {
		const one = this.detail.isOpen ? this.detail.record?.record : null;
		const records = one != null ? [one] : [...this.grid.marked];
		if (!records.length && !data.selection?.sel) {
			const row = this.grid.rows.get(this.grid.cursor);
			if (row?.record == null) return;
			records.push(row.record);
		}
		dialogs.tagRecords(records, () => {
			this.grid.unmark();
			this.grid.refresh();
		});
	}

	hold(isHeld) {
		if (held.hide === isHeld) return;
		held.hide = isHeld;
		document.dispatchEvent(new Event("tfr:held"));
		drawn("held", { hide: isHeld });
	}

	onKey(event) {
		const target = event.target;
		if (event.ctrlKey || event.metaKey || event.altKey || target.closest("dialog")) return;
		const isTyping = target.matches("textarea, select, input:not([type=checkbox]):not([type=range])");
		const isOpen = this.detail.isOpen && state.view === "grid";
		if (event.key === "Escape") {
			if (isTyping) target.blur();
			else if (isOpen) this.detail.close();
			else if (state.view !== "grid") change({ view: "grid" });
			else if (this.grid.marked.size) this.grid.unmark();
			else return;
			event.preventDefault();
			return;
		}
		if (isTyping) return;
		const opacity = by => change({ opacity: Math.min(100, Math.max(0, Number(state.opacity) + by)) });
		const actions = {
			g: () => dialogs.goToRecord(this.grid, this.detail),
			"/": () => { this.where.focus(); this.where.select(); },
			h: () => this.hold(true),
			"[": () => opacity(-10),
			"]": () => opacity(10),
			d: () => change({ damaged: state.damaged ? "" : "1", record: "", place: "" }),
			x: () => isOpen && change({ hex: state.hex === "1" ? "" : "1" }),
			t: () => this.tag(),
			s: () => this.top.querySelector('[data-key="split"]')?.focus(),
			b: () => change({ panel: state.panel === "1" ? "0" : "1" }),
			"?": () => dialogs.showHelp(),
		};
		if (isOpen) {
			actions.n = () => this.detail.step(1);
			actions.p = () => this.detail.step(-1);
			if (!target.closest("input, .detail-side, .stage-frame")) Object.assign(actions, { ArrowRight: actions.n, ArrowLeft: actions.p });
			if (/^[1-9]$/.test(event.key)) actions[event.key] = () => this.detail.stage.toggleClass(Number(event.key) - 1);
		}
		const action = actions[event.key];
		if (!action && target === document.body && !this.grid.hidden) this.grid.onKey(event);
		if (!action) return;
		action();
		event.preventDefault();
	}
}

customElements.define("tfr-app", App);
