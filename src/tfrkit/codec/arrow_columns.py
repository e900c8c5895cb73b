"""Conversion of Arrow columns to arrays: numbers, bytes, and lists of these.

For Parquet and Arrow files and tables of pandas and polars. Types that an Example does not have, such as times and
decimals, raise an error with the name of the column unless the user chooses a conversion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit._types import Int64Array
from tfrkit.codec.columns import BytesColumn

ArrowKind = Literal["int64", "float32", "float64", "text", "bytes"]


class NoKindError(Exception):
    """An Arrow type that cannot be stored in an Example; the message is its name."""


@dataclass(frozen=True)
class ColumnTarget:
    """Target of an Arrow type: the kind of its values, and whether a row is a list of values."""

    kind: ArrowKind
    is_list: bool = False


def judge_type(kind: Any, arrow: Any) -> ColumnTarget | None:
    """Find the target of an Arrow type; None for a column of nulls. Raises `NoKindError` for unsupported types."""
    types = arrow.types
    if types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        return judge_type(kind.value_type, arrow)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = judge_type(kind.value_type, arrow)
        if inner is None or inner.is_list:
            raise NoKindError(f"{kind}")
        return ColumnTarget(inner.kind, is_list=True)
    if types.is_integer(kind) or types.is_boolean(kind):
        return ColumnTarget("int64")
    if types.is_float16(kind) or types.is_float32(kind):
        return ColumnTarget("float32")
    if types.is_float64(kind):
        return ColumnTarget("float64")
    if types.is_string(kind) or types.is_large_string(kind) or _is(types, "is_string_view", kind):
        return ColumnTarget("text")
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or _is(types, "is_binary_view", kind)
    ):
        return ColumnTarget("bytes")
    raise NoKindError(f"{kind}")


def _is(types: Any, name: str, kind: Any) -> bool:
    """Check a type by a function that older Arrow versions lack."""
    check = getattr(types, name, None)
    return bool(check is not None and check(kind))


def flatten_fields(schema: Any, arrow: Any) -> list[tuple[str, tuple[int, ...], Any]]:
    """Return (name, path, type) of every column; fields of a struct are called ``struct/field``."""
    found: list[tuple[str, tuple[int, ...], Any]] = []

    def visit(prefix: str, path: tuple[int, ...], fields: Any) -> None:
        for index, one in enumerate(fields):
            name = f"{prefix}{one.name}"
            if arrow.types.is_struct(one.type):
                visit(f"{name}/", (*path, index), [one.type.field(i) for i in range(one.type.num_fields)])
            else:
                found.append((name, (*path, index), one.type))

    visit("", (), schema)
    return found


def pick_column(batch: Any, path: tuple[int, ...], arrow: Any) -> Any:
    """Return the array of one flattened column; the fields of a null struct are null."""
    array = batch.column(path[0])
    for index in path[1:]:
        array = _compute().struct_field(array, index)
    return array


def _compute() -> Any:
    """Import pyarrow.compute only if needed, because the import takes longer than converting most tables."""
    return import_or_explain("pyarrow.compute", "arrow")


def cast_column(array: Any, wanted: str, arrow: Any) -> Any:
    """Cast an array as requested: times to numbers or text, decimals to floats. Raises `ArrowInvalid`."""
    if arrow.types.is_dictionary(array.type):
        array = _decode_dictionary(array, arrow)
    target = {"int64": arrow.int64(), "float": arrow.float64(), "text": arrow.large_string()}[wanted]
    if wanted == "int64" and arrow.types.is_temporal(array.type) and array.type.bit_width == 32:
        array = array.cast(arrow.int32())
    return array.cast(target)


def convert_array(array: Any, expected: ColumnTarget, arrow: Any) -> tuple[Any, Int64Array | None, Any]:
    """Convert one block to (values, lengths of lists, missing rows), the form that the spool stores.

    Raises ValueError, with the row in this block as its second argument, for a value that does not fit.
    """
    if arrow.types.is_dictionary(array.type):
        array = _decode_dictionary(array, arrow)
    missing = _find_nulls(array)
    if not expected.is_list:
        return _convert_values(array, expected.kind, missing, arrow), None, missing
    compute = _compute()
    lengths = compute.fill_null(compute.list_value_length(array), 0)
    inner = compute.list_flatten(array)
    if arrow.types.is_dictionary(inner.type):
        inner = _decode_dictionary(inner, arrow)
    if inner.null_count:
        position = int(np.flatnonzero(_find_nulls(inner))[0])
        counts = np.cumsum(lengths.to_numpy(zero_copy_only=False))
        raise ValueError("list expected values, got a null inside", int(np.searchsorted(counts, position, "right")))
    values = _convert_values(inner, expected.kind, None, arrow)
    return values, lengths.to_numpy(zero_copy_only=False).astype(np.int64), missing


def _decode_dictionary(array: Any, arrow: Any) -> Any:
    """Decode a dictionary array. String views, which polars uses, are cast first: pyarrow cannot decode them."""
    values = array.dictionary
    if _is(arrow.types, "is_string_view", values.type) or _is(arrow.types, "is_binary_view", values.type):
        large = arrow.large_string() if _is(arrow.types, "is_string_view", values.type) else arrow.large_binary()
        array = arrow.DictionaryArray.from_arrays(array.indices, values.cast(large))
    return array.dictionary_decode()


def _find_nulls(array: Any) -> Any:
    """Return 1 for null rows, from Arrow's validity bits; None if there are no nulls."""
    if not array.null_count:
        return None
    return 1 - _unpack_bits(array.buffers()[0], array)


def _unpack_bits(buffer: Any, array: Any) -> Any:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)]


def _convert_values(array: Any, kind: ArrowKind, missing: Any, arrow: Any) -> Any:
    if kind in ("text", "bytes"):
        return bytes_of_strings(array, arrow)
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        values = np.zeros(len(array), np.int64)
    elif arrow.types.is_boolean(array.type):
        values = _unpack_bits(buffer, array)
    else:
        values = np.frombuffer(buffer, array.type.to_pandas_dtype())[array.offset : array.offset + len(array)]
    if missing is not None:
        values = np.where(missing, values.dtype.type(0), values)
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 1 << 63:
        row = int(values.argmax())
        raise ValueError(f"expected signed 64-bit integers, got {values[row]}", row)
    return values.astype({"int64": np.int64, "float32": np.float32, "float64": np.float64}[kind], copy=False)


def bytes_of_strings(array: Any, arrow: Any) -> BytesColumn:
    """Convert strings or binaries to one buffer with offsets; the contents of nulls are ignored."""
    is_small = array.type in (arrow.string(), arrow.binary())
    if not is_small and array.type not in (arrow.large_string(), arrow.large_binary()):
        array = array.cast(arrow.large_binary())
    _, offsets, data = array.buffers()
    if offsets is None or len(array) == 0:
        return BytesColumn(np.empty(0, np.uint8), np.zeros(len(array) + 1, np.int64))
    positions: Any = np.frombuffer(offsets, np.int32 if is_small else np.int64)
    return BytesColumn(
        np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8),
        positions[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False),
    )
