"""Compressed streams in the making."""

from __future__ import annotations

import lzma
import struct
from collections.abc import Callable
from typing import Final, Literal

from isal import isal_zlib
from zlib_ng import zlib_ng

from tfrkit.container.codecs import COMPRESSIONS, Compression, import_zstd

Level = Literal["default", "fast", "small"] | int

_NAMED_LEVELS: Final[dict[str, dict[str, int]]] = {
    "gzip": {"default": 5, "fast": 1, "small": 9},
    "zlib": {"default": 5, "fast": 1, "small": 9},
    "xz": {"default": 6, "fast": 1, "small": 9},
    "zstd": {"default": 3, "fast": 1, "small": 19},
}
_LEVEL_RANGES: Final = {"gzip": (0, 9), "zlib": (0, 9), "xz": (0, 9), "zstd": (1, 22)}

# Written here rather than by the library, which puts the operating system's number into it: mtime 0, no
# name, no flags, operating system unknown.
GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"

_Write = Callable[[bytes | bytearray | memoryview], bytes]


class Deflater:
    """A compressed stream in the making: what `write` and `finish` return, joined, is the file.

    Equal input in equal pieces gives equal bytes: no time, no name. Levels: "default" (gzip and zlib:
    zlib-ng 5, xz 6, zstd 3), "fast" (ISA-L 1, xz 1, zstd 1), "small" (9, 9, 19), or the codec's own number.
    Not safe to share between threads.

    Example:
        >>> import zlib
        >>> deflater = Deflater("zlib")
        >>> zlib.decompress(deflater.write(b"abc") + deflater.finish())
        b'abc'
    """

    def __init__(self, compression: Compression, level: Level = "default") -> None:
        self._compress, self._flush, self._header = _open_deflate(compression, level)
        self._has_trailer = compression == "gzip"
        self._crc = 0
        self._nbytes = 0
        self._is_finished = False

    def write(self, data: bytes | bytearray | memoryview) -> bytes:
        """Compressed bytes that are ready; often none."""
        if self._is_finished:
            raise ValueError("write to a finished compressed stream")
        if self._has_trailer:
            self._crc = isal_zlib.crc32(data, self._crc)
            self._nbytes += memoryview(data).nbytes
        return self._take_header() + self._compress(data)

    def finish(self) -> bytes:
        """The rest of the stream."""
        if self._is_finished:
            return b""
        self._is_finished = True
        trailer = struct.pack("<II", self._crc, self._nbytes & 0xFFFFFFFF) if self._has_trailer else b""
        return self._take_header() + self._flush() + trailer

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


def _open_deflate(compression: Compression, level: Level) -> tuple[_Write, Callable[[], bytes], bytes]:
    """(compress, flush, header)."""
    if compression == "none":
        return bytes, bytes, b""
    number = level_number(compression, level)
    if compression in ("gzip", "zlib"):
        wbits = -15 if compression == "gzip" else 15
        header = GZIP_HEADER if compression == "gzip" else b""
        if level == "fast":
            fast = isal_zlib.compressobj(level=number, wbits=wbits)
            return fast.compress, fast.flush, header
        # memLevel 9, as TensorFlow has it: a little smaller and a fifth faster than the default 8.
        small = zlib_ng.compressobj(level=number, wbits=wbits, memLevel=9)
        return small.compress, small.flush, header
    if compression == "xz":
        # CRC32 is what every decoder knows; the frames inside carry their own checksums.
        xz = lzma.LZMACompressor(lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, preset=number)
        return xz.compress, xz.flush, b""
    module = import_zstd()
    parameter = module.CompressionParameter
    zstd = module.ZstdCompressor(options={parameter.compression_level: number, parameter.checksum_flag: 1})
    return zstd.compress, zstd.flush, b""


def level_number(compression: Compression, level: Level) -> int:
    """The codec's own number for a level."""
    if compression not in _NAMED_LEVELS:
        raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")
    named = _NAMED_LEVELS[compression]
    if isinstance(level, str) and level in named:
        return named[level]
    low, high = _LEVEL_RANGES[compression]
    if isinstance(level, int) and not isinstance(level, bool) and low <= level <= high:
        return level
    raise ValueError(
        f"level of {compression} must be 'default', 'fast', 'small' or a number from {low} to {high}, got {level!r}"
    )
