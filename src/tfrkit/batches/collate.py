"""Conversion of rows to columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.codec.columns import ABSENT, PRESENT, UNSET, BytesColumn, Column, Ragged, to_splits
from tfrkit.codec.decode import Batch
from tfrkit.errors import MissingFeatureError, ShapeError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Logical, Spec


def stack_rows(rows: Sequence[Row], like: Batch | None = None) -> Batch:
    """Stack rows into columns: an array if all values have one shape, `Ragged` if lengths differ.

    `like` is the batch that the rows were made from. It decides the form of a feature without one shape: a feature
    that some rows lack becomes `Ragged` with presence, arrays of several shapes become a list.
    """
    if not rows:
        return {}
    known = like or {}
    if all(set(row) == {"context", "feature_lists"} for row in rows):
        return {part: stack_rows([row[part] for row in rows], _get_part(known, part)) for part in rows[0]}
    return {
        name: _stack_values(name, [row.get(name, _MISSING) for row in rows], known.get(name))
        for name in _name_columns(rows, known)
    }


_MISSING: Any = object()  # marks a missing feature


def _get_part(like: Batch, part: str) -> Batch:
    found = like.get(part)
    return found if isinstance(found, dict) else {}


def _name_columns(rows: Sequence[Row], like: Batch) -> list[str]:
    """Name the columns of a batch of rows. Features of `like` that no row has are included if all others are kept."""
    names = dict.fromkeys(rows[0])
    if any(row.keys() != rows[0].keys() for row in rows):
        made = {name for row in rows for name in row}
        names = dict.fromkeys([*(name for name in like if name in made), *(name for row in rows for name in row)])
        for number, row in enumerate(rows):
            odd = sorted(name for name in names if name not in row and not isinstance(like.get(name), Ragged))
            if odd:
                holder = next(index for index, other in enumerate(rows) if odd[0] in other)
                raise MissingFeatureError(
                    f"feature {odd[0]!r} is in row {holder} of the batch but not in row {number}",
                    hint="add it to every row that map returns",
                )
    unseen = [name for name, column in like.items() if name not in names and _is_in_no_row(column)]
    if not unseen or any(name not in names for name in like if name not in unseen):
        return list(names)
    return [*like, *(name for name in names if name not in like)]


def _is_in_no_row(column: Column) -> bool:
    return isinstance(column, Ragged) and column.presence is not None and not (column.presence != ABSENT).any()


def _stack_values(name: str, values: list[Any], like: Column | None) -> Column:
    first = values[0]
    has_gaps = any(value is _MISSING or value is None for value in values)
    is_nested = isinstance(first, list) and isinstance(like, Ragged) and not isinstance(like.values, np.ndarray)
    if (has_gaps or is_nested) and isinstance(like, Ragged) and (joined := _join_like(values, like)) is not None:
        return joined
    if isinstance(first, bytes):
        if all(isinstance(value, bytes) for value in values):
            return BytesColumn.from_values(values)
    elif isinstance(first, str):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    elif isinstance(first, list) and all(isinstance(item, bytes) for value in values for item in value):
        items = [item for value in values for item in value]
        return Ragged(BytesColumn.from_values(items), to_splits([*map(len, values)]))
    if isinstance(like, list) and all(isinstance(value, np.ndarray) for value in values):
        if len({(value.shape, value.dtype) for value in values}) > 1:
            return values
    elif isinstance(like, Ragged) and len({np.shape(value) for value in values if not isinstance(value, list)}) > 1:
        joined = _join_like(values, like)
        if joined is not None:
            return joined
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
    raise AssertionError("unreachable: shapes differ, but every row has the shape of row 0")


def _join_like(values: Sequence[Any], like: Ragged) -> Ragged | None:
    """Join the values of rows to a column of the same form as `like`; None if the values do not fit."""
    states = [ABSENT if value is _MISSING else UNSET if value is None else PRESENT for value in values]
    given = [value for value, state in zip(values, states, strict=True) if state == PRESENT]
    inner = like.values
    lengths: list[int] = []
    joined: Any
    if isinstance(inner, np.ndarray) and inner.dtype != object:
        arrays = []
        for value in given:
            array = np.asarray(value)
            if array.ndim == inner.ndim - 1:
                array = array[None]
            elif array.ndim != inner.ndim:
                return None
            lengths.append(len(array))
            if len(array):
                arrays.append(array)
        if len({array.shape[1:] for array in arrays}) > 1:
            return None
        joined = np.concatenate(arrays) if arrays else inner[:0]
    else:
        items: list[Any] = []
        for value in given:
            is_one = isinstance(value, (bytes, str)) or (isinstance(inner, list) and isinstance(value, np.ndarray))
            if not is_one and not isinstance(value, (list, np.ndarray)):
                return None
            lengths.append(1 if is_one else len(value))
            items += [value] if is_one else list(value)
        joined = _gather_like(items, inner)
        if joined is None:
            return None
    counts = iter(lengths)
    splits = to_splits([next(counts) if state == PRESENT else 0 for state in states])
    has_presence = like.presence is not None or len(given) < len(values)
    return Ragged(joined, splits, np.array(states, np.uint8) if has_presence else None)


def _gather_like(items: list[Any], inner: Column) -> Column | None:
    if isinstance(inner, Ragged):
        return _join_like(items, inner)
    if isinstance(inner, BytesColumn):
        return BytesColumn.from_values(items) if all(isinstance(item, bytes) for item in items) else None
    if isinstance(inner, list) and not all(isinstance(item, str) for item in items):
        return items if all(isinstance(item, np.ndarray) for item in items) else None
    objects = np.empty(len(items), object)
    objects[:] = items
    return objects


def describe_batch(batch: Batch, known: Schema, varying: Collection[str] = ()) -> Schema:
    """Describe a batch whose columns steps have made or changed; unchanged columns keep their specs.

    Features in `varying` may have other array shapes in other batches.
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


def count_rows(batch: Batch) -> int | None:
    """Count the rows of a batch; None if it has no columns."""
    for column in batch.values():
        found = count_rows(column) if isinstance(column, dict) else len(column)
        if found is not None:
            return found
    return None


def size_batch(batch: Batch) -> int:
    """Estimate the size of a batch in bytes."""
    total = 0
    for column in batch.values():
        if isinstance(column, dict):
            total += size_batch(column)
        elif isinstance(column, np.ndarray):
            total += column.nbytes
        elif isinstance(column, BytesColumn):
            total += int(column.lengths.sum()) + column.offsets.nbytes  # values that are viewed stay where they are
        elif isinstance(column, Ragged):
            total += column.row_splits.nbytes + size_batch({"": column.values})
        elif isinstance(column, list):
            total += sum(getattr(value, "nbytes", 64) for value in column)
        else:
            total += getattr(column, "nbytes", 0)
    return total
