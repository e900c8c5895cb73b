"""What every codec of a compressed stream offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Codec(Protocol):
    """The interface that the bz2, lzma, ISA-L and zstd decompressors share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


class Compressor(Protocol):
    """The interface that their compressors share."""

    @property
    def compress(self) -> Callable[[bytes | bytearray | memoryview], bytes]: ...
    @property
    def flush(self) -> Callable[[], bytes]: ...


class StreamCodec(Protocol):
    """One way to compress a stream. Nothing here decodes a stream by hand: libraries do."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its decompressors raise for damage."""

    def open(self, *, careful: bool) -> Codec:
        """A decompressor before a stream. A careful one gives every byte before damage."""

    def compress(self, level: int, *, fast: bool) -> Compressor:
        """A compressor. Equal input in equal pieces gives equal bytes: no time, no name."""
