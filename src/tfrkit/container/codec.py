"""The interface of the codecs for compressed streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Codec(Protocol):
    """The interface shared by the lzma, ISA-L and zstd decompressors."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


class Compressor(Protocol):
    """The interface shared by the lzma, zlib-ng, ISA-L and zstd compressors."""

    @property
    def compress(self) -> Callable[[bytes | bytearray | memoryview], bytes]: ...
    @property
    def flush(self) -> Callable[[], bytes]: ...


class StreamCodec(Protocol):
    """One compression format. Libraries do all of the encoding and decoding."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions its decompressors raise for damaged data."""

    def open(self, *, careful: bool) -> Codec:
        """Return a decompressor for a new stream. A careful one returns every byte before damage."""

    def compress(self, level: int, *, fast: bool) -> Compressor:
        """Return a compressor. Equal calls give equal output: no timestamp or file name is written."""
