"""Shards in memory, for tests and for bytes that are not from a file."""

from __future__ import annotations

from tfrkit.storage.base import ByteSource, LocalRanges


class MemoryReader(LocalRanges):
    """Reads bytes in memory."""

    def __init__(self, data: bytes, *, name: str = "<memory>") -> None:
        self.name = name
        self._data = data
        self._position = 0

    @property
    def size(self) -> int | None:
        return len(self._data)

    def span(self) -> ByteSource | None:
        return self._data

    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._data[offset : offset + nbytes]

    def read(self, nbytes: int) -> bytes:
        piece = self._data[self._position : self._position + nbytes]
        self._position += len(piece)
        return piece

    def close(self) -> None:
        return None


class MemoryWriter:
    """Collects written bytes; `data` is set by `commit`."""

    def __init__(self, *, name: str = "<memory>") -> None:
        self.name = name
        self.data: bytes | None = None
        self._pieces: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._pieces.append(bytes(data))

    def commit(self) -> None:
        self.data = b"".join(self._pieces)

    def discard(self) -> None:
        self._pieces.clear()
