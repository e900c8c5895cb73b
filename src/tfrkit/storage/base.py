"""The interface of byte storage."""

from __future__ import annotations

from typing import Protocol

from tfrkit import _native
from tfrkit.errors import StorageError

# Anything the native core reads without a copy.
ByteSource = bytes | bytearray | memoryview | _native.FileMap


class ByteReader(Protocol):
    """The stored bytes of one shard, compressed or not.

    Safe to share between threads, except `read`, which keeps a position.
    """

    @property
    def name(self) -> str:
        """The address as the user gave it, for messages."""

    @property
    def size(self) -> int | None:
        """Size in bytes; None for a pipe."""

    def span(self) -> ByteSource | None:
        """All bytes as one buffer without reading them, or None if not supported."""

    def descriptor(self) -> int:
        """The file descriptor of `span`, or -1."""

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """At most `nbytes` bytes from `offset`; fewer only at the end."""

    def read(self, nbytes: int) -> bytes:
        """The next at most `nbytes` bytes; b"" at the end."""

    def check_unchanged(self) -> None:
        """Raise `StorageError` if the file of `span` was truncated since it was opened."""

    def release(self, start: int, stop: int) -> None:
        """Hint that [start, stop) of `span` is not needed for now, so memory stays bounded."""

    def park(self) -> None:
        """Close files until the next use."""

    def close(self) -> None: ...


class ByteWriter(Protocol):
    """A shard being written. It appears under its name whole, on `commit`, or not at all."""

    @property
    def name(self) -> str: ...

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def commit(self) -> None:
        """Make everything durable and visible."""

    def discard(self) -> None:
        """Discard everything written."""


def describe_os_error(error: OSError) -> str:
    """The operating system's reason in lower case, without the path."""
    return (error.strerror or str(error)).lower()


def explain_os_error(error: OSError, name: str, *, verb: str = "open", more: str = "") -> StorageError:
    """A `StorageError` that reads "cannot VERB, REASON - at NAME"; `more` follows the reason."""
    return StorageError(f"cannot {verb}, {describe_os_error(error)}{more}", shard=name)
