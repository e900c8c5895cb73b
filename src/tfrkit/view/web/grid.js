// The grid of all records: rows of tiles near the screen, in a scroll area.

import { tiles } from "./api.js";
import { drawn, h } from "./dom.js";
import * as geometry from "./geometry.js";
import { change, count, data, fail, on, placeQuery } from "./model.js";
import { readMask } from "./overlay.js";
import { listen, state } from "./state.js";
import { drawTile, makeTile, showTile } from "./tile.js";
import { t } from "./words.js";

const CAPTION = 26;
const GAP = 10;
const BATCH = 60;
const AT_ONCE = 3; // requests in flight
const KEEP = 900; // rows that are kept after they left the screen
const SIZES = [64, 128, 192, 256, 384, 512];
const CARD_RATIO = 1.05;

class Grid extends HTMLElement {
	connectedCallback() {
		if (this.scroller) return;
		this.rows = new Map(); // position: row, as long as `key` is the same
		this.lines = new Map(); // number of a line: its element
		this.flights = new Set();
		this.cursor = 0;
		this.marked = new Set();
		this.area = h("div.grid-area", { role: "presentation" });
		this.scroller = h("div.grid-scroller", { role: "grid", tabindex: "0", label: t("view.grid"), "aria-multiselectable": "true",
			onscroll: () => this.onScroll(), onclick: event => this.onClick(event), onkeydown: event => this.onKey(event), onfocus: () => this.showCursor() }, this.area);
		this.append(this.scroller);
		this.at = { top: 0, bar: 0 };
		this.first = null;
		new ResizeObserver(() => this.resized()).observe(this.scroller);
		for (const name of ["selection", "guesses", "set"]) on(name, () => this.reset());
		on("count", () => this.measure());
		listen(keys => {
			if (keys.has("size")) this.measure({ keep: true });
			if (["off", "hide", "opacity"].some(key => keys.has(key))) this.redraw();
			if (keys.has("view") && state.view === "grid") this.measure();
		});
		document.addEventListener("tfr:held", () => this.redraw());
	}

	start() {
		this.first = Number(state.top) || 0; // until the grid is on screen
		this.reset();
	}

	size() {
		const wanted = Math.max(this.box?.tile ?? 0, this.box?.picture ?? 0) * devicePixelRatio;
		return SIZES.find(size => size >= wanted) ?? SIZES.at(-1);
	}

	hasPictures() {
		return Boolean(data.set.guesses.image.value) && state.image !== "-";
	}

	reset() {
		if (!this.scroller || !data.set) return;
		const version = `${data.version}|${data.set.d}`;
		if (this.version !== version) {
			const first = this.version === undefined;
			this.version = version;
			this.drop();
			this.ratio = undefined;
			if (!first) {
				this.marked.clear();
				this.first = Number(state.top) || 0;
			}
		}
		this.measure();
	}

	drop() {
		for (const flight of this.flights) flight.abort();
		this.flights.clear();
		for (const row of this.rows.values()) row.picture?.close();
		this.rows.clear();
		for (const line of this.lines.values()) for (const tile of line.tiles) tile.stale = true;
	}

	resized() {
		if (this.scroller.clientWidth && data.set) this.measure({ keep: true });
	}

	/** Lay out again after a change. */
	measure({ keep = false } = {}) {
		if (this.hidden || !this.scroller?.clientWidth || !data.set) return;
		const held = this.first ?? (keep && this.box ? this.firstOnScreen() : null);
		const before = this.box;
		const total = count();
		const ratio = this.hasPictures() ? this.ratio ?? 4 / 3 : CARD_RATIO;
		this.box = geometry.layout({ width: this.scroller.clientWidth, height: this.scroller.clientHeight, size: Number(state.size) || 168, ratio, caption: CAPTION, gap: GAP, count: total });
		if (before && this.rows.size && this.fetched !== this.size()) this.drop();
		this.fetched = this.size();
		if (!before || ["columns", "tile", "picture"].some(key => before[key] !== this.box[key])) {
			for (const line of this.lines.values()) line.element.remove();
			this.lines.clear();
		}
		this.area.style.height = `${this.box.area}px`;
		this.scroller.setAttribute("aria-rowcount", this.box.rows);
		this.scroller.setAttribute("aria-colcount", this.box.columns);
		const top = held === null ? this.at.top : geometry.rowTop(this.box, Math.floor(held / this.box.columns)) - GAP;
		if (this.first !== null) this.cursor = geometry.clamp(this.first, 0, Math.max(0, total - 1));
		if (total > (this.first ?? 0)) this.first = null;
		this.moveTo(Math.min(top, Math.max(0, this.box.full - this.box.height)));
	}

	firstOnScreen() {
		return geometry.rowsAt(this.box, this.at.top + this.box.pitch * 0.4).start * this.box.columns;
	}

