// Words of the page. A line of words.tsv: key, English, Chinese; a line with one word begins a group of keys.

const words = {};
let numbers;
export let lang;

export const load = async wanted => use(await (await fetch("w/words.tsv")).text(), wanted);

export function use(text, wanted) {
	let group = "";
	for (const line of text.split("\n")) {
		const [key, ...texts] = line.split("\t");
		if (texts.length) words[group + key] = texts;
		else group = `${key}.`;
	}
	lang = wanted === "zh" ? "zh" : "en";
	document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
	numbers = new Intl.NumberFormat(document.documentElement.lang);
}

function find(key) {
	const [english, chinese = english] = words[key] ?? [key];
	return lang === "zh" ? chinese : english;
}

/** The text for `key`; `{name}` is replaced by a value, numbers with their separators. */
export const t = (key, values = {}) =>
	find(key).replace(/\{(\w+)\}/g, (all, name) => {
		const value = values[name];
		return value === undefined ? all : typeof value === "number" ? num(value) : value;
	});

export const num = value => numbers.format(value);

/** A record's number, uncertain after lost bytes. */
export const ordinal = ({ record: n, record_certain: isCertain }) => isCertain === false ? t("damage.uncertain", { n }) : num(n);

/** A number of any size as short text. */
export function short(value) {
	if (typeof value !== "number") return value && value.float !== undefined ? value.float : String(value);
	if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? num(value) : String(value);
	const size = Math.abs(value);
	return size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}

export function bytes(value) {
	const units = ["B", "KB", "MB", "GB", "TB"];
	let unit = 0;
	while (value >= 1000 && unit < units.length - 1) {
		value /= 1000;
		unit += 1;
	}
	return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
