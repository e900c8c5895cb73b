"""The libraries that inflate, under one interface. Nothing here decodes a stream by hand."""

from __future__ import annotations

import importlib
import lzma
import sys
import zlib
from typing import Any, Final, Literal, Protocol

from isal import igzip_lib, isal_zlib

Compression = Literal["none", "gzip", "zlib", "xz", "zstd"]

CompressionWord = Compression | Literal["", "gz", "GZIP", "ZLIB", "XZ", "ZSTD"]
"""What a user may call one: also as TensorFlow does, and as files are called."""

COMPRESSIONS: Final[tuple[Compression, ...]] = ("none", "gzip", "zlib", "xz", "zstd")

# How a name speaks of its compression.
_SUFFIXES: Final[dict[str, Compression]] = {
    "gz": "gzip",
    "gzip": "gzip",
    "zlib": "zlib",
    "xz": "xz",
    "zst": "zstd",
    "zstd": "zstd",
}
SUFFIX_PATTERN: Final = rf"\.({'|'.join(_SUFFIXES)})"

GZIP_MAGIC: Final = b"\x1f\x8b"
XZ_MAGIC: Final = b"\xfd7zXZ\0"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"

# An .xz file names its dictionary size itself; -9 needs 65 MiB, a hostile one asks for 4 GiB.
_XZ_MEMORY_LIMIT: Final = 256 << 20


def compression_of_name(path: str) -> Compression | None:
    """The compression that a name speaks of by its suffix: "gzip" for x.tfrecord.gz, None for x.tfrecord."""
    return _SUFFIXES.get(path.rpartition(".")[2].lower()) if "." in path else None


def read_compression(word: str | None) -> Compression | None:
    """The compression that a user asks for, in any case; None stays None: as the name of the file ends.

    Example:
        >>> read_compression("GZIP"), read_compression("gz"), read_compression(""), read_compression(None)
        ('gzip', 'gzip', 'none', None)
    """
    if word is None:
        return None
    asked = word.lower() if isinstance(word, str) else word
    found = "none" if asked == "" else asked if asked in COMPRESSIONS else _SUFFIXES.get(asked)
    if found is None:
        raise ValueError(f"compression expected one of {', '.join(COMPRESSIONS)}, got {word!r:.64}")
    return found


class Codec(Protocol):
    """The interface that the bz2, lzma, ISA-L and zstd decompressors share."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes: ...


class CarefulInflate:
    """zlib under the shared interface: slower than ISA-L, but loses at most one byte before damage; then it raises.

    ISA-L decodes up to 64 KiB ahead and keeps them when it meets damage; zlib gives nothing in the call that meets it.
    So its state is copied before each call. Where one fails, it is made again from the copy with half the input, and so
    on down to one byte, whose output is asked for byte by byte.
    """

    def __init__(self, wbits: int) -> None:
        self._inflate = zlib.decompressobj(wbits)
        self._tail = b""
        self._error: zlib.error | None = None
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        """What was not looked at: behind the stream, or behind the byte at which it is damaged."""
        return self._inflate.unused_data + self._tail

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        if self._error is not None:
            raise self._error
        data = self._tail + bytes(data)
        before = self._inflate.copy()
        try:
            piece = self._inflate.decompress(data, max_length)
            self._tail = self._inflate.unconsumed_tail
        except zlib.error:
            self._inflate = before
            piece, self._error = self._approach(data, max_length)
            if self._error is not None and not piece:
                raise self._error from None
        self.needs_input = not self._tail and len(piece) < max_length and self._error is None
        return piece

    def _approach(self, data: bytes, max_length: int) -> tuple[bytes, zlib.error | None]:
        """What comes out before the damage, which is somewhere in `data`; the error where there is no more."""
        pieces: list[bytes] = []
        start, left, nbytes = 0, max_length, len(data)
        while left and nbytes > 1:
            nbytes = (nbytes + 1) // 2
            ahead = self._inflate.copy()
            try:
                piece = ahead.decompress(data[start : start + nbytes], left)
            except zlib.error:
                continue
            self._inflate = ahead
            start += nbytes - len(ahead.unconsumed_tail)
            left -= len(piece)
            pieces.append(piece)
        last = data[start : start + 1]
        self._tail = data[start:]
        while left:
            try:
                piece = self._inflate.decompress(last, 1)
            except zlib.error as error:
                self._tail = data[start + 1 :]
                return b"".join(pieces), error
            last = self._inflate.unconsumed_tail
            self._tail = last + data[start + 1 :]
            left -= len(piece)
            pieces.append(piece)
        return b"".join(pieces), None


def import_zstd() -> Any:
    """The zstd module, loaded on first use: few shards are zstd, and `import tfrkit` stays light."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return importlib.import_module(name)


def codec_errors(compression: Compression) -> tuple[type[Exception], ...]:
    """What this compression's decompressors raise for damage."""
    if compression == "zstd":
        return (import_zstd().ZstdError,)
    if compression == "xz":
        return (lzma.LZMAError,)
    return (zlib.error, isal_zlib.error)  # type: ignore[return-value]


def explain_damage(error: Exception) -> str:
    """What a decompressor found, without its prefix: "invalid block type"."""
    reason = str(error).rsplit(": ", 1)[-1].strip().rstrip(".")
    return reason[:1].lower() + reason[1:]


def open_codec(compression: Compression, *, careful: bool = False) -> Codec:
    """A decompressor that stands before a stream. A careful one gives every byte before damage."""
    if compression == "gzip":
        return CarefulInflate(31) if careful else igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    if compression == "zlib":
        return CarefulInflate(15) if careful else igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_ZLIB)
    if compression == "xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_LIMIT)
    if compression == "zstd":
        codec: Codec = import_zstd().ZstdDecompressor()
        return codec
    raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")


def starts_member(head: bytes, compression: Compression) -> bool:
    """Whether bytes behind a finished stream start another one. A cut-off magic counts as a start."""
    if compression == "gzip":
        return GZIP_MAGIC.startswith(head[:2])
    if compression == "xz":
        return XZ_MAGIC.startswith(head[:6])
    if compression == "zstd":
        is_skippable = head[0] & 0xF0 == 0x50 and b"\x2a\x4d\x18".startswith(head[1:4])
        return is_skippable or ZSTD_MAGIC.startswith(head[:4])
    return False
