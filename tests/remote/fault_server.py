"""An object store in memory that misbehaves on request: S3 (path-style addresses), GCS (XML dialect), plain HTTP.

    python fault_server.py 0        prints the port that it listens on

Faults, log and objects are set and read at /_control/... of the same port; `servers.py` is the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import mmap
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PIECE = 256 << 10
REASONS = {
    200: "OK", 204: "No Content", 206: "Partial Content", 304: "Not Modified", 400: "Bad Request", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 409: "Conflict", 412: "Precondition Failed",
    416: "Range Not Satisfiable", 503: "Slow Down",
}  # fmt: skip


@dataclass
class Faults:
    """What goes wrong. Numbers from 0 to 1 are the share of requests; a request has at most one fault."""

    only: str = ""  # regular expression searched in "METHOD /bucket/key?query"; other requests are answered properly
    seed: int = 0
    latency: float = 0.0  # seconds before each answer
    bandwidth: float = 0.0  # bytes per second of each connection; 0 is unlimited
    slow_down: float = 0.0  # 503 SlowDown
    cut: float = 0.0  # the connection is closed in the middle of the body
    stall: float = 0.0  # the body stops in the middle for `stall_seconds`, then the connection is closed
    stall_seconds: float = 3600.0
    flip: float = 0.0  # one bit of the body is wrong
    lost: float = 0.0  # the request is carried out, and the connection is closed without an answer
    deny: float = 0.0  # 403 AccessDenied
    ignores_conditions: bool = False  # If-Match, If-None-Match and x-goog-if-generation-match have no effect
    ignores_ranges: bool = False  # 200 and the whole object
    hides_etag: bool = False
    # key: number of data requests it answers before it is replaced, and the key it is replaced with
    swaps: dict[str, list[Any]] = field(default_factory=dict)


@dataclass
class Stored:
    data: Any
    etag: str
    generation: int
    modified: float = field(default_factory=time.time)


@dataclass
class Upload:
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    status: int
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_data: bool = False  # the body is stored bytes
    declared: int | None = None  # Content-Length of an answer to HEAD


class Refusal(Exception):
    """An S3 error: status and code."""


class Store:
    """Buckets of objects, and the requests on them; knows nothing of connections."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}  # by "bucket/key"
        self.uploads: dict[str, Upload] = {}
        self.faults = Faults()
        self.count = 0  # generations and upload ids

    def put(self, key: str, data: Any, etag: str | None = None) -> Stored:
        self.count += 1
        etag = etag or f'"{hashlib.md5(data).hexdigest()}"'
        self.objects[key] = Stored(data, etag, time.time_ns() // 1000 + self.count)
        return self.objects[key]

    def mount(self, bucket: str, folder: str) -> int:
        """Serve the files below a folder as objects of a bucket; links are followed."""
        num_files = 0
        for root, _, names in os.walk(folder, followlinks=True):
            for name in names:
                path = os.path.join(root, name)
                if not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    stat = os.fstat(file.fileno())
                    data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if stat.st_size else b""
                key = f"{bucket}/{os.path.relpath(path, folder)}"
                self.put(key, data, f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"')
                num_files += 1
        return num_files

    def answer(self, request: Request) -> Answer:
        answer = self._answer(request)
        if request.method == "HEAD":
            answer.declared, answer.body = len(answer.body), b""
        return answer

    def _answer(self, request: Request) -> Answer:
        key = request.path.lstrip("/")
        bucket, _, name = key.partition("/")
        try:
            if request.method == "POST" and "delete" in request.query:
                return self._delete_many(bucket, request.body)
            if not name:
                return self._answer_bucket(bucket, request)
            if "uploads" in request.query or "uploadId" in request.query:
                return self._answer_upload(key, request)
            if request.method in ("GET", "HEAD"):
                return self._get(key, request)
            if request.method == "PUT":
                self._check_write(key, request.headers)
                source = request.headers.get("x-amz-copy-source") or request.headers.get("x-goog-copy-source")
                data = request.body if source is None else bytes(self._find(unquote(source).lstrip("/")).data)
                stored = self.put(key, data)
                copied = f"<CopyObjectResult><ETag>{escape(stored.etag)}</ETag></CopyObjectResult>".encode()
                return Answer(200, b"" if source is None else copied, self._version_of(stored))
            if request.method == "DELETE":
                self.objects.pop(key, None)
                return Answer(204)
        except Refusal as refusal:
            status, code = refusal.args
            return _refuse(status, code)
        return _refuse(405, "MethodNotAllowed")

    def _answer_bucket(self, bucket: str, request: Request) -> Answer:
        if request.method == "GET" and "uploads" in request.query:
            rows = [
                f"<Upload><Key>{escape(upload.key.partition('/')[2])}</Key><UploadId>{number}</UploadId></Upload>"
                for number, upload in self.uploads.items()
                if upload.key.startswith(f"{bucket}/{request.query.get('prefix', '')}")
            ]
            return _xml("ListMultipartUploadsResult", "".join(rows))
        if request.method == "GET":
            return self._list(bucket, request.query)
        return Answer(200) if request.method in ("PUT", "HEAD") else _refuse(405, "MethodNotAllowed")

    def _find(self, key: str) -> Stored:
        if key not in self.objects:
            raise Refusal(404, "NoSuchKey")
        return self.objects[key]

    def _version_of(self, stored: Stored) -> dict[str, str]:
        etag = {} if self.faults.hides_etag else {"ETag": stored.etag}
        return {**etag, "x-goog-generation": str(stored.generation)}

    def _get(self, key: str, request: Request) -> Answer:
        headers, swap = request.headers, self.faults.swaps.get(key)
        if swap is not None and request.method == "GET":
            swap[0] -= 1
            if swap[0] < 0:
                replacement = self._find(swap[1])
                self.put(key, replacement.data, replacement.etag)
                del self.faults.swaps[key]
        stored = self._find(key)
        if not self.faults.ignores_conditions:
            unmodified = headers.get("if-unmodified-since")
            if "if-match" in headers:
                if not _matches(headers["if-match"], stored.etag):
                    raise Refusal(412, "PreconditionFailed")
            elif unmodified and int(stored.modified) > parsedate_to_datetime(unmodified).timestamp():
                raise Refusal(412, "PreconditionFailed")
            if "if-none-match" in headers and _matches(headers["if-none-match"], stored.etag):
                return Answer(304, headers=self._version_of(stored))
            wanted = request.query.get("generation")
            if wanted is not None and wanted != str(stored.generation):
                raise Refusal(404, "NoSuchKey")
        size = len(stored.data)
        answer = Answer(200, memoryview(stored.data), self._version_of(stored), is_data=True)
        answer.headers |= {
            "Last-Modified": formatdate(stored.modified, usegmt=True), "Accept-Ranges": "bytes",
            "Content-Type": "binary/octet-stream",
        }  # fmt: skip
        if "range" in headers and not self.faults.ignores_ranges:
            found = _read_range(headers["range"], size)
            if found is not None:
                start, stop = found
                if start >= size:
                    refused = _refuse(416, "InvalidRange")
                    refused.headers["Content-Range"] = f"bytes */{size}"
                    return refused
                answer.status = 206
                answer.body = answer.body[start:stop]
                answer.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        return answer

    def _check_write(self, key: str, headers: dict[str, str]) -> None:
        if self.faults.ignores_conditions:
            return
        stored = self.objects.get(key)
        generation = headers.get("x-goog-if-generation-match")
        if generation is not None and generation != str(0 if stored is None else stored.generation):
            raise Refusal(412, "PreconditionFailed")
        if "if-none-match" in headers and stored is not None:
            raise Refusal(412, "PreconditionFailed")
        if "if-match" in headers:
            if stored is None:
                raise Refusal(404, "NoSuchKey")
            if not _matches(headers["if-match"], stored.etag):
                raise Refusal(412, "PreconditionFailed")

    def _list(self, bucket: str, query: dict[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        start = max(query.get("start-after", ""), query.get("continuation-token", ""))
        most = int(query.get("max-keys", "1000"))
        found: dict[str, str] = {}
        is_cut, last = False, ""
        for full in sorted(self.objects):
            name = full.removeprefix(f"{bucket}/")
            if name == full or not name.startswith(prefix) or name <= start:
                continue
            end = name.find(delimiter, len(prefix)) if delimiter else -1
            group = name[: end + len(delimiter)] if end >= 0 else ""
            if group and (group in found or start.startswith(group)):
                continue
            if len(found) == most:
                is_cut = True
                break
            last = group or name
            if group:
                found[group] = f"<CommonPrefixes><Prefix>{escape(group)}</Prefix></CommonPrefixes>"
                continue
            stored = self.objects[full]
            when = datetime.fromtimestamp(stored.modified, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            found[name] = (
                f"<Contents><Key>{escape(name)}</Key><LastModified>{when}</LastModified><ETag>{escape(stored.etag)}</ETag>"
                f"<Size>{len(stored.data)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        token = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if is_cut else ""
        head = (
            f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(found)}</KeyCount>"
            f"<MaxKeys>{most}</MaxKeys><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        )
        return _xml("ListBucketResult", head + token + "".join(found.values()))

    def _delete_many(self, bucket: str, body: bytes) -> Answer:
        names = re.findall(r"<Key>(.*?)</Key>", body.decode(), re.DOTALL)
        for name in names:
            self.objects.pop(f"{bucket}/{_unescape(name)}", None)
        return _xml("DeleteResult", "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names))

    def _answer_upload(self, key: str, request: Request) -> Answer:
        if request.method == "POST" and "uploads" in request.query:
            self.count += 1
            number = f"upload-{self.count}"
            self.uploads[number] = Upload(key)
            name = key.partition("/")[2]
            return _xml("InitiateMultipartUploadResult", f"<Key>{escape(name)}</Key><UploadId>{number}</UploadId>")
        number = request.query.get("uploadId", "")
        upload = self.uploads.get(number)
        if upload is None or upload.key != key:
            raise Refusal(404, "NoSuchUpload")
        if request.method == "PUT":
            upload.parts[int(request.query["partNumber"])] = request.body
            return Answer(200, headers={"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})
        if request.method == "DELETE":
            del self.uploads[number]
            return Answer(204)
        if request.method != "POST":
            raise Refusal(405, "MethodNotAllowed")
        self._check_write(key, request.headers)
        rows = re.findall(r"<Part>(.*?)</Part>", request.body.decode(), re.DOTALL)
        parts, digests = [], b""
        for row in rows:
            part = upload.parts.get(int(re.search(r"<PartNumber>(\d+)<", row)[1]))  # type: ignore[index]
            etag = _unescape(re.search(r"<ETag>(.*?)</ETag>", row)[1])  # type: ignore[index]
            digest = hashlib.md5(part or b"")
            if part is None or etag.strip('"') != digest.hexdigest():
                raise Refusal(400, "InvalidPart")
            parts.append(part)
            digests += digest.digest()
        if not parts:
            raise Refusal(400, "MalformedXML")
        if any(len(part) < 5 << 20 for part in parts[:-1]):
            raise Refusal(400, "EntityTooSmall")
        del self.uploads[number]
        stored = self.put(key, b"".join(parts), f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"')
        done = _xml("CompleteMultipartUploadResult", f"<Key>{key}</Key><ETag>{escape(stored.etag)}</ETag>")
        done.headers["x-goog-generation"] = str(stored.generation)
        return done


class Server:
    """Connections, faults and the log."""

    def __init__(self) -> None:
        self.store = Store()
        self.log: list[dict[str, Any]] = []
        self.random = random.Random(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that closes the connection, also in the middle of an answer, is not an error here.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            async for request in _read_requests(reader, writer):
                if request.path.startswith("/_control/"):
                    await self._send(writer, self._control(request), "")
                    continue
                if not await self._answer(request, writer):
                    break
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer with the fault that chance chose; return False if the connection is to be closed."""
        faults = self.store.faults
        query = "&".join(f"{name}={value}" if value else name for name, value in request.query.items())
        shown = f"{request.method} {request.path}{'?' if query else ''}{query}"
        fault = self._choose_fault() if re.search(faults.only, shown) else ""
        entry = {"request": shown, "time": time.monotonic(), "range": request.headers.get("range"), "fault": fault}
        entry["if_match"] = request.headers.get("if-match")
        self.log.append(entry)
        if faults.latency:
            await asyncio.sleep(faults.latency)
        if fault == "slow_down":
            answer = _refuse(503, "SlowDown")
        elif fault == "deny":
            answer = _refuse(403, "AccessDenied")
        else:
            answer = self.store.answer(request)
        entry |= {"status": answer.status, "nbytes": len(answer.body)}
        if fault == "lost":
            return False
        if not answer.is_data or not len(answer.body):
            fault = ""
        return await self._send(writer, answer, fault)

    def _choose_fault(self) -> str:
        chance = self.random.random()
        for name in ("slow_down", "cut", "stall", "flip", "lost", "deny"):
            chance -= getattr(self.store.faults, name)
            if chance < 0:
                return name
        return ""

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer, fault: str) -> bool:
        faults = self.store.faults
        nbytes = len(answer.body) if answer.declared is None else answer.declared
        lines = [f"HTTP/1.1 {answer.status} {REASONS[answer.status]}"]
        if answer.status not in (204, 304):
            lines.append(f"Content-Length: {nbytes}")
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        body = memoryview(answer.body)
        if fault == "flip":
            wrong = bytearray(body)
            wrong[self.random.randrange(len(wrong))] ^= 1 << self.random.randrange(8)
            body = memoryview(wrong)
        end = len(body) // 2 if fault in ("cut", "stall") else len(body)
        start_time, piece = time.monotonic(), PIECE
        if faults.bandwidth:
            piece = max(1, min(PIECE, int(faults.bandwidth / 100)))
        for start in range(0, end, piece):
            writer.write(body[start : min(end, start + piece)])
            await writer.drain()
            if faults.bandwidth:
                behind = start_time + min(end, start + piece) / faults.bandwidth - time.monotonic()
                if behind > 0.001:
                    await asyncio.sleep(behind)
        await writer.drain()
        if fault == "stall":
            await asyncio.sleep(faults.stall_seconds)
        return end == len(body)

    def _control(self, request: Request) -> Answer:
        verb, given = request.path.removeprefix("/_control/"), request.body
        result: Any = None
        if verb == "faults":
            self.store.faults = Faults(**json.loads(given))
            self.random = random.Random(self.store.faults.seed)
        elif verb == "log":
            result = self.log
        elif verb == "clear_log":
            self.log.clear()
        elif verb == "reset":
            self.__init__()  # type: ignore[misc]
        elif verb == "mount":
            result = self.store.mount(**json.loads(given))
        elif verb == "uploads":
            result = [upload.key for upload in self.store.uploads.values()]
        elif verb == "keys":
            result = {key: len(stored.data) for key, stored in sorted(self.store.objects.items())}
        else:
            return _refuse(404, verb)
        return Answer(200, json.dumps(result).encode())


async def _read_requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[Request]:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        yield Request(method, unquote(parts.path), query, headers, body)


def _read_range(text: str, size: int) -> tuple[int, int] | None:
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", text.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, size - int(found[2])), size
    stop = int(found[2]) + 1 if found[2] else size
    return (int(found[1]), min(stop, size)) if stop > int(found[1]) else None


def _matches(condition: str, etag: str) -> bool:
    return condition.strip() == "*" or etag.strip('"') in [one.strip().strip('"') for one in condition.split(",")]


def _unescape(text: str) -> str:
    for name, letter in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        text = text.replace(name, letter)
    return text


def _xml(kind: str, inside: str) -> Answer:
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} xmlns="{space}">{inside}</{kind}>'
    return Answer(200, text.encode(), {"Content-Type": "application/xml"})


def _refuse(status: int, code: str) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return Answer(status, text.encode(), {"Content-Type": "application/xml"})


async def main(arguments: Iterable[str]) -> None:
    [port] = arguments
    server = await asyncio.start_server(Server().serve, "127.0.0.1", int(port), limit=4 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1:]))
