"""Decode ordinary PNGs, several times faster than Pillow.

Ordinary PNGs have 8 bits per channel, gray or colour with or without alpha, and are not interlaced; most programs write
such files. Pillow decodes all others (palettes, 16 bits, interlaced rows, animation, chunks in unusual order).
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

import numpy as np

from tfrkit import _deflate, _native
from tfrkit.errors import CodecError
from tfrkit.images.resize import Pixels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_OVERHEAD = 4 + 4 + 4  # length, type, checksum
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by colour type
# Chunks of animations and palettes, which Pillow decodes.
_FOR_PILLOW = frozenset({b"acTL", b"PLTE"})


class PlainPng(NamedTuple):
    """The rows of an ordinary PNG, inflated but still filtered."""

    height: int
    width: int
    channels: int
    filtered: bytes


def read_png(data: memoryview, max_pixels: int) -> PlainPng | None:
    """Inflate an ordinary PNG; return None for other PNGs and other files.

    All checksums are compared and every row must be present. Raises `CodecError` if the file is truncated or damaged.
    """
    if bytes(data[:8]) != _SIGNATURE:
        return None
    found = _walk_chunks(data)
    if found is None:
        return None
    header, pieces = found
    width, height, bits, colour_type, compression, filters, interlace = struct.unpack(">IIBBBBB", header)
    is_plain = bits == 8 and colour_type in _CHANNELS and (compression, filters, interlace) == (0, 0, 0)
    if not is_plain or width * height == 0 or width * height > max_pixels:
        return None
    channels = _CHANNELS[colour_type]
    expected = height * (1 + width * channels)
    filtered = _inflate(pieces[0] if len(pieces) == 1 else b"".join(pieces), expected, f"PNG of {width}x{height}")
    return None if filtered is None else PlainPng(height, width, channels, filtered)


def decode_png(png: PlainPng) -> Pixels:
    """Return the pixels as (height, width, channels); alpha is dropped."""
    pixels = np.empty((png.height, png.width, png.channels), np.uint8)
    if not _native.undo_png_filters(png.filtered, pixels):
        raise CodecError(f"PNG of {png.width}x{png.height} does not decode, a row has an unknown filter")
    if png.channels in (2, 4):
        pixels = np.ascontiguousarray(pixels[:, :, :-1])
    return pixels


def _walk_chunks(data: memoryview) -> tuple[bytes, list[memoryview]] | None:
    """Return the header and the pieces of the image data; None if a chunk needs Pillow."""
    header = b""
    pieces: list[memoryview] = []
    offset = 8
    while offset + _CHUNK_OVERHEAD <= len(data):
        nbytes = int.from_bytes(data[offset : offset + 4], "big")
        stop = offset + _CHUNK_OVERHEAD + nbytes
        kind = bytes(data[offset + 4 : offset + 8])
        if stop > len(data):
            break
        stored = int.from_bytes(data[stop - 4 : stop], "big")
        if zlib.crc32(data[offset + 4 : stop - 4]) != stored:
            raise CodecError(f"PNG chunk {kind.decode('latin-1')} has a wrong checksum, at byte {offset}")
        if kind in _FOR_PILLOW or (not header) != (kind == b"IHDR"):
            return None
        if kind == b"IHDR":
            header = bytes(data[offset + 8 : stop - 4])
        elif kind == b"IDAT":
            pieces.append(data[offset + 8 : stop - 4])
        elif kind == b"IEND":
            return (header, pieces) if len(header) == 13 and pieces else None
        elif not kind[0] & 0x20:  # an unknown critical chunk
            return None
        offset = stop
    raise CodecError(f"PNG is truncated, its {len(data)} bytes end before its last chunk")


def _inflate(data: memoryview | bytes, expected: int, what: str) -> bytes | None:
    inflater = _deflate.open_whole_inflate()
    try:
        # Ask for one byte more than expected, to detect a longer stream, which is left to Pillow.
        inflated = bytes(inflater.decompress(data, expected + 1))
    except _deflate.INFLATE_ERRORS as error:
        raise CodecError(f"{what} does not decode, {str(error).lower()[:80]}") from None
    if len(inflated) > expected:
        return None
    if len(inflated) < expected or not inflater.eof:
        raise CodecError(f"{what} is truncated, {len(inflated)} of {expected} bytes are there")
    return inflated
