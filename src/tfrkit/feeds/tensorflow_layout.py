"""The dtype and shape of each column of a batch, which tf.data asks for before the first batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfrkit.batches.pad import Pad, choose_pad
from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.codec.decode import Batch
from tfrkit.errors import MissingFeatureError, SchemaError, ShapeError
from tfrkit.feeds.columns import list_bytes

Array = np.ndarray[Any, np.dtype[Any]]

_NUMBER_KINDS = "biufc"


@dataclass(frozen=True)
class Leaf:
    """One column of every batch.

    Attributes:
        path: The name of the column, for SequenceExamples after the name of its part.
        dtype: The dtype of its numbers; None for bytes and text.
        shape: The shape of one value; None for sizes that vary.
        depth: Number of ragged dimensions.
        num_rows: The number of rows of every batch; None if it varies.
    """

    path: tuple[str, ...]
    dtype: str | None
    shape: tuple[int | None, ...]
    depth: int
    num_rows: int | None

    @property
    def name(self) -> str:
        return self.path[-1]


def find_leaves(
    batch: Batch, *, num_rows: int | None, pad: Pad | float | None, path: tuple[str, ...] = ()
) -> list[Leaf]:
    """Describe the columns of a batch. `num_rows` is the expected number of rows, if known."""
    leaves = []
    for name, column in batch.items():
        if isinstance(column, dict):
            leaves += find_leaves(column, num_rows=num_rows, pad=pad, path=(*path, name))
            continue
        leaf = _describe(name, column)
        shape = _find_padded_shape(name, leaf.shape, batch, pad)
        rows = num_rows if num_rows == len(column) else None
        leaves.append(replace(leaf, path=(*path, name), shape=shape, num_rows=rows))
    return leaves


def merge_leaves(some: Sequence[Leaf], others: Sequence[Leaf]) -> list[Leaf]:
    """Merge the layouts of two batches into one that fits both."""
    by_path = {leaf.path: leaf for leaf in others}
    odd = {leaf.path for leaf in some} ^ by_path.keys()
    if odd:
        raise MissingFeatureError(f"feature {sorted(odd)[0][-1]!r} is in some batches and not in others")
    return [_merge(leaf, by_path[leaf.path]) for leaf in some]


def flatten_batch(batch: Batch, leaves: Sequence[Leaf]) -> list[Array]:
    """Return the arrays of a batch, leaf by leaf: values, then the row splits from the outermost in."""
    num_leaves = sum(len(column) if isinstance(column, dict) else 1 for column in batch.values())
    if num_leaves != len(leaves):
        raise MissingFeatureError(f"batches expected {len(leaves)} features as in the first, got {num_leaves}")
    flat: list[Array] = []
    for leaf in leaves:
        column: Any = batch
        for part in leaf.path:
            if part not in column:
                raise MissingFeatureError(f"feature {leaf.name!r} is in the first batch and not in this one")
            column = column[part]
        flat += _flatten(column, leaf)
    return flat


def _find_padded_shape(
    name: str, shape: tuple[int | None, ...], batch: Batch, pad: Pad | float | None
) -> tuple[int | None, ...]:
    """Return the shape of a column in all batches: padded dimensions have the padded length, None if it varies."""
    base = name.removesuffix("/frame_length")
    choice = choose_pad(pad, base)
    if choice is None or f"{base}/length" not in batch:
        return shape
    if name != base:
        return (choice.length,)
    if f"{name}/frame_length" in batch:
        return (choice.length, choice.frame_length, *shape[2:])
    return (choice.length, *shape[1:])


def _describe(name: str, column: Column) -> Leaf:
    if isinstance(column, Ragged):
        inner = _describe(name, column.values)
        return replace(inner, depth=inner.depth + 1)
    if isinstance(column, BytesColumn):
        return Leaf((name,), None, (), 0, None)
    if isinstance(column, np.ndarray):
        dtype = column.dtype.name if column.dtype.kind in _NUMBER_KINDS else None
        return Leaf((name,), dtype, column.shape[1:], 0, None)
    raise SchemaError(
        f"feature {name!r} holds arrays of different shapes, which cannot be a tensor",
        hint="bring them to one shape with map(), or choose other features with select()",
    )


def _merge(leaf: Leaf, other: Leaf) -> Leaf:
    if leaf.dtype != other.dtype:
        raise SchemaError(f"feature {leaf.name!r} is {leaf.dtype} in some batches and {other.dtype} in others")
    if leaf.depth != other.depth:
        # A batch whose rows happen to have one length is dense; the ragged layout fits both.
        return leaf if leaf.depth > other.depth else other
    if len(leaf.shape) != len(other.shape):
        raise ShapeError(f"feature {leaf.name!r} has values of shape {leaf.shape} and {other.shape}")
    shape = tuple(
        size if size == other_size else None for size, other_size in zip(leaf.shape, other.shape, strict=True)
    )
    return replace(leaf, shape=shape)


def _flatten(column: Column, leaf: Leaf) -> list[Array]:
    splits: list[Array] = []
    for _ in range(leaf.depth):
        if isinstance(column, Ragged):
            splits.append(np.asarray(column.row_splits, np.int64))
            column = column.values
        elif isinstance(column, np.ndarray) and column.ndim > 1:
            splits.append(np.arange(len(column) + 1, dtype=np.int64) * column.shape[1])
            column = column.reshape(-1, *column.shape[2:])
        else:
            raise ShapeError(f"feature {leaf.name!r} expected rows of varying length, got one value per row")
    if isinstance(column, Ragged):
        raise ShapeError(
            f"feature {leaf.name!r} has rows of varying length in this batch, of equal length in the first",
            hint=f"pad it: batch(size, pad={{{leaf.name!r}: 0}})",
        )
    values = _to_strings(column) if leaf.dtype is None else np.ascontiguousarray(column)
    wrong_size = len(values.shape) != len(leaf.shape) + 1 or any(
        wanted is not None and wanted != size for wanted, size in zip(leaf.shape, values.shape[1:], strict=False)
    )
    if wrong_size:
        raise ShapeError(f"feature {leaf.name!r} expected values of shape {leaf.shape}, got {values.shape[1:]}")
    if leaf.dtype is not None and values.dtype != leaf.dtype:
        raise SchemaError(f"feature {leaf.name!r} expected {leaf.dtype}, got {values.dtype}")
    return [values, *splits]


def _to_strings(column: Column) -> Array:
    """Convert a column of bytes or text to an array of bytes objects, for TensorFlow."""
    if isinstance(column, BytesColumn):
        strings = np.empty(len(column), object)
        strings[:] = list_bytes(column)
        return strings
    flat = [value.encode() if isinstance(value, str) else bytes(value) for value in column.reshape(-1).tolist()]
    strings = np.empty(len(flat), object)
    strings[:] = flat
    return strings.reshape(column.shape)
