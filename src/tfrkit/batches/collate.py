"""Rows into columns, and ragged columns into padded ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.codec.decode import Batch
from tfrkit.errors import MissingFeatureError, ShapeError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Logical, Spec

Pad = Mapping[str, Any]
"""Feature: fill value, or (fill value, length)."""


def stack_rows(rows: Sequence[Row]) -> Batch:
    """Columns of rows: an array where all values have one shape, `Ragged` where lengths differ."""
    if not rows:
        return {}
    if set(rows[0]) == {"context", "feature_lists"}:
        return {part: stack_rows([row[part] for row in rows]) for part in ("context", "feature_lists")}
    names = list(rows[0])
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            odd = sorted(row.keys() ^ rows[0].keys())[0]
            raise MissingFeatureError(f"feature {odd!r} is in some rows of the batch but not in row {number} or 0")
    return {name: _stack_values(name, [row[name] for row in rows]) for name in names}


def _stack_values(name: str, values: list[Any]) -> Column:
    first = values[0]
    if isinstance(first, bytes):
        if all(isinstance(value, bytes) for value in values):
            return BytesColumn.from_values(values)
    elif isinstance(first, str):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    elif isinstance(first, list) and all(isinstance(item, bytes) for value in values for item in value):
        splits = np.zeros(len(values) + 1, np.int64)
        np.cumsum([len(value) for value in values], out=splits[1:])
        return Ragged(BytesColumn.from_values([item for value in values for item in value]), splits)
    arrays = [np.asarray(value) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) == 1:
        return np.stack(arrays)
    ranks = {array.ndim for array in arrays}
    if ranks == {1}:
        return Ragged.from_rows(arrays, np.result_type(*arrays))
    for number, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise ShapeError(
                f"feature {name!r} cannot be stacked, shape {arrays[0].shape} in row 0 of the batch, "
                f"{array.shape} in row {number}"
            )
    raise AssertionError("shapes differ and agree")


def describe_batch(batch: Batch, known: Schema, varying: Collection[str] = ()) -> Schema:
    """The schema of a batch whose columns steps have made or changed; of the others, what is known of them.

    Arrays of features in `varying` may have other shapes in other batches.
    """
    if set(batch) == {"context", "feature_lists"}:
        raise TfrkitError("expected batches of Examples after map or decode, got SequenceExamples")
    specs = {}
    for name, column in batch.items():
        if name in varying and isinstance(column, np.ndarray):
            column = list(column)
        specs[name] = _describe_column(name, column, known.features.get(name))
    return Schema(specs)


def _describe_column(name: str, column: Column, known: Spec | None) -> Spec:
    if isinstance(column, BytesColumn):
        return known if known is not None and known.kind == "bytes" else Spec("bytes")
    if isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        kind: Any = {"i": "int64", "u": "int64", "b": "int64", "f": "float"}.get(column.values.dtype.kind)
        if kind is not None:
            dtype = column.values.dtype.name
            plain = {"int64": "int64", "float": "float32"}[kind]
            is_known = known is not None and known.kind == kind and dtype == (known.dtype or plain)
            return known if known is not None and is_known else Spec(kind, (None,), dtype=dtype)
    if isinstance(column, Ragged):
        return known if known is not None else Spec("bytes", (None,))
    if isinstance(column, list):
        array = np.asarray(column[0])
        return Spec("bytes", (None,) * array.ndim, encoding="tensor_proto", dtype=array.dtype.name)
    if isinstance(column, np.ndarray) and column.dtype == object:
        return Spec("bytes", logical="text")
    if isinstance(column, np.ndarray):
        shape = column.shape[1:]
        kind = {"int64": "int64", "float32": "float"}.get(column.dtype.name)
        if kind is not None:
            fits = known is not None and known.kind == kind and known.shape == shape
            return known if known is not None and fits else Spec(kind, shape)
        logical: Logical = known.logical if known is not None and known.logical in ("image", "mask") else "tensor"
        return Spec("bytes", shape, encoding="raw", dtype=column.dtype.name, logical=logical)
    raise ShapeError(f"feature {name!r} expected a column, got {type(column).__name__}")


def size_batch(batch: Batch) -> int:
    """Bytes a batch takes, about."""
    total = 0
    for column in batch.values():
        if isinstance(column, dict):
            total += size_batch(column)
        elif isinstance(column, np.ndarray):
            total += column.nbytes
        elif isinstance(column, BytesColumn):
            total += column.data.nbytes + column.offsets.nbytes
        elif isinstance(column, Ragged):
            total += column.row_splits.nbytes + size_batch({"": column.values})
        elif isinstance(column, list):
            total += sum(getattr(value, "nbytes", 64) for value in column)
    return total


def pad_batch(batch: Batch, pad: Pad | float) -> Batch:
    """Ragged columns as arrays filled up with a value; how long each row was stands in `name/length`.

    `pad` is one value for every ragged column of numbers, or a value, or a (value, length), for named features.
    """
    if set(batch) == {"context", "feature_lists"}:
        raise TfrkitError("pad expected batches of Examples, got SequenceExamples; pad their frames in map()")
    wanted: Pad
    if isinstance(pad, Mapping):
        wanted = pad
        for name in wanted:
            if name not in batch:
                raise MissingFeatureError(f"pad names feature {name!r}, the batch has {', '.join(batch)}")
    else:
        wanted = {name: pad for name, column in batch.items() if _is_paddable(column)}
    padded: Batch = {}
    for name, column in batch.items():
        if name not in wanted:
            padded[name] = column
            continue
        choice = wanted[name]
        value, length = choice if isinstance(choice, tuple) else (choice, None)
        padded[name], padded[f"{name}/length"] = _pad_column(name, column, value, length)
    return padded


def _is_paddable(column: Column) -> bool:
    return isinstance(column, Ragged) and isinstance(column.values, np.ndarray)


def _pad_column(name: str, column: Column, value: Any, length: int | None) -> tuple[Any, Int64Array]:
    if isinstance(column, np.ndarray) and column.ndim >= 2:
        lengths = np.full(len(column), column.shape[1], np.int64)
        values = column.reshape(-1, *column.shape[2:])
    elif isinstance(column, Ragged) and isinstance(column.values, np.ndarray):
        lengths = column.lengths
        values = column.values[int(column.row_splits[0]) : int(column.row_splits[-1])]
    else:
        raise ShapeError(f"feature {name!r} expected lists of numbers to pad, got {type(column).__name__}")
    longest = int(lengths.max(initial=0))
    if length is None:
        length = longest
    elif longest > length:
        row = int(lengths.argmax())
        raise ShapeError(f"feature {name!r} is padded to {length} values, got {longest} in row {row} of the batch")
    array = np.full((len(lengths), length, *values.shape[1:]), value, values.dtype)
    array[np.arange(length) < lengths[:, None]] = values
    return array, lengths
