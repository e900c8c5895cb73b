"""The few operations on values that parse functions use, with TensorFlow's results."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit.codec.tensor_proto import decode_tensor, encode_tensor
from tfrkit.compat.arguments import also_called
from tfrkit.compat.dtypes import as_dtype, string
from tfrkit.compat.graph import Node, deferrable, is_deferred
from tfrkit.compat.op_errors import InvalidArgumentError, UnimplementedError
from tfrkit.compat.tensor import SparseTensor, Tensor, to_byte_strings, to_bytes, to_tensor, wrap
from tfrkit.errors import CodecError

_Array = np.ndarray[Any, np.dtype[Any]]


@deferrable
def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None, verify_shape: bool = False) -> Tensor:
    """Make a tensor from a value."""
    tensor = to_tensor(value, dtype)
    if shape is None:
        return tensor
    return wrap(np.broadcast_to(tensor, _sizes(shape)) if tensor.size == 1 else tensor.reshape(_sizes(shape)))


@deferrable
def convert_to_tensor(value: Any, dtype: Any = None, **unused: Any) -> Tensor:
    """Make a tensor from a value."""
    return to_tensor(value, dtype)


@deferrable
def cast(x: Any, dtype: Any, name: Any = None) -> Tensor:
    """Convert the values to another type; fractions are truncated."""
    values, wanted = to_tensor(x), as_dtype(dtype)
    if (values.dtype == object) != (wanted is string):
        raise UnimplementedError(None, None, f"cast from {as_dtype(values.dtype)!r} to {wanted!r} is not defined")
    if values.dtype.kind == "f" and wanted.dtype.kind == "u":
        # Through a signed type, so that -1.9 becomes 255 as in TensorFlow: casting a negative float is undefined in C.
        values = wrap(values.astype(np.int64))
    with np.errstate(invalid="ignore", over="ignore"):
        return wrap(values.astype(wanted.dtype))


def to_float(x: Any, name: Any = None) -> Any:
    """Convert the values to float32."""
    return cast(x, "float32")


def to_int32(x: Any, name: Any = None) -> Any:
    """Convert the values to int32."""
    return cast(x, "int32")


def to_int64(x: Any, name: Any = None) -> Any:
    """Convert the values to int64."""
    return cast(x, "int64")


def reshape(tensor: Any, shape: Any, name: Any = None) -> Any:
    """Return the same values in another shape; one size may be -1."""
    changed = _reshape(tensor, shape)
    if isinstance(changed, Node) and not is_deferred(shape):
        changed.set_shape(_sizes(shape))
    return changed


@deferrable
def _reshape(tensor: Any, shape: Any) -> Tensor:
    values, sizes = to_tensor(tensor), _sizes(shape)
    try:
        return wrap(values.reshape(sizes))
    except ValueError:
        raise InvalidArgumentError(
            None, None, f"reshape expected as many values as shape {sizes} has, got {values.size}"
        ) from None


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (list, tuple)) else np.asarray(shape).reshape(-1)
    return tuple(int(size) for size in sizes)


@deferrable
def stack(values: Any, axis: int = 0, name: Any = None) -> Tensor:
    """Stack tensors of one shape along a new axis."""
    return wrap(np.stack(_alike(values), axis))


@deferrable
def concat(values: Any, axis: int, name: Any = None) -> Tensor:
    """Join tensors along an existing axis."""
    return wrap(np.concatenate(_alike(values), int(axis)))


def _alike(values: Any) -> list[_Array]:
    """Convert to tensors of the same type: plain numbers take the type of the first tensor in the list."""
    typed = next((value.dtype for value in values if hasattr(value, "dtype")), None)
    return [np.asarray(to_tensor(value, None if hasattr(value, "dtype") else typed)) for value in values]


@also_called(squeeze_dims="axis")
@deferrable
def squeeze(input: Any, axis: Any = None, name: Any = None) -> Tensor:
    """Remove dimensions of size 1."""
    return wrap(np.squeeze(to_tensor(input), None if axis is None else tuple(np.atleast_1d(axis))))


@also_called(dim="axis")
@deferrable
def expand_dims(input: Any, axis: int = -1, name: Any = None) -> Tensor:
    """Insert a dimension of size 1."""
    return wrap(np.expand_dims(to_tensor(input), int(axis)))


@deferrable
def shape(input: Any, name: Any = None, out_type: Any = "int32") -> Tensor:
    """Return the shape as a vector, by default of int32."""
    return wrap(np.array(to_tensor(input).shape, as_dtype(out_type).dtype))


@deferrable
def one_hot(
    indices: Any,
    depth: int,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Any = None,
) -> Tensor:
    """Make one-hot rows: `on_value` (default 1) at each index, `off_value` (default 0) elsewhere."""
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    if dtype is None:
        given = [value for value in (on_value, off_value) if value is not None]
        dtype = to_tensor(given[0]).dtype if given else "float32"
    places = np.asarray(to_tensor(indices))[..., None] == np.arange(int(depth))
    rows = np.where(places, on, off).astype(as_dtype(dtype).dtype)
    return wrap(rows if axis is None else np.moveaxis(rows, -1, int(axis)))


@deferrable
def identity(input: Any, name: Any = None) -> Any:
    """Return the value unchanged."""
    return input if isinstance(input, SparseTensor) else to_tensor(input)


@also_called(bytes="input_bytes")
@deferrable
def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: int | None = None, name: Any = None
) -> Tensor:
    """Reinterpret bytes as numbers: a vector for one string, a matrix for a vector of strings of equal length."""
    dtype = as_dtype(out_type).dtype
    stored = dtype if little_endian else dtype.newbyteorder(">")
    is_one = isinstance(input_bytes, (bytes, str)) or getattr(input_bytes, "ndim", 1) == 0
    strings = [to_bytes(input_bytes, "input_bytes")] if is_one else to_byte_strings(input_bytes, "input_bytes")
    if fixed_length is not None:
        strings = [value[:fixed_length].ljust(fixed_length, b"\0") for value in strings]
    for value in strings:
        if len(value) % dtype.itemsize:
            raise InvalidArgumentError(
                None, None, f"decode_raw expected a multiple of {dtype.itemsize} bytes ({dtype}), got {len(value)}"
            )
        if len(value) != len(strings[0]):
            raise InvalidArgumentError(
                None, None, f"decode_raw expected strings of equal length, got {len(strings[0])} and {len(value)} bytes"
            )
    rows = [np.frombuffer(value, stored).astype(dtype, copy=False) for value in strings]
    if is_one:
        return wrap(rows[0])
    return wrap(np.stack(rows) if rows else np.empty((0, 0), dtype))


@deferrable
def serialize_tensor(tensor: Any, name: Any = None) -> Tensor:
    """Serialize a tensor, with its type and shape, to one string."""
    return wrap(encode_tensor(np.asarray(to_tensor(tensor))))


@deferrable
def parse_tensor(serialized: Any, out_type: Any, name: Any = None) -> Tensor:
    """Parse a string made by `serialize_tensor`."""
    try:
        array = decode_tensor(to_bytes(serialized, "serialized"))
    except CodecError as error:
        raise InvalidArgumentError(None, None, error.what) from None
    wanted = as_dtype(out_type)
    if as_dtype(array.dtype) is not wanted:
        raise InvalidArgumentError(None, None, f"parse_tensor expected {wanted!r}, got {as_dtype(array.dtype)!r}")
    return wrap(array)


@deferrable
def sparse_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: Any = None
) -> Tensor:
    """Convert a SparseTensor to a dense tensor; missing values are `default_value`, 0 or the empty string."""
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"expected a SparseTensor, got {type(sp_input).__name__}")
    values = np.asarray(sp_input.values)
    is_text = values.dtype == object
    if default_value is None or (is_text and default_value in ("", 0)):
        default_value = b"" if is_text else 0
    fill = to_tensor(default_value).numpy() if is_text else default_value
    dense = np.full(tuple(sp_input.dense_shape.tolist()), fill, values.dtype)
    dense[tuple(np.asarray(sp_input.indices).T)] = values
    return wrap(dense)
