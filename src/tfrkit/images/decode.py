"""Decode images to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.images.jpeg import JpegHeader, choose_eighths, decode_jpeg, is_jpeg, read_jpeg_header
from tfrkit.images.options import DEFAULT_MAX_PIXELS, Channels, DecodeOptions, Exif
from tfrkit.images.orientation import find_orientation
from tfrkit.images.pillow import check_pixels, find_image_format, image_to_pixels, load_image
from tfrkit.images.raw_shapes import RawShape
from tfrkit.images.resize import UPRIGHT, Filter, Fit, Pixels, place, resize_into, swaps_sides, turn_upright

NUM_CHANNELS = {"rgb": 3, "gray": 1, "rgba": 4}
_COLOURS = {"rgb": "RGB", "gray": "GRAY", "rgba": "RGBA"}
_RAW_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class Scratch:
    """A reused buffer for an image between decoding and resizing. Not thread-safe."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def take(self, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return a buffer of at least `nbytes` bytes, valid until the next call."""
        if len(self._bytes) < nbytes:
            self._bytes = _native.allocate_bytes(nbytes)
        return self._bytes


def decode_image(
    data: bytes | bytearray | memoryview,
    *,
    size: tuple[int, int] | None = None,
    channels: Channels = "rgb",
    fit: Fit = "stretch",
    filter: Filter = "bilinear",
    antialias: bool = True,
    reduced: bool = True,
    exif: Exif = "keep",
    fill: int = 0,
    max_pixels: int = DEFAULT_MAX_PIXELS,
) -> Pixels:
    """Decode an image to an array of (height, width, channels).

    Reads JPEG, PNG, WebP, BMP, GIF and TIFF; of several images in a file, the first. `DecodeOptions` documents the
    options. A truncated or damaged file raises `CodecError`; incomplete images are never returned. 16-bit colour PNGs
    are returned with 8 bits per channel, as Pillow reads them; 16-bit gray is kept with `channels="keep"`.

    Example:
        >>> decode_image(jpeg_bytes, size=(224, 224)).shape
        (224, 224, 3)
    """
    options = DecodeOptions(size, channels, fit, filter, antialias, reduced, exif, fill, max_pixels)
    return decode_with(memoryview(data), options, Scratch())


def decode_with(data: memoryview, options: DecodeOptions, scratch: Scratch) -> Pixels:
    """Decode an image like `decode_image`, with prepared options. The array owns its memory."""
    if options.channels != "keep":
        shape = options.size or measure_image(data, options)
        if shape is not None:
            target = np.empty((*shape, NUM_CHANNELS[options.channels]), np.uint8)
            decode_into(data, options, target, scratch)
            return target
    pixels, orientation = _load(data, options, scratch)
    if options.size is None:
        return np.array(turn_upright(pixels, orientation), order="C")
    target = np.empty((*options.size, pixels.shape[2]), pixels.dtype)
    _fit_into(pixels, target, options, orientation)
    return target


def measure_image(data: memoryview, options: DecodeOptions) -> tuple[int, int] | None:
    """Return (height, width) of the decoded image from a JPEG header; None for other formats."""
    if is_jpeg(data):
        header = read_jpeg_header(data)
        check_pixels(header.height, header.width, options.max_pixels)
        is_swapped = options.exif == "apply" and swaps_sides(header.orientation)
        return (header.width, header.height) if is_swapped else (header.height, header.width)
    find_image_format(data)
    return None


