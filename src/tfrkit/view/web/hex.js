// Bytes of a record: each field with its place, meaning and value.

import { get } from "./api.js";
import { bdi, clear, drawn, h, tool } from "./dom.js";
import { fail } from "./model.js";
import { num, t } from "./words.js";

const PAGE = 512;

class Hex extends HTMLElement {
	/** Show a frame, or the bytes around damage: {record} or {shard, offset}. */
	async show(target, query) {
		this.target = target;
		this.query = query;
		await this.page(target.record === undefined ? -64 : 0);
	}

	async page(at) {
		const query = new URLSearchParams(this.query);
		query.delete("sel");
		const { record, ...place } = this.target;
		for (const [key, value] of Object.entries({ at, count: PAGE, ...place })) query.set(key, value);
		try {
			this.draw(await get(record === undefined ? "api/hex" : `api/hex/${record}`, query));
		} catch (error) {
			clear(this, h("p.note", bdi(error.message)));
			if (error.status !== 404) fail(error);
		}
	}

	draw(page) {
		const isRecord = this.target.record !== undefined;
		const bytes = page.hex.match(/../g) ?? [];
		const fields = page.fields ?? [];
		// The deepest field that a byte is in.
		const owner = new Array(bytes.length).fill(-1);
		fields.forEach((field, number) => {
			for (let at = Math.max(0, field.start - page.at); at < Math.min(bytes.length, field.stop - page.at); at += 1) owner[at] = number;
		});
		const cells = bytes.map((byte, at) => h("span", { class: `byte tone-${owner[at] < 0 ? "none" : owner[at] % 6}${owner[at] >= 0 && fields[owner[at]].is_bad ? " is-bad" : ""}`, "data-field": owner[at] }, byte));
		const lines = [];
		for (let at = 0; at < bytes.length; at += 16) {
			const text = bytes.slice(at, at + 16).map(byte => ascii(Number.parseInt(byte, 16))).join("");
			lines.push(h("div.hex-line", h("span.hex-offset", (page.offset + page.at + at).toString(16).padStart(8, "0")),
				h("span.hex-bytes", cells.slice(at, at + 16)), h("span.hex-text", text)));
		}
		const rows = fields.map((field, number) => h("tr", { "data-field": number, class: field.is_bad ? "is-bad" : "" },
			h("td.field-at", `${field.start}–${field.stop}`),
			h("td.field-path", { style: { "--depth": field.depth } }, h("span", { class: `tone-mark tone-${number % 6}` }), bdi(short(field.path))),
			h("td", bdi(field.what)), h("td.field-value", bdi(field.value ?? ""))));
		const light = event => this.light(event.target.closest("[data-field]")?.dataset.field);
		const pager = page.total > PAGE || page.at !== 0 || !isRecord ? h("div.hex-pager",
			tool("left", t("hex.before"), () => this.page(page.at - PAGE), { disabled: page.at <= 0 && isRecord }),
			h("span", isRecord ? t("hex.bytes", { from: page.at, to: page.at + bytes.length, total: page.total }) : t("hex.around", { from: page.offset + page.at, to: page.offset + page.at + bytes.length })),
			tool("right", t("hex.after"), () => this.page(page.at + PAGE), { disabled: isRecord ? page.at + bytes.length >= page.total : bytes.length < PAGE })) : null;
		clear(this,
			h("p.note", t("hex.where", { file: page.file, offset: num(page.offset) })), pager,
			h("div.hex-panes", { onpointerover: light },
				h("div.hex-dump", { tabindex: "0", role: "region", label: t("hex.label") }, lines),
				fields.length ? h("div.hex-fields", { tabindex: "0", role: "region", label: t("hex.fields") }, h("table.table",
					h("thead", h("tr", ["hex.at", "hex.field", "hex.what", "hex.value"].map(key => h("th", { scope: "col" }, t(key))))), h("tbody", rows))) : null));
		drawn("hex", { at: page.at, offset: page.offset, fields: fields.length });
	}

	light(number) {
		for (const one of this.querySelectorAll(".is-lit")) one.classList.remove("is-lit");
		if (number === undefined || number === "-1") return;
		for (const one of this.querySelectorAll(`[data-field="${number}"]`)) one.classList.add("is-lit");
	}
}

const ascii = code => (code >= 32 && code < 127 ? String.fromCharCode(code) : "·");
const short = path => path.split(/\.(?![^[]*\])/).at(-1);

customElements.define("tfr-hex", Hex);
