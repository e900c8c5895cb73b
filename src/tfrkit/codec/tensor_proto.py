"""Serialized tensors (`tf.io.serialize_tensor`), read and written without TensorFlow.

The three lists of a feature have one dimension of bytes, float32 or int64. An array of another dtype or a
higher rank is stored as a serialized `tensorflow.TensorProto` in a bytes list:

    08 <dtype>                                  field 1, DataType
    12 <n> (12 <m> 08 <size>)*                  field 2, TensorShape, one dim each
    22 <n> <raw little-endian elements>         field 4, tensor_content; left out when empty

Strings use one field 8 (string_val) per element instead. `read_strict_tensor` of the core accepts exactly
this form, so tensors are recognised without a sidecar; `decode_tensor` accepts any TensorProto that TensorFlow can
produce.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.codec.narrow_floats import bits_dtype, narrow_floats, widen_floats
from tfrkit.errors import CodecError
from tfrkit.features.tensor_dtypes import DTYPE_NAMES, DTYPE_NUMBERS, NARROW_FLOATS, name_value_dtype

# The field with the values of each type in a TensorProto without tensor_content.
_VALUE_FIELDS: dict[int, int] = {
    1: 5,
    2: 6,
    3: 7,
    4: 7,
    5: 7,
    6: 7,
    7: 8,
    8: 9,
    9: 10,
    10: 11,
    14: 13,
    17: 7,
    18: 12,
    19: 13,
    22: 16,
    23: 17,
}

_FLOAT_FIELDS: dict[int, np.dtype[Any]] = {
    5: np.dtype("<f4"),
    6: np.dtype("<f8"),
    9: np.dtype("<f4"),
    12: np.dtype("<f8"),
}

# The field with 8-bit floats, one byte each.
_FLOAT8_FIELD = 18

# A few bytes can encode a tensor of any size by repeating a value; real tensors of this form are far smaller.
_MAX_REPEATED_NBYTES = 1 << 28


def tensor_dtype(number: int) -> np.dtype[Any] | None:
    """Return the little-endian NumPy dtype of a DataType number; None for strings and unknown types."""
    name = DTYPE_NAMES.get(number)
    if name is None or name == "string":
        return None
    try:
        return np.dtype(name_value_dtype(name)).newbyteorder("<")
    except TypeError:
        return None


def encode_tensor(array: Any, *, dtype: str | None = None) -> bytes:
    """Serialize an array as `tf.io.serialize_tensor` does.

    `dtype` is a type that NumPy lacks, bfloat16 or an 8-bit float; ValueError for a number that would be rounded.

    Example:
        >>> encode_tensor(np.array([1.5, 2.5])).hex()
        '08021204120208022210000000000000f83f0000000000000440'
    """
    value = np.asarray(array)
    if value.dtype.kind in "SUO":
        return _encode_strings(value)
    number = DTYPE_NUMBERS.get(dtype or value.dtype.name)
    if number is None:
        raise TypeError(f"expected an array of numbers, booleans or strings, got dtype {value.dtype}")
    if dtype in NARROW_FLOATS:
        value = narrow_floats(value, dtype)
    elif value.dtype.name in NARROW_FLOATS:
        value = np.ascontiguousarray(value).view(bits_dtype(value.dtype.name)).reshape(value.shape)
    content = np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes()
    head = encode_tensor_head(number, value.shape)
    return head + (b"\x22" + encode_varint(len(content)) + content if content else b"")


def encode_tensor_head(number: int, shape: tuple[int, ...]) -> bytes:
    """Encode the dtype and shape fields, which precede the content."""
    dims = b"".join(_length_delimited(0x12, b"\x08" + encode_varint(size) if size else b"") for size in shape)
    return b"\x08" + encode_varint(number) + _length_delimited(0x12, dims)


def _encode_strings(value: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    pieces = [encode_tensor_head(7, value.shape)]
    for item in value.reshape(-1).tolist():
        if isinstance(item, str):
            item = item.encode()
        if not isinstance(item, bytes):
            raise TypeError(f"expected an array of numbers, booleans or strings, got {type(item).__name__} in it")
        pieces.append(_length_delimited(0x42, item))
    return b"".join(pieces)


def decode_tensor(data: bytes) -> np.ndarray[Any, np.dtype[Any]]:
    """Decode a serialized tensor to an array.

    Strings become an object array of bytes. Raises `CodecError` for anything but a TensorProto.
    """
    strict = _native.read_strict_tensor(data)
    if strict is not None:
        number, shape, start, nbytes = strict
        dtype = _stored_dtype(number)
        if dtype is not None:
            return _to_values(np.frombuffer(data, dtype, nbytes // dtype.itemsize, start).reshape(shape), number)
    return _decode_any(data)


def _stored_dtype(number: int) -> np.dtype[Any] | None:
    """Return the dtype of the stored elements; an integer dtype for a float type that NumPy lacks."""
    name = DTYPE_NAMES.get(number, "")
    return bits_dtype(name) if name in NARROW_FLOATS else tensor_dtype(number)


def _to_values(stored: np.ndarray[Any, np.dtype[Any]], number: int) -> np.ndarray[Any, np.dtype[Any]]:
    name = DTYPE_NAMES[number]
    return widen_floats(stored, name) if name in NARROW_FLOATS else stored


def _decode_any(data: bytes) -> np.ndarray[Any, np.dtype[Any]]:
    number = 0
    shape: tuple[int, ...] = ()
    content: bytes | None = None
    values: list[tuple[int, int, bytes | int]] = []
    for field, wire, value in _fields(data):
        if field == 1 and isinstance(value, int):
            number = value
        elif field == 2 and isinstance(value, bytes):
            shape = _decode_shape(value)
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif field >= 5:
            values.append((field, wire, value))
    count = 1
    for size in shape:
        count *= size
    if number == 7:
        return _decode_strings(values, shape, count)
    dtype = _stored_dtype(number)
    if dtype is None:
        raise CodecError(f"expected a serialized tensor, got dtype number {number}")
    if content is not None:
        if len(content) != count * dtype.itemsize:
            raise CodecError(f"tensor of shape {shape} expected {count * dtype.itemsize} bytes, got {len(content)}")
        return _to_values(np.frombuffer(content, dtype).reshape(shape), number)
    return _to_values(_decode_values(values, number, dtype, shape, count), number)


def _decode_values(
    values: list[tuple[int, int, bytes | int]], number: int, dtype: np.dtype[Any], shape: tuple[int, ...], count: int
) -> np.ndarray[Any, np.dtype[Any]]:
    wanted = _VALUE_FIELDS.get(number, _FLOAT8_FIELD)
    floats = _FLOAT_FIELDS.get(wanted)
    numbers: list[Any] = []
    for field, wire, value in values:
        if field != wanted:
            continue
        if floats is not None:
            raw = value if isinstance(value, bytes) else b""
            if wire in (1, 5) and isinstance(value, int):
                raw = struct.pack("<Q" if wire == 1 else "<I", value)
            if len(raw) % floats.itemsize:
                raise CodecError(f"packed values expected a multiple of {floats.itemsize} bytes, got {len(raw)}")
            numbers.extend(np.frombuffer(raw, floats).tolist())
        elif isinstance(value, int):
            numbers.append(value)
        elif wanted == _FLOAT8_FIELD:
            numbers.extend(value)
        else:
            position = 0
            while position < len(value):
                item, position = _read_varint(value, position)
                numbers.append(item)
    if dtype.kind == "c":
        if len(numbers) % 2:
            raise CodecError(f"complex tensor expected pairs of numbers, got {len(numbers)}")
        numbers = [complex(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    bits = dtype.itemsize * 8
    if dtype.kind in "iu":
        numbers = [n & ((1 << bits) - 1) for n in numbers]
        numbers = [n - (1 << bits) if dtype.kind == "i" and n >> (bits - 1) else n for n in numbers]
    if len(numbers) > count or (not numbers and count):
        if not numbers:
            numbers = [0]  # TensorFlow leaves out values that are all zero
        else:
            raise CodecError(f"tensor of shape {shape} expected {count} values, got {len(numbers)}")
    if count * dtype.itemsize > _MAX_REPEATED_NBYTES:
        raise CodecError(f"tensor of shape {shape} repeats one value over more than {_MAX_REPEATED_NBYTES} bytes")
    # A constant tensor is stored as its leading values; the last one repeats.
    array = np.empty(count, "<u2" if number == 19 else dtype)
    array[: len(numbers)] = numbers[:count]
    array[len(numbers) :] = numbers[-1] if numbers else 0
    return array.view("<f2").reshape(shape) if number == 19 else array.reshape(shape)


def _decode_strings(
    values: list[tuple[int, int, bytes | int]], shape: tuple[int, ...], count: int
) -> np.ndarray[Any, np.dtype[Any]]:
    strings = [value for field, _, value in values if field == 8 and isinstance(value, bytes)]
    if count > max(len(strings), _MAX_REPEATED_NBYTES >> 6):
        raise CodecError(f"tensor of shape {shape} repeats one string {count} times")
    if len(strings) > count:
        raise CodecError(f"tensor of shape {shape} expected {count} strings, got {len(strings)}")
    array = np.empty(count, object)
    array[: len(strings)] = strings
    array[len(strings) :] = strings[-1] if strings else b""
    return array.reshape(shape)


def _decode_shape(data: bytes) -> tuple[int, ...]:
    sizes = []
    for field, _, value in _fields(data):
        if field == 2 and isinstance(value, bytes):
            size = 0
            for inner, _, number in _fields(value):
                if inner == 1 and isinstance(number, int):
                    size = number - (1 << 64) if number >> 63 else number
            if size < 0:
                raise CodecError("tensor has a dimension of unknown size")
            sizes.append(size)
    total = 1
    for size in sizes:
        total *= size
    if total > 1 << 48:
        raise CodecError(f"tensor shape {tuple(sizes)} is larger than any record")
    return tuple(sizes)


def _fields(data: bytes) -> list[tuple[int, int, bytes | int]]:
    """Parse the top-level fields as (number, wire type, value)."""
    fields: list[tuple[int, int, bytes | int]] = []
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        wire = tag & 7
        value: bytes | int
        if wire == 0:
            value, position = _read_varint(data, position)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = int.from_bytes(_slice(data, position, size), "little")
            position += size
        elif wire == 2:
            size, position = _read_varint(data, position)
            value = _slice(data, position, size)
            position += size
        else:
            raise CodecError(f"expected a serialized tensor, got wire type {wire} at byte {position}")
        fields.append((tag >> 3, wire, value))
    return fields


def _slice(data: bytes, position: int, size: int) -> bytes:
    if size > len(data) - position:
        raise CodecError(f"expected a serialized tensor, a field of {size} bytes runs past its end")
    return data[position : position + size]


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
    raise CodecError(f"expected a serialized tensor, a number does not end at byte {position}")


def encode_varint(value: int) -> bytes:
    """Encode a non-negative number as a protobuf varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _length_delimited(tag: int, data: bytes) -> bytes:
    return bytes((tag,)) + encode_varint(len(data)) + data
