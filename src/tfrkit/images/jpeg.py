"""Decode JPEGs with libjpeg-turbo in full or reduced size, into a given buffer, without the interpreter lock.

The slow integer DCT and smooth chroma upsampling are used, so the pixels are bit for bit those of
tf.io.decode_jpeg(dct_method="INTEGER_ACCURATE").
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tfrkit import _native
from tfrkit.errors import CodecError
from tfrkit.images import jpeg_codec
from tfrkit.images.jpeg_codec import CUT_OFF
from tfrkit.images.resize import Pixels

# Scales in eighths that libjpeg-turbo decodes with vector instructions; 3, 5, 6 and 7 are slower. 1/8 is hardly faster
# than 2/8, and uses only one coefficient of each block.
_FAST_EIGHTHS = (2, 4)
# Minimum ratio of a reduced image to the requested size. With 2 the result differs by about one level from
# resizing the whole image; with 1 by two to four, because the decoder blurs less than the resize.
_SPARE = 2
# Encoders make about ten scans. Thousands of scans over a large image are an attack that takes minutes to decode.
_MAX_SCANS = 500
# The codec reports the text of libjpeg, not a code. Files with these warnings still decode completely; the first two
# are common in photo collections.
_HARMLESS = re.compile(
    r"extraneous bytes before marker|unknown JFIF|unknown Adobe|Inconsistent progression|Invalid SOS parameters",
    re.IGNORECASE,
)


class JpegHeader(NamedTuple):
    """The header fields of a JPEG."""

    height: int
    width: int
    num_components: int
    bits: int
    is_progressive: bool
    orientation: int


def is_jpeg(data: memoryview) -> bool:
    """Whether bytes start like a JPEG."""
    return bytes(data[:3]) == b"\xff\xd8\xff"


def read_jpeg_header(data: memoryview) -> JpegHeader:
    """Read size, components and orientation without decoding."""
    facts = _native.read_jpeg_header(data)
    if facts is None:
        raise CodecError(f"JPEG ends inside its header, after {len(data)} bytes")
    header = JpegHeader._make(facts)
    if header.bits != 8:
        raise CodecError(f"JPEG expected 8 bits per sample, got {header.bits}")
    if not (header.height and header.width):
        raise CodecError(f"JPEG expected a height and a width in its header, got {header.height}x{header.width}")
    return header


def choose_eighths(height: int, width: int, wanted: tuple[int, int], spare: int = _SPARE) -> int:
    """Return the smallest fast scale, in eighths, that still gives `spare` times the wanted height and width.

    Example:
        >>> choose_eighths(3000, 4000, (224, 224)), choose_eighths(375, 500, (224, 224))
        (2, 8)
    """
    if height < 2 * spare * wanted[0] or width < 2 * spare * wanted[1]:
        return 8
    for eighths in _FAST_EIGHTHS:
        if height * eighths >= 8 * spare * wanted[0] and width * eighths >= 8 * spare * wanted[1]:
            return eighths
    return 8


def decode_jpeg(data: memoryview, header: JpegHeader, colours: str, buffer: Pixels, eighths: int = 8) -> Pixels:
    """Decode to pixels of shape (height, width, channels), a view of `buffer`, which must have enough bytes.

    `colours` is "RGB", "GRAY" or "RGBA". With `eighths` below 8, height and width are scaled by `eighths` / 8 and
    rounded up.
    """
    if header.is_progressive:
        num_scans, _ = _native.walk_jpeg_scans(data)
        if num_scans > _MAX_SCANS:
            raise CodecError(f"JPEG expected at most {_MAX_SCANS} scans, got {num_scans}")
    size = header.height, header.width
    try:
        return jpeg_codec.decode(data, colours, size, eighths, buffer, is_strict=True)
    except ValueError as error:
        complaint = str(error)
    if _HARMLESS.search(complaint):
        _, has_end = _native.walk_jpeg_scans(data)
        complaint = CUT_OFF
        if has_end:
            try:
                return jpeg_codec.decode(data, colours, size, eighths, buffer, is_strict=False)
            except ValueError as error:
                complaint = str(error)
    what = f"JPEG of {header.width}x{header.height}"
    if complaint.startswith(CUT_OFF):
        raise CodecError(f"{what} is truncated, its {len(data)} bytes end before its last row")
    raise CodecError(f"{what} does not decode, {complaint[:100]}")


def encode_jpeg(pixels: Pixels, quality: int) -> bytes:
    """Encode RGB pixels of shape (height, width, 3), with half the resolution in colour."""
    return jpeg_codec.encode(pixels, quality)
