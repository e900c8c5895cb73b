"""Read masks as class numbers, from palettes, gray levels or colours, and write them as gray PNGs.

A palette image stores an index for each pixel, and a display colour for each index. Most readers, including
TensorFlow's, return the colours, and the class numbers are lost. Every reader returns the levels of a gray PNG.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit._types import UInt8Array
from tfrkit.errors import CodecError, Hint, SourceError, Step
from tfrkit.images.mask import decode_mask
from tfrkit.images.options import DEFAULT_MAX_PIXELS
from tfrkit.images.pillow import load_image
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.pictures.colors import Color

_LOSSY = frozenset({"JPEG", "AVIF", "HEIF"})
_CVAT_LINE = re.compile(r"(?P<name>[^:]+):(?P<color>\d+\s*,\s*\d+\s*,\s*\d+)(?::.*)?")


def inspect_mask(data: bytes) -> ImageInfo:
    """Read the header of a mask; raise `SourceError` if it is not an image or has a lossy format."""
    info = sniff_image(data)
    if info is None:
        got = "something else" if data else "an empty file"
        raise SourceError(f"mask expected an image file, got {got}")
    if info.format in _LOSSY:
        raise SourceError(f"mask expected a lossless image, got {info.format}, which changes class numbers")
    return info


def read_mask(value: Any, size: tuple[int, int] | None) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the class numbers (height, width) of a mask in a row: an encoded image, raw bytes, or an array.

    `size` is (height, width) of the image and gives the shape of flat class numbers; the caller checks that the mask
    has this size. Raises `CodecError`, with a message that starts with "mask", if the value is not a mask.
    """
    is_bare = isinstance(value, bytes) and sniff_image(value[:64]) is None
    if is_bare and size is not None and len(value) == size[0] * size[1]:
        return np.frombuffer(value, np.uint8).reshape(size)
    if isinstance(value, bytes):
        return decode_mask(value)
    numbers = np.asarray(value)
    if numbers.ndim == 3 and numbers.shape[2] == 1:
        numbers = numbers[:, :, 0]
    if numbers.ndim == 1 and size is not None and numbers.size == size[0] * size[1]:
        numbers = numbers.reshape(size)
    if numbers.ndim != 2 or numbers.dtype.kind not in "iub" or numbers.size == 0:
        raise CodecError(f"mask expected class numbers, got {numbers.dtype} of shape {numbers.shape}")
    return numbers


def describe_sizes(mask: tuple[int, ...], image: tuple[int, int]) -> str:
    """Return the message for a mask whose (width, height) differs from that of its image."""
    return f"mask expected the size of its image, {image[0]}x{image[1]}, got {mask[0]}x{mask[1]}"


def require_numbers(info: ImageInfo) -> None:
    """Raise `SourceError` if a mask has colours instead of class numbers."""
    if info.mode not in ("P", "L", None):
        raise SourceError(
            f"mask expected class numbers (palette or gray), got {info}, which has colours",
            hint=Hint(
                Step("say which colour is which class: {colormap}", colormap="voc"),
                Step("{colormap}", colormap=...),
                gap=" or ",
            ),
        )


def read_indices(data: bytes, info: ImageInfo) -> UInt8Array:
    """Return the class numbers (height, width) of a palette or gray image; raise `SourceError` for a colour image."""
    require_numbers(info)
    try:
        numbers = decode_mask(data)
    except CodecError as error:
        raise SourceError(error.what) from None
    if numbers.dtype != np.uint8 and numbers.size and int(numbers.max()) > 255:
        raise SourceError(f"mask expected class numbers up to 255, got {int(numbers.max())} in a {info}")
    return np.ascontiguousarray(numbers, np.uint8)


def read_colors(data: bytes, info: ImageInfo, colors: Mapping[Color, int]) -> UInt8Array:
    """Return the class numbers of a colour image; raise `SourceError` if colours have no class.

    For a palette image, the colours of its palette are used.
    """
    if info.mode in ("LA", "RGBA", "CMYK"):
        raise SourceError(f"colour mask expected RGB or a palette, got {info}")
    pixels = _decode_colors(data)
    packed = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    known = np.array([red << 16 | green << 8 | blue for red, green, blue in colors], np.uint32)
    order = np.argsort(known)
    places = np.minimum(np.searchsorted(known[order], packed), len(known) - 1)
    is_known = known[order][places] == packed
    if not is_known.all():
        values, counts = np.unique(packed[~is_known], return_counts=True)
        most = np.argsort(-counts, kind="stable")[:5]
        shown = ", ".join(f"{_show_color(int(values[i]))} in {counts[i]:,} pixels" for i in most)
        more = f" and {len(values) - 5} more" if len(values) > 5 else ""
        raise SourceError(f"colours expected from the colour map of {len(colors)}, got {shown}{more}")
    indices = np.array(list(colors.values()), np.uint8)[order]
    return np.ascontiguousarray(indices[places])


