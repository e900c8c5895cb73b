// The statistics of a dataset, in the viewer and in `tfr stats --html`.

import { bdi, h, icon, link, s, visible } from "./dom.js";
import { axes, bars, ticks, values } from "./histogram.js";
import { bytes, num, ordinal, short, t } from "./words.js";

const FOLD = 12; // classes that are shown unfolded
const percent = (part, whole) => `${((100 * part) / (whole || 1)).toFixed(1)} %`;
const mark = i => h("span", { class: `tone-mark tone-${i % 6}` });
const named = (name, action) => action ? link(action, bdi(name)) : bdi(name);
const section = (title, ...parts) => h("section", h("h2", title), parts);
const about = (key, feature) => [`${t(key)} · `, bdi(feature)];
const record = one => [one.split, one.file, one.record == null ? null : t("damage.record", { n: ordinal(one) })].filter(Boolean).join(" · ");

/** The sections of the page. `show`: `src` of a picture; `open`, `pick`, `split`: what a click does. */
export const draw = (report, show) => [
	facts(report), warnings(report, show), splits(report, show), report.classes.map(one => classes(one, report, show)), rarest(report, show),
	report.samples.length ? section(t("stats.samples"), h("div.pics", report.samples.map(one => picture(one, show)))) : null,
	copies(report, show), figures(report),
	report.tables.map(({ name, heads, rows }) => section(t(`stats.${name}`), table(heads.map(head => t(`table.${head}`)), rows, t(`stats.${name}`)))), h("p.note", t("stats.estimates"))];

const facts = report => h("dl.big-facts", Object.entries({ records: num(report.records), files: num(report.num_files), size: bytes(report.bytes), features: num(report.features.length), kind: t(`kind.${report.kind}`) })
	.map(([name, value]) => h("div.big-fact", h("dd", value), h("dt", t(`stats.${name}`)))));

/** What is wrong comes first. */
function warnings({ warnings: list, findings }, show) {
	const words = ({ kind, text, names = [], ...more }) => text ?? t(/^found_(?!leak|dup|near)/.test(kind) ? "warn.found" : `warn.${kind}`,
		{ ...more, what: kind.slice(6), names: names.map(visible).join(", ") + (more.n > names.length ? ` … (${num(more.n)})` : "") });
	return list.length ? h("section.warnings", { label: t("stats.warnings") }, list.map(one => h("p", { class: `alert ${one.level}` }, icon("warn"), bdi(words(one)))),
		findings.length ? h("details.fold", { open: findings.length < 5 }, h("summary", t("stats.findings", { n: findings.length })), h("ul.finding-list", findings.map(one => h("li", named(record(one), show.open?.(one)), ": ", bdi(one.cause))))) : null) : null;
}

const splits = ({ splits: list, records }, show) => list.length ? section(t("stats.splits"),
	h("div.split-bar", { "aria-hidden": true }, list.map((one, i) => h("span", { class: `tone-${i % 6}`, style: { "flex-grow": Math.max(one.records, records / 200) } }))),
	h("ul.split-list", list.map((one, i) => h("li", mark(i), named(one.name, show.split?.(one.name)), ` ${num(one.records)} · ${percent(one.records, records)}`)))) : null;

/** Classes by count, the rest folded. Bars are shares of each split. */
function classes(one, { splits: list }, show) {
	const { sums } = one;
	const top = Math.max(...one.classes.flatMap(entry => entry.splits.map((count, i) => count / (sums[i] || 1))));
	const row = entry => h("tr", h("th", { scope: "row" }, named(entry.text, show.pick?.(one, entry.value))), h("td.right", num(entry.count)),
		entry.splits.map((count, i) => h("td", h("div.share", h("span.value-bar", { "aria-hidden": true }, h("span", { class: `value-fill tone-${i % 6}`, style: { width: `${(100 * count) / (sums[i] || 1) / top}%` } })), h("small", percent(count, sums[i]))))));
	const heads = () => [t("stats.class"), t("stats.count"), ...(sums.length > 1 ? list.map(split => bdi(split.name)) : [t("stats.share")])];
	const box = entries => h("div.table-box", h("table.table.classes", h("thead", h("tr", heads().map(name => h("th", { scope: "col" }, name)))), h("tbody", entries.map(row))));
	const more = one.num_classes - FOLD;
	return section(about("stats.classes", one.feature), h("p.note", t("stats.num_classes", { n: one.num_classes, ratio: short(Number(one.largest_to_smallest.toPrecision(3))) })),
		box(one.classes.slice(0, FOLD)), more > 0 ? h("details.fold", h("summary", t("figure.more", { n: more })), box(one.classes.slice(FOLD))) : null);
}

/** That is where labels are wrong. */
const rarest = ({ rarest: found }, show) => found ? section(about("stats.rare", found.feature), h("div.rare-groups", found.classes.map(one => h("div",
	h("h3", named(one.text, show.pick?.(found, one.value)), " ", h("span.note", num(one.count))), h("div.pics", one.pictures.map(each => picture(each, show, false))))))) : null;

