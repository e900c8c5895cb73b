// Small windows: keys, go to a record, tag, export.

import { post } from "./api.js";
import { bdi, clear, drawn, h, icon, tool } from "./dom.js";
import { count, data, setTags } from "./model.js";
import { state } from "./state.js";
import { bytes, num, t } from "./words.js";

/** Open a window; `build(close)` makes what is in it. */
function open(name, title, build) {
	const close = () => dialog.close();
	const dialog = h("dialog", { class: `dialog dialog-${name}`, "aria-labelledby": "dialog-title", onclose: () => dialog.remove(), onclick: event => event.target === dialog && close() },
		h("div.dialog-box",
			h("header", h("h2", { id: "dialog-title" }, title), tool("close", t("dialog.close"), close)), build(close)));
	document.body.append(dialog);
	dialog.showModal();
	dialog.querySelector("[autofocus]")?.focus();
	drawn("dialog", { name });
	return dialog;
}

const onEnter = action => event => {
	if (event.key === "Enter") {
		event.preventDefault();
		action();
	}
};

const KEYS = ["← → ↑ ↓", "Enter", "Space", "Esc", "g", "/", "n p", "h", "1 … 9", "[ ]", "d", "x", "t", "s", "b", "?"];

export function showHelp() {
	open("help", t("help.title"), () => h("div",
		h("dl.keys", KEYS.map(key => h("div", h("dt", key.split(" ").map(one => (one === "…" ? " … " : h("kbd", one)))), h("dd", t(`key.${key}`))))),
		h("p.note", `tfrkit ${data.info.version}`)));
}

export function goToRecord(grid, detail) {
	open("go", t("go.title"), close => {
		const most = count() - 1;
		const field = h("input.field", { type: "number", min: 0, max: most, onkeydown: onEnter(() => go()), autofocus: true, label: t("go.label", { n: Math.max(0, most) }), placeholder: `0 – ${num(Math.max(0, most))}` });
		const note = h("p.note", { role: "status" }, data.selection ? t("go.position") : t("go.record"));
		const go = async () => {
			const wanted = Number(field.value);
			if (field.value === "" || !Number.isInteger(wanted) || wanted < 0 || wanted > most) {
				note.textContent = t("go.wrong", { n: Math.max(0, most) });
				return;
			}
			close();
			if (detail.isOpen) detail.goTo(wanted);
			else {
				grid.goTo(wanted, { align: "top" });
				grid.scroller.focus();
			}
		};
		return h("div.dialog-form", field, h("button.button.primary", { onclick: go }, t("go.do")), note);
	});
}

/** Tag the marked records, or one, or all of the selection. */
export function tagRecords(records, onDone) {
	open("tag", t("tag.title"), close => {
		const names = Object.keys(data.tags);
		const field = h("input.field", { onkeydown: onEnter(() => send(true)), autofocus: true, maxlength: "64", label: t("tag.name"), placeholder: t("tag.name"), list: "tag-names", spellcheck: "false" });
		const whole = records.length ? null : data.selection?.sel;
		const note = h("p.note", { role: "status" }, records.length ? t("tag.records", { n: records.length }) : t("tag.all", { n: count() }));
		const send = async on => {
			const name = field.value.trim();
			if (!name) return;
			try {
				const answer = await post("api/tag", { d: Number(state.d), name, on, ...(records.length ? { records } : { sel: whole }) });
				setTags(answer.tags);
				close();
				onDone();
				drawn("tagged", { name, on });
			} catch (error) {
				note.textContent = error.message;
			}
		};
		return h("div.dialog-form", field, h("datalist", { id: "tag-names" }, names.map(value => h("option", { value }))),
			h("button.button.primary", { onclick: () => send(true) }, t("tag.add")), h("button.button", { onclick: () => send(false) }, t("tag.remove")), note);
	});
}

export function exportRecords() {
	open("export", t("export.title"), () => {
		const note = h("p.note", { role: "status" });
		const folder = data.info.can.export;
		const what = h("p", t("export.what", { n: count() }));
		if (!folder) return h("div.dialog-form", what, h("p.alert.warn", icon("warn"), t("export.no_folder")));
		const field = h("input.field", { onkeydown: onEnter(() => button.click()), autofocus: true, value: "selection", label: t("export.name"), spellcheck: "false", pattern: "[A-Za-z0-9._-]+" });
		const kind = h("select.field", { label: t("export.as") }, ["tfrecord", "images", "list"].map(value => h("option", { value }, t(`export.${value}`))));
		const button = h("button.button.primary", { onclick: async () => {
			button.disabled = true;
			note.textContent = t("export.running");
			try {
				const answer = await post("api/export", { d: Number(state.d), sel: data.selection?.sel ?? null, as: kind.value, name: field.value.trim() });
				clear(note, t("export.done", { n: answer.records, size: bytes(answer.bytes) }), " ", h("code", bdi(answer.path)),
					[["warn.damage", answer.damaged], ["export.without", answer.without_image]].map(([key, n]) => n ? h("p", t(key, { n })) : null));
				drawn("exported", answer);
			} catch (error) {
				clear(note, bdi(error.message), error.where.hint && ["; ", bdi(error.where.hint)]);
				drawn("exported", { error: error.message });
			}
			button.disabled = false;
		} }, t("export.do"));
		return h("div.dialog-form", what, kind, field, button, h("p.note", t("export.folder"), " ", h("code", bdi(folder))), note);
	});
}
