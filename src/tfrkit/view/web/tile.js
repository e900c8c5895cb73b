// One place of the grid: a picture, a card of features, or damage.

import { bdi, clear, dot, h, icon } from "./dom.js";
import { drawPicture, place } from "./overlay.js";
import { num, ordinal, t } from "./words.js";

/** An element that shows one row after another as the grid moves. */
export function makeTile() {
	const body = h("div.tile-body");
	const number = h("span.tile-number");
	const text = h("span.tile-text");
	const marks = h("span.tile-tags");
	const element = h("div", { role: "gridcell", class: "tile" }, body, h("div.tile-foot", text, marks, number));
	return { element, body, number, text, marks, canvas: null, shown: null };
}

/** Show `row` (null: not there yet) at `position`. */
export function showTile(tile, position, row, box) {
	tile.position = position;
	tile.element.id = `tile-${position}`;
	tile.element.dataset.position = String(position);
	if (tile.shown === row && tile.box === box && row !== null && !tile.stale) return;
	tile.shown = row;
	tile.box = box;
	tile.stale = false;
	const kind = row === null ? "wait" : row.damage ? "damage" : row.picture ? "picture" : row.cause ? "cause" : "card";
	tile.element.className = `tile tile-${kind}`;
	tile.number.textContent = row?.record === null ? "" : num(row?.record ?? position);
	clear(tile.marks, row?.tags?.length ? icon("tag") : null);
	clear(tile.text, (row?.caption ?? []).map(caption));
	if (kind === "picture") drawTile(tile);
	else {
		tile.canvas = null;
		clear(tile.body, row === null ? null : kind === "damage" ? damage(row.damage) : kind === "cause" ? cause(row) : card(row));
	}
}

const caption = part => h("span.caption", dot(part), bdi(part.text));

/** Draw the picture and what lies over it; again whenever a switch changes. */
export function drawTile(tile) {
	const { box, shown: row } = tile;
	if (!row?.picture) return;
	const ratio = devicePixelRatio;
	const at = place(row.picture, Math.round(box.tile * ratio), Math.round(box.picture * ratio), Math.max(4, ratio));
	if (!tile.canvas) {
		tile.canvas = h("canvas.tile-canvas");
		clear(tile.body, tile.canvas);
	}
	drawPicture(tile.canvas, row.picture, at.w, at.h, row, { ratio, scale: ratio * (at.w < 130 * ratio ? 0.6 : 0.85), names: at.w >= 120 * ratio });
}

function card(row) {
	if (!row.card?.length) return h("p.card-empty", t("card.empty"));
	return h("dl.card", row.card.map(one => [h("dt", bdi(one.name)), h("dd", bdi(one.text))]));
}

const cause = row => h("div.tile-note", icon("warn"), h("p", bdi(row.cause)));

export function damage(one) {
	return h("div.tile-note", icon("warn"),
		h("p.note-head", t("damage.at", { n: one.offset })),
		h("p", bdi(one.cause)),
		h("p.note-file", bdi(one.file), one.record == null ? "" : ` · ${t("damage.record", { n: ordinal(one) })}`));
}
