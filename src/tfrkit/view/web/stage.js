// The picture of a record with overlays and their legend.

import { bdi, clear, dot, drawn, h } from "./dom.js";
import { change } from "./model.js";
import { boxClass, drawPicture, maskClass, readMask } from "./overlay.js";
import { withGuesses } from "./feature.js";
import { listen, state } from "./state.js";
import { t } from "./words.js";

const flip = (list, name) => (list.includes(name) ? list.filter(one => one !== name) : [...list, name]);

class Stage extends HTMLElement {
	connectedCallback() {
		if (this.canvas) return;
		this.canvas = h("canvas.stage-canvas", { role: "img" });
		this.under = h("output.stage-under", { hidden: true });
		this.frame = h("div.stage-frame", { tabindex: "0", role: "region", label: t("stage.label"), onpointermove: event => this.point(event), onpointerleave: () => { this.under.hidden = true; } }, this.canvas, this.under);
		this.legend = h("div.legend");
		this.append(this.frame, this.legend);
		new ResizeObserver(() => this.draw()).observe(this.frame);
		listen(keys => {
			if (["off", "hide", "opacity", "zoom"].some(key => keys.has(key)) && this.picture) {
				this.draw();
				this.drawLegend();
			}
		});
		document.addEventListener("tfr:held", () => this.draw());
	}

	/** Load and show the picture of a record; resolves when it is on screen. */
	async show(record, signal) {
		const { picture } = record;
		const load = async src => {
			const answer = await fetch(withGuesses(src), { signal });
			if (!answer.ok) throw new Error((await answer.json()).error);
			return answer.blob();
		};
		const [bitmap, mask] = await Promise.all([
			load(picture.src).then(blob => createImageBitmap(blob)),
			picture.mask ? load(picture.mask.src).then(readMask) : null,
		]);
		this.bitmap?.close();
		this.bitmap = bitmap;
		this.picture = picture;
		this.parts = { mask, boxes: picture.boxes ?? [], keypoints: picture.keypoints ?? [] };
		this.canvas.setAttribute("aria-label", t("stage.picture", { n: record.record ?? "", w: picture.width, h: picture.height }));
		this.drawLegend();
		this.draw();
		return bitmap;
	}

	draw() {
		if (!this.bitmap || !this.frame.clientWidth) return;
		const ratio = devicePixelRatio;
		const { width, height } = this.bitmap;
		const room = Math.min((this.frame.clientWidth - 2) / width, (this.frame.clientHeight - 2) / height);
		// Small pictures grow by whole steps, so that each pixel is a square.
		const scale = state.zoom === "fit" ? (room >= 2 ? Math.min(16, Math.floor(room)) : room) : Number(state.zoom) / ratio;
		const w = Math.max(1, Math.round(width * scale * ratio));
		const h2 = Math.max(1, Math.round(height * scale * ratio));
		drawPicture(this.canvas, this.bitmap, w, h2, this.parts, { ratio, scale: ratio });
		drawn("stage", { width: w, height: h2 });
	}

	/** The class under the pointer. */
	point(event) {
		const { mask } = this.parts ?? {};
		const box = this.canvas.getBoundingClientRect();
		const x = (event.clientX - box.left) / box.width;
		const y = (event.clientY - box.top) / box.height;
		const isInside = this.bitmap && x >= 0 && x < 1 && y >= 0 && y < 1;
		this.under.hidden = !isInside;
		if (!isInside) return;
		const at = `${Math.floor(x * this.bitmap.width)}, ${Math.floor(y * this.bitmap.height)}`;
		const id = mask ? mask.ids[Math.floor(y * mask.height) * mask.width + Math.floor(x * mask.width)] : null;
		this.under.textContent = id === null ? at : `${at} · ${id} ${maskClass(id).name}`;
	}

	/** Classes with colours and counts; a click hides one everywhere. */
	drawLegend() {
		const { mask, boxes, keypoints } = this.parts;
		const found = new Map();
		if (mask) {
			const pixels = new Map();
			for (const id of mask.ids) pixels.set(id, (pixels.get(id) ?? 0) + 1);
			for (const [id, count] of [...pixels].sort((a, b) => b[1] - a[1])) {
				if (id !== 0) found.set(maskClass(id).name, { ...maskClass(id), share: count / mask.ids.length });
			}
		}
		for (const box of boxes) {
			const one = boxClass(box);
			const entry = found.get(one.name) ?? one;
			entry.boxes = (entry.boxes ?? 0) + 1;
			found.set(one.name, entry);
		}
		this.classes = [...found.keys()];
		const part = (name, has) => Boolean(has) && h("label.switch",
			h("input", { type: "checkbox", checked: !state.off.includes(name), onchange: () => change({ off: flip(state.off, name) }) }), t(`overlay.${name}`));
		const entry = (one, number) => {
			const isOn = !state.hide.includes(one.name);
			const facts = [one.boxes ? t("legend.boxes", { n: one.boxes }) : null, one.share !== undefined ? `${(100 * one.share).toFixed(one.share < 0.01 ? 2 : 1)} %` : null].filter(Boolean).join(" · ");
			return h("button.legend-class", { "aria-pressed": isOn, title: number < 9 ? t("legend.key", { key: number + 1 }) : null, onclick: () => change({ hide: flip(state.hide, one.name) }) },
				dot(one), bdi(one.name), h("small", facts));
		};
		const focus = document.activeElement?.closest(".legend") ? [...this.legend.querySelectorAll("input, button")].indexOf(document.activeElement) : -1;
		const slider = mask && h("label.switch", t("overlay.opacity"),
			h("input", { type: "range", min: "0", max: "100", step: "5", value: state.opacity, oninput: event => change({ opacity: event.target.value }) }));
		clear(this.legend,
			found.size || keypoints.length ? h("div.legend-switches", part("mask", mask), part("boxes", boxes.length), part("keypoints", keypoints.length), slider) : null,
			h("div.legend-classes", [...found.values()].map(entry)));
		if (focus >= 0) this.legend.querySelectorAll("input, button")[focus]?.focus();
	}

	toggleClass(number) {
		const name = this.classes?.[number];
		if (name !== undefined) change({ hide: flip(state.hide, name) });
	}
}

customElements.define("tfr-stage", Stage);
