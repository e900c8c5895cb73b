"""Requests through a process of their own, for a process in which the client of a store does not work.

That is a process forked from one that used the client, such as a worker of a data loader. The other process is a new
one: it reads one line of JSON per request from its input, and writes a line of JSON and the bytes of each answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING, Any, Final

from tfrkit._limits import LIMITS
from tfrkit.storage.addresses import Remote, keep_signature, signature_of
from tfrkit.storage.objects import Body, ObjectInfo, StoreClient, StoreFault
from tfrkit.storage.options import StorageOptions

if TYPE_CHECKING:
    from concurrent.futures import Future

# The folders of modules come before the first import of ours.
_START: Final = """
import json, sys
start = json.loads(sys.stdin.buffer.readline())
sys.path[:] = start["path"]
from tfrkit.storage.proxy_client import serve
serve(start, sys.stdin.buffer, sys.stdout.buffer)
"""
_ENDED: Final = "the process that reads the store ended"
_OpenClient = Callable[[Remote, StorageOptions], StoreClient]


class ProxyClient:
    """The client of a store in another process, which ends with this one. Safe to share between threads."""

    is_pinned = True

    def __init__(self, remote: Remote, options: StorageOptions) -> None:
        self.can_list = remote.scheme not in ("http", "https")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1 << 20
        )
        self._lock = threading.Lock()
        self._waiting: dict[int, _Reply] = {}
        self._num_sent = 0
        self._is_over = False
        # Through a pipe, so that the signature of an address is in no list of processes.
        start = {"path": sys.path, "remote": remote, "options": vars(options), "signature": signature_of(remote.root)}
        try:
            self._send(start)
        except StoreFault:
            self.close()
            raise
        self._receiver = threading.Thread(target=self._receive, name="tfrkit-proxy", daemon=True)
        self._receiver.start()

    def close(self) -> None:
        """End the other process, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was not sent is lost
                pipe.close()
        self._process.wait()

    def get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        answer = self._ask("get", key, start, stop, version)
        return Body([memoryview(answer.body)], ObjectInfo(*answer.head["info"]))

    def head(self, key: str) -> ObjectInfo:
        return ObjectInfo(*self._ask("head", key).head["info"])

    def list(self, folder: str) -> tuple[Iterable[ObjectInfo], Iterable[str]]:
        found = self._ask("list", folder).head
        return [ObjectInfo(*row) for row in found["objects"]], found["folders"]

    def _send(self, message: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except (OSError, ValueError):  # ValueError: the pipe is closed
            raise StoreFault("refused", _ENDED) from None

    def _ask(self, verb: str, *arguments: Any) -> _Reply:
        answer = _Reply()
        with self._lock:
            if self._is_over:
                raise StoreFault("refused", _ENDED)
            self._num_sent += 1
            number = self._num_sent
            self._waiting[number] = answer
            self._send({"number": number, "verb": verb, "arguments": arguments})
        answer.is_here.wait()
        fault = answer.head.get("fault")
        if fault is not None:
            found = StoreFault(*fault)
            found.body = [memoryview(answer.body)] if answer.body else []
            raise found
        return answer

    def _receive(self) -> None:
        """Pass answers on to the threads that wait for them, until the other process ends."""
        stdout = self._process.stdout
        assert stdout is not None
        while line := stdout.readline():
            head = json.loads(line)
            body = stdout.read(head["nbytes"])
            if len(body) < head["nbytes"]:
                break
            self._waiting.pop(head["number"]).give(head, body)
        with self._lock:
            self._is_over = True
            for answer in self._waiting.values():
                answer.give({"fault": ("refused", _ENDED)}, b"")


class _Reply:
    def __init__(self) -> None:
        self.is_here = threading.Event()
        self.head: dict[str, Any] = {}
        self.body = b""

    def give(self, head: dict[str, Any], body: bytes) -> None:
        self.head, self.body = head, body
        self.is_here.set()


def serve(start: dict[str, Any], source: IO[bytes], sink: IO[bytes], open_client: _OpenClient | None = None) -> None:
    """Answer requests until the input ends, which it does when the process that asks ends."""
    from concurrent.futures import ThreadPoolExecutor

    if open_client is None:
        from tfrkit.storage import obstore_client

        open_client = obstore_client.open_client
    remote = Remote(*start["remote"])
    if start["signature"] is not None:
        keep_signature(remote.root, start["signature"])
    client = open_client(remote, StorageOptions(**start["options"]))
    lock = threading.Lock()

    def answer(request: dict[str, Any]) -> None:
        head, pieces = _call(client, request)
        head |= {"number": request["number"], "nbytes": sum(map(len, pieces))}
        with lock, contextlib.suppress(BrokenPipeError):
            sink.write(json.dumps(head).encode() + b"\n")
            for piece in pieces:
                sink.write(piece)
            sink.flush()

    with ThreadPoolExecutor(LIMITS.max_requests) as threads:
        while line := source.readline():
            threads.submit(answer, json.loads(line)).add_done_callback(_end_after_bug)


def _end_after_bug(answered: Future[None]) -> None:
    """End this process if an answer failed: the process that asks would wait forever."""
    error = answered.exception()
    if error is not None:
        traceback.print_exception(error)
        os._exit(os.EX_SOFTWARE)


def _call(client: StoreClient, request: dict[str, Any]) -> tuple[dict[str, Any], list[memoryview]]:
    verb, arguments = request["verb"], request["arguments"]
    try:
        if verb == "get":
            body = client.get(*arguments)
            return {"info": body.info}, body.pieces
        if verb == "head":
            return {"info": client.head(*arguments)}, []
        objects, folders = client.list(*arguments)
        return {"objects": list(objects), "folders": list(folders)}, []
    except StoreFault as fault:
        return {"fault": (fault.kind, fault.what)}, fault.body
