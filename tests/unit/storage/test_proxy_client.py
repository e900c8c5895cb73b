"""Requests through another process: the protocol, here between threads."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

import pytest

from tfrkit.storage import proxy_client
from tfrkit.storage.addresses import Remote
from tfrkit.storage.objects import StoreFault
from tfrkit.storage.options import StorageOptions
from tfrkit.storage.proxy_client import ProxyClient, serve
from tfrkit.testing.fake_store import FakeStore

REMOTE = Remote("s3", "s3://b", "x")


class _Served:
    """Stands for the other process: a thread that answers over pipes."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def __call__(self, *_: Any, **__: Any) -> _Served:
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        self.stdin, self.stdout = os.fdopen(to_write, "wb"), os.fdopen(from_read, "rb")
        thread = threading.Thread(target=self._serve, args=(os.fdopen(to_read, "rb"), os.fdopen(from_write, "wb")))
        thread.start()
        self._thread = thread
        return self

    def _serve(self, source: Any, sink: Any) -> None:
        with source, sink:
            serve(json.loads(source.readline()), source, sink, lambda remote, options: self._store)

    def end(self) -> None:
        self.stdin.close()
        self._thread.join()


def test_requests_and_faults_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    store = FakeStore()
    store.objects = {"x": bytes(range(256)) * 1000, "folder/y": b"abc"}
    served = _Served(store)
    monkeypatch.setattr(proxy_client.subprocess, "Popen", served)
    client = ProxyClient(REMOTE, StorageOptions(anonymous=True))
    version = store.version_of("x")
    body = client.get("x", 10, 200_000, version)
    assert b"".join(body.pieces) == store.objects["x"][10:200_000]
    assert body.info == client.head("x") == ("x", 256_000, version, 0)
    objects, folders = client.list("")
    assert [info.key for info in objects] == ["x"] and list(folders) == ["folder/"]
    for call, kind in ((lambda: client.head("nope"), "missing"), (lambda: client.get("x", 0, 5, '"other"'), "changed")):
        with pytest.raises(StoreFault) as caught:
            call()
        assert caught.value.kind == kind
    answers: list[bytes] = []
    threads = [
        threading.Thread(target=lambda at=at: answers.append(bytes(client.get("x", at, at + 9, None).pieces[0])))
        for at in range(40)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == sorted(store.objects["x"][at : at + 9] for at in range(40))
    served.end()
    with pytest.raises(StoreFault, match="the process that reads the store ended"):
        client.head("x")
    client._receiver.join()
    served.stdout.close()


def test_process_that_cannot_start_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StoreFault, match="the process that reads the store ended"):
        ask_and_close()


def ask_and_close() -> None:
    client = ProxyClient(REMOTE, StorageOptions())
    try:
        client.head("x")
    finally:
        client._receiver.join()
        client.close()
