// Requests to the server, relative, so that the page works under any prefix.

export class ApiError extends Error {
	constructor(body, status) {
		super(body.error ?? `status ${status}`);
		this.status = status;
		this.where = body.where ?? {};
	}
}

async function check(answer) {
	if (answer.ok) return answer;
	let body = {};
	try {
		body = await answer.json();
	} catch {
		// not the server's own answer: the status is all there is
	}
	throw new ApiError(body, answer.status);
}

const SEARCH = query => (query && String(query) ? `?${query}` : "");

export async function get(path, query, signal) {
	return (await check(await fetch(path + SEARCH(query), { signal }))).json();
}

export async function post(path, body) {
	const answer = await fetch(path, {
		method: "POST",
		headers: { "Content-Type": "application/json" },
		body: JSON.stringify(body),
	});
	return (await check(answer)).json();
}

/** Listen until one of `last` or a failure; returns a function that ends it. */
export function stream(path, query, handlers, last) {
	const source = new EventSource(path + SEARCH(query));
	const end = () => source.close();
	for (const [name, handle] of Object.entries(handlers)) {
		if (name === "fail") continue;
		source.addEventListener(name, event => {
			const data = JSON.parse(event.data);
			if (last(name, data)) end();
			handle(data);
		});
	}
	source.addEventListener("fail", event => {
		end();
		const body = JSON.parse(event.data);
		handlers.fail?.(new ApiError(body, body.status));
	});
	source.addEventListener("error", () => {
		if (source.readyState === EventSource.CLOSED) return;
		end(); // a stream that breaks is not begun again by itself
		// The stream's own status is not readable: ask once more for the reason.
		get(path, query).catch(error => handlers.fail?.(error));
	});
	return end;
}

/** Read a stream of tiles: `u32le length, JSON, parts`; calls `each(row, parts)` as they arrive. */
export async function tiles(query, signal, each) {
	const answer = await check(await fetch(`t?${query}`, { signal }));
	const reader = answer.body.getReader();
	let held = new Uint8Array(0);
	for (;;) {
		const { done, value } = await reader.read();
		if (done) break;
		held = held.length ? join(held, value) : value;
		let at = 0;
		for (;;) {
			const entry = readEntry(held, at);
			if (!entry) break;
			at = entry.stop;
			each(entry.row, entry.parts);
		}
		held = held.subarray(at);
	}
	if (held.length) throw new ApiError({ error: "tiles ended early" }, 0);
}

function readEntry(held, at) {
	if (held.length < at + 4) return null;
	const start = at + 4;
	const stop = start + new DataView(held.buffer, held.byteOffset + at, 4).getUint32(0, true);
	if (held.length < stop) return null;
	const row = JSON.parse(new TextDecoder().decode(held.subarray(start, stop)));
	const total = (row.parts ?? []).reduce((sum, part) => sum + part.bytes, 0);
	if (held.length < stop + total) return null;
	let from = stop;
	const parts = {};
	for (const part of row.parts ?? []) {
		parts[part.name] = new Blob([held.slice(from, from + part.bytes)], { type: part.type });
		from += part.bytes;
	}
	return { row, parts, stop: from };
}

function join(a, b) {
	const both = new Uint8Array(a.length + b.length);
	both.set(a);
	both.set(b, a.length);
	return both;
}
