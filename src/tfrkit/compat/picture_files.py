"""Encode pixels as an image file: `tf.image.encode_jpeg`, `tf.image.encode_png`."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from tfrkit.compat.graph import deferrable
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.tensor import Tensor, to_tensor, wrap

_JPEG_FORMATS = {"": (1, 3), "grayscale": (1,), "rgb": (3,)}
_PNG_CHANNELS = (1, 2, 3, 4)


@deferrable
def encode_jpeg(image: Any, format: str = "", quality: int = 95, name: Any = None, **options: Any) -> Tensor:
    """Encode uint8 pixels, (height, width, 1 or 3), as JPEG. Options other than `format` and `quality` are ignored."""
    if format not in _JPEG_FORMATS:
        raise InvalidArgumentError(None, None, f"format expected '', 'grayscale' or 'rgb', got {format!r}")
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(None, None, f"quality expected a number from 0 to 100, got {quality}")
    return _encode(_check(image, _JPEG_FORMATS[format], (np.uint8,)), "JPEG", quality=quality, subsampling="4:2:0")


@deferrable
def encode_png(image: Any, compression: int = -1, name: Any = None) -> Tensor:
    """Encode pixels as PNG: uint8, (height, width, 1 to 4), or uint16 with one channel."""
    pixels = _check(image, _PNG_CHANNELS, (np.uint8, np.uint16))
    if pixels.dtype == np.uint16 and pixels.shape[2] != 1:
        raise InvalidArgumentError(None, None, f"uint16 pixels expected one channel, got {pixels.shape[2]}")
    return _encode(pixels, "PNG", compress_level=6 if compression < 0 else compression)


def _check(image: Any, channels: tuple[int, ...], dtypes: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    pixels = np.asarray(to_tensor(image))
    if pixels.dtype not in [np.dtype(dtype) for dtype in dtypes]:
        raise InvalidArgumentError(None, None, f"pixels expected uint8, got {pixels.dtype}")
    if pixels.ndim != 3 or pixels.shape[2] not in channels or 0 in pixels.shape:
        raise InvalidArgumentError(
            None, None, f"pixels expected shape (height, width, one of {channels}), got {pixels.shape}"
        )
    return pixels


def _encode(pixels: np.ndarray[Any, Any], form: str, **options: Any) -> Tensor:
    # Imported here, so that importing this module does not load an image library.
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).save(file, form, **options)
    return wrap(file.getvalue())