/** A small picture of a record, with boxes. */
function picture(one, show, hasCaption = true) {
	const action = show.open?.(one);
	const shown = one.data ? [h("img", { src: show.src(one), alt: `${visible(one.caption)} · ${record(one)}`, width: one.width, height: one.height }),
		one.boxes.length ? s("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": true }, one.boxes.map(({ box: [x, y, right, bottom], color }) => s("rect", { x, y, width: right - x, height: bottom - y, stroke: color }))) : null]
		: h("span.pic-none", bdi(one.cause ?? record(one)));
	return h("figure.pic", { title: record(one) }, h(action ? "button.pic-frame" : "span.pic-frame", { onclick: action }, shown), hasCaption ? h("figcaption", bdi(one.caption)) : null);
}

const copies = ({ copies: found }, show) => found ? section(t("stats.copies"), found.pairs.length ? h("div.pairs", found.pairs.map(pair => h("article.pair", h("h3", t(`warn.copy_${pair.kind}`)),
	pair.records.map(one => h("div", one.data ? picture(one, show, false) : null, h("span.note", bdi(record(one)))))))) : h("p.good", t("stats.no_copies"))) : null;

function figures({ features, splits: list }) {
	const cards = features.map(card).filter(Boolean);
	return cards.length ? section(t("stats.figures"), list.length > 1 ? h("p.split-list", list.map((one, i) => h("span", mark(i), bdi(one.name)))) : null, h("div.stat-cards", cards)) : null;
}

/** A feature: what it is, its values, and for lists their lengths. */
function card(feature) {
	const { name, sizes, pictures, lengths, frames, top, distinct } = feature;
	const plot = (key, one) => one?.bins && one.min !== one.max ? [h("h4", t(`stats.${key}`)), bars({ feature: name, ...one }, { wide: 420, high: 130 })] : null;
	const text = one => one.name ?? (typeof one.value === "object" ? JSON.stringify(one.value) : String(one.value));
	const isText = feature.text && top.length > 1;
	const plots = [distinct === 1 && top.length && lengths.min === lengths.max ? h("p.constant", t("figure.constant", { value: visible(text(top[0])) })) : null, pictures?.sizes.length ? scatter(feature) : null,
		isText ? values({ num_values: distinct, values: top.map(one => ({ text: text(one), count: one.count, chosen: one.count })) }, { shown: 10 }) : plot("bytes", sizes), plot("values", feature.numbers), plot("lengths", lengths), plot("frames", frames)].filter(Boolean);
	const facts = [feature.meaning, distinct > 1 ? t("figure.values", { n: `${feature.distinct_exact ? "" : "≈ "}${num(distinct)}` }) : null].filter(Boolean).join(" · ");
	return plots.length ? h("article.stat-card", { "data-feature": name }, h("header", h("h3", bdi(name)), h("span.note", bdi(facts))), plots) : null;
}

/** Sizes of pictures: one circle for each, its area by the count. */
function scatter({ name, pictures: { sizes, step, formats } }) {
	const kinds = Object.entries(formats).map(([kind, count]) => `${kind} ${num(count)}`).join(", ");
	const size = one => `${one.width} × ${one.height}`;
	if (sizes.length === 1 && step === 1) return h("p.constant", t("stats.one_size", { size: size(sizes[0]), kinds }));
	const box = { wide: 420, high: 220, left: 40 };
	const [across, down] = ["width", "height"].map(key => Math.max(...sizes.map(one => one[key])) * 1.08);
	const x = value => box.left + (value / across) * (box.wide - box.left - 4);
	const y = value => box.high - (value / down) * (box.high - 8);
	const most = sizes[0].count;
	return [h("p.note", t("stats.picture_sizes", { n: sizes.length, size: size(sizes[0]), count: most, kinds })),
		s("svg", { viewBox: `0 0 ${box.wide} ${box.high + 18}`, class: "bars", role: "img", label: t("stats.scatter", { name }) }, axes({ ...box, x, y, rows: ticks(0, down, 4), marks: ticks(0, across, 6) }),
			sizes.map(one => s("circle.size-dot", { cx: x(one.width).toFixed(1), cy: y(one.height).toFixed(1), r: (2 + 12 * Math.sqrt(one.count / most)).toFixed(1) }, s("title", `${size(one)}: ${num(one.count)}`))))];
}

/** Rows of numbers, texts and elements. */
export const table = (heads, rows, label) => h("div.table-box", { tabindex: "0", role: "region", label }, h("table.table", h("thead", h("tr", heads.map(head => h("th", { scope: "col" }, head)))),
	h("tbody", rows.map(row => h("tr", row.map((cell, i) => {
		const shown = typeof cell === "number" ? short(cell) : cell instanceof Node ? cell : bdi(cell ?? "");
		return i ? h(typeof cell === "number" ? "td.right" : "td", shown) : h("th", { scope: "row" }, shown);
	}))))));
