"""Image values as files: encoded bytes are unchanged, pixels become PNG, masks become PNG with a palette."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrkit.errors import CodecError
from tfrkit.features.schema import show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.images.raw_shapes import FOUND_CHANNELS
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.colors import voc_palette
from tfrkit.pictures.masks import read_mask
from tfrkit.pictures.pixels import arrange_channels, fold_pixels, is_ppm, is_raw, to_levels

Array = np.ndarray[Any, np.dtype[Any]]

# Suffixes by the format names of `sniff_image`.
_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "TIFF": ".tif", "HEIF": ".heic"}
_HEAD_NBYTES = 1 << 14
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


class ImageFile(NamedTuple):
    """The bytes of a file and its suffix.

    `is_made` means encoded here from pixels; `is_exact` is False if PNG cannot hold the pixel values.
    """

    data: bytes
    suffix: str
    is_made: bool = False
    is_exact: bool = True


def to_image_files(name: str, value: Any, values: Mapping[str, Any], sizes: SizeFeatures) -> list[ImageFile]:
    """Return the images of a feature, several for a clip. `values` has the size features of the row.

    Raises `CodecError` if there is none.
    """
    if value is None:
        raise CodecError(f"feature {show_name(name)} expected an image, got none")
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


def require_image(files: Sequence[ImageFile], feature: str) -> ImageFile:
    """Return the only image of a record. Raises `CodecError` if there are several."""
    if len(files) != 1:
        raise CodecError(f"feature {show_name(feature)} expected one image, got {len(files)}")
    return files[0]


def to_mask_file(name: str, value: Any, size: tuple[int, int] | None) -> bytes:
    """Encode a mask as PNG: class numbers with the Pascal VOC palette, or 16-bit gray if one is above 255.

    `size` is (width, height) of its image, which gives raw bytes their shape.
    """
    if isinstance(value, bytes):
        info = sniff_image(value[:_HEAD_NBYTES])
        if info is not None and info.format == "PNG" and info.mode == "P":
            return value
    try:
        numbers = read_mask(value, None if size is None else size[::-1])
    except CodecError as error:
        raise CodecError(f"feature {show_name(name)} {error.what}") from None
    if int(numbers.min()) < 0 or int(numbers.max()) > 65535:
        raise CodecError(f"feature {show_name(name)} expected class numbers up to 65535, got {int(numbers.max())}")
    return encode_palette(numbers)


def encode_palette(numbers: Array) -> bytes:
    """Encode class numbers (height, width) as a PNG with the Pascal VOC palette; 16-bit gray above 255."""
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
    if is_raw(data, sizes):
        [file] = _to_pngs(_fold(name, np.frombuffer(data, np.uint8), values, sizes, FOUND_CHANNELS))
        return file
    info = sniff_image(data[:_HEAD_NBYTES])
    if info is None and not is_ppm(data):
        raise CodecError(f"feature {show_name(name)} expected an image, got {len(data)} bytes of unknown format")
    return ImageFile(data, ".ppm" if info is None else _SUFFIXES.get(info.format, f".{info.format.lower()}"))


def _fold(
    name: str, flat: Array, values: Mapping[str, Any], sizes: SizeFeatures, channels: Collection[int] = _MODES
) -> Array:
    try:
        return fold_pixels(flat, values, sizes, channels=channels)
    except CodecError as error:
        raise CodecError(f"feature {show_name(name)}: {error.what}") from None


def _to_pngs(array: Array) -> list[ImageFile]:
    """Encode gray or colour pixels, channels first or last, as PNG; an array with four dimensions gives several."""
    if array.ndim == 4:
        return [file for frame in array for file in _to_pngs(frame)]
    pixels = arrange_channels(array, _MODES)
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
