// The filter is one SQL condition. Ticks and brushes read and write its text.
//
// A condition is split at the `and`s outside of brackets and quotes. Terms that a figure has written are recognised by their
// text; all others are the user's own and stay as they are.

/** Terms of a condition that hold together. */
export function terms(text) {
	const found = [];
	let depth = 0;
	let quote = "";
	let start = 0;
	let isBetween = false;
	for (let at = 0; at < text.length; at += 1) {
		const c = text[at];
		if (quote) {
			if (c === quote) quote = "";
		} else if (c === "'" || c === '"') quote = c;
		else if (c === "(") depth += 1;
		else if (c === ")") depth -= 1;
		else if (depth === 0 && isWord(text, at, "or")) return [text.trim()];
		else if (depth === 0 && isWord(text, at, "between")) isBetween = true;
		else if (depth === 0 && isWord(text, at, "and")) {
			if (isBetween) isBetween = false;
			else {
				found.push(text.slice(start, at).trim());
				start = at + 3;
			}
		}
	}
	found.push(text.slice(start).trim());
	return found.filter(Boolean);
}

const isWord = (text, at, word) =>
	text.slice(at, at + word.length).toLowerCase() === word && !/\w/.test(text[at - 1] ?? " ") && !/\w/.test(text[at + word.length] ?? " ");

/** Bracket a term with an `or` outside of its brackets. */
const join = list => {
	if (list.length < 2) return list.join("");
	return list.map(term => (terms(`${term} and x`).length === 1 ? `(${term})` : term)).join(" and ");
};

const strip = term => (/^\((.*)\)$/s.test(term) && balanced(term.slice(1, -1)) ? term.slice(1, -1).trim() : term);

function balanced(text) {
	let depth = 0;
	for (const c of text.replace(/'[^']*'|"[^"]*"/g, "")) {
		depth += c === "(" ? 1 : c === ")" ? -1 : 0;
		if (depth < 0) return false;
	}
	return depth === 0;
}

/** Which of `conditions` a term joins with `or`; null if there is anything else in it. */
function matched(term, conditions) {
	let rest = strip(term);
	const found = [];
	while (rest) {
		const one = conditions.find(text => rest === text || rest.startsWith(`${text} or `));
		if (one === undefined) return null;
		found.push(one);
		rest = rest.slice(one.length).replace(/^ or /, "");
	}
	return found;
}

/** The ticked ones of `conditions`. */
export function ticked(text, conditions) {
	for (const term of terms(text)) {
		const found = matched(term, conditions);
		if (found?.length) return found;
	}
	return [];
}

/** `text` with exactly `chosen` of `conditions` ticked. */
export function tick(text, conditions, chosen) {
	const term = chosen.length > 1 ? `(${chosen.join(" or ")})` : chosen[0];
	return replace(text, one => matched(one, conditions)?.length, term);
}

const RANGE = column => {
	const name = column.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
	return new RegExp(`^${name} >= (-?[\\d.eE+-]+) and ${name} (<=?) (-?[\\d.eE+-]+)$`);
};

/** The range that a brush has written for `column`: [from, to] or null. */
export function brushed(text, column) {
	for (const term of terms(text)) {
		const found = RANGE(column).exec(strip(term));
		if (found) return [Number(found[1]), Number(found[3])];
	}
	return null;
}

/** `text` with a range of `column`; `isLast`: `to` itself is inside. null: no range. */
export function brush(text, column, range) {
	const term = range ? `(${column} >= ${range.from} and ${column} ${range.isLast ? "<=" : "<"} ${range.to})` : undefined;
	return replace(text, one => RANGE(column).test(strip(one)), term);
}

/** A value in SQL. */
export const literal = value => (typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`);

/** The term that finds `text` in any of `columns`. */
const found = (columns, text) => {
	const parts = columns.map(column => `${column} ilike ${literal(`%${text}%`)}`);
	return parts.length > 1 ? `(${parts.join(" or ")})` : parts[0];
};

const LIKE = /^.*? ilike '%((?:[^']|'')*)%'$/s;

const searchIn = (term, columns) => {
	if (!columns.length) return null;
	const last = LIKE.exec(strip(term).split(" or ").at(-1));
	if (!last) return null;
	const text = last[1].replaceAll("''", "'");
	return found(columns, text) === term ? text : null;
};

export function searched(text, columns) {
	for (const term of terms(text)) {
		const one = searchIn(term, columns);
		if (one !== null) return one;
	}
	return "";
}

export function search(text, columns, wanted) {
	return replace(text, one => searchIn(one, columns) !== null, wanted ? found(columns, wanted) : undefined);
}

function replace(text, isOwn, term) {
	const list = terms(text);
	const at = list.findIndex(isOwn);
	if (at >= 0) list.splice(at, 1, ...(term ? [term] : []));
	else if (term) list.push(term);
	return join(list);
}
