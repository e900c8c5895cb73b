"""gzip and zlib streams: inflated by the fastest library, or by zlib near damage."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from tfrkit import _deflate
from tfrkit.container.codec import Codec, Compressor

# mtime 0, no name, no flags, unknown operating system. Not written by the library, because it stores the number of
# the operating system, and output would differ between systems.
GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


class CarefulInflate(_deflate.PlainInflate):
    """zlib with the `Codec` interface: slower than ISA-L, but loses at most one byte before damage; then it raises.

    ISA-L decodes up to 64 KiB ahead and does not return them at damage; zlib returns nothing from the call that fails.
    So the state of zlib is copied before each call. If a call fails, it is repeated from the copy with half the input,
    and so on down to one input byte, whose output is requested byte by byte.
    """

    def __init__(self, wbits: int) -> None:
        super().__init__(wbits)
        self._error: zlib.error | None = None

    @property
    def unused_data(self) -> bytes:
        """The input after the end of the stream, or after the damaged byte."""
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
        """Inflate `data` up to the damage in it; return the output, and the error once the damage is reached."""
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


class _Gzip:
    """A gzip member around a bare deflate stream."""

    def __init__(self, deflate: Compressor) -> None:
        self._deflate = deflate
        self._header = GZIP_HEADER
        self._crc = 0
        self._nbytes = 0

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        self._crc = _deflate.crc32(data, self._crc)
        self._nbytes += memoryview(data).nbytes
        return self._take_header() + self._deflate.compress(data)

    def flush(self) -> bytes:
        trailer = struct.pack("<II", self._crc, self._nbytes & 0xFFFFFFFF)
        return self._take_header() + self._deflate.flush() + trailer

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


class DeflateCodec:
    """gzip or zlib."""

    errors = _deflate.INFLATE_ERRORS

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip

    def open(self, *, careful: bool) -> Codec:
        if careful:
            return CarefulInflate(31 if self._is_gzip else 15)
        codec: Codec = _deflate.open_inflate("gzip" if self._is_gzip else "zlib")
        return codec

    def compress(self, level: int, *, fast: bool) -> Compressor:
        deflate: Compressor = _deflate.open_deflate("none" if self._is_gzip else "zlib", level, fast=fast)
        return _Gzip(deflate) if self._is_gzip else deflate
