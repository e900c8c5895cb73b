"""The interface of a client of an object store, and the ways in which a request can fail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, Literal, NamedTuple, Protocol

FaultKind = Literal["missing", "denied", "changed", "busy", "broken", "unreachable", "refused"]
"""Why a request failed.

missing: there is no such object. denied: no permission. changed: the object is not the expected version any more.
busy: the store asks for fewer requests. broken: the connection failed or stalled. unreachable: there was no
connection. refused: anything else, final.
"""


class StoreFault(Exception):
    """A failed request. `what` names the reason without addresses and keys; `body` is what arrived before."""

    def __init__(self, kind: FaultKind, what: str) -> None:
        super().__init__(what)
        self.kind: FaultKind = kind
        self.what = what
        self.body: list[memoryview] = []


class ObjectInfo(NamedTuple):
    """An object in a listing. The version (ETag or generation) is None if the store has none.

    A size of -1 is not known. The time of the last change, in ns, is 0 if it is not known; stores round it to seconds.
    """

    key: str
    nbytes: int
    version: str | None
    modified_ns: int = 0


class Listing(NamedTuple):
    """The manifest that lists the version of an object: its key, and a digest of its text."""

    key: str
    digest: str


class Body(NamedTuple):
    """Bytes of an object, in pieces, with the facts about the object that came with them."""

    pieces: list[memoryview]
    info: ObjectInfo


class StoredVersion(NamedTuple):
    """The version of a stored object, in the two forms that stores compare: ETag, and generation of Google's."""

    etag: str | None
    generation: str | None = None


class StoreClient(Protocol):
    """Requests to one store. Safe to share between threads; every call is one request, without retries."""

    can_list: bool
    """Whether the store can list its objects."""
    is_pinned: bool
    """Whether `get` makes the store compare the version."""

    def get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        """Return bytes [start, stop) of an object, fewer at its end; all of it with `stop` None.

        With a version, another version of the object raises "changed". Raises `StoreFault`.
        """

    def head(self, key: str) -> ObjectInfo:
        """Return the facts about an object. Raises `StoreFault`."""

    def list(self, folder: str) -> tuple[Iterable[ObjectInfo], Iterable[str]]:
        """Return the objects and the folders directly in a folder ("" or "a/b/"); keys are complete.

        Raises `StoreFault`.
        """


class WritableClient(StoreClient, Protocol):
    """A client that can also store objects. Every object appears whole or not at all."""

    def load(self, key: str) -> tuple[bytes, StoredVersion]:
        """Return a small object and its version, for `replaces` of `put`. Raises `StoreFault`."""

    def put(self, key: str, data: bytes, replaces: StoredVersion | Literal["nothing", "anything"]) -> StoredVersion:
        """Store a small object by one request.

        Raises "changed" if the stored object is not the one that it `replaces`. Raises `StoreFault`.
        """

    def put_file(self, key: str, file: BinaryIO, nbytes: int) -> StoredVersion:
        """Store the bytes of a file, in parts if it is large, with retries. Raises `StoreFault`."""

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is not an error. Raises `StoreFault`."""