def decode_thumbnail(data: bytes, size: tuple[int, int]) -> Pixels:
    """Decode an image to RGB pixels of a small size, as fast as possible: like `decode_image`, but less exact."""
    view, target = memoryview(data), np.empty((*size, 3), np.uint8)
    options, scratch = DecodeOptions(size=size), Scratch()
    header = read_jpeg_header(view) if is_jpeg(view) else None
    if header is None or header.num_components not in (1, 3):
        decode_into(view, options, target, scratch)
        return target
    check_pixels(header.height, header.width, options.max_pixels)
    eighths = choose_eighths(header.height, header.width, size, spare=1)
    height, width = -(-header.height * eighths // 8), -(-header.width * eighths // 8)
    _fit_into(decode_jpeg(view, header, "RGB", scratch.take(height * width * 3), eighths), target, options, UPRIGHT)
    return target


def decode_into(data: memoryview, options: DecodeOptions, target: Pixels, scratch: Scratch) -> None:
    """Decode an image into `target`, a uint8 array of (height, width, channels).

    REQUIRES: `target` has the channels and the size of the options, or of the image if the options have no size.
    """
    if is_jpeg(data):
        header = read_jpeg_header(data)
        check_pixels(header.height, header.width, options.max_pixels)
        if header.num_components in (1, 3):
            _decode_jpeg_into(data, header, options, target, scratch)
            return
    pixels, orientation = _load_with_pillow(data, options)
    _fit_into(pixels, target, options, orientation)


def decode_pixels(data: memoryview, shape: RawShape, options: DecodeOptions, target: Pixels | None = None) -> Pixels:
    """Convert raw 8-bit pixels of this shape to the size and channels of the options.

    Fills and returns `target` if it is given; it must have that size and those channels.
    """
    from PIL import Image

    height, width, num_channels = shape
    check_pixels(height, width, options.max_pixels)
    image = Image.frombytes(_RAW_MODES[num_channels], (width, height), bytes(data))
    pixels = image_to_pixels(image, options.channels)
    if target is None:
        target = np.empty((*(options.size or (height, width)), pixels.shape[2]), np.uint8)
    _fit_into(np.ascontiguousarray(pixels), target, options, UPRIGHT)
    return target


def _decode_jpeg_into(
    data: memoryview, header: JpegHeader, options: DecodeOptions, target: Pixels, scratch: Scratch
) -> None:
    orientation = header.orientation if options.exif == "apply" else UPRIGHT
    colours = _COLOURS[options.channels]
    height, width = header.height, header.width
    rows, columns, num_channels = target.shape
    if orientation == UPRIGHT and height == rows and width == columns:
        decode_jpeg(data, header, colours, target)
        return
    eighths = 8
    if options.reduced and options.antialias and options.size is not None and options.filter == "bilinear":
        eighths = _choose_eighths(header, options, (rows, columns), orientation)
        height, width = -(-height * eighths // 8), -(-width * eighths // 8)
    pixels = decode_jpeg(data, header, colours, scratch.take(height * width * num_channels), eighths)
    _fit_into(pixels, target, options, orientation)


def _choose_eighths(header: JpegHeader, options: DecodeOptions, target: tuple[int, int], orientation: int) -> int:
    if orientation == UPRIGHT and options.fit == "stretch":
        return choose_eighths(header.height, header.width, target)
    is_swapped = swaps_sides(orientation)
    shown = (header.width, header.height) if is_swapped else (header.height, header.width)
    whole = place(shown, target, options.fit).whole
    return choose_eighths(header.height, header.width, whole[::-1] if is_swapped else whole)


def _fit_into(pixels: Pixels, target: Pixels, options: DecodeOptions, orientation: int) -> None:
    resize_into(
        pixels,
        target,
        fit=options.fit,
        filter=options.filter,
        antialias=options.antialias,
        orientation=orientation,
        fill=options.fill,
    )


def _load(data: memoryview, options: DecodeOptions, scratch: Scratch) -> tuple[Pixels, int]:
    """Return the pixels as stored, and the orientation to apply to them."""
    if is_jpeg(data):
        header = read_jpeg_header(data)
        check_pixels(header.height, header.width, options.max_pixels)
        if header.num_components in (1, 3):
            colours = _COLOURS.get(options.channels, "GRAY" if header.num_components == 1 else "RGB")
            buffer = scratch.take(header.height * header.width * 4)
            orientation = header.orientation if options.exif == "apply" else UPRIGHT
            return decode_jpeg(data, header, colours, buffer), orientation
    return _load_with_pillow(data, options)


def _load_with_pillow(data: memoryview, options: DecodeOptions) -> tuple[Pixels, int]:
    orientation = find_orientation(data) if options.exif == "apply" else UPRIGHT
    return image_to_pixels(load_image(data, options.max_pixels), options.channels), orientation
