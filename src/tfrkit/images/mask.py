"""Masks: images whose pixels are class numbers, not colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.images.options import (
    DEFAULT_MAX_PIXELS,
    Exif,
    check_choice,
    check_fill_and_limit,
    check_size,
)
from tfrkit.images.orientation import find_orientation
from tfrkit.images.pillow import find_image_format, load_image
from tfrkit.images.resize import UPRIGHT, Fit, Pixels, resize_into, swaps_sides
from tfrkit.images.sniff import ImageInfo

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class MaskOptions:
    """Options of mask decoding, as in `DecodeOptions`. There is no filter, because class numbers cannot be blended."""

    size: tuple[int, int] | None = None
    fit: Fit = "stretch"
    exif: Exif = "keep"
    fill: int = 0
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_size(self.size))
        check_choice("fit", self.fit, get_args(Fit))
        check_choice("exif", self.exif, get_args(Exif))
        check_fill_and_limit(self.fill, self.max_pixels)


def decode_mask(
    data: bytes | bytearray | memoryview,
    *,
    size: tuple[int, int] | None = None,
    fit: Fit = "stretch",
    exif: Exif = "keep",
    fill: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Pixels:
    """Return the numbers stored in a mask, palette indices or gray levels, as an array of (height, width).

    The dtype is uint8, or uint16 for 16-bit gray. Numbers of fewer than 8 bits are returned as stored: a 1-bit mask has
    0 and 1, not 0 and 255. Resizing takes the nearest pixel. Colour images are refused, because colours are mapped to
    classes when the dataset is built. JPEGs are refused, because JPEG changes the numbers.
    """
    return decode_mask_with(memoryview(data), MaskOptions(size, fit, exif, fill, max_pixels), title="mask ")


def decode_mask_with(data: memoryview, options: MaskOptions, *, title: str = "") -> Pixels:
    """Decode a mask like `decode_mask`, with prepared options; `title` precedes the error text."""
    try:
        info = find_image_format(data)
        image = None if info.format == "JPEG" else load_image(data, options.max_pixels)
    except CodecError as error:
        raise error.replace(what=f"{title}{error.what}") from None
    if image is None:
        raise CodecError(
            "mask expected palette indices or gray levels, got a JPEG, which changes them",
            hint='take its gray levels as an image: {"type": "image", "channels": "gray"}',
        )
    orientation = find_orientation(data) if options.exif == "apply" else UPRIGHT
    numbers = _read_numbers(image, info)[:, :, None]
    if options.size is None and orientation == UPRIGHT:
        return numbers[:, :, 0]
    if options.size is None:
        height, width = image.height, image.width
        size = (width, height) if swaps_sides(orientation) else (height, width)
    else:
        size = options.size
    target = np.empty((*size, 1), numbers.dtype)
    resize_into(numbers, target, fit=options.fit, filter="nearest", orientation=orientation, fill=options.fill)
    return target[:, :, 0]


def decode_mask_pixels(data: memoryview, shape: tuple[int, int, int], options: MaskOptions) -> Pixels:
    """Resize raw class numbers, one byte each, of shape (height, width, 1) to the size of the options."""
    numbers = np.frombuffer(data, np.uint8).reshape(shape)
    if shape[2] != 1:
        raise CodecError(f"mask expected one byte for each pixel, got {shape[2]}")
    target = np.empty((*(options.size or shape[:2]), 1), np.uint8)
    resize_into(numbers, target, fit=options.fit, filter="nearest", fill=options.fill)
    return target[:, :, 0]


def _read_numbers(image: Image, info: ImageInfo) -> Pixels:
    if image.mode in ("P", "L", "1"):
        numbers = np.asarray(image).astype(np.uint8)
        if image.mode == "L" and info.format == "PNG" and info.bits < 8:
            # Pillow scales values of 2 and 4 bits to 0..255.
            numbers //= 255 // ((1 << info.bits) - 1)
        return numbers
    if image.mode.startswith("I;16") or (image.mode == "I" and info.format == "PNG"):
        return np.asarray(image).astype(np.uint16)
    raise CodecError(
        f"mask expected palette indices or gray levels, got {image.mode}",
        hint="convert colours to class numbers when the dataset is built",
    )
