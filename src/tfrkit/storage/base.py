"""The interface of byte storage."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, Protocol

from tfrkit import _native
from tfrkit.errors import StorageError
from tfrkit.storage.objects import Listing

Ahead = Literal["none", "more", "most"]

# Buffers that the native core reads without a copy.
ByteSource = bytes | bytearray | memoryview | _native.FileMap

# What helps when a file cannot be written.
NO_SPACE_HINT = "make room there, or write to another disk"
_WRITE_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), NO_SPACE_HINT),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "write to a folder of your own"),
}


class ByteStream(Protocol):
    """The bytes of a file from a position on, in order. Use it from one thread."""

    def read(self, nbytes: int) -> bytes | memoryview:
        """Return the next bytes, at most `nbytes`; none at the end."""


class ByteReader(Protocol):
    """The stored bytes of one shard, compressed or not.

    Thread-safe, except `read`, which keeps a position.
    """

    @property
    def name(self) -> str:
        """The address as the user gave it, for messages."""

    @property
    def size(self) -> int | None:
        """Size in bytes; None for a pipe."""

    def span(self) -> ByteSource | None:
        """Return all bytes as one buffer without reading them, or None if not supported."""

    def descriptor(self) -> int:
        """Return the file descriptor of `span`, or -1."""

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return `nbytes` bytes from `offset`; fewer only at the end."""

    def read(self, nbytes: int) -> bytes:
        """Return the next bytes, at most `nbytes`; b"" at the end."""

    @property
    def is_remote(self) -> bool:
        """Whether bytes come over a network: they may be wrong once, and each read has a latency."""

    def stream(self, start: int, *, fresh: bool = False, ahead: Ahead = "more") -> ByteStream:
        """Return the bytes from `start` on, which a remote reader requests ahead; for a file without a span.

        `fresh` reads them past any cache. `ahead` is how much is requested before it is read: "more" and more, "none",
        for a look at the first records, or "most" at once, for a pass over the whole file.
        """

    def lead_to(self, find_next: Callable[[], ByteReader | None] | None) -> None:
        """Say which file is read after this one: a remote reader requests its start while its own end is read."""

    def begin(self, *, whole: bool = True) -> None:
        """Say that the file is going to be read from its start, whole or a little: a remote reader requests that."""

    def read_ranges(self, ranges: Sequence[tuple[int, int]], *, fresh: bool = False) -> list[bytes]:
        """Return the bytes of several ranges [start, stop), cut at the end; a remote reader requests them together.

        `fresh` reads them again from the store, past any cache: for bytes that failed a checksum.
        """

    @property
    def version(self) -> str | None:
        """The version of a remote object, once known; None for a file."""

    @property
    def listing(self) -> Listing | None:
        """The manifest that lists this version, until bytes of it were read; None without one."""

    def check_unchanged(self) -> None:
        """Raise `StorageError` if the file of `span` was truncated since it was opened."""

    def release(self, start: int, stop: int) -> None:
        """Allow the system to drop the pages of [start, stop) of `span`, so that memory stays bounded."""

    def park(self) -> None:
        """Close the file; the next use opens it again."""

    def close(self) -> None: ...


class LocalRanges:
    """Streams and ranges of a reader of local bytes, which are read in place; the rest is that of a pipe."""

    version: str | None = None
    listing: Listing | None = None
    is_remote = False

    def span(self) -> ByteSource | None:
        return None

    def descriptor(self) -> int:
        return -1

    def check_unchanged(self) -> None:
        return None

    def release(self, start: int, stop: int) -> None:
        return None

    def park(self) -> None:
        return None

    def stream(self: ByteReader, start: int, *, fresh: bool = False, ahead: Ahead = "more") -> ByteStream:
        return _Stream(self, start)

    def lead_to(self, find_next: Callable[[], ByteReader | None] | None) -> None:
        return None

    def begin(self, *, whole: bool = True) -> None:
        return None

    def read_ranges(self: ByteReader, ranges: Sequence[tuple[int, int]], *, fresh: bool = False) -> list[bytes]:
        return [self.read_at(start, stop - start) for start, stop in ranges]


class _Stream:
    def __init__(self, reader: ByteReader, start: int) -> None:
        self._reader = reader
        self._position = start

    def read(self, nbytes: int) -> bytes:
        piece = self._reader.read_at(self._position, nbytes)
        self._position += len(piece)
        return piece


def lead_in_turn(number: int, find_reader: Callable[[int], ByteReader | None]) -> ByteReader | None:
    """Return the reader of a number, which is led to that of the next number, and so on until `find_reader` has none.

    For files that are read whole, one after the other.
    """
    reader = find_reader(number)
    if reader is not None:
        reader.lead_to(partial(lead_in_turn, number + 1, find_reader))
    return reader


class ByteWriter(Protocol):
    """A shard being written. The complete file appears under its name on `commit`, or not at all."""

    @property
    def name(self) -> str: ...

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def commit(self) -> None:
        """Make the file durable and visible."""

    def discard(self) -> None:
        """Discard everything written."""


def describe_os_error(error: OSError) -> str:
    """Return the operating system's reason in lower case, without the path."""
    return (error.strerror or str(error)).lower()


def explain_os_error(error: OSError, name: str, *, verb: str = "open", more: str = "") -> StorageError:
    """Return a `StorageError` that reads "cannot VERB, REASON - at NAME"; `more` follows the reason."""
    hint = _WRITE_HINTS.get(error.errno or 0) if verb == "write" else None
    return StorageError(f"cannot {verb}, {describe_os_error(error)}{more}", shard=name, hint=hint)
