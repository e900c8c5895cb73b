// One record: its picture, its features, its bytes.

import { get } from "./api.js";
import { bdi, clear, drawn, facts, h, icon, tool } from "./dom.js";
import { featureRow, withGuesses } from "./feature.js";
import { change, count, data, fail, model, placeQuery } from "./model.js";
import { listen, state } from "./state.js";
import { bytes, num, t } from "./words.js";
import "./hex.js";
import "./stage.js";

class Detail extends HTMLElement {
	connectedCallback() {
		if (this.head) return;
		this.cache = new Map(); // address: promise of a record; the neighbours are fetched ahead
		this.head = h("header.detail-head", null);
		this.stage = document.createElement("tfr-stage");
		this.note = h("div.detail-note", null);
		this.side = h("div.detail-side", { tabindex: "0", role: "region", label: t("detail.features") });
		this.hex = document.createElement("tfr-hex");
		this.bytes = h("div.detail-bytes", null, this.hex);
		this.append(this.head, h("div.detail-body", null, h("div.detail-main", null, this.note, this.stage, this.bytes), this.side));
		listen((keys) => {
			if (keys.has("record") || keys.has("place")) this.load();
			else if (keys.has("hex") && this.record) this.showHex();
			else if (keys.has("zoom") && this.record) this.drawHead();
		});
		model.addEventListener("guesses", () => this.forget());
		model.addEventListener("selection", () => {
			if (!data.selection || data.selection.phase === "exact") this.forget();
		});
		model.addEventListener("tags", () => this.forget());
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
		clear(this.note, h("p.alert", null, icon("warn"), bdi(error.message)));
		clear(this.side);
		drawn("detail", { error: error.message });
		if (error.status === 410) fail(error);
	}

	async show(record, control) {
		this.record = record;
		this.drawHead();
		clear(this.note, record.damage ? damageNote(record.damage) : null, record.cause ? h("p.alert.mild", null, icon("warn"), bdi(record.cause)) : null);
		clear(this.side, this.facts(record), (record.features ?? []).map((feature) => featureRow(feature, record.record, feature.show === "image" && feature.name === record.picture?.feature)));
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
				this.note.append(h("p.alert.mild", null, icon("warn"), bdi(error.message)));
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
			this.fetch(`api/place/${position}`).then((next) => {
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
			h("button", { "aria-pressed": String(state.zoom === value), onclick: () => change({ zoom: value }) }, text))) : null;
		clear(this.head,
			tool("close", t("detail.back"), () => this.close()),
			step("left", "detail.previous", record?.previous), step("right", "detail.next", record?.next),
			h("h2", null, title), of ? h("span.note", null, of) : null,
			h("span.detail-caption", null, (record?.caption ?? []).map((part) => h("span.chip", null, part.color ? h("span.dot", { style: { "--dot": part.color } }) : null, bdi(part.text)))),
			h("span.spring", null), zoom,
			h("button.button", { "aria-pressed": String(state.hex === "1"), onclick: () => change({ hex: state.hex === "1" ? "" : "1" }) }, t("hex.open")),
			record && record.record !== null ? h("a.button", { href: withGuesses(`raw/${record.record}`), download: "" }, icon("down"), t("detail.download")) : null);
		if (focus) [...this.head.querySelectorAll("button")].find((one) => one.getAttribute("aria-label") === focus)?.focus();
	}

	facts(record) {
		const rows = [
			[t("fact.file"), bdi(record.file ?? "")],
			[t("fact.ordinal"), record.ordinal == null ? null : num(record.ordinal)],
			[t("fact.offset"), record.offset == null ? null : num(record.offset)],
			[t("fact.bytes"), record.bytes == null ? null : bytes(record.bytes)],
			[t("fact.split"), record.split ? bdi(record.split) : null],
			[t("fact.tags"), record.tags?.length ? record.tags.map((tag) => h("span.chip", null, bdi(tag))) : null],
		];
		return facts(rows);
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
			change(record.record === null ? { place: String(position), record: "" } : { record: String(record.record), place: "" }, { replace: true });
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
		[t("damage.record_in_shard"), damage.record == null ? "–" : num(damage.record)],
		[t("fact.offset"), num(damage.offset)], [t("damage.hint"), damage.hint ? bdi(damage.hint) : null],
	];
	return h("section.damage-note", { label: t("damage.title") }, h("h3", null, icon("warn"), t("damage.title")),
		facts(rows));
}

customElements.define("tfr-detail", Detail);