	/** Show the grid from `top` pixels, and put the bar where that is. */
	moveTo(top) {
		const bar = geometry.toBar(this.box, top);
		this.at = { top, bar };
		this.scroller.scrollTop = bar;
		this.at.bar = this.scroller.scrollTop; // browsers round
		this.draw();
	}

	onScroll() {
		const position = this.scroller.scrollTop;
		if (!this.box || position === this.at.bar) return;
		this.at = geometry.scrolled(this.box, this.at, position);
		this.draw();
		clearTimeout(this.idle);
		// Small moves leave the bar; at rest it is put where the records are.
		this.idle = setTimeout(() => {
			if (Math.abs(geometry.toBar(this.box, this.at.top) - this.scroller.scrollTop) > 1) this.moveTo(this.at.top);
			change({ top: this.firstOnScreen() });
		}, 160);
	}

	goTo(position, { align = "near" } = {}) {
		if (!this.box || !count()) return;
		this.cursor = geometry.clamp(position, 0, count() - 1);
		const line = geometry.rowTop(this.box, Math.floor(this.cursor / this.box.columns)) - GAP;
		const most = Math.max(0, this.box.full - this.box.height);
		this.moveTo(align === "top" ? Math.min(line, most) : geometry.reveal(this.box, this.at.top, this.cursor));
		change({ top: this.firstOnScreen() });
	}

	/** Put lines where they belong and ask for what is missing. */
	draw() {
		const { box, at } = this;
		const span = geometry.rowsAt(box, at.top, Math.ceil(box.height / box.pitch / 2));
		const spare = [];
		for (const [number, line] of this.lines) {
			if (number < span.start || number >= span.stop) {
				spare.push(line);
				this.lines.delete(number);
			}
		}
		for (let number = span.start; number < span.stop; number += 1) {
			let line = this.lines.get(number);
			if (!line) {
				line = spare.pop() ?? this.makeLine();
				this.lines.set(number, line);
			}
			line.element.style.transform = `translateY(${Math.round(geometry.rowTop(box, number) - at.top + at.bar)}px)`;
			this.showLine(line, number);
		}
		for (const line of spare) line.element.remove();
		this.span = span;
		this.fetchMissing();
		this.report();
	}

	makeLine() {
		const { box } = this;
		const tiles = Array.from({ length: box.columns }, makeTile);
		const element = h("div", { role: "row", class: "grid-line", style: { "--tile": `${box.tile}px`, "--picture": `${box.picture}px`, "--gap": `${GAP}px` } }, tiles.map(tile => tile.element));
		this.area.append(element);
		return { element, tiles };
	}

	showLine(line, number) {
		line.element.setAttribute("aria-rowindex", number + 1);
		line.tiles.forEach((tile, column) => {
			const position = number * this.box.columns + column;
			tile.element.hidden = position >= this.box.count;
			if (tile.element.hidden) return;
			showTile(tile, position, this.rows.get(position) ?? null, this.box);
			tile.element.setAttribute("aria-colindex", column + 1);
			tile.element.classList.toggle("is-cursor", position === this.cursor);
			const isMarked = this.marked.has(this.rows.get(position)?.record);
			tile.element.classList.toggle("is-marked", isMarked);
			tile.element.setAttribute("aria-selected", isMarked);
		});
	}

	tileAt(position) {
		const line = this.lines.get(Math.floor(position / this.box.columns));
		return line?.tiles[position % this.box.columns];
	}

	/** Request places near the screen, those on screen first; what was scrolled past is cancelled. */
	fetchMissing() {
		if (!this.box.count || (data.selection && !data.selection.sel)) return;
		const { columns } = this.box;
		const near = [this.span.start * columns, Math.min(this.span.stop * columns, this.box.count)];
		for (const flight of this.flights) {
			if (flight.stop <= near[0] || flight.start >= near[1]) {
				flight.abort();
				this.flights.delete(flight);
			}
		}
		const seen = geometry.rowsAt(this.box, this.at.top);
		const screen = [seen.start * columns, Math.min(seen.stop * columns, this.box.count)];
		for (const [start, stop] of [screen, [screen[1], near[1]], [near[0], screen[0]]]) {
			for (const [from, to] of this.gaps(start, stop)) {
				if (this.flights.size >= AT_ONCE) return;
				this.fetch(from, to);
			}
		}
	}

	gaps(start, stop) {
		const found = [];
		const flying = at => [...this.flights].some(flight => at >= flight.start && at < flight.stop);
		for (let at = start; at < stop; at += 1) {
			if (this.rows.has(at) || flying(at)) continue;
			const last = found.at(-1);
			if (last && last[1] === at && at - last[0] < BATCH) last[1] = at + 1;
			else found.push([at, at + 1]);
		}
		return found;
	}

