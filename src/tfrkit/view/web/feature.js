// One feature of a record, shown as what it is.

import { get } from "./api.js";
import { bdi, clear, facts, h, icon, visible } from "./dom.js";
import { spark } from "./histogram.js";
import { data, fail } from "./model.js";
import { colorMask, readMask } from "./overlay.js";
import { guessQuery, listen, state } from "./state.js";
import { bytes, num, short, t } from "./words.js";

/** The address of a picture with dataset, stamp and guesses. */
export function withGuesses(src) {
	return `${src}${src.includes("?") ? "&" : "?"}${guessQuery({ v: data.set.stamp })}`;
}

/** `isShown`: its picture is on the page already. */
export function featureRow(feature, record, isShown) {
	const role = feature.role ? h("span.chip", t(`role.${feature.role}`)) : null;
	return h("section.feature", { "data-feature": feature.name },
		h("header", h("h3", bdi(feature.name)), role, h("span.feature-fact", about(feature)),
			feature.download ? h("a.tool", { href: withGuesses(feature.download), download: "", label: t("feature.download", { name: feature.name }), title: t("feature.download", { name: feature.name }) }, icon("down")) : null),
		isShown ? null : body(feature, record));
}

function about(feature) {
	const size = feature.width ? `${feature.format ?? ""} ${feature.width}×${feature.height}`.trim() : feature.format;
	const shape = feature.shape?.length ? `${feature.dtype} [${feature.shape.join(", ")}]` : null;
	const many = feature.count > 1 ? t("feature.values", { n: feature.count }) : null;
	return [feature.meaning || feature.kind, size, shape, many, feature.bytes > 64 ? bytes(feature.bytes) : null].filter(Boolean).map(visible).join(" · ");
}

function body(feature, record) {
	switch (feature.show) {
		case "image": return thumb(feature);
		case "mask": return maskView(feature);
		case "audio": return sound(feature, feature.src);
		case "text": return text(feature, record);
		case "json": return h("pre.code", { tabindex: "0", label: feature.name }, visible(feature.value));
		case "number": return h("p.value-one", named(feature));
		case "numbers": return numbers(feature, record);
		case "tensor": return tensor(feature);
		case "frames": return frames(feature, record);
		case "list": return h("ol.items", { start: "0" }, feature.items.map(one => h("li", body(one, record))));
		case "bytes": return h("p.code", (feature.head ?? "").replace(/(..)/g, "$1 "), feature.bytes > 64 ? "…" : "");
		default: return h("p.note", t("feature.empty"));
	}
}

const thumb = feature => h("img.thumb", { src: withGuesses(feature.src), alt: t("feature.image", { name: feature.name }), loading: "lazy" });

const sound = (feature, src) => h("audio", { controls: true, preload: "metadata", src: withGuesses(src), label: feature.name });

const named = feature => (feature.values ?? []).map((value, i) => {
	const name = feature.names?.[i];
	return h("span.number", name ? [bdi(name), " ", h("small", short(value))] : short(value));
});

function text(feature, record) {
	const block = h("p.text", bdi(feature.value ?? feature.text ?? ""));
	return feature.is_cut ? [block, more(feature, record, block, feature.value.length)] : block;
}

/** A button that fetches the rest of a value, 1000 of it each time. */
function more(feature, record, block, have) {
	let first = have;
	const button = h("button.link", { onclick: async () => {
		try {
			const page = await get(`api/values/${record}`, guessQuery({ feature: feature.name, first, count: 1000 }));
			const isText = feature.show === "text";
			const got = isText ? (page.values[0] ?? "") : page.values;
			block.append(isText ? visible(got) : `, ${got.map(short).join(", ")}`);
			first += got.length;
			if (!got.length || first >= page.total) button.remove();
		} catch (error) {
			fail(error);
		}
	} }, t("feature.more"));
	return button;
}

function numbers(feature, record) {
	const list = feature.values ?? [];
	if (feature.names?.some(Boolean)) return h("p.number-list", named(feature));
	const block = h("p.numbers.code", list.map(short).join(", "));
	return [feature.sound ? sound(feature, feature.sound) : null, list.length >= 8 ? spark(feature.points ?? list) : null, block, feature.is_cut ? more(feature, record, block, list.length) : null];
}

function tensor(feature) {
	const stats = feature.stats ?? {};
	return [
		feature.src ? thumb(feature) : null,
		feature.points?.length > 1 ? spark(feature.points) : h("p.code", (feature.points ?? []).map(short).join(", ")),
		facts(["min", "max", "mean", "std"].map(key => [t(`stat.${key}`), stats[key] == null ? null : short(stats[key])]), "facts.small")];
}

/** Frames: pictures with a slider, anything else as a list. */
function frames(feature, record) {
	const { items } = feature;
	if (!items?.length) return h("p.note", t("feature.empty"));
	if (items.every(one => one.show === "image")) return film(items, feature);
	if (items.every(one => one.show === "number" || (one.show === "numbers" && one.count === 1))) {
		return numbers({ ...feature, show: "numbers", values: items.map(one => one.values[0]), is_cut: false }, record);
	}
	return [h("ol.items", { start: "0" }, items.map(one => h("li", body(one, record)))), note(items, feature)];
}

const note = (items, feature) => (feature.frames > items.length ? h("p.note", t("frames.first", { n: items.length, total: feature.frames })) : null);

function film(items, feature) {
	const image = h("img.thumb.film", { src: withGuesses(items[0].src), alt: t("feature.image", { name: feature.name }) });
	const where = h("output", `0 / ${num(items.length - 1)}`);
	const slider = h("input", { type: "range", min: "0", max: String(items.length - 1), value: "0", label: t("frames.slider", { name: feature.name }), oninput: () => {
		image.src = withGuesses(items[Number(slider.value)].src);
		where.textContent = `${num(Number(slider.value))} / ${num(items.length - 1)}`;
	} });
	return [image, items.length > 1 ? h("div.film-bar", slider, where) : null, note(items, feature)];
}

function maskView(feature) {
	const canvas = h("canvas.thumb.mask", { role: "img", label: t("feature.mask", { name: feature.name }) });
	fetch(withGuesses(feature.src)).then(answer => answer.blob()).then(readMask).then(mask => {
		const draw = () => {
			canvas.width = mask.width;
			canvas.height = mask.height;
			canvas.getContext("2d").putImageData(colorMask(mask, new Set(state.hide), 1), 0, 0);
		};
		draw();
		const end = listen(keys => (canvas.isConnected ? keys.has("hide") && draw() : end()));
	}).catch(() => clear(canvas));
	return canvas;
}
