"""Read format, size and mode of an image from its first bytes.

Nothing is decoded. Every read is bounded by the given bytes, so a truncated or hostile header is cheap; the result is
then an image of unknown size, or None.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

# Formats by file suffix.
SUFFIX_FORMATS: Mapping[str, str] = {
    **dict.fromkeys((".jpg", ".jpeg", ".jpe", ".jfif"), "JPEG"),
    **dict.fromkeys((".bmp", ".dib"), "BMP"),
    **dict.fromkeys((".tif", ".tiff"), "TIFF"),
    **dict.fromkeys((".heic", ".heif"), "HEIF"),
    ".png": "PNG",
    ".gif": "GIF",
    ".webp": "WEBP",
    ".avif": "AVIF",
}
_PNG_MODES = {0: "L", 2: "RGB", 3: "P", 4: "LA", 6: "RGBA"}  # by colour type
_JPEG_MODES = {1: "L", 3: "RGB", 4: "CMYK"}  # by number of components
# Start-of-frame markers: C0..CF without DHT (C4), JPG (C8) and DAC (CC).
_JPEG_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markers without a length: TEM, RST0..RST7, SOI.
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_BMP_HEADER_SIZES = frozenset({40, 52, 56, 64, 108, 124})
_MODE_WORDS = {"P": "palette", "L": "gray", "LA": "gray+alpha", "RGBA": "RGBA", "CMYK": "CMYK"}
# TIFF tags, and struct codes of the two field types (SHORT, LONG) used for sizes.
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_BITS, _TIFF_PHOTOMETRIC, _TIFF_SAMPLES = 256, 257, 258, 262, 277
_TIFF_TYPES = {3: "H", 4: "I"}
_MAX_TIFF_ENTRIES = 200


@dataclass(frozen=True)
class ImageInfo:
    """Properties of an image from its header; a property is None if the given bytes do not contain it.

    `mode` is one of L, LA, P, RGB, RGBA, CMYK; `bits` are per channel (per index, with a palette).
    """

    format: str
    width: int | None = None
    height: int | None = None
    mode: str | None = None
    bits: int = 8

    @property
    def pixels(self) -> str:
        """Properties of the pixels other than 8-bit RGB: ``palette``, ``gray``, ``16-bit``."""
        words = [_MODE_WORDS[self.mode]] if self.mode in _MODE_WORDS else []
        return " ".join([*words, *([f"{self.bits}-bit"] if self.bits > 8 else [])])

    def __str__(self) -> str:
        size = f"{self.width}x{self.height}" if self.width is not None and self.height is not None else ""
        return " ".join(word for word in (self.format, size, self.pixels) if word)


def sniff_image(head: bytes) -> ImageInfo | None:
    """Read the header of an image from its first bytes; None for unknown formats.

    A few hundred bytes are enough for most files. A JPEG with a large comment or colour profile before its size needs
    more bytes; with fewer, only the format is known.

    Example:
        >>> sniff_image(b"GIF89a\\x03\\x00\\x02\\x00")
        ImageInfo(format='GIF', width=3, height=2, mode='P', bits=8)
    """
    if head[:3] == b"\xff\xd8\xff":
        return _sniff_jpeg(head)
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return _sniff_png(head)
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return _sniff_gif(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _sniff_webp(head)
    if head[:2] == b"BM":
        return _sniff_bmp(head)
    if head[:4] in (b"II*\x00", b"MM\x00*"):
        return _sniff_tiff(head)
    if head[4:12] in (b"ftypavif", b"ftypheic", b"ftypheix", b"ftypmif1"):
        return ImageInfo("AVIF" if head[8:12] == b"avif" else "HEIF")
    return None


def describe_image(info: ImageInfo, nbytes: int) -> str:
    """Describe an image in one line of a listing.

    Example:
        >>> describe_image(ImageInfo("JPEG", 500, 375, "RGB"), 43112)
        'JPEG 500x375, 43,112 bytes'
    """
    return f"{info}, {nbytes:,} byte{'' if nbytes == 1 else 's'}"


def _sniff_jpeg(head: bytes) -> ImageInfo:
    offset = 2
    while offset + 4 <= len(head):
        if head[offset] != 0xFF:
            return ImageInfo("JPEG")
        marker = head[offset + 1]
        if marker == 0xFF:  # fill byte
            offset += 1
            continue
        if marker in _JPEG_BARE:
            offset += 2
            continue
        if marker in _JPEG_SOF:
            if offset + 10 > len(head):
                return ImageInfo("JPEG")
            bits, height, width, num_components = struct.unpack_from(">BHHB", head, offset + 4)
            # A height of 0 is legal: the height then follows the first scan.
            return ImageInfo("JPEG", width or None, height or None, _JPEG_MODES.get(num_components), bits)
        nbytes = int.from_bytes(head[offset + 2 : offset + 4], "big")
        if nbytes < 2 or marker == 0xDA:  # a scan before any frame header is damage
            return ImageInfo("JPEG")
        offset += 2 + nbytes
    return ImageInfo("JPEG")


def _sniff_png(head: bytes) -> ImageInfo:
    if len(head) < 26 or head[12:16] != b"IHDR":
        return ImageInfo("PNG")
    width, height, bits, colour_type = struct.unpack_from(">IIBB", head, 16)
    return ImageInfo("PNG", width, height, _PNG_MODES.get(colour_type), bits)


def _sniff_gif(head: bytes) -> ImageInfo:
    if len(head) < 10:
        return ImageInfo("GIF")
    width, height = struct.unpack_from("<HH", head, 6)
    return ImageInfo("GIF", width, height, "P")


def _sniff_webp(head: bytes) -> ImageInfo:
    chunk = head[12:16]
    if chunk == b"VP8 " and len(head) >= 30 and head[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", head, 26)
        return ImageInfo("WEBP", width & 0x3FFF, height & 0x3FFF, "RGB")  # the top two bits request scaling
    if chunk == b"VP8L" and len(head) >= 25 and head[20] == 0x2F:
        packed = int.from_bytes(head[21:25], "little")  # 14 bits width - 1, 14 bits height - 1, 1 bit alpha
        mode = "RGBA" if packed >> 28 & 1 else "RGB"
        return ImageInfo("WEBP", (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1, mode)
    if chunk == b"VP8X" and len(head) >= 30:
        width, height = int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        return ImageInfo("WEBP", width, height, "RGBA" if head[20] & 0x10 else "RGB")
    return ImageInfo("WEBP")


def _sniff_bmp(head: bytes) -> ImageInfo | None:
    # The magic has only two letters, so the header must also be consistent.
    if len(head) < 26:
        return None
    header_size = int.from_bytes(head[14:18], "little")
    if header_size == 12:
        width, height, planes, depth = struct.unpack_from("<HHHH", head, 18)
    elif header_size in _BMP_HEADER_SIZES and len(head) >= 30:
        width, height, planes, depth = struct.unpack_from("<iiHH", head, 18)
    else:
        return None
    if planes != 1 or depth not in (1, 4, 8, 16, 24, 32) or width <= 0 or height == 0:
        return None
    # A negative height means rows from the top down.
    return ImageInfo("BMP", width, abs(height), "P" if depth <= 8 else "RGB")


def _sniff_tiff(head: bytes) -> ImageInfo:
    order = "<" if head[:2] == b"II" else ">"
    if len(head) < 8:
        return ImageInfo("TIFF")
    (directory,) = struct.unpack_from(order + "I", head, 4)
    if directory + 2 > len(head):
        return ImageInfo("TIFF")
    (num_entries,) = struct.unpack_from(order + "H", head, directory)
    tags: dict[int, int] = {}
    for index in range(min(num_entries, _MAX_TIFF_ENTRIES)):
        offset = directory + 2 + 12 * index
        if offset + 12 > len(head):
            break
        tag, field_type, count = struct.unpack_from(order + "HHI", head, offset)
        # Only values that fit into the entry; larger ones are stored at an offset.
        if field_type in _TIFF_TYPES and count * (2 if field_type == 3 else 4) <= 4 and count:
            (tags[tag],) = struct.unpack_from(order + _TIFF_TYPES[field_type], head, offset + 8)
    mode = "P" if tags.get(_TIFF_PHOTOMETRIC) == 3 else {1: "L", 3: "RGB", 4: "RGBA"}.get(tags.get(_TIFF_SAMPLES, 1))
    return ImageInfo("TIFF", tags.get(_TIFF_WIDTH), tags.get(_TIFF_HEIGHT), mode, tags.get(_TIFF_BITS, 8))
