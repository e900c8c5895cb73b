"""Decode with Pillow the formats other than ordinary JPEG: PNG, WebP, BMP, GIF, TIFF, and JPEG in CMYK.

The format is detected from the bytes and only its reader is called; Pillow does not try its other readers.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit.errors import CodecError, Hint, Step
from tfrkit.images.options import Channels
from tfrkit.images.resize import UPRIGHT, Pixels
from tfrkit.images.sniff import ImageInfo, sniff_image

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

# Format: module of Pillow, class in it.
_READERS = {
    "PNG": ("PngImagePlugin", "PngImageFile"),
    "WEBP": ("WebPImagePlugin", "WebPImageFile"),
    "BMP": ("BmpImagePlugin", "BmpImageFile"),
    "GIF": ("GifImagePlugin", "GifImageFile"),
    "TIFF": ("TiffImagePlugin", "TiffImageFile"),
    "JPEG": ("JpegImagePlugin", "JpegImageFile"),
}
# Enough to read the size in all formats except TIFF and JPEG, whose size is checked after opening.
_HEAD_NBYTES = 64
_ORIENTATION_TAG = 0x0112
# The two quarter turns are each other's inverse; every other orientation is its own inverse.
_UNDONE_BY = {6: 8, 8: 6}
_WANTED_MODE = {"rgb": "RGB", "gray": "L", "rgba": "RGBA"}
# Conversion of unusual modes with "keep".
_KEPT_MODE = {"1": "L", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "RGBX": "RGB", "PA": "RGBA"}
_WIDE_MODES = ("I", "F")


def find_image_format(data: memoryview) -> ImageInfo:
    """Detect the format of an image; raise CodecError if it is not supported."""
    if len(data) == 0:
        raise CodecError("expected an image, got 0 bytes")
    head = bytes(data[:_HEAD_NBYTES])
    info = sniff_image(head)
    if info is None:
        raise CodecError(f"expected an image, got {len(data)} bytes that start with {head[:16]!r}")
    if info.format not in _READERS:
        raise CodecError(f"expected an image of format {', '.join(_READERS)}, got {info.format}")
    return info


def check_pixels(height: int, width: int, max_pixels: int) -> None:
    """Raise CodecError if an image has more pixels than the limit; called before memory is allocated."""
    if height * width > max_pixels:
        raise CodecError(
            f"image expected at most {max_pixels} pixels, got {width}x{height}",
            hint="if the size is right, raise the limit: max_pixels",
        )


def load_image(data: memoryview, max_pixels: int) -> Image:
    """Decode an image with its pixels as stored, ignoring EXIF; of several images in a file, the first."""
    info = find_image_format(data)
    check_pixels(info.height or 0, info.width or 0, max_pixels)
    with _naming_faults(info, len(data)):
        image = _open_image(data, info)
        check_pixels(image.height, image.width, max_pixels)
        # Pillow's TIFF reader is the only one that applies the orientation while loading; it is undone below.
        orientation = image.getexif().get(_ORIENTATION_TAG, UPRIGHT) if info.format == "TIFF" else UPRIGHT
        image.load()
    if orientation in range(2, 9):
        return transpose_image(image, _UNDONE_BY.get(orientation, orientation))
    return image


def count_animation_frames(data: memoryview) -> int:
    """Return the number of animation frames or pages, from the headers."""
    info = find_image_format(data)
    with _naming_faults(info, len(data)):
        return int(getattr(_open_image(data, info), "n_frames", 1))


@contextlib.contextmanager
def _naming_faults(info: ImageInfo, nbytes: int) -> Iterator[None]:
    try:
        yield
    except (MemoryError, CodecError):
        raise
    except Exception as error:  # noqa: BLE001 - readers of Pillow fail in a dozen ways on damaged bytes
        raise CodecError(f"{info.format} of {nbytes} bytes does not decode{_describe(error)}") from None


def _open_image(data: memoryview, info: ImageInfo) -> ImageFile:
    module, name = _READERS[info.format]
    image: ImageFile = getattr(importlib.import_module(f"PIL.{module}"), name)(io.BytesIO(data))
    return image


def transpose_image(image: Image, orientation: int) -> Image:
    """Return a copy of an image with this EXIF orientation, turned upright."""
    from PIL.Image import Transpose

    methods = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image.transpose(methods[orientation])


def image_to_pixels(image: Image, channels: Channels) -> Pixels:
    """Convert an image to an array of (height, width, channels), with channels as in `DecodeOptions`."""
    mode = image.mode
    if mode.startswith("I;16") or (mode == "I" and image.format == "PNG"):
        return _convert_wide(np.asarray(image).astype(np.uint16), channels)
    if mode in _WIDE_MODES:
        if channels != "keep":
            raise CodecError(
                f"image expected 8 or 16 bits per sample, got {'32-bit float' if mode == 'F' else '32-bit integers'}",
                hint=Hint(Step("keep the values unchanged: {channels}", channels="keep")),
            )
        return np.asarray(image)[:, :, None]
    wanted = _WANTED_MODE.get(channels) or _choose_kept_mode(image)
    if wanted in ("RGB", "L"):
        # A palette colour that is marked transparent keeps its colour.
        image.info.pop("transparency", None)
    try:
        pixels = np.asarray(image if mode == wanted else image.convert(wanted))
    except ValueError:
        raise CodecError(f"image of mode {mode} cannot become {wanted}") from None
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


def _choose_kept_mode(image: Image) -> str:
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return _KEPT_MODE.get(image.mode, image.mode)


def _convert_wide(levels: np.ndarray[Any, np.dtype[np.uint16]], channels: Channels) -> Pixels:
    """Convert 16-bit gray; 8 bits are the upper byte, as in TensorFlow and libpng."""
    if channels == "keep":
        return levels[:, :, None]
    gray = (levels >> 8).astype(np.uint8)[:, :, None]
    if channels == "gray":
        return gray
    if channels == "rgb":
        return np.repeat(gray, 3, axis=2)
    return np.concatenate([np.repeat(gray, 3, axis=2), np.full_like(gray, 255)], axis=2)


def _describe(error: Exception) -> str:
    """Return the error text of the reader; nothing for Python errors such as a missing key."""
    text = " ".join(str(error).split())
    says_more = text and isinstance(error, (OSError, SyntaxError, ValueError))
    return f", {text[:100]}" if says_more else ""
