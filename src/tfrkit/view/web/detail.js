// One record: its picture, its features, its bytes.

import { get } from "./api.js";
import { bdi, clear, dot, drawn, facts, h, icon, tool } from "./dom.js";
import { featureRow, withGuesses } from "./feature.js";
import { change, count, data, fail, on, placeQuery } from "./model.js";
import { listen, state } from "./state.js";
import { bytes, num, ordinal, t } from "./words.js";
import "./hex.js";
import "./stage.js";

class Detail extends HTMLElement {
	connectedCallback() {
		if (this.head) return;
		this.cache = new Map(); // address: promise of a record
		this.head = h("header.detail-head");
		this.stage = h("tfr-stage");
		this.note = h("div.detail-note");
		this.side = h("div.detail-side", { tabindex: "0", role: "region", label: t("detail.features") });
		this.hex = h("tfr-hex");
		this.bytes = h("div.detail-bytes", this.hex);
		this.append(this.head, h("div.detail-body", h("div.detail-main", this.note, this.stage, this.bytes), this.side));
		listen(keys => {
			if (keys.has("record") || keys.has("place")) this.load();
			else if (keys.has("hex") && this.record) this.showHex();
			else if (keys.has("zoom") && this.record) this.drawHead();
		});
		on("guesses", () => this.forget());
		on("selection", () => {
			if (!data.selection || data.selection.phase === "exact") this.forget();
		});
		on("tags", () => this.forget());
	}

	get isOpen() {
		return state.record !== "" || state.place !== "";
	}

	forget() {
		this.cache.clear();
		if (this.isOpen) this.load();
	}

	fetch(path) {
		const query = placeQuery();
		const key = `${path}?${query}`;
		if (!this.cache.has(key)) {
			if (this.cache.size > 12) this.cache.delete(this.cache.keys().next().value);
			const answer = get(path, query);
			answer.catch(() => this.cache.delete(key));
			this.cache.set(key, answer);
		}
		return this.cache.get(key);
	}

	async load() {
		if (!this.isOpen || !data.set) return;
		this.control?.abort();
		const control = new AbortController();
		this.control = control;
		let record;
		try {
			record = await this.fetch(state.place !== "" ? `api/place/${state.place}` : `api/record/${state.record}`);
		} catch (error) {
			if (!control.signal.aborted) this.missing(error);
			return;
		}
		if (control.signal.aborted) return;
		await this.show(record, control);
	}

	missing(error) {
		this.record = null;
		this.stage.hidden = true;
		this.bytes.hidden = true;
		this.drawHead();
		clear(this.note, h("p.alert", icon("warn"), bdi(error.message)));
		clear(this.side);
		drawn("detail", { error: error.message });
		if (error.status === 410) fail(error);
	}

	async show(record, control) {
		this.record = record;
		this.drawHead();
		clear(this.note, record.damage ? damageNote(record.damage) : null, record.cause ? h("p.alert.warn", icon("warn"), bdi(record.cause)) : null);
		clear(this.side, this.facts(record), (record.features ?? []).map(feature => featureRow(feature, record.record, feature.show === "image" && feature.name === record.picture?.feature)));
		this.side.scrollTop = 0;
		this.classList.toggle("has-picture", Boolean(record.picture));
		this.classList.toggle("is-bare", Boolean(record.damage) && !record.features?.length);
		this.stage.hidden = !record.picture;
		this.showHex();
		if (record.picture) {
			try {
				await this.stage.show(record, control.signal);
			} catch (error) {
				if (control.signal.aborted) return;
				this.stage.hidden = true;
				this.note.append(h("p.alert.warn", icon("warn"), bdi(error.message)));
			}
		}
		if (control.signal.aborted) return;
		drawn("detail", { record: record.record, position: record.position });
		this.ahead(record);
	}

	/** The neighbours are fetched, so that going there costs no wait. */
	ahead(record) {
		for (const position of [record.next, record.previous]) {
			if (position == null) continue;
			this.fetch(`api/place/${position}`).then(next => {
				if (!next.picture) return;
				const image = new Image();
				image.src = withGuesses(next.picture.src);
			}, () => {});
		}
	}

	drawHead() {
		const { record } = this;
		const step = (name, key, position) => tool(name, t(key), () => this.goTo(position), { disabled: position == null });
		const title = record && record.record === null ? t("tile.place", { n: record.position }) : t("tile.record", { n: record ? record.record : Number(state.record) });
		const of = record && record.position != null ? t("detail.of", { n: record.position + 1, total: count() }) : null;
		const focus = this.head.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
		const zoom = record?.picture ? h("div.segments", { role: "group", label: t("zoom.label") }, [["fit", t("zoom.fit")], ["1", "1:1"], ["2", "2×"], ["4", "4×"]].map(([value, text]) =>
			h("button", { "aria-pressed": state.zoom === value, onclick: () => change({ zoom: value }) }, text))) : null;
		clear(this.head,
			tool("close", t("detail.back"), () => this.close()),
			step("left", "detail.previous", record?.previous), step("right", "detail.next", record?.next),
			h("h2", title), of ? h("span.note", of) : null,
			h("span.detail-caption", (record?.caption ?? []).map(part => h("span.chip", dot(part), bdi(part.text)))),
			h("span.spring"), zoom,
			h("button.button", { "aria-pressed": state.hex === "1", onclick: () => change({ hex: state.hex === "1" ? "" : "1" }) }, t("hex.open")),
			record && record.record !== null ? h("a.button", { href: withGuesses(`raw/${record.record}`), download: "" }, icon("down"), t("detail.download")) : null);
		if (focus) [...this.head.querySelectorAll("button")].find(one => one.getAttribute("aria-label") === focus)?.focus();
	}

	facts(record) {
		const row = (name, show) => [t(`fact.${name}`), record[name] == null || record[name] === "" ? null : show(record[name])];
		return facts([row("file", bdi), row("ordinal", num), row("offset", num), row("bytes", bytes), row("split", bdi),
			[t("fact.tags"), record.tags?.length ? record.tags.map(tag => h("span.chip", bdi(tag))) : null]]);
	}

	showHex() {
		const { record } = this;
		const isDamaged = Boolean(record.damage);
		const isShown = state.hex === "1" || isDamaged;
		this.bytes.hidden = !isShown;
		this.drawHead();
		if (!isShown) return;
		const { damage } = record;
		this.hex.show(isDamaged ? { shard: damage.shard, offset: damage.offset } : { record: record.record }, placeQuery());
	}

	/** Show the record at a position. */
	async goTo(position) {
		if (position == null) return;
		try {
			const record = await this.fetch(`api/place/${position}`);
			change(record.record === null ? { place: position, record: "" } : { record: record.record, place: "" }, { replace: true });
		} catch (error) {
			fail(error);
		}
	}

	step(by) {
		this.goTo(by > 0 ? this.record?.next : this.record?.previous);
	}

	close() {
		change({ record: "", place: "" });
	}
}

function damageNote(damage) {
	const rows = [
		[t("damage.cause"), bdi(damage.cause)], [t("fact.file"), bdi(damage.file)],
		[t("fact.ordinal"), damage.record == null ? "–" : ordinal(damage)],
		[t("fact.offset"), num(damage.offset)], [t("damage.hint"), damage.hint ? bdi(damage.hint) : null],
	];
	return h("section.damage-note", { label: t("damage.title") }, h("h3", icon("warn"), t("damage.title")),
		facts(rows));
}

customElements.define("tfr-detail", Detail);
