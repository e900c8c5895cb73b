"""Read the sizes of image files from their headers, to check annotations before anything is decoded."""

from __future__ import annotations

import mmap
import os

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.images.orientation import find_orientation
from tfrkit.images.resize import UPRIGHT, swaps_sides
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.images.turn import ExifPolicy, require_upright, turn_size
from tfrkit.sources.walk import require_data
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.inputs import open_input, read_input

Size = tuple[int, int]
"""(width, height)."""


def measure_image_file(path: str, exif: ExifPolicy = "keep") -> Size:
    """Return the width and height of an image file; raises `SourceError` if it is not an image.

    With "apply" the size is that of the upright image; with "fail" an EXIF orientation raises, too.
    """
    size = _measure_stored(path)
    if exif == "keep":
        return size
    orientation = read_orientation(path)
    if exif == "fail":
        require_upright(orientation)
    return turn_size(size, orientation)


def read_orientation(path: str) -> int:
    """Return the EXIF orientation of an image file, 1 to 8; 1 if it has none."""
    if has_scheme(path):
        return find_orientation(memoryview(read_input(path)))
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return UPRIGHT
        # Mapped, because every chunk header of a PNG is read but not the contents.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            return find_orientation(view)


def explain_difference(path: str, declared: Size, size: Size, exif: ExifPolicy) -> tuple[str, Hint | None]:
    """Explain why annotation and image differ in size: a clause for the message, and a hint or None.

    `size` is the result of `measure_image_file`. If the annotation fits the image in its other orientation, the hint
    names the option for that.
    """
    if declared == size or declared[::-1] != size:
        return "", None
    orientation = read_orientation(path)
    if not swaps_sides(orientation):
        return ", width and height are swapped", None
    if exif == "apply":
        hint = Hint(Step("if it was annotated as stored: {exif}", exif="keep"))
        return f", turned by its EXIF orientation {orientation}", hint
    hint = Hint(Step("if it was annotated upright: {exif}", exif="apply"))
    return f", stored with EXIF orientation {orientation}", hint


def _measure_stored(path: str) -> Size:
    with open_input(path) as file:
        head = file.read(LIMITS.image_head_nbytes)
        info = sniff_image(head)
        if info is not None and info.width is None:
            info = sniff_image(head + file.read(LIMITS.max_image_head_nbytes - len(head)))
    if not head:
        raise SourceError("expected an image, got an empty file")
    require_data(head)
    if info is None or info.width is None or info.height is None:
        info = _ask_pillow(path)
    if not info.width or not info.height:
        raise SourceError(f"expected an image with a size, got {info}")
    return info.width, info.height


def _ask_pillow(path: str) -> ImageInfo:
    """Read the size with Pillow, for formats that `sniff_image` does not know."""
    from PIL import Image

    try:
        with open_input(path) as file, Image.open(file) as image:
            # Pillow returns the size of a TIFF after its orientation is applied; the tags have the stored size.
            width, height = (image.tag_v2[256], image.tag_v2[257]) if hasattr(image, "tag_v2") else image.size
            return ImageInfo(image.format or "image", width, height)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        suffix = os.path.splitext(path)[1] or "without a suffix"
        raise SourceError(f"expected an image, the bytes of this file ({suffix}) are of unknown format") from None
