"""TensorFlow's data types: `tf.int64`, `tf.string` and so on."""

from __future__ import annotations

from typing import Any

import numpy as np

_NAMES = {
    "half": "float16",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "double": "float64",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}


class DType:
    """A data type. Equal to its name and to the NumPy dtype; NumPy accepts it as a dtype."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: np.dtype[Any]) -> None:
        self.name = name
        self.dtype = dtype

    @property
    def as_numpy_dtype(self) -> Any:
        return self.dtype.type

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def is_floating(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    def __eq__(self, other: object) -> bool:
        try:
            return self is as_dtype(other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"


string = DType("string", np.dtype(object))
DTYPES: dict[str, DType] = {name: DType(name, np.dtype(name)) for name in sorted(set(_NAMES.values()))}
DTYPES |= {name: DTYPES[real] for name, real in _NAMES.items()} | {"string": string}
_BY_NUMPY = {dtype.dtype: dtype for dtype in DTYPES.values()}


def as_dtype(type_value: object) -> DType:
    """Return the DType for a name, a NumPy dtype or a Python type."""
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, str) and type_value in DTYPES:
        return DTYPES[type_value]
    if type_value in (str, bytes):
        return string
    try:
        found = np.dtype(type_value)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(f"expected a type of values such as tf.int64, got {type_value!r}") from None
    if found.kind == "O" and isinstance(type_value, type) and type_value not in (object, np.object_):
        raise TypeError(f"expected a type of values such as tf.int64, got {type_value!r}")
    if found.kind in "SU":
        return string
    if found not in _BY_NUMPY:
        raise TypeError(f"expected a type of values such as tf.int64, got {type_value!r}")
    return _BY_NUMPY[found]
