"""Decode values that JSON cannot represent, in the form that `tfr export jsonl` writes.

{"base64": "..."} is bytes, {"float": "nan"} a number, {"tensor": {"dtype", "shape", "values"}} an array. Any other
object is the user's own and is kept.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit.features.spec import MAX_RANK, Shape
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS

_Array = np.ndarray[Any, np.dtype[Any]]

_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_TENSOR_KEYS = {"dtype", "shape", "values"}
# Names of the dtype of an array of bytes.
_STRINGS = ("string", "object")


class Constant(float):
    """NaN or infinity that is written in the file as such, unlike the plain infinity of a number that is too large."""


@dataclass
class TensorForm:
    """The common dtype and shape of the tensors of one column."""

    dtypes: set[str] = field(default_factory=set)
    sizes: list[int | None] | None = None
    has_ranks: bool = False  # whether tensors differ in rank

    def add(self, array: _Array) -> None:
        """Add one tensor."""
        self.dtypes.add("string" if array.dtype.kind == "O" else array.dtype.name)
        if self.sizes is None:
            self.sizes = list(array.shape)
        elif len(self.sizes) != array.ndim:
            self.has_ranks = True
        else:
            self.sizes = [one if one == size else None for one, size in zip(self.sizes, array.shape, strict=True)]

    @property
    def dtype(self) -> str | None:
        """The dtype of all tensors; None if they differ."""
        return next(iter(self.dtypes)) if len(self.dtypes) == 1 else None

    @property
    def shape(self) -> Shape:
        """The shape of all tensors; a size that differs is None, and the shape is (None,) if ranks differ."""
        return (None,) if self.has_ranks or self.sizes is None else tuple(self.sizes)


def thaw_value(value: Any) -> Any:
    """Decode a JSON value; ordinary values are returned unchanged. Raises ValueError for an invalid encoding.

    Example:
        >>> thaw_value({"base64": "/w=="}), thaw_value([{"float": "inf"}, 1]), thaw_value({"float": 1})
        (b'\\xff', [inf, 1], {'float': 1})
    """
    if isinstance(value, dict):
        return _thaw_object({name: thaw_value(one) for name, one in value.items()})
    if isinstance(value, list) and dict in set(map(type, value)):
        return [thaw_value(one) for one in value]
    return value


def _thaw_object(values: dict[str, Any]) -> Any:
    if len(values) != 1:
        return values
    ((name, value),) = values.items()
    if name == "base64" and isinstance(value, str):
        return _thaw_bytes(value)
    if name == "float" and isinstance(value, str) and value in _NON_FINITE:
        return Constant(_NON_FINITE[value])
    if name == "tensor" and isinstance(value, Mapping) and set(value) == _TENSOR_KEYS:
        return _thaw_tensor(**value)
    return values


def _thaw_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"base64 expected groups of four letters and digits, got {text!r:.64}") from None


def _thaw_tensor(dtype: Any, shape: Any, values: Any) -> _Array:
    if dtype not in DTYPE_NUMBERS and dtype not in _STRINGS:
        raise ValueError(f"tensor expected a dtype such as uint8, got {dtype!r:.64}")
    is_shape = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    if not is_shape or len(shape) > MAX_RANK:
        raise ValueError(f"tensor expected a shape such as [2, 3], got {shape!r:.64}")
    if not isinstance(values, list) or len(values) != math.prod(shape):
        got = str(len(values)) if isinstance(values, list) else f"{values!r:.64}"
        raise ValueError(f"tensor of shape {tuple(shape)} expected {math.prod(shape)} values, got {got}")
    if dtype in _STRINGS:
        return _thaw_strings(values).reshape(shape)
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"tensor expected a dtype that NumPy has, got {dtype}") from None
    return _thaw_numbers(values, wanted).reshape(shape)


def _thaw_strings(values: list[Any]) -> _Array:
    array = np.empty(len(values), object)
    for index, value in enumerate(values):
        if not isinstance(value, (str, bytes)):
            raise ValueError(f"tensor of strings expected text or base64, got {value!r:.64}")
        array[index] = value.encode() if isinstance(value, str) else value
    return array


def _thaw_numbers(values: list[Any], dtype: np.dtype[Any]) -> _Array:
    """Convert numbers to an array of the dtype; raises ValueError if one would be rounded or truncated."""
    if dtype.kind == "c":
        values = [_thaw_complex(value) for value in values]
    kinds = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (complex,)}[dtype.kind]
    for value in values:
        if not isinstance(value, kinds) or (isinstance(value, bool) and dtype.kind != "b"):
            raise ValueError(f"tensor of {dtype} expected numbers of this type, got {value!r:.64}")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, dtype)
    except OverflowError:
        raise ValueError(f"tensor of {dtype} expected numbers that fit, got others") from None
    if dtype.kind in "fc":
        for value, stored in zip(values, array.tolist(), strict=True):
            if value != stored and value == value:
                raise ValueError(f"tensor of {dtype} expected numbers that fit, got {value!r:.64}")
    return array


def _thaw_complex(value: Any) -> complex:
    pair = value.get("complex") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(one, (int, float)) for one in pair):
        raise ValueError(f'tensor of complex numbers expected {{"complex": [1.0, 0.0]}}, got {value!r:.64}')
    return complex(*pair)
