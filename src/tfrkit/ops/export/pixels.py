"""Image values as files: encoded bytes stay as they are, pixels become PNG, masks become PNG with a palette."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.features.schema import show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.images.mask import decode_mask
from tfrkit.images.options import DEFAULT_MAX_PIXELS
from tfrkit.images.raw_shapes import FOUND_CHANNELS, fill_shape
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.picture import to_levels, voc_palette
from tfrkit.pictures.raw_pixels import describe_misfit

Array = np.ndarray[Any, np.dtype[Any]]

# By the words of `sniff_image`.
_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "TIFF": ".tif", "HEIF": ".heic"}
_HEAD_NBYTES = 1 << 14
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


class ImageFile(NamedTuple):
    """The bytes of a file and the suffix that says what they are.

    `is_made` where they were made here out of pixels, `is_exact` unless those did not fit into a PNG as they are.
    """

    data: bytes
    suffix: str
    is_made: bool = False
    is_exact: bool = True


def to_image_files(name: str, value: Any, values: Mapping[str, Any], sizes: SizeFeatures) -> list[ImageFile]:
    """The images of a feature: one, or one a frame. `values` has those features of the row that tell of sizes.

    Raises `CodecError` where there is none.
    """
    if value is None:
        raise CodecError(f"feature {show_name(name)} expected an image, it is not there")
    if isinstance(value, bytes):
        return [_to_file(name, value, values, sizes)]
    if isinstance(value, list) and all(isinstance(item, (bytes, list)) for item in value):
        flat = [one for item in value for one in (item if isinstance(item, list) else [item])]
        if not flat:
            raise CodecError(f"feature {show_name(name)} expected an image, it is an empty list")
        return [_to_file(name, item, values, sizes) for item in flat]
    if isinstance(value, list):
        return [file for item in value for file in _to_pngs(np.asarray(item))]
    array = np.asarray(value)
    if array.ndim < 2:
        array = _fold(name, array.reshape(-1), values, sizes)
    return _to_pngs(array)


def to_mask_file(name: str, value: Any, size: tuple[int, int] | None) -> bytes:
    """A mask as a PNG: class numbers with the palette of Pascal VOC, or 16-bit gray where they are beyond 255.

    `size` is (width, height) of its image, by which bare bytes are put into rows.
    """
    if isinstance(value, bytes):
        info = sniff_image(value[:_HEAD_NBYTES])
        if info is not None and info.format == "PNG" and info.mode == "P":
            return value
        if info is None and size is not None and len(value) == size[0] * size[1]:
            return encode_palette(np.frombuffer(value, np.uint8).reshape(size[1], size[0]))
        try:
            return encode_palette(decode_mask(value))
        except CodecError as error:
            raise CodecError(f"feature {show_name(name)} {error.what}") from None
    numbers = np.asarray(value)
    if numbers.ndim == 3 and numbers.shape[2] == 1:
        numbers = numbers[:, :, 0]
    if numbers.ndim == 1 and size is not None and numbers.size == size[0] * size[1]:
        numbers = numbers.reshape(size[1], size[0])
    if numbers.ndim != 2 or numbers.dtype.kind not in "iub" or numbers.size == 0:
        raise CodecError(f"feature {show_name(name)} expected a mask, got {numbers.dtype} of shape {numbers.shape}")
    if int(numbers.min()) < 0 or int(numbers.max()) > 65535:
        raise CodecError(f"feature {show_name(name)} expected class numbers up to 65535, got {int(numbers.max())}")
    return encode_palette(numbers)


def encode_palette(numbers: Array) -> bytes:
    """Class numbers (height, width) as a PNG that shows them in the colours of Pascal VOC."""
    from PIL import Image

    height, width = numbers.shape
    if numbers.size and int(numbers.max()) > 255:
        return _save(Image.fromarray(np.ascontiguousarray(numbers, np.uint16)))
    image = Image.frombytes("P", (width, height), np.ascontiguousarray(numbers, np.uint8).tobytes())
    image.putpalette(voc_palette().tobytes())
    return _save(image)


def _to_file(name: str, data: bytes, values: Mapping[str, Any], sizes: SizeFeatures) -> ImageFile:
    if not data:
        raise CodecError(f"feature {show_name(name)} expected an image, it is empty")
    is_pixels = sizes.fixed is not None and fill_shape(sizes.fixed, len(data)) is not None
    info = None if is_pixels else sniff_image(data[:_HEAD_NBYTES])
    if info is not None:
        return ImageFile(data, _SUFFIXES.get(info.format, f".{info.format.lower()}"))
    if not is_pixels and data[:2] in (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6") and data[2:3].isspace():
        return ImageFile(data, ".ppm")
    if sizes.is_told:
        [file] = _to_pngs(_fold(name, np.frombuffer(data, np.uint8), values, sizes, is_bytes=True))
        return file
    raise CodecError(f"feature {show_name(name)} expected an image, got {len(data)} bytes of no known kind")


def _fold(name: str, flat: Array, values: Mapping[str, Any], sizes: SizeFeatures, *, is_bytes: bool = False) -> Array:
    """Pixels one after the other as rows and columns, by the features that tell of their size."""
    if sizes.fixed is not None:
        filled = fill_shape(sizes.fixed, flat.size)
        if filled is None:
            raise CodecError(f"feature {show_name(name)}: {describe_misfit(sizes.fixed, flat.size)}")
        return flat.reshape(filled)
    shape = _find_shape(values, flat.size, sizes, is_bytes=is_bytes)
    if shape is None:
        raise CodecError(f"feature {show_name(name)} expected a height and a width beside it, there are none")
    if min(shape, default=0) < 1 or math.prod(shape) > 4 * DEFAULT_MAX_PIXELS or math.prod(shape) != flat.size:
        shown = "x".join(map(str, shape))
        raise CodecError(f"feature {show_name(name)} expected pixels of {shown}, got {flat.size} values")
    return flat.reshape(shape)


def _find_shape(
    values: Mapping[str, Any], num_values: int, sizes: SizeFeatures, *, is_bytes: bool
) -> tuple[int, ...] | None:
    def read(feature: str | None) -> list[int]:
        value = None if feature is None else values.get(feature)
        return [] if value is None else [int(item) for item in np.asarray(value).reshape(-1)]

    if sizes.shape is not None:
        return tuple(read(sizes.shape))
    height, width, channels = read(sizes.height)[:1], read(sizes.width)[:1], read(sizes.channels)[:1]
    if not height or not width:
        return None
    if not channels:
        channels = [num_values // max(1, height[0] * width[0])]
        if is_bytes and channels[0] not in FOUND_CHANNELS:
            return height[0], width[0]
    return height[0], width[0], channels[0]


def _to_pngs(array: Array) -> list[ImageFile]:
    """One PNG of gray or coloured pixels, channels first or last; of four dimensions one for each frame."""
    if array.ndim == 4:
        return [file for frame in array for file in _to_pngs(frame)]
    pixels = array[:, :, None] if array.ndim == 2 else array
    if pixels.ndim == 3 and pixels.shape[2] not in _MODES and pixels.shape[0] in (1, 3, 4):
        pixels = np.moveaxis(pixels, 0, 2)
    if pixels.ndim != 3 or pixels.shape[2] not in _MODES or pixels.size == 0 or pixels.dtype.kind not in "buif":
        raise CodecError(f"image expected gray or RGB pixels, got a {array.dtype} array of shape {array.shape}")
    from PIL import Image

    if pixels.dtype == np.uint16 and pixels.shape[2] == 1:
        return [ImageFile(_save(Image.fromarray(np.ascontiguousarray(pixels[:, :, 0]))), ".png", is_made=True)]
    levels, is_exact = _to_bytes(pixels)
    mode = _MODES[levels.shape[2]]
    image = Image.frombytes(mode, levels.shape[1::-1], np.ascontiguousarray(levels).tobytes())
    return [ImageFile(_save(image), ".png", is_made=True, is_exact=is_exact)]


def _to_bytes(pixels: Array) -> tuple[Array, bool]:
    if pixels.dtype == np.uint8:
        return pixels, True
    if pixels.dtype.kind in "iu" and int(pixels.min()) >= 0 and int(pixels.max()) <= 255:
        return pixels.astype(np.uint8), True
    return to_levels(pixels), False


def _save(image: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
