// Where tiles are: arithmetic only, so 10^8 records cost what ten do.
//
// Browsers end an element at 33,554,428 px (Chromium) or about 17.9 million (Firefox). A taller grid gets a scroll area of
// CAP pixels. Small moves are exact pixels; a large one (the bar is dragged) is scaled. EDGE pixels at each end are exact
// as well, so that the first and the last row are reached by scrolling alone.

export const CAP = 8_000_000;
export const EDGE = 200_000;
export const NEAR = 4_000; // the wheel and Page Down move less; a bar of 1,000 px moves at least CAP / 1000 = 8,000

export function layout({ width, height, size, ratio, caption, gap, count }) {
	const columns = Math.max(1, Math.floor((width - gap) / (size + gap)));
	const tile = Math.floor((width - gap) / columns) - gap;
	const picture = Math.max(24, Math.round(tile / ratio));
	const pitch = picture + caption + gap;
	const rows = Math.ceil(count / columns);
	const full = rows * pitch + gap;
	return { columns, tile, picture, pitch, rows, full, gap, count, height, area: Math.min(full, CAP) };
}

/** Position of the scroll bar for `top` pixels of the whole grid. */
export function toBar(box, top) {
	const most = box.full - box.height;
	const bar = box.area - box.height;
	if (box.full <= CAP) return clamp(top, 0, Math.max(0, most));
	if (top <= EDGE) return Math.max(0, top);
	if (top >= most - EDGE) return bar - Math.max(0, most - top);
	return EDGE + ((top - EDGE) * (bar - 2 * EDGE)) / (most - 2 * EDGE);
}

/** The inverse of `toBar`. */
export function fromBar(box, position) {
	const most = box.full - box.height;
	const bar = box.area - box.height;
	if (box.full <= CAP) return clamp(position, 0, Math.max(0, most));
	if (position <= EDGE) return Math.max(0, position);
	if (position >= bar - EDGE) return most - Math.max(0, bar - position);
	return EDGE + ((position - EDGE) * (most - 2 * EDGE)) / (bar - 2 * EDGE);
}

/** One scroll event: `state` is {top, bar}, of the grid and of the bar, at the event before. */
export function scrolled(box, state, position) {
	const moved = position - state.bar;
	const most = Math.max(0, box.full - box.height);
	// Small moves are not scaled while the bar is far enough from its ends for the next ones.
	const top = Math.abs(moved) <= NEAR ? clamp(state.top + moved, 0, most) : fromBar(box, position);
	return { top, bar: position };
}

/** Rows [start, stop) that are on screen at `top`, and `more` rows before and after them. */
export function rowsAt(box, top, more = 0) {
	const start = Math.max(0, Math.floor((top - box.gap) / box.pitch) - more);
	const stop = Math.min(box.rows, Math.ceil((top + box.height) / box.pitch) + more);
	return { start, stop: Math.max(start, stop) };
}

export const rowTop = (box, row) => box.gap + row * box.pitch;

/** The nearest `top` at which tile `index` is on screen whole. */
export function reveal(box, top, index) {
	const row = Math.floor(index / box.columns);
	const above = rowTop(box, row) - box.gap;
	const below = rowTop(box, row) + box.pitch - box.height;
	return clamp(top > above ? above : top < below ? below : top, 0, Math.max(0, box.full - box.height));
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
