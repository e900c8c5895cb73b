"""Routes of the viewer: parse a request, call the viewer on a thread, respond. Nothing is decoded in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tfrkit.errors import CodecError, ContainerError, QueryError, SchemaError, StorageError, TfrkitError
from tfrkit.view import describe
from tfrkit.view.figures import list_plotted, make_figures
from tfrkit.view.guard import SANDBOX_POLICY
from tfrkit.view.live_report import report_live
from tfrkit.view.selection import Question
from tfrkit.view.tiles import MAX_SIDE, MIN_SIDE, pack_tile
from tfrkit.view.viewer import GoneError, NotAllowedError, Viewer, read_number
from tfrkit.view.work import Streams

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_STATUSES: list[tuple[type[Exception], int]] = [
    (GoneError, 410),
    (NotAllowedError, 409),
    (LookupError, 404),
    (QueryError, 400),
    (SchemaError, 400),
    (CodecError, 415),
    (ContainerError, 422),
    (StorageError, 409),
    (ImportError, 501),
    (ValueError, 400),
    (OSError, 500),
    (TfrkitError, 500),
]
_CACHED = "private, max-age=86400, immutable"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

Json = dict[str, Any]
Make = Callable[[Callable[[str, Any], None], threading.Event], None]


def make_app(viewer: Viewer) -> Any:
    """Make the ASGI application of a viewer, without its guard."""
    routes = _Routes(viewer)
    handlers: dict[Any, Any] = {kind: _answer_error for kind, _ in _STATUSES}
    handlers |= {404: _answer_status, 405: _answer_status}
    return Starlette(
        routes=[
            Route("/", routes.page),
            Route("/w/{name}", routes.file),
            Route("/api/set", routes.set),
            Route("/api/count", routes.count),
            Route("/api/select", routes.select),
            Route("/api/rows", routes.rows),
            Route("/t", routes.tiles),
            Route("/api/record/{record:int}", routes.record),
            Route("/api/place/{position:int}", routes.place),
            Route("/api/values/{record:int}", routes.values),
            Route("/api/hex/{record:int}", routes.hex_record),
            Route("/api/hex", routes.hex_place),
            Route("/api/figures", routes.figures),
            Route("/api/report", routes.report),
            Route("/api/damage", routes.damage),
            Route("/api/compare", routes.compare),
            Route("/i/{record:int}", routes.picture),
            Route("/m/{record:int}", routes.mask),
            Route("/a/{record:int}", routes.audio),
            Route("/raw/{record:int}", routes.raw),
            Route("/api/export", routes.export, methods=["POST"]),
            Route("/api/tag", routes.tag, methods=["POST"]),
        ],
        exception_handlers=handlers,
    )


class _Routes:
    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._files = load_files()

    # ---- the page ------------------------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        answer = self._send_file(request, "index.html")
        # All modules at once: a browser would find them one import after the other.
        answer.headers["link"] = ", ".join(
            f"<w/{name}>; rel=modulepreload" for name in self._files if name[-3:] == ".js"
        )
        return answer

    async def file(self, request: Request) -> Response:
        return self._send_file(request, request.path_params["name"])

    def _send_file(self, request: Request, name: str) -> Response:
        if name not in self._files:
            raise LookupError("no such file")
        data, kind, tag = self._files[name]
        headers = {"etag": tag, "cache-control": "no-cache", "content-type": kind}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers)

    # ---- JSON ----------------------------------------------------------------------------------------------------

    async def set(self, request: Request) -> Response:
        query = dict(request.query_params)
        return await self._answer(lambda: self._viewer.describe_start(query))

    async def rows(self, request: Request) -> Response:
        query, viewer = dict(request.query_params), self._viewer

        def make() -> Json:
            first, count, is_complete, items = viewer.list_items(query)
            guesses = viewer.guess(query)
            rows = [viewer.make_row(guesses, first + at, item, None, masks=False)[0] for at, item in enumerate(items)]
            return {"first": first, "count": count, "is_complete": is_complete, "rows": rows}

        return await self._answer(make)

    async def record(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        return await self._answer(lambda: self._viewer.describe_item(query, record=record))

    async def place(self, request: Request) -> Response:
        query, position = dict(request.query_params), request.path_params["position"]
        return await self._answer(lambda: self._viewer.describe_item(query, position=position))

    async def values(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        first, count = read_number(query, "first", 0), read_number(query, "count", describe.MAX_PAGE)
        opened, feature, frame = self._viewer.open(query), query.get("feature", ""), _read_frame(query)
        return await self._answer(lambda: describe.page_values(opened, record, feature, frame, first, count))

    async def hex_record(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        at, count = read_number(query, "at", 0), read_number(query, "count", 512)
        opened = self._viewer.open(query)
        return await self._answer(lambda: describe.describe_frame(opened, record, at, count))

    async def hex_place(self, request: Request) -> Response:
        query = dict(request.query_params)
        shard, offset = read_number(query, "shard", None), read_number(query, "offset", None)
        text = query.get("at", "0")
        at = -read_number({"at": text[1:]}, "at", 0) if text.startswith("-") else read_number(query, "at", 0)
        opened, count = self._viewer.open(query), read_number(query, "count", 512)
        return await self._answer(lambda: describe.describe_bytes_at(opened, shard, offset, at, count))

    async def compare(self, request: Request) -> Response:
        query = dict(request.query_params)
        first, count = read_number(query, "first", 0), read_number(query, "count", 100)
        return await self._answer(lambda: self._viewer.compare(first, count))

    async def export(self, request: Request) -> Response:
        body = await _read_body(request)
        return await self._answer(lambda: self._viewer.export(body))

    async def tag(self, request: Request) -> Response:
        body = await _read_body(request)
        return await self._answer(lambda: self._viewer.tag(body))

    async def _answer(self, make: Callable[[], Json]) -> Response:
        return Response(dump(await self._viewer.pool.run(make)), media_type="application/json")

    def _stream(self, make: Make) -> Response:
        return _send_events(self._viewer.streams, make)

    # ---- event streams -------------------------------------------------------------------------------------------

    async def count(self, request: Request) -> Response:
        opened = self._viewer.open(dict(request.query_params))
        return self._stream(partial(self._viewer.report_count, opened))

    async def select(self, request: Request) -> Response:
        query = dict(request.query_params)
        opened = self._viewer.open(query)
        return self._stream(partial(self._viewer.make_selection, opened, Question.read(opened.number, query)))

    async def figures(self, request: Request) -> Response:
        query, viewer = dict(request.query_params), self._viewer
        opened, selection = viewer.open(query), viewer.select(query)
        where = None if selection is None else selection.question.where
        features = request.query_params.getlist("feature") or list_plotted(opened)
        return self._stream(partial(make_figures, opened, viewer.samples[opened.number], features, where))

    async def report(self, request: Request) -> Response:
        query, viewer = dict(request.query_params), self._viewer
        guesses, opened = viewer.guess(query), viewer.open(query)
        sample, deep = viewer.samples[opened.number], query.get("deep") == "1"
        return self._stream(partial(report_live, opened, sample, dict(guesses.given), deep=deep))

    async def damage(self, request: Request) -> Response:
        return self._stream(partial(self._viewer.report_damage, self._viewer.open(dict(request.query_params))))

    # ---- bytes ---------------------------------------------------------------------------------------------------

    async def tiles(self, request: Request) -> Response:
        query, viewer = dict(request.query_params), self._viewer
        side = read_number(query, "size", 160)
        if not MIN_SIDE <= side <= MAX_SIDE:
            raise ValueError(f"size expected {MIN_SIDE} to {MAX_SIDE}, got {side}")
        masks = query.get("masks") != "0"
        first, _, _, items = viewer.list_items(query)
        guesses = await viewer.pool.run(lambda: _prepare(viewer, query))

        groups = viewer.group_items(guesses, list(enumerate(items, first)), side, masks=masks)

        async def send() -> AsyncIterator[bytes]:
            # The newest job runs first, so the first tiles are requested last.
            jobs = [
                asyncio.ensure_future(
                    viewer.pool.run(
                        partial(_make_packed, viewer, guesses, group, side, masks),
                        ("tiles", guesses.opened.number, guesses.given, tuple(group), side, masks),
                    )
                )
                for group in reversed(groups)
            ]
            try:
                for job in asyncio.as_completed(jobs):
                    yield await job
            finally:
                for job in jobs:
                    job.cancel()

        return StreamingResponse(send(), media_type="application/octet-stream", headers=self._cache(query))

    async def picture(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        opened, feature, frame = self._viewer.open(query), _read_feature(query), _read_frame(query)
        make = partial(describe.make_picture, opened, self._viewer.guess(query), record, feature, frame)
        data, kind = await self._viewer.pool.run(make)
        return self._send_bytes(query, data, kind)

    async def mask(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        opened, feature, frame = self._viewer.open(query), _read_feature(query), _read_frame(query)
        make = partial(describe.make_mask, opened, self._viewer.guess(query), record, feature, frame)
        return self._send_bytes(query, await self._viewer.pool.run(make), "image/png")

    async def audio(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        opened, feature, frame = self._viewer.open(query), _read_feature(query), _read_frame(query)
        data, kind = await self._viewer.pool.run(partial(describe.find_audio, opened, record, feature, frame))
        return self._send_bytes(query, data, kind, _read_range(request, len(data)))

    async def raw(self, request: Request) -> Response:
        query, record = dict(request.query_params), request.path_params["record"]
        opened, frame = self._viewer.open(query), _read_frame(query)
        make = partial(describe.find_raw, opened, record, query.get("feature"), frame)
        answer = self._send_bytes(query, await self._viewer.pool.run(make), "application/octet-stream")
        answer.headers["content-disposition"] = f'attachment; filename="record-{record}.bin"'
        return answer

    def _send_bytes(
        self, query: Mapping[str, str], data: bytes, kind: str, part: tuple[int, int] | None = None
    ) -> Response:
        headers = {"content-security-policy": SANDBOX_POLICY, "content-type": kind, **self._cache(query)}
        if part is None:
            return Response(data, headers=headers)
        headers["content-range"] = f"bytes {part[0]}-{part[1] - 1}/{len(data)}"
        return Response(data[part[0] : part[1]], status_code=206, headers=headers)

    def _cache(self, query: Mapping[str, str]) -> dict[str, str]:
        is_stamped = query.get("v") == self._viewer.open(query).stamp
        return {"cache-control": _CACHED} if is_stamped else {}


def load_files() -> dict[str, tuple[bytes, str, str]]:
    """Read the files of the page into memory: bytes, type and tag by name."""
    folder = resources.files("tfrkit.view") / "web"
    files = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        kind = TYPES.get(os.path.splitext(entry.name)[1])
        if kind is not None:
            data = entry.read_bytes()
            files[entry.name] = data, kind, f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    return files


def _prepare(viewer: Viewer, query: Mapping[str, str]) -> Any:
    guesses = viewer.guess(query)
    _ = guesses.features
    return guesses


def _make_packed(viewer: Viewer, guesses: Any, group: list[tuple[int, int]], side: int, masks: bool) -> bytes:
    return b"".join(pack_tile(*viewer.make_row(guesses, *place, side, masks=masks)) for place in group)


def _read_feature(query: Mapping[str, str]) -> str:
    feature = query.get("feature")
    if not feature:
        raise ValueError("feature expected a name, got nothing")
    return feature


def _read_frame(query: Mapping[str, str]) -> int | None:
    return read_number(query, "frame", 0) if query.get("frame") else None


async def _read_body(request: Request) -> Json:
    try:
        body = json.loads(await request.body())
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError("body expected a JSON object") from error
    if not isinstance(body, dict):
        raise ValueError("body expected a JSON object")
    return body


def _read_range(request: Request, nbytes: int) -> tuple[int, int] | None:
    """Parse a Range header with one range; None, for all bytes, if there is none or several."""
    found = _RANGE.fullmatch(request.headers.get("range", ""))
    if found is None or not (found[1] or found[2]) or nbytes == 0:
        return None
    start = int(found[1]) if found[1] else max(0, nbytes - int(found[2]))
    stop = min(nbytes, int(found[2]) + 1) if found[1] and found[2] else nbytes
    return (start, stop) if start < stop else None


def _send_events(streams: Streams, make: Make) -> Response:
    """Respond with the events that `make` emits on a thread; it is stopped if the client disconnects."""

    async def send() -> AsyncIterator[bytes]:
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any] | None]()

        def put(event: tuple[str, Any] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended
                loop.call_soon_threadsafe(events.put_nowait, event)

        def run(stop: threading.Event) -> None:
            try:
                make(lambda name, data: put((name, data)), stop)
            except tuple(kind for kind, _ in _STATUSES) as error:
                put(("fail", describe_error(error)))
            finally:
                put(None)

        stop = streams.start(run)
        try:
            while (event := await events.get()) is not None:
                yield b"event: %s\ndata: %s\n\n" % (event[0].encode(), dump(event[1]))
        finally:
            stop.set()

    return StreamingResponse(send(), media_type="text/event-stream")


def dump(data: Any) -> bytes:
    """Encode JSON, in which NaN and infinities are not allowed."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def describe_error(error: Exception) -> Json:
    """Return an error in the JSON form that the page expects."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    where: Json = {}
    what = str(error.args[0] if isinstance(error, LookupError) and error.args else error).split("\n")[0]
    if isinstance(error, TfrkitError):
        what = error.what
        shard = None if error.shard is None else os.path.basename(error.shard)
        facts = {"shard": shard, "record": error.record, "offset": error.offset, "hint": error.hint}
        where = {name: value for name, value in facts.items() if value is not None}
    elif isinstance(error, (ImportError, ValueError)) and "\n" in str(error):
        where = {"hint": str(error).split("\n", 1)[1].strip()}
    return {"ok": False, "error": what, "status": status, "where": where}


def _answer_error(request: Request, error: Exception) -> Response:
    shape = describe_error(error)
    return Response(dump(shape), status_code=shape["status"], media_type="application/json")


def _answer_status(request: Request, error: Any) -> Response:
    what = {404: "no such address", 405: "method is not allowed here"}[error.status_code]
    shape = {"ok": False, "error": what, "status": error.status_code, "where": {}}
    return Response(dump(shape), status_code=error.status_code, media_type="application/json")
