"""The deflate libraries: ISA-L and zlib-ng where they are installed, zlib of Python otherwise.

All of them inflate to the same bytes and read what the others write. They deflate to different bytes, so files written
without the two packages differ in size from files written with them; the records in them do not.
"""

from __future__ import annotations

import contextlib
import zlib
from typing import Any, Final, Literal

igzip_lib: Any = None
isal_zlib: Any = None
zlib_ng: Any = None
with contextlib.suppress(ImportError):
    from isal import igzip_lib, isal_zlib
with contextlib.suppress(ImportError):
    from zlib_ng import zlib_ng

Wrapper = Literal["gzip", "zlib", "none"]
"""What is around a deflate stream."""

_WBITS: Final = {"gzip": 31, "zlib": 15, "none": -15}
# The polynomial of CRC-32 in reflected form.
_CRC32_POLYNOMIAL: Final = 0xEDB88320

_checksums: Any = isal_zlib or zlib
crc32 = _checksums.crc32
adler32 = _checksums.adler32
INFLATE_ERRORS: Final[tuple[type[Exception], ...]] = (zlib.error, *((isal_zlib.error,) if isal_zlib else ()))


class PlainInflate:
    """zlib with the interface of the other decompressors."""

    def __init__(self, wbits: int) -> None:
        self._inflate = zlib.decompressobj(wbits)
        self._tail = b""
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        """The input after the end of the stream."""
        return self._inflate.unused_data

    def decompress(self, data: bytes | memoryview, max_length: int) -> bytes:
        """Inflate to at most `max_length` bytes, at least 1; the input that is left is kept for the next call."""
        piece = self._inflate.decompress(self._tail + data if self._tail else data, max_length)
        self._tail = self._inflate.unconsumed_tail
        self.needs_input = not self._tail and len(piece) < max_length
        return piece


def open_inflate(wrapper: Wrapper) -> Any:
    """Return the fastest decompressor for a new stream. It may lose up to 64 KiB before damage."""
    if igzip_lib is None:
        return PlainInflate(_WBITS[wrapper])
    flags = {"gzip": igzip_lib.DECOMP_GZIP, "zlib": igzip_lib.DECOMP_ZLIB, "none": igzip_lib.DECOMP_DEFLATE}
    return igzip_lib.IgzipDecompressor(flag=flags[wrapper])


def open_whole_inflate() -> Any:
    """Return a decompressor with the interface of `zlib.decompressobj`, for a zlib stream in one piece."""
    return _checksums.decompressobj()


def open_deflate(wrapper: Wrapper, level: int, *, fast: bool, window: bytes = b"") -> Any:
    """Return a compressor: for speed, or for size. `window` are the bytes before, as a dictionary."""
    options: dict[str, Any] = {"level": level, "wbits": _WBITS[wrapper]}
    if window:
        options["zdict"] = window
    if fast and isal_zlib is not None:
        return isal_zlib.compressobj(**options)
    # memLevel 9, as in TensorFlow: a little smaller and a fifth faster than the default of 8.
    return (zlib_ng or zlib).compressobj(**options, memLevel=9)


def combine_crc32(first: int, second: int, second_nbytes: int) -> int:
    """Return the CRC-32 of two byte strings from those of each.

    Example:
        >>> combine_crc32(zlib.crc32(b"ab"), zlib.crc32(b"cde"), 3) == zlib.crc32(b"abcde")
        True
    """
    if isal_zlib is not None:
        return int(isal_zlib.crc32_combine(first, second, second_nbytes))
    shift, power = 1 << 31, 1 << 23  # x^0 and x^8
    while second_nbytes:
        if second_nbytes & 1:
            shift = _multiply(shift, power)
        power = _multiply(power, power)
        second_nbytes >>= 1
    return _multiply(shift, first) ^ second


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo that of CRC-32; the highest bit is x^0."""
    product = 0
    for place in range(31, -1, -1):
        if a >> place & 1:
            product ^= b
        b = b >> 1 ^ _CRC32_POLYNOMIAL if b & 1 else b >> 1
    return product
