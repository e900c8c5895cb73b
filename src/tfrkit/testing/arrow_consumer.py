"""An Arrow consumer in ctypes: walks the structs of the C data interface and returns plain Python values.

It shares no code with the exporter, so that the two check each other.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

Field = tuple[Any, ...]
"""Name, format and nullability, then the fields of the children."""

# Number formats, and their codes in `struct`.
_LETTERS = dict(zip("cCsSiIlLefg", "bBhHiIqQefd", strict=True))


class CSchema(ctypes.Structure):
    """The ArrowSchema of the C data interface."""


class CArray(ctypes.Structure):
    """The ArrowArray of the C data interface."""


class CStream(ctypes.Structure):
    """The ArrowArrayStream of the C stream interface."""


# ctypes releases the interpreter lock around each of these, like a real consumer.
ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(CSchema))
ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(CArray))
CSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(CSchema))),
    ("dictionary", ctypes.c_void_p),
    ("release", ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
CArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(CArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
CStream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CSchema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(CStream), ctypes.POINTER(CArray))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(CStream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(CStream))),
    ("private_data", ctypes.c_void_p),
]


def open_schema(capsule: object) -> CSchema:
    """Return the schema struct inside a capsule; the capsule must outlive it."""
    return CSchema.from_address(_get_pointer(capsule, b"arrow_schema"))


def open_stream(capsule: object) -> CStream:
    """Return the stream struct inside a capsule; the capsule must outlive it."""
    return CStream.from_address(_get_pointer(capsule, b"arrow_array_stream"))


def read_field(schema: CSchema) -> Field:
    """Read a schema without its metadata."""
    children = [read_field(schema.children[i].contents) for i in range(schema.n_children)]
    return schema.name.decode(), schema.format.decode(), bool(schema.flags & 2), *children


def read_metadata(schema: CSchema) -> dict[str, str]:
    """Read the metadata of a schema."""
    if not schema.metadata:
        return {}
    at = schema.metadata

    def take(nbytes: int) -> bytes:
        nonlocal at
        at += nbytes
        return ctypes.string_at(at - nbytes, nbytes)

    texts = [take(*struct.unpack("=i", take(4))).decode() for _ in range(2 * struct.unpack("=i", take(4))[0])]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def read_next(stream: CStream) -> CArray | None:
    """Read the next array, or None at the end; OSError with the stream's message."""
    array = CArray()
    code = stream.get_next(stream, array)
    if code:
        raise OSError(code, stream.get_last_error(stream).decode())
    return array if array.release else None


def read_rows(exporter: Any) -> list[dict[str, Any]]:
    """Read all rows of an object with ``__arrow_c_stream__``."""
    capsule = exporter.__arrow_c_stream__()
    stream, schema = open_stream(capsule), CSchema()
    if stream.get_schema(stream, schema):
        raise OSError(stream.get_last_error(stream).decode())
    field = read_field(schema)
    schema.release(schema)
    rows: list[dict[str, Any]] = []
    while (array := read_next(stream)) is not None:
        rows += read_values(field, array)
        array.release(array)
    stream.release(stream)
    return rows


def read_values(field: Field, array: CArray) -> list[Any]:
    """Read the values of an array, None for nulls."""
    values = _read_all(field, array)
    if array.n_buffers == 0 or not array.buffers[0]:
        if array.null_count != (array.length if field[1] == "n" else 0):
            raise ValueError(f"{array.null_count} nulls of {array.length} without a bitmap")
        return values
    is_valid = _read_bits(array, 0)
    if array.null_count != is_valid.count(False):
        raise ValueError(f"{array.null_count} nulls, but {is_valid.count(False)} in the bitmap")
    return [value if valid else None for value, valid in zip(values, is_valid, strict=True)]


def _read_all(field: Field, array: CArray) -> list[Any]:
    _, form, _, *fields = field
    length = array.length
    if form == "n":
        return [None] * length
    if form == "b":
        return _read_bits(array, 1)
    if form in _LETTERS:
        return _read_numbers(array, _LETTERS[form], length)
    if form in ("Z", "U"):
        at = _read_numbers(array, "q", length + 1)
        pieces = [ctypes.string_at(array.buffers[2] + at[i], at[i + 1] - at[i]) for i in range(length)]
        return [piece.decode() for piece in pieces] if form == "U" else pieces
    children = [
        read_values(inner, array.children[i].contents) for i, inner in zip(range(array.n_children), fields, strict=True)
    ]
    if form == "+L":
        at = _read_numbers(array, "q", length + 1)
        return [children[0][at[i] : at[i + 1]] for i in range(length)]
    if form.startswith("+w:"):
        size = int(form[3:])
        return [children[0][i * size : (i + 1) * size] for i in range(length)]
    names = [inner[0] for inner in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*children, strict=True)]


def _read_numbers(array: CArray, letter: str, count: int) -> list[Any]:
    layout = f"={count}{letter}"
    return list(struct.unpack(layout, ctypes.string_at(array.buffers[1], struct.calcsize(layout))))


def _read_bits(array: CArray, buffer: int) -> list[bool]:
    data = ctypes.string_at(array.buffers[buffer], (array.length + 7) // 8)
    return [bool(data[i // 8] >> i % 8 & 1) for i in range(array.length)]


def _get_pointer(capsule: object, name: bytes) -> int:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address: int = get_pointer(capsule, name)
    return address
