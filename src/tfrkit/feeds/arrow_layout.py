"""Columns of a batch in Arrow's memory layout: lengths, nulls and buffers, without a copy if possible.

Only these are copied: booleans (bits in Arrow), values with nulls among them, and separate arrays such as serialized
tensors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array
from tfrkit.codec.columns import PRESENT, BytesColumn, Column, Ragged, to_splits
from tfrkit.codec.tensor_proto import encode_tensor, encode_tensor_head, encode_varint
from tfrkit.errors import SchemaError, ShapeError
from tfrkit.features.arrow_schema import ArrowField, ArrowType, is_kept_as_bytes
from tfrkit.features.schema import show_name
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS

Node = tuple[int, int, tuple[Any, ...], tuple[Any, ...]]
"""An array: length, number of nulls, buffers (None, or anything with the buffer protocol), children."""

Array = np.ndarray[Any, np.dtype[Any]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_INT64 = np.dtype(np.int64)
_find_dtype = functools.cache(np.dtype)  # cached: for small columns, looking up dtypes takes most of the time


NOT_TEXT = "not_text"
"""The `fault` of an error about text that is not UTF-8."""


class MisfitError(Exception):
    """A value that does not fit the type of its column; the caller adds the column and the number of the first row."""

    def __init__(
        self,
        row: int | None,
        what: str,
        kind: type[SchemaError] = SchemaError,
        hint: str | None = None,
        fault: str | None = None,
    ) -> None:
        super().__init__(what)
        self.row = row
        self.what = what
        self.kind = kind
        self.hint = hint
        self.fault = fault

    def explain(self, feature: str, first_row: int) -> SchemaError:
        """Return the error to raise, with feature and row."""
        where = "" if self.row is None else f" - at row {first_row + self.row}"
        return self.kind(f"feature {show_name(feature)} {self.what}{where}", hint=self.hint, fault=self.fault)


def lay_out_columns(columns: Mapping[str, Column], fields: Sequence[ArrowField], first_row: int) -> list[Node]:
    """Lay out the columns of a batch, one node per field. `first_row` is the number of its first row, for errors."""
    nodes = []
    for field in fields:
        column = columns.get(field.feature)
        if column is None:
            raise SchemaError(
                f"feature {show_name(field.feature)} expected in every batch, got none - at row {first_row}"
            )
        try:
            nodes.append(_lay_out_feature(field, column))
        except MisfitError as error:
            raise error.explain(field.feature, first_row) from None
    if len(columns) > len(fields):
        unknown = next(iter(columns.keys() - {field.feature for field in fields}))
        raise SchemaError(f"feature {show_name(unknown)} of a batch is not in the schema")
    return nodes


def unwrap_optional(spec: Spec, column: Column) -> tuple[Column, Mask | None]:
    """Return the values of a column with at most one value per row, and the mask of rows with one; None for all."""
    if not isinstance(column, Ragged) or spec.is_list or (spec.encoding == "list" and spec.shape != ()):
        return column, None
    mask = _find_present(column)
    _require_lengths(column, mask, 1)
    values = column.values[int(column.row_splits[0]) : int(column.row_splits[-1])]
    return values, mask


def _lay_out_feature(field: ArrowField, column: Column) -> Node:
    spec, arrow_type = field.spec, field.type
    assert spec is not None
    if spec.seen == ():
        return _lay_out(column, arrow_type, None)
    column, mask = unwrap_optional(spec, column)
    if is_kept_as_bytes(spec):
        column = _map_values(column, lambda values: _to_stored_bytes(spec, values), spec.is_list)
    elif spec.kind == "bytes" and spec.encoding == "list" and None not in spec.shape[1:] and len(spec.shape) > 1:
        column = _map_values(column, lambda values: _fold(values, spec.shape[1:]), spec.is_list)
    if mask is not None:
        column = spread(_join(column, arrow_type), mask)
    return _lay_out(column, arrow_type, mask)


def _map_values(column: Column, change: Any, is_list: bool) -> Column:
    """Apply a function to a column, or to the values of a feature list."""
    return Ragged(change(column.values), column.row_splits, column.presence) if is_list else change(column)


# -- by type -----------------------------------------------------------------------------------------------------------


def _lay_out(column: Column, arrow_type: ArrowType, mask: Mask | None) -> Node:
    column = _join(column, arrow_type)
    if mask is None:
        mask = _find_present(column)
    if arrow_type.name == "null":
        if len(column) and (mask is None or mask.any()):
            raise MisfitError(0 if mask is None else int(mask.argmax()), "expected no value in any record, got one")
        return len(column), len(column), (), ()
    if arrow_type.item is None:
        return _lay_out_plain(column, arrow_type, mask)
    if arrow_type.size is None:
        return _lay_out_list(column, arrow_type.item, mask)
    return _lay_out_fixed(column, arrow_type.item, arrow_type.size, mask)


def _lay_out_plain(column: Column, arrow_type: ArrowType, mask: Mask | None) -> Node:
    num_nulls, bitmap = _pack_mask(mask)
    if arrow_type.dtype is None:
        values = _to_bytes_column(column)
        offsets = _to_splits(values.offsets)
        if arrow_type.name == "large_string":
            invalid = _native.find_invalid_utf8(values.data, offsets)
            if invalid >= 0:
                raise MisfitError(
                    invalid,
                    "expected text, got bytes that are not UTF-8",
                    hint="declare it as bytes: schema={...}",
                    fault=NOT_TEXT,
                )
        return len(values), num_nulls, (bitmap, offsets, values.data), ()
    if not isinstance(column, np.ndarray) or column.ndim != 1:
        raise MisfitError(None, f"expected a column of {arrow_type}, got {_describe(column)}")
    array = _to_dtype(column, _find_dtype(arrow_type.dtype))
    if arrow_type.name == "bool":
        return len(array), num_nulls, (bitmap, np.packbits(array, bitorder="little")), ()
    return len(array), num_nulls, (bitmap, array), ()


def _lay_out_list(column: Column, item: ArrowType, mask: Mask | None) -> Node:
    num_nulls, bitmap = _pack_mask(mask)
    if isinstance(column, np.ndarray) and column.ndim >= 2:
        num_rows, size = column.shape[:2]
        splits = np.arange(num_rows + 1, dtype=np.int64) * size
        values: Column = column.reshape(num_rows * size, *column.shape[2:])
    elif isinstance(column, Ragged):
        splits, values = _to_splits(column.row_splits), column.values
    else:
        raise MisfitError(None, f"expected a column of lists, got {_describe(column)}")
    try:
        child = _lay_out(values, item, None)
    except MisfitError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(splits, error.row, "right")) - 1
        raise
    return len(splits) - 1, num_nulls, (bitmap, splits), (child,)


def _lay_out_fixed(column: Column, item: ArrowType, size: int, mask: Mask | None) -> Node:
    num_nulls, bitmap = _pack_mask(mask)
    inner_mask = None
    if isinstance(column, np.ndarray) and column.ndim >= 2 and column.shape[1] == size:
        num_rows = len(column)
        values: Column = column.reshape(num_rows * size, *column.shape[2:])
    elif isinstance(column, Ragged):
        num_rows = len(column)
        _require_lengths(column, mask, size)
        values = _join(column.values, item)[int(column.row_splits[0]) : int(column.row_splits[-1])]
        if mask is not None:
            values = spread(values, np.repeat(mask, size))
            # Children of a null are null, too, if they are lists of a fixed size.
            inner_mask = np.repeat(mask, size) if isinstance(values, Ragged) and item.size is not None else None
    else:
        raise MisfitError(None, f"expected a column of lists of {size}, got {_describe(column)}", ShapeError)
    try:
        child = _lay_out(values, item, inner_mask)
    except MisfitError as error:
        if error.row is not None:
            error.row //= max(1, size)
        raise
    return num_rows, num_nulls, (bitmap,), (child,)


# -- masks and lengths -------------------------------------------------------------------------------------------------


def _find_present(column: Column) -> Mask | None:
    """Return the mask of set values; None if all are set."""
    presence = getattr(column, "presence", None)
    if presence is None:
        return None
    mask: Mask = presence == PRESENT
    return None if mask.all() else mask


def _pack_mask(mask: Mask | None) -> tuple[int, Array | None]:
    if mask is None:
        return 0, None
    num_nulls = len(mask) - int(np.count_nonzero(mask))
    return num_nulls, np.packbits(mask, bitorder="little") if num_nulls else None


def _require_lengths(column: Ragged, mask: Mask | None, size: int) -> None:
    lengths = column.lengths
    expected = size if mask is None else mask * size
    wrong = np.flatnonzero(lengths != expected)
    if len(wrong):
        row = int(wrong[0])
        raise MisfitError(row, f"expected {size} value{'' if size == 1 else 's'}, got {int(lengths[row])}", ShapeError)


def spread(values: Column, mask: Mask) -> Column:
    """Put packed values at the set places of the mask, and empty values elsewhere."""
    if isinstance(values, np.ndarray):
        spread = np.zeros((len(mask), *values.shape[1:]), values.dtype)
        spread[mask] = values
        return spread
    places = to_splits(mask)
    if isinstance(values, BytesColumn):
        return BytesColumn(values.data, values.offsets[places])
    presence = None
    if values.presence is not None:
        presence = np.zeros(len(mask), np.uint8)
        presence[mask] = values.presence
    return Ragged(values.values, values.row_splits[places], presence)


# -- forms of values ---------------------------------------------------------------------------------------------------


def _join(column: Column, arrow_type: ArrowType) -> Column:
    """Join a list of arrays to one column, ragged in every dimension of the type; return other columns unchanged."""
    if not isinstance(column, list):
        return column
    depth = arrow_type.depth
    element = arrow_type
    while element.item is not None:
        element = element.item
    arrays = [np.asarray(value, None if element.dtype else object) for value in column]
    for row, array in enumerate(arrays):
        if array.ndim != depth:
            raise MisfitError(row, f"expected an array of rank {depth}, got shape {array.shape}", ShapeError)
        if element.dtype is not None and not np.can_cast(array.dtype, element.dtype, "safe"):
            raise MisfitError(row, f"expected an array of {element.dtype}, got {array.dtype}")
    flat = [array.reshape(-1) for array in arrays]
    joined: Column = np.concatenate(flat) if flat else np.empty(0, element.dtype or object)
    sizes = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), depth)
    for level in reversed(range(depth)):
        lengths = np.repeat(sizes[:, level], np.prod(sizes[:, :level], axis=1))
        joined = Ragged(joined, to_splits(lengths))
    return joined


def _fold(column: Column, sizes: Sequence[int | None]) -> Ragged:
    """Convert flat rows of bytes to nested lists of these sizes."""
    if not isinstance(column, Ragged):
        raise MisfitError(None, f"expected a column of lists, got {_describe(column)}", ShapeError)
    step = math.prod(size or 0 for size in sizes)
    lengths = column.lengths
    wrong = np.flatnonzero(lengths % step) if step else np.flatnonzero(lengths)
    if len(wrong):
        row = int(wrong[0])
        raise MisfitError(row, f"expected a multiple of {step} values, got {int(lengths[row])}", ShapeError)
    start, stop = int(column.row_splits[0]), int(column.row_splits[-1])
    values, count = column.values[start:stop], stop - start
    for size in reversed(sizes):
        count //= max(1, size or 0)
        values = Ragged(values, np.arange(count + 1, dtype=np.int64) * (size or 0))
    return Ragged(values, (column.row_splits - start) // max(1, step), column.presence)


def _to_stored_bytes(spec: Spec, column: Column) -> Column:
    """Serialize arrays of a type that Arrow lacks in their stored form."""
    if isinstance(column, BytesColumn):
        return column
    return BytesColumn.from_values([_to_stored(spec, np.asarray(array)) for array in column])


def _to_stored(spec: Spec, array: Array) -> bytes:
    if spec.encoding != "tensor_proto":
        return array.tobytes()
    if spec.dtype is None:
        return encode_tensor(array)
    # The schema has the dtype: arrays of types missing in NumPy are integers of the same width.
    content = array.tobytes()
    head = encode_tensor_head(DTYPE_NUMBERS[spec.dtype], array.shape)
    return head + (b"\x22" + encode_varint(len(content)) + content if content else b"")


def _to_bytes_column(column: Column) -> BytesColumn:
    if isinstance(column, BytesColumn):
        return column
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "SUO":
        values = column.tolist()
        wrong = next((row for row, value in enumerate(values) if not isinstance(value, (bytes, str))), None)
        if wrong is None:
            return BytesColumn.from_values(values)
        raise MisfitError(wrong, f"expected bytes, got {type(values[wrong]).__name__}")
    raise MisfitError(None, f"expected a column of bytes, got {_describe(column)}")


def _to_dtype(array: Array, wanted: np.dtype[Any]) -> Array:
    if array.dtype != wanted:
        if not np.can_cast(array.dtype, wanted, "safe"):
            raise MisfitError(None, f"expected {wanted}, got {array.dtype}")
        array = array.astype(wanted)
    # A view may be strided or unaligned; Arrow requires packed values.
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, requirements=["C", "A"])


def _to_splits(splits: Array) -> Int64Array:
    return _to_dtype(splits, _INT64) if len(splits) else np.zeros(1, np.int64)


def _describe(column: Column) -> str:
    if isinstance(column, np.ndarray):
        return f"an array of {column.dtype}, shape {column.shape}"
    return f"a {type(column).__name__}"
