"""Turn encoded images upright and re-encode them, for builds that apply the EXIF orientation."""

from __future__ import annotations

import io
from typing import Literal, NamedTuple

from tfrkit.errors import Hint, SourceError, Step
from tfrkit.images.options import DEFAULT_MAX_PIXELS
from tfrkit.images.pillow import count_animation_frames, load_image, transpose_image
from tfrkit.images.resize import UPRIGHT, swaps_sides
from tfrkit.images.sniff import ImageInfo

ExifPolicy = Literal["keep", "apply", "fail"]
"""What to do with an EXIF orientation: keep the stored pixels, turn the image upright, or refuse it as bad input."""

# Modes that a PNG stores without loss.
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
# Entries of Pillow's `info` that would write the orientation again.
_ORIENTATION_INFO = ("exif", "xmp", "XML:com.adobe.xmp", "Raw profile type exif")


class StoredImage(NamedTuple):
    """An image to store in a record; `source_width` and `source_height` are its size before resizing."""

    data: bytes
    format: str
    width: int
    height: int
    channels: int
    source_width: int
    source_height: int


def count_channels(info: ImageInfo) -> int:
    """Return the number of channels that decoders return for an image."""
    return {"L": 1, "LA": 2, "RGBA": 4}.get(info.mode or "", 3)


def require_upright(orientation: int, what: str = "image") -> None:
    """Raise `SourceError` for an orientation other than upright."""
    if orientation != UPRIGHT:
        raise SourceError(
            f"{what} expected upright, got EXIF orientation {orientation}",
            hint=Hint(Step("turn it: {exif}", exif="apply"), Step("take it as stored: {exif}", exif="keep")),
        )


def turn_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Return a size, (width, height) or (height, width), after turning the image upright.

    Example:
        >>> turn_size((400, 300), 6), turn_size((400, 300), 3)
        ((300, 400), (400, 300))
    """
    return size[::-1] if swaps_sides(orientation) else size


def turn_image(data: bytes, info: ImageInfo, orientation: int, quality: int) -> StoredImage:
    """Turn an image upright: a JPEG becomes a JPEG with full chroma, other images a PNG with the same pixels.

    Mode, palette and colour profile are kept. Raises `SourceError` if animation frames or bits would be lost, and
    `CodecError` for damage.
    """
    view = memoryview(data)
    image = load_image(view, DEFAULT_MAX_PIXELS)
    num_frames = count_animation_frames(view)
    if num_frames > 1:
        raise _refuse(orientation, f"it has {num_frames} frames")
    if info.format == "PNG" and info.bits == 16 and info.mode != "L":
        raise _refuse(orientation, "it has colours of 16 bits")
    if info.format != "JPEG" and image.mode not in _PNG_MODES:
        raise _refuse(orientation, f"PNG cannot store pixels of mode {image.mode}")
    turned = transpose_image(image, orientation)
    for name in _ORIENTATION_INFO:
        turned.info.pop(name, None)
    file = io.BytesIO()
    if info.format == "JPEG":
        profile = image.info.get("icc_profile")
        turned.save(file, "JPEG", quality=quality, subsampling=0, icc_profile=profile)
    else:
        turned.save(file, "PNG")
    form = "jpeg" if info.format == "JPEG" else "png"
    return StoredImage(file.getvalue(), form, *turned.size, count_channels(info), *turned.size)


def _refuse(orientation: int, why: str) -> SourceError:
    return SourceError(
        f"image with EXIF orientation {orientation} cannot be turned, {why}",
        hint=Hint(Step("take it as stored: {exif}", exif="keep")),
    )
