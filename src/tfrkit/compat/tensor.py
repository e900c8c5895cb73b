"""Tensors as NumPy arrays with a few of TensorFlow's methods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrkit.compat.dtypes import DType, as_dtype, string
from tfrkit.compat.shapes import TensorShape
from tfrkit.compat.structure import map_parts

_Array = np.ndarray[Any, np.dtype[Any]]


class Tensor(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array with a `numpy()` method. Strings are arrays of bytes objects.

    Elements and results of arithmetic are tensors too, of rank 0 where NumPy would return a scalar.
    """

    def numpy(self) -> Any:
        """Return a writable plain NumPy array; a number or bytes for a tensor of rank 0."""
        return np.ndarray.__getitem__(self, ()) if self.ndim == 0 else np.array(self)

    @property  # type: ignore[misc]  # a shape is not set here
    def shape(self) -> TensorShape:
        return TensorShape(np.ndarray.shape.__get__(self))

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check the shape; None matches any size."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"tensor expected shape {TensorShape(shape)}, got {self.shape}")

    def __array_wrap__(self, array: _Array, context: Any = None, return_scalar: bool = False) -> Tensor:  # type: ignore[override]
        return np.asarray(array).view(Tensor)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, Tensor) else wrap(found)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __format__(self, spec: str) -> str:
        return str(format(self.numpy(), spec)) if self.ndim == 0 else super().__format__(spec)

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype={as_dtype(self.dtype).name})"

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={as_dtype(self.dtype).name}, numpy={self.numpy()!r}>"


class SparseTensor:
    """Values with their indices in a larger tensor, the result of a VarLenFeature."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = to_tensor(indices, np.int64)
        self.values = to_tensor(values)
        self.dense_shape = to_tensor(dense_shape, np.int64)

    @property
    def dtype(self) -> DType:
        return as_dtype(self.values.dtype)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.dense_shape.tolist())

    def get_shape(self) -> TensorShape:
        return self.shape

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


class SparseTensorValue(NamedTuple):
    """A SparseTensor in plain NumPy, as `Session.run` returns it."""

    indices: Any
    values: Any
    dense_shape: Any


def wrap(value: Any) -> Tensor:
    """View an array or a NumPy scalar as a tensor, without conversion; bytes become a string of rank 0."""
    if isinstance(value, np.ndarray):
        return value.view(Tensor)
    array = np.empty((), object) if isinstance(value, (bytes, str)) else np.asarray(value)
    if isinstance(value, (bytes, str)):
        array[()] = value.encode() if isinstance(value, str) else bytes(value)
    return array.view(Tensor)


def to_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Convert any value TensorFlow accepts: Python floats become float32, Python ints int32, text bytes."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, np.ndarray):
        array: _Array = value
    elif isinstance(value, (bytes, str)):
        array = wrap(value)
    else:
        array = _array_of(value)
    if array.dtype.kind in "SUO":
        array = _bytes_array(array)
        if wanted not in (None, string):
            raise TypeError(f"expected values of {wanted!r}, got strings")
        return array.view(Tensor)
    if wanted is None:
        return array.view(Tensor)
    if array.size == 0 and not hasattr(value, "dtype"):
        return array.astype(wanted.dtype).view(Tensor)  # an empty list fits any type
    if wanted is string or (wanted.is_integer and array.dtype.kind == "f"):
        raise TypeError(f"expected values of {wanted!r}, got {array.dtype}")
    return array.astype(wanted.dtype, copy=False).view(Tensor)


def _array_of(value: Any) -> _Array:
    leaf = value
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    # NumPy's own string type would lose trailing zero bytes.
    array = np.array(value, object) if isinstance(leaf, (bytes, str)) else np.asarray(value)
    if array.dtype == object:
        return array
    is_typed = hasattr(value, "dtype") or (
        isinstance(value, (list, tuple)) and any(hasattr(item, "dtype") for item in value)
    )
    if is_typed:
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64 and (array.size == 0 or (array.min() >= -(1 << 31) and array.max() < 1 << 31)):
        return array.astype(np.int32)
    return array


def _bytes_array(array: _Array) -> _Array:
    """Convert strings to bytes objects."""
    flat = array.reshape(-1).tolist()
    if array.dtype == object and all(isinstance(item, bytes) for item in flat):
        return array
    strings = np.empty(len(flat), object)
    for index, item in enumerate(flat):
        inner = item.item() if isinstance(item, np.ndarray) and item.ndim == 0 else item
        if not isinstance(inner, (bytes, str)):
            raise TypeError(f"expected numbers or strings of the same type, got {type(inner).__name__}")
        strings[index] = inner.encode() if isinstance(inner, str) else inner
    return strings.reshape(array.shape)


def to_bytes(value: Any, what: str) -> bytes:
    """Return a single string as bytes, from bytes, text or a string tensor of rank 0."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        inner = value[()] if not isinstance(value, Tensor) else value.numpy()
        if isinstance(inner, (bytes, str)):
            return inner.encode() if isinstance(inner, str) else bytes(inner)
    shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
    raise ValueError(f"{what} expected one string, got {type(value).__name__}{shape}")


def to_byte_strings(values: Any, what: str) -> list[bytes]:
    """Return the strings of a list or of a string tensor of rank 1."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(f"{what} expected a list of strings, got shape {values.shape}")
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(plain, list) and all(type(value) is bytes for value in plain):
        return plain
    return [to_bytes(value, what) for value in values]


def to_numpy(structure: Any) -> Any:
    """Convert nested tensors to plain NumPy values."""
    return map_parts(_plain, structure, lists=True)


def _plain(part: Any) -> Any:
    if isinstance(part, SparseTensor):
        return SparseTensorValue(*(inner.numpy() for inner in (part.indices, part.values, part.dense_shape)))
    return part.numpy() if isinstance(part, Tensor) else part


def object_array(values: Sequence[Any]) -> _Array:
    """Make a one-dimensional array of objects."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