def _decode_colors(data: bytes) -> Any:
    try:
        image = load_image(memoryview(data), DEFAULT_MAX_PIXELS)
    except CodecError as error:
        raise SourceError(f"mask {error.what}") from None
    return np.asarray(image.convert("RGB")).astype(np.uint32)


def _show_color(packed: int) -> str:
    return f"({packed >> 16}, {packed >> 8 & 255}, {packed & 255})"


def is_plain_mask(info: ImageInfo) -> bool:
    """Whether a mask is an 8-bit gray PNG, from which every reader gets the class numbers."""
    return info.format == "PNG" and info.mode == "L" and info.bits == 8


def encode_indices(mask: UInt8Array) -> bytes:
    """Encode class numbers (height, width) as an 8-bit gray PNG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(mask, np.uint8)).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


def count_indices(mask: UInt8Array) -> dict[int, int]:
    """Count the pixels of each class number."""
    counts = np.bincount(mask.reshape(-1), minlength=256)
    return {int(value): int(counts[value]) for value in np.flatnonzero(counts)}


def show_histogram(counts: Mapping[int, int]) -> str:
    """Format class numbers with their shares, most frequent first.

    Example:
        >>> show_histogram({0: 90, 200: 9, 255: 1})
        '0: 90 %, 200: 9 %, 255: 1 %'
        >>> show_histogram({0: 598, 3: 2})
        '0: 99.67 %, 3: 0.33 %'
    """
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    shares = [(value, 100 * count / total) for value, count in ranked[:8]]
    # With two digits, 99.6 would be shown as 1e+02.
    shown = ", ".join(f"{value}: {share:.{2 if share < 99 else 4}g} %" for value, share in shares)
    return shown + (f" and {len(ranked) - 8} more" if len(ranked) > 8 else "")


def parse_color_map(text: str, path: str) -> tuple[dict[Color, int], list[str]]:
    """Parse a text file with one class per line; return class numbers by colour, and the class names.

    Lines are ``name:r,g,b:...`` (labelmap.txt), ``name,r,g,b``, ``r,g,b,name``, ``r,g,b``, or the same separated by
    blanks. Classes are numbered in the order of the lines. A heading and lines that start with # are ignored.
    """
    colors: dict[Color, int] = {}
    names: list[str] = []
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        parsed = _parse_color_line(stripped)
        if parsed is None:
            if not colors and re.fullmatch(r"[^0-9]+", stripped):
                continue  # a heading such as name,r,g,b
            raise SourceError(
                f"expected a name and three numbers from 0 to 255, got {stripped!r:.64}", shard=f"{path}, line {number}"
            )
        name, color = parsed
        if color in colors:
            raise SourceError(f"colour {color} expected once, got it twice", shard=f"{path}, line {number}")
        colors[color] = len(names)
        names.append(name)
    if not colors:
        raise SourceError("expected at least one colour, got none", shard=path)
    if len(colors) > 256:
        raise SourceError(f"expected at most 256 colours, got {len(colors)}", shard=path)
    return colors, names


def _parse_color_line(line: str) -> tuple[str, Color] | None:
    cvat = _CVAT_LINE.fullmatch(line)
    if cvat is not None:
        words = [cvat["name"], *cvat["color"].split(",")]
    else:
        words = line.split(",") if "," in line else line.split()
    words = [word.strip() for word in words]
    for start in (len(words) - 3, 0):
        if start >= 0 and len(words) >= 3 and all(word.isdecimal() for word in words[start : start + 3]):
            red, green, blue = (int(word) for word in words[start : start + 3])
            if max(red, green, blue) <= 255:
                return " ".join(words[:start] + words[start + 3 :]), (red, green, blue)
    return None
