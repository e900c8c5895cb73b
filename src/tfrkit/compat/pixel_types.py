"""`tf.image.convert_image_dtype`: pixels in another type, scaled to its range."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit.compat.array_ops import cast
from tfrkit.compat.dtypes import DType, as_dtype
from tfrkit.compat.graph import deferrable
from tfrkit.compat.tensor import Tensor, to_tensor, wrap

_Array = np.ndarray[Any, np.dtype[Any]]


@deferrable
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: Any = None) -> Tensor:
    """Convert pixels to another type and scale them to its range: floats 0 to 1, integers 0 to their largest value."""
    pixels, wanted = np.asarray(to_tensor(image)), as_dtype(dtype)
    if not {pixels.dtype.kind, wanted.dtype.kind} <= set("fiu"):
        raise TypeError(f"pixels expected floats or integers, got {as_dtype(pixels.dtype)!r} and {wanted!r}")
    if pixels.dtype == wanted.dtype:
        return wrap(pixels)
    if wanted.dtype.kind == "f":
        factor = 1.0 if pixels.dtype.kind == "f" else 1 / _largest(pixels.dtype)
        return wrap(pixels.astype(wanted.dtype) * wanted.dtype.type(factor))
    if pixels.dtype.kind == "f":
        # The half makes 1.0 the largest integer after truncation, as in TensorFlow.
        return _cast(pixels * pixels.dtype.type(_largest(wanted.dtype) + 0.5), wanted, saturate)
    if _largest(pixels.dtype) > _largest(wanted.dtype):
        factor = (_largest(pixels.dtype) + 1) // (_largest(wanted.dtype) + 1)
        return _cast(pixels // pixels.dtype.type(factor), wanted, saturate)
    factor = (_largest(wanted.dtype) + 1) // (_largest(pixels.dtype) + 1)
    return wrap(np.asarray(_cast(pixels, wanted, saturate)) * wanted.dtype.type(factor))


def _largest(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max)


def _cast(pixels: _Array, wanted: DType, saturate: bool) -> Tensor:
    if saturate:
        limits = np.iinfo(wanted.dtype)
        exact = pixels.astype(np.float64) if pixels.dtype.kind == "f" else pixels  # float32 has no 2^31 - 1
        pixels = np.clip(exact, limits.min, limits.max)
    made: Tensor = cast(pixels, wanted)
    return made
