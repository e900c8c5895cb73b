"""Features combined from several features of a record: `SparseFeature`, and `RaggedFeature` with partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrkit.compat.feature_specs import RaggedFeature, SparseFeature
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.parse_columns import Key, ParsedColumn
from tfrkit.compat.ragged import RaggedTensor
from tfrkit.compat.tensor import SparseTensor

_Array = np.ndarray[Any, np.dtype[Any]]
_Columns = dict[Key, ParsedColumn]


def gather_sparse_feature(key: str, spec: SparseFeature, columns: _Columns) -> SparseTensor:
    """Make a SparseTensor of values whose indices are in other features."""
    values = columns[spec.value_key, False]
    lengths = np.diff(values.splits)
    places = [np.repeat(np.arange(len(lengths)), lengths)]
    sizes = [int(size) for size in np.atleast_1d(np.asarray(spec.size))]
    for index_key, size in zip(index_keys(spec), sizes, strict=True):
        column = columns[index_key, False]
        if not np.array_equal(column.splits, values.splits):
            raise InvalidArgumentError(
                None, None, f"feature {key!r} expected an index in {index_key!r} for each of its values"
            )
        if len(column.values) and not 0 <= column.values.min() <= column.values.max() < size:
            raise InvalidArgumentError(None, None, f"feature {key!r} expected indices below {size} in {index_key!r}")
        places.append(column.values)
    order = slice(None) if spec.already_sorted else np.lexsort(places[::-1])
    return SparseTensor(np.stack(places, 1)[order], values.values[order], [len(lengths), *sizes])


def index_keys(spec: SparseFeature) -> list[str]:
    """Return the names of the features that hold the indices."""
    return [spec.index_key] if isinstance(spec.index_key, str) else list(spec.index_key)


def gather_ragged(key: str, spec: RaggedFeature, columns: _Columns) -> RaggedTensor:
    """Make a RaggedTensor: one row per record, divided by the partitions; the last partition divides the values."""
    column = columns[spec.value_key or key, False]
    dtype = np.dtype(spec.row_splits_dtype)
    values: Any = column.values
    counts = np.diff(column.splits)
    for partition in reversed(tuple(spec.partitions)):
        if isinstance(partition, RaggedFeature.UniformRowLength):
            values, counts = _cut_evenly(key, values, counts, int(partition.length), dtype)
            continue
        lengths = list(_row_lengths(partition, columns[partition.key, False], counts))
        for row, (found, count) in enumerate(zip(lengths, counts, strict=True)):
            if found.sum() != count or (found < 0).any():
                raise InvalidArgumentError(
                    None, None, f"partition {partition} of feature {key!r} does not fit the {count} values of row {row}"
                )
        values = RaggedTensor(values, _splits(np.concatenate([np.zeros(0, int), *lengths]), dtype))
        counts = np.array([len(found) for found in lengths], int)
    return RaggedTensor(values, _splits(counts, dtype))


def _cut_evenly(key: str, values: Any, counts: _Array, length: int, dtype: Any) -> tuple[Any, _Array]:
    if (counts % length).any():
        raise InvalidArgumentError(None, None, f"feature {key!r} expected a multiple of {length} values in each record")
    if not isinstance(values, RaggedTensor):
        return values.reshape(-1, length, *values.shape[1:]), counts // length
    return RaggedTensor(values, _splits(np.full(len(values) // length, length), dtype)), counts // length


def _splits(lengths: _Array, dtype: Any) -> _Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def _row_lengths(partition: Any, column: ParsedColumn, counts: _Array) -> Iterator[_Array]:
    """Yield the row lengths of a partition, record by record."""
    kind = type(partition).__name__
    for row, count in enumerate(counts):
        given = column.values[column.splits[row] : column.splits[row + 1]]
        if kind == "RowLengths":
            yield given
        elif kind == "RowSplits":
            yield np.diff(given)
        elif kind == "RowStarts":
            yield np.diff([*given, count])
        elif kind == "RowLimits":
            yield np.diff([0, *given])
        else:
            yield np.bincount(given) if len(given) else np.zeros(0, int)
