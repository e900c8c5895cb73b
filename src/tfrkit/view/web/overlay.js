// Masks, boxes and keypoints on a canvas. Colours, opacity and hidden classes need no request.

import { data } from "./model.js";
import { state } from "./state.js";

const IGNORE = 255;

/** The colour of a class number by the bit rule of Pascal VOC: [r, g, b]. */
export function vocColor(id) {
	const color = [0, 0, 0];
	for (let rest = id, bit = 7; rest; rest >>= 3, bit -= 1) {
		for (let i = 0; i < 3; i += 1) color[i] |= ((rest >> i) & 1) << bit;
	}
	return color;
}

const hex = color => `#${color.map(part => part.toString(16).padStart(2, "0")).join("")}`;
const parse = text => [1, 3, 5].map(at => Number.parseInt(text.slice(at, at + 2), 16));

const known = () => {
	if (data.set.byId === undefined) data.set.byId = new Map((data.set.classes ?? []).map(one => [one.id, one]));
	return data.set.byId;
};

/** Name (also the key in the address) and colour of a class of the mask. */
export function maskClass(id) {
	const one = known().get(id);
	const name = one?.name ?? (id === IGNORE ? "ignore" : String(id));
	return { id, name, color: one?.color ?? (id === IGNORE ? "#e0e0c0" : hex(vocColor(id))) };
}

export const boxClass = ({ id, text, color }) => ({ id, color, name: text || String(id ?? "box") });

/** Whether black or white text is read better on a colour. */
function inkOn(color) {
	const [r, g, b] = parse(color).map(part => (part / 255) ** 2.2);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#000" : "#fff";
}

/** Class numbers of a mask picture: {width, height, ids}. */
export async function readMask(blob) {
	const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
	const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
	const pen = canvas.getContext("2d", { willReadFrequently: true });
	pen.drawImage(bitmap, 0, 0);
	const { width, height } = bitmap;
	bitmap.close();
	const pixels = pen.getImageData(0, 0, width, height).data;
	const ids = new Uint8Array(width * height);
	for (let i = 0; i < ids.length; i += 1) ids[i] = pixels[4 * i];
	return { width, height, ids };
}

/** RGBA pixels of a mask: background and hidden classes are clear, `ignore` is hatched. */
export function colorMask(mask, hidden, opacity) {
	const table = new Uint32Array(256); // four bytes each
	for (let id = 1; id < 256; id += 1) {
		const one = maskClass(id);
		if (!hidden.has(one.name)) new Uint8Array(table.buffer).set([...parse(one.color), Math.round(opacity * 255)], 4 * id);
	}
	const pixels = new Uint32Array(mask.ids.length);
	mask.ids.forEach((id, i) => {
		if (id !== IGNORE || ((i % mask.width) + Math.floor(i / mask.width)) % 6 < 3) pixels[i] = table[id];
	});
	return new ImageData(new Uint8ClampedArray(pixels.buffer), mask.width, mask.height);
}

/** Whether overlays are hidden because a key is held. */
export const held = { hide: false };

/** The size of a picture of this shape in a box of `width` by `height`. */
export function place(picture, width, height, most = Infinity) {
	const scale = Math.min(width / picture.width, height / picture.height, most);
	return { w: Math.max(1, Math.round(picture.width * scale)), h: Math.max(1, Math.round(picture.height * scale)) };
}

/** Draw a picture with its overlays in `w` by `h` pixels of the screen. */
export function drawPicture(canvas, picture, w, h, parts, { ratio, ...options }) {
	if (canvas.width !== w) canvas.width = w;
	if (canvas.height !== h) canvas.height = h;
	canvas.style.width = `${w / ratio}px`;
	canvas.style.height = `${h / ratio}px`;
	const pen = canvas.getContext("2d");
	pen.clearRect(0, 0, w, h);
	pen.imageSmoothingEnabled = w < picture.width * 2;
	pen.imageSmoothingQuality = "high";
	pen.drawImage(picture, 0, 0, w, h);
	drawOverlays(pen, { w, h }, parts, options);
}

function drawOverlays(pen, at, { mask, boxes, keypoints }, { scale, names = true }) {
	if (held.hide) return;
	const hidden = new Set(state.hide);
	const off = new Set(state.off);
	if (mask && !off.has("mask")) {
		const canvas = new OffscreenCanvas(mask.width, mask.height);
		canvas.getContext("2d").putImageData(colorMask(mask, hidden, Number(state.opacity) / 100), 0, 0);
		pen.imageSmoothingEnabled = false;
		pen.drawImage(canvas, 0, 0, at.w, at.h);
		pen.imageSmoothingEnabled = true;
	}
	if (boxes?.length && !off.has("boxes")) drawBoxes(pen, at, boxes, hidden, scale, names);
	if (keypoints?.length && !off.has("keypoints")) drawKeypoints(pen, at, keypoints, scale);
}

function drawBoxes(pen, at, boxes, hidden, scale, names) {
	const line = Math.max(1, Math.round(2 * scale));
	const text = Math.round(11 * scale);
	pen.font = `600 ${text}px system-ui, sans-serif`;
	pen.textBaseline = "middle";
	for (const box of boxes) {
		const one = boxClass(box);
		if (hidden.has(one.name)) continue;
		const x = Math.round(box.box[0] * at.w);
		const y = Math.round(box.box[1] * at.h);
		const w = Math.round((box.box[2] - box.box[0]) * at.w);
		const h = Math.round((box.box[3] - box.box[1]) * at.h);
		pen.lineWidth = line + 2;
		pen.strokeStyle = "rgba(0, 0, 0, 0.35)";
		pen.strokeRect(x, y, w, h);
		pen.lineWidth = line;
		pen.strokeStyle = one.color;
		pen.strokeRect(x, y, w, h);
		if (!names) continue;
		const score = box.score == null ? "" : ` ${Number(box.score).toFixed(2)}`;
		const label = `${one.name}${score}`.slice(0, 40);
		const wide = Math.ceil(pen.measureText(label).width) + Math.round(8 * scale);
		const high = text + Math.round(5 * scale);
		const top = y >= high ? y - high : y;
		pen.fillStyle = one.color;
		pen.fillRect(x - line / 2, top, wide, high);
		pen.fillStyle = inkOn(one.color);
		pen.fillText(label, x + 3 * scale, top + high / 2 + 0.5);
	}
}

function drawKeypoints(pen, at, groups, scale) {
	groups.forEach((points, number) => {
		pen.fillStyle = hex(vocColor(1 + ((number * 7) % 20)));
		pen.strokeStyle = "#fff";
		pen.lineWidth = Math.max(1, scale);
		for (const point of points) {
			if (point.visible === 0) continue;
			pen.beginPath();
			pen.arc(point.x * at.w, point.y * at.h, 3.5 * scale, 0, 7);
			if (point.visible !== 1) pen.fill();
			pen.stroke();
		}
	});
}