	async fetch(start, stop) {
		const control = new AbortController();
		const flight = { start, stop, abort: () => control.abort() };
		const version = this.version;
		const size = this.size();
		this.flights.add(flight);
		const waiting = [];
		try {
			// No stamp, so no caching: selections grow and tags change.
			const query = placeQuery({ first: start, count: stop - start, size, masks: 1 });
			await tiles(query, control.signal, (row, parts) => waiting.push(this.arrived(row, parts, version, size)));
			await Promise.all(waiting);
		} catch (error) {
			if (error.name !== "AbortError" && version === this.version) {
				for (let at = start; at < stop; at += 1) if (!this.rows.has(at)) this.put({ position: at, record: at, caption: [], cause: error.message, tags: [] });
				fail(error);
			}
		}
		this.flights.delete(flight);
		if (version !== this.version || size !== this.size()) return;
		this.fetchMissing();
		this.report();
	}

	async arrived(row, parts, version, size) {
		const [picture, mask] = await Promise.all([
			parts.image && createImageBitmap(parts.image).catch(() => null),
			parts.mask && readMask(parts.mask).catch(() => null),
		]);
		if (version !== this.version || size !== this.size()) {
			picture?.close();
			return;
		}
		this.put({ ...row, picture, mask });
		if (picture && this.ratio === undefined) this.chooseRatio();
	}

	put(row) {
		this.rows.set(row.position, row);
		if (this.rows.size > KEEP) this.forget();
		const tile = this.tileAt(row.position);
		if (tile?.position === row.position) this.showLine(this.lines.get(Math.floor(row.position / this.box.columns)), Math.floor(row.position / this.box.columns));
	}

	forget() {
		const { columns } = this.box;
		for (const [position, row] of this.rows) {
			if (this.rows.size <= KEEP * 0.7) break;
			if (position >= this.span.start * columns && position < this.span.stop * columns) continue;
			row.picture?.close();
			this.rows.delete(position);
		}
	}

	/** The shape of tiles is the median of the first pictures. */
	chooseRatio() {
		const ratios = [...this.rows.values()].filter(row => row.picture).map(row => row.picture.width / row.picture.height).sort((a, b) => a - b);
		if (ratios.length < Math.min(8, this.box.count)) return;
		this.ratio = geometry.clamp(ratios[ratios.length >> 1], 0.75, 1.78);
		this.measure({ keep: true });
	}

	redraw() {
		for (const line of this.lines.values()) for (const tile of line.tiles) if (!tile.element.hidden) drawTile(tile);
		this.report();
	}

	/** Send `tfr:drawn` when every tile on screen is there. */
	report() {
		if (!this.box) return;
		const seen = geometry.rowsAt(this.box, this.at.top);
		const first = seen.start * this.box.columns;
		const stop = Math.min(seen.stop * this.box.columns, this.box.count);
		for (let at = first; at < stop; at += 1) if (!this.rows.has(at)) return;
		if (data.selection && data.selection.phase !== "exact" && !stop) return;
		drawn("grid", { first, last: stop - 1, count: this.box.count, columns: this.box.columns, top: this.at.top, version: this.version });
	}

	showCursor() {
		const tile = this.tileAt(this.cursor);
		for (const line of this.lines.values()) for (const one of line.tiles) one.element.classList.toggle("is-cursor", one.position === this.cursor);
		if (tile) this.scroller.setAttribute("aria-activedescendant", tile.element.id);
		else this.scroller.removeAttribute("aria-activedescendant");
	}

	onClick(event) {
		const element = event.target.closest(".tile");
		if (!element) return;
		this.cursor = Number(element.dataset.position);
		this.showCursor();
		if (event.ctrlKey || event.metaKey) this.mark();
		else this.open();
	}

	open(position = this.cursor) {
		const row = this.rows.get(position);
		if (!row) return;
		this.cursor = position;
		if (row.record === null) change({ place: position, record: "" });
		else change({ record: row.record, place: "" });
	}

	mark(position = this.cursor) {
		const record = this.rows.get(position)?.record;
		if (record == null) return;
		if (!this.marked.delete(record)) this.marked.add(record);
		this.remark();
	}

	unmark() {
		this.marked.clear();
		this.remark();
	}

	remark() {
		for (const [number, line] of this.lines) this.showLine(line, number);
		this.dispatchEvent(new Event("marks"));
	}

	onKey(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.box) return;
		const { columns } = this.box;
		const page = Math.max(1, Math.floor(this.box.height / this.box.pitch)) * columns;
		const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
		if (event.key in moves) {
			const to = geometry.clamp(this.cursor + moves[event.key], 0, Math.max(0, count() - 1));
			this.goTo(to);
			this.showCursor();
		} else if (event.key === "Enter") this.open();
		else if (event.key === " ") this.mark();
		else return;
		event.preventDefault();
	}

	/** Tags of records changed: rows are asked for again. */
	refresh() {
		this.drop();
		this.draw();
	}
}

customElements.define("tfr-grid", Grid);
