"""Find the EXIF orientation of an encoded image without decoding it.

Only EXIF data is used: the segment of a JPEG, the eXIf chunk of a PNG, the EXIF chunk of a WebP, the TIFF directory.
Orientation in XMP or a text chunk is ignored, as in browsers.
"""

from __future__ import annotations

import struct

from tfrkit import _native
from tfrkit.images.jpeg import JpegHeader, is_jpeg
from tfrkit.images.resize import UPRIGHT

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TIFF_STARTS = {b"II*\x00": "<", b"MM\x00*": ">"}
_EXIF_NAME = b"Exif\x00\x00"  # some writers put JPEG's segment name before the TIFF header in other formats too
_ORIENTATION_TAG = 0x0112
_SHORT = 3


def find_orientation(data: memoryview) -> int:
    """Return the EXIF orientation of an image, 1 to 8; 1 (upright) if it has none or the EXIF data is damaged.

    Cheap on a mapped file: only headers of segments or chunks are read, not their contents.
    """
    if is_jpeg(data):
        facts = _native.read_jpeg_header(data)
        return UPRIGHT if facts is None else JpegHeader._make(facts).orientation
    head = bytes(data[:12])
    if head[:8] == _PNG_SIGNATURE:
        return _read_orientation(chunk) if (chunk := _find_png_chunk(data)) else UPRIGHT
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return _read_orientation(_find_riff_chunk(data))
    if head[:4] in _TIFF_STARTS:
        return _read_orientation(data)
    return UPRIGHT


def _find_png_chunk(data: memoryview) -> memoryview:
    # The chunk may be before or after the pixel data.
    offset = len(_PNG_SIGNATURE)
    while offset + 8 <= len(data):
        nbytes, kind = struct.unpack_from(">I4s", data, offset)
        if kind == b"eXIf":
            return data[offset + 8 : offset + 8 + nbytes]
        if kind == b"IEND":
            break
        offset += 8 + nbytes + 4  # length and type, content, checksum
    return data[:0]


def _find_riff_chunk(data: memoryview) -> memoryview:
    offset = 12
    while offset + 8 <= len(data):
        kind, nbytes = struct.unpack_from("<4sI", data, offset)
        if kind == b"EXIF":
            return data[offset + 8 : offset + 8 + nbytes]
        offset += 8 + nbytes + nbytes % 2
    return data[:0]


def _read_orientation(exif: memoryview) -> int:
    """Read the orientation from the first directory of TIFF data, by the rule that the core uses for JPEG."""
    if bytes(exif[: len(_EXIF_NAME)]) == _EXIF_NAME:
        exif = exif[len(_EXIF_NAME) :]
    order = _TIFF_STARTS.get(bytes(exif[:4]))
    if order is None or len(exif) < 8:
        return UPRIGHT
    (directory,) = struct.unpack_from(f"{order}I", exif, 4)
    if directory + 2 > len(exif):
        return UPRIGHT
    (num_entries,) = struct.unpack_from(f"{order}H", exif, directory)
    for index in range(num_entries):
        offset = directory + 2 + 12 * index
        if offset + 12 > len(exif):
            break
        tag, kind, _, value = struct.unpack_from(f"{order}HHIH", exif, offset)
        if tag == _ORIENTATION_TAG:
            return value if kind == _SHORT and 1 <= value <= 8 else UPRIGHT
    return UPRIGHT
