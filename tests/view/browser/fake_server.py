"""A server with made-up answers: as many records as a test asks for, and failures on request.

It answers as the real server does, for what cannot be made with real files in a test: 10^8 records, a slow answer, a
failure in the middle. Record n is a picture of one colour, `color_of(n)`, with a box and a mask.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".tsv": "text/tab-separated-values",
    ".svg": "image/svg+xml",
    ".html": "text/html",
}
MASK_CLASS = 15
CLASSES = ["cat", "dog", "person", "tree", "house"]


def feature(name: str, kind: str, **more: Any) -> dict[str, Any]:
    base = {"part": "", "shape": [], "dtype": kind, "logical": None, "meaning": "", "classes": None}
    return {"name": name, "kind": kind, "column": name, "can_sort": False, "can_plot": False, **base, **more}


class FakeServer:
    """Answers on a loopback port until `close`. `fail[path]` is a function that returns (status, message) or None."""

    def __init__(self, web: Path, *, count: int, sample: int = 4096) -> None:
        self.web, self.count, self.sample = web, count, sample
        self.asked: list[str] = []
        self.select_failure: str | None = None
        self.fail: dict[str, Callable[[], tuple[int, str] | None]] = {}
        self.hold = threading.Event()
        self.hold.set()
        handler = type("Handler", (_Handler,), {"server_of": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hold.set()
        self.http.shutdown()
        self.http.server_close()

    # --- what it answers

    @staticmethod
    def color_of(record: int) -> tuple[int, int, int]:
        return (40 + record * 37 % 180, 40 + record * 59 % 180, 40 + record * 83 % 180)

    def set_info(self) -> dict[str, Any]:
        guess = {"value": None, "options": [], "is_given": False}
        names = ("image", "label", "mask", "boxes", "box_order", "box_units", "shape", "names")
        guesses = dict.fromkeys(names, guess)
        guesses["image"] = {**guess, "value": "image", "options": ["image", "other"]}
        guesses["label"] = {**guess, "value": "label", "options": ["label"]}
        features = [
            feature("image", "bytes", logical="image", meaning="JPEG images"),
            feature("label", "int64", logical="class_label", classes=CLASSES, can_sort=True, can_plot=True),
            feature("score", "float", can_sort=True, can_plot=True),
            feature("text", "bytes", logical="text"),
        ]
        return {
            "api": 1,
            "version": "0",
            "lang": None,
            "start": {"where": None, "record": None},
            "can": {"sql": True, "export": "/out", "tags": True, "compare": False},
            "limits": {"tiles": 200, "size": [32, 512], "hex": 4096, "page_values": 1000},
            "tags": {},
            "sets": [
                {
                    "d": 0,
                    "name": "made-up.tfrecord",
                    "stamp": "00",
                    "kind": "example",
                    "count": self.count,
                    "records": self.count,
                    "is_complete": True,
                    "files": [{"number": 0, "name": "a", "bytes": 10**9, "compression": None, "records": self.count}],
                    "splits": {},
                    "features": features,
                    "guesses": guesses,
                    "classes": [{"id": MASK_CLASS, "name": "person", "color": "#c08080"}],
                    "damage": 0,
                    "is_damaged": False,
                    "notes": [],
                }
            ],
        }

    def row(self, position: int) -> dict[str, Any]:
        box = {"box": [0.25, 0.25, 0.75, 0.75], "text": "dog", "id": 2, "score": 0.5, "color": "#00ff00"}
        return {
            "position": position,
            "record": position,
            "shard": 0,
            "caption": [{"text": CLASSES[position % 5], "color": None}],
            "width": 160,
            "height": 120,
            "boxes": [box],
            "classes": [0, MASK_CLASS],
            "card": [],
            "damage": None,
            "cause": None,
            "tags": [],
        }

    def tile(self, position: int, size: int) -> bytes:
        width, height = size, size * 3 // 4
        picture = png(Image.new("RGB", (width, height), self.color_of(position)))
        mask = Image.new("L", (width, height), 0)
        mask.paste(MASK_CLASS, (0, 0, width // 2, height // 2))
        parts = {"image": picture, "mask": png(mask)}
        listed = [{"name": name, "type": "image/png", "bytes": len(data)} for name, data in parts.items()]
        text = json.dumps({**self.row(position), "parts": listed}).encode()
        return struct.pack("<I", len(text)) + text + b"".join(parts.values())

    def record(self, number: int) -> dict[str, Any]:
        row = self.row(number)
        return {
            **row,
            "previous": number - 1 if number else None,
            "next": number + 1 if number + 1 < self.count else None,
            "file": "a",
            "ordinal": number,
            "offset": number * 100,
            "bytes": 84,
            "split": None,
            "kind": "example",
            "features": [{"name": "label", "kind": "int64", "show": "number", "values": [number % 5], "count": 1}],
            "picture": {
                "feature": "image",
                "width": 160,
                "height": 120,
                "src": f"i/{number}?feature=image",
                "frames": 1,
                "boxes": row["boxes"],
                "keypoints": [],
                "mask": {"feature": "mask", "src": f"m/{number}?feature=mask", "classes": [0, MASK_CLASS]},
            },
        }

    def report(self) -> dict[str, Any]:
        figure = {"min": 0.0, "max": 1.0, "mean": 0.5, "std": 0.3, "splits": [60, 20]}
        bins = [{"from": i / 4, "to": (i + 1) / 4, "count": 20, "splits": [15, 5]} for i in range(4)]
        counts = [{"value": i, "text": name, "count": 20 - i, "splits": [15 - i, 5]} for i, name in enumerate(CLASSES)]
        picture = {"file": "a", "record": 0, "caption": "cat", "cause": None, "width": 8, "height": 8, "boxes": []}
        picture |= {"type": "image/png", "data": base64.b64encode(png(Image.new("RGB", (8, 8)))).decode(), "number": 0}
        facts = {"type": "float", "present": 80, "distinct": 80, "distinct_exact": True, "top": [], "text": None}
        sizes = [{"width": 40, "height": 30, "count": 9}, {"width": 30, "height": 30, "count": 1}]
        none = {"lengths": None, "frames": None, "sizes": None, "numbers": None, "meaning": "", **facts}
        return {
            "title": "a",
            "kind": "example",
            "records": self.count,
            "bytes": 1000,
            "num_files": 2,
            "splits": [{"name": "train", "records": 60, "files": 1}, {"name": "test", "records": 20, "files": 1}],
            "warnings": [
                {"level": level, "kind": "constant", "n": 9, "names": ["a"]} for level in ("bad", "warn", "note")
            ],
            "classes": [
                {"feature": "label", "num_classes": 5, "largest_to_smallest": 1.2, "sums": [60, 20], "classes": counts}
            ],
            "rarest": {"feature": "label", "classes": [{"value": 0, "text": "cat", "count": 1, "pictures": [picture]}]},
            "samples": [picture],
            "copies": {"counts": {"leak": 1}, "pairs": [{"kind": "leak", "records": [picture, picture]}]},
            "findings": [{"file": "a", "record": 3, "cause": "damaged", "position": 3}],
            "features": [
                {"name": "score", **none, "numbers": {**figure, "bins": bins}},
                {"name": "image", **none, "pictures": {"step": 1, "formats": {"PNG": 10}, "sizes": sizes}},
            ],
            "tables": [{"name": "table", "heads": ["name", "min"], "rows": [["score", 0.0]]}],
        }

    def figures(self) -> list[dict[str, Any]]:
        each = self.sample // 5
        values = [
            {"value": i, "text": name, "count": each, "chosen": each, "where": f"label = {i}"}
            for i, name in enumerate(CLASSES)
        ]
        bins = [{"from": i / 10, "to": (i + 1) / 10, "count": 10 * (i + 1), "chosen": 10 * (i + 1)} for i in range(10)]
        return [
            {"feature": "label", "column": "label", "type": "values", "num_values": 5, "values": values, "missing": 0},
            {
                "feature": "score",
                "column": "score",
                "type": "numbers",
                "min": 0.0,
                "max": 1.0,
                "mean": 0.5,
                "missing": 0,
                "bins": bins,
            },
        ]


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


class _Handler(BaseHTTPRequestHandler):
    server_of: FakeServer

    def log_message(self, *_: object) -> None:
        pass

    def send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CSP)
        self.end_headers()
        self.wfile.write(body)

    def json(self, value: Any, status: int = 200) -> None:
        self.send(json.dumps(value).encode(), "application/json", status)

    def events(self, *events: tuple[str, Any]) -> None:
        text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
        self.send(text.encode(), "text/event-stream")

    def do_GET(self) -> None:
        fake = self.server_of
        url = urlsplit(self.path)
        path = url.path.lstrip("/")
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        fake.asked.append(self.path.lstrip("/"))
        failure = fake.fail.get(path.split("/")[0] if path.startswith("t") else path, lambda: None)()
        try:
            if failure:
                status, message = failure
                self.json({"ok": False, "error": message, "status": status, "where": {}}, status)
            else:
                self.answer(path, query)
        except (BrokenPipeError, ConnectionResetError):
            pass  # cancelled by the page

    def answer(self, path: str, query: dict[str, str]) -> None:
        fake = self.server_of
        if path == "" or path.startswith("w/"):
            file = fake.web / (path[2:] or "index.html")
            self.send(file.read_bytes(), TYPES[file.suffix])
        elif path == "api/set":
            self.json(fake.set_info())
        elif path == "t":
            first, count = int(query["first"]), int(query["count"])
            fake.hold.wait(60)
            body = b"".join(fake.tile(at, int(query["size"])) for at in range(first, first + count))
            self.send(body, "application/octet-stream")
        elif path.startswith(("api/record/", "api/place/")):
            number = int(path.rsplit("/", 1)[1])
            if number < fake.count:
                self.json(fake.record(number))
            else:
                self.json({"ok": False, "error": f"record {number} of {fake.count}", "status": 404, "where": {}}, 404)
        elif path.startswith("i/"):
            self.send(png(Image.new("RGB", (160, 120), fake.color_of(int(path[2:])))), "image/png")
        elif path.startswith("m/"):
            mask = Image.new("L", (160, 120), 0)
            mask.paste(MASK_CLASS, (0, 0, 80, 60))
            self.send(png(mask), "image/png")
        elif path.startswith("api/hex"):
            fields = [{"start": 0, "stop": 8, "depth": 0, "path": "frame", "what": "length", "value": "20"}]
            page = {"file": "a", "shard": 0, "offset": 0, "total": 32, "at": 0, "hex": "14" + "00" * 31}
            self.json({**page, "is_frame": True, "fields": [{**field, "is_bad": False} for field in fields]})
        elif path == "api/figures":
            data = {"of": fake.sample, "total": fake.count, "figures": fake.figures()}
            self.events(("sample", {"is_exact": False, **data}), ("exact", {"is_exact": True, **data}))
        elif path == "api/report":
            self.events(("sample", fake.report()), ("exact", fake.report()))
        elif path == "api/select":
            if fake.select_failure:
                self.events(("fail", {"ok": False, "error": fake.select_failure, "status": 400, "where": {}}))
                return
            found = fake.count // 5
            estimate = {"sel": "s1", "of": fake.sample, "matched": 9, "estimate": found, "total": fake.count}
            self.events(
                ("begin", {"sel": "s1", "total": fake.count}),
                ("sample", {**estimate, "records": []}),
                ("exact", {"sel": "s1", "count": found, "seconds": 0.1}),
            )
        else:
            self.json({"ok": False, "error": "not found", "status": 404, "where": {}}, 404)
