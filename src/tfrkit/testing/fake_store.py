"""A store in memory that fails on request, for tests of remote reading without a server."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal

from tfrkit.storage.addresses import Remote
from tfrkit.storage.bucket import set_opener
from tfrkit.storage.objects import Body, ObjectInfo, StoredVersion, StoreFault
from tfrkit.storage.options import StorageOptions

Answer = Callable[[str, int, bytes], bytes]
"""(key, number of the request, true bytes) → bytes to send; it may raise `StoreFault`."""


class FakeStore:
    """Objects by key. `log` lists the requests; `answer`, if set, changes or refuses the bytes of a range."""

    can_list = True
    is_pinned = True

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.log: list[tuple[str, str, int, int]] = []
        self.answer: Answer | None = None
        self.has_conditions = True  # a store that ignores them is no place for a lease
        self._lock = threading.Lock()
        self._written_ns: dict[str, int] = {}

    def add_folder(self, folder: str, prefix: str = "") -> None:
        """Add the files of a local folder."""
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                with open(path, "rb") as file:
                    self.objects[prefix + os.path.relpath(path, folder)] = file.read()

    def version_of(self, key: str) -> str:
        """Return the version of an object, which changes with its bytes."""
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"'

    def get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        data = self._find("get", key, start, -1 if stop is None else stop)
        if version is not None and version != self.version_of(key):
            raise StoreFault("changed", "the object was replaced")
        body = data[start:] if stop is None else data[start:stop]
        if self.answer is not None:
            body = self.answer(key, len(self.log) - 1, body)
        return Body([memoryview(body)], self._describe(key, data))

    def _describe(self, key: str, data: bytes) -> ObjectInfo:
        return ObjectInfo(key, len(data), self.version_of(key), self._written_ns.get(key, 0) // 10**9 * 10**9)

    def head(self, key: str) -> ObjectInfo:
        return self._describe(key, self._find("head", key))

    def list(self, folder: str) -> tuple[Iterable[ObjectInfo], Iterable[str]]:
        with self._lock:
            self.log.append(("list", folder, 0, 0))
        rest = {key: key[len(folder) :] for key in self.objects if key.startswith(folder)}
        found = [self._describe(key, self.objects[key]) for key in rest if "/" not in rest[key]]
        return found, sorted({f"{folder}{name.partition('/')[0]}/" for name in rest.values() if "/" in name})

    def load(self, key: str) -> tuple[bytes, StoredVersion]:
        return self._find("load", key), StoredVersion(self.version_of(key))

    def put(self, key: str, data: bytes, replaces: StoredVersion | Literal["nothing", "anything"]) -> StoredVersion:
        with self._lock:
            self.log.append(("put", key, 0, len(data)))
            is_there = key in self.objects
            if self.has_conditions and (
                (replaces == "nothing" and is_there)
                or (isinstance(replaces, StoredVersion) and (not is_there or replaces.etag != self.version_of(key)))
            ):
                raise StoreFault("changed", "another process wrote the object")
            self.objects[key] = data
            self._written_ns[key] = time.time_ns()
            return StoredVersion(self.version_of(key))

    def put_file(self, key: str, file: BinaryIO, nbytes: int) -> StoredVersion:
        data = file.read()
        assert len(data) == nbytes
        return self.put(key, data, "anything")

    def delete(self, key: str) -> None:
        with self._lock:
            self.log.append(("delete", key, 0, 0))
            self.objects.pop(key, None)

    def _find(self, verb: str, key: str, start: int = 0, stop: int = 0) -> bytes:
        with self._lock:
            self.log.append((verb, key, start, stop))
        if key not in self.objects:
            raise StoreFault("missing", "no such object")
        return self.objects[key]


@contextmanager
def use_fake_store(scheme: str = "s3") -> Iterator[FakeStore]:
    """Answer all addresses of a scheme from one store in memory."""
    store = FakeStore()

    def open_client(remote: Remote, options: StorageOptions) -> FakeStore:
        return store

    set_opener(scheme, open_client)
    try:
        yield store
    finally:
        set_opener(scheme, None)
