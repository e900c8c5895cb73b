"""Rows of different lengths: `tf.RaggedTensor`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrkit.compat.dtypes import DType, as_dtype
from tfrkit.compat.shapes import TensorShape
from tfrkit.compat.tensor import SparseTensor, Tensor, to_tensor, wrap


class RaggedTensor:
    """Rows of different lengths: row `i` is `values[row_splits[i]:row_splits[i + 1]]`."""

    def __init__(self, values: Any, row_splits: Any) -> None:
        self.values = values if isinstance(values, RaggedTensor) else to_tensor(values)
        self.row_splits = to_tensor(row_splits)

    @classmethod
    def from_row_splits(cls, values: Any, row_splits: Any, name: Any = None, validate: bool = True) -> RaggedTensor:
        """Make rows from the start of each row and the end of the last row."""
        splits = np.asarray(to_tensor(row_splits))
        return cls(values, splits if splits.dtype == np.int32 and hasattr(row_splits, "dtype") else splits.astype(int))

    @classmethod
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: Any = None, validate: bool = True) -> RaggedTensor:
        """Make rows from their lengths."""
        return cls(values, np.concatenate([[0], np.cumsum(to_tensor(row_lengths))]).astype(int))

    @property
    def flat_values(self) -> Tensor:
        return self.values.flat_values if isinstance(self.values, RaggedTensor) else self.values

    @property
    def dtype(self) -> DType:
        return as_dtype(self.flat_values.dtype)

    @property
    def ragged_rank(self) -> int:
        return 1 + (self.values.ragged_rank if isinstance(self.values, RaggedTensor) else 0)

    @property
    def shape(self) -> TensorShape:
        """The number of rows, then the sizes inside a row; None for a size that varies."""
        return TensorShape([len(self), None, *tuple(self.values.shape)[1:]])

    def get_shape(self) -> TensorShape:
        return self.shape

    def nrows(self, out_type: Any = None, name: Any = None) -> Tensor:
        """Return the number of rows."""
        return to_tensor(np.int64(len(self)), self.row_splits.dtype if out_type is None else out_type)

    def row_lengths(self, axis: int = 1, name: Any = None) -> Tensor:
        """Return the number of values in each row."""
        return wrap(np.diff(self.row_splits))

    def to_list(self) -> list[Any]:
        """Return the rows as nested lists."""
        return [row.to_list() if isinstance(row, RaggedTensor) else row.tolist() for row in self]

    def to_tensor(self, default_value: Any = None, name: Any = None, shape: Any = None) -> Tensor:
        """Pad rows to the longest with `default_value`, 0 or the empty string, or pad and cut to a given shape."""
        sizes = [None, None] if shape is None else [*TensorShape(shape).as_list(), None, None][: max(2, len(shape))]
        values = self.values
        if isinstance(values, RaggedTensor):
            values = values.to_tensor(default_value, shape=[None, *sizes[2:]] if sizes[2:] else None)
        starts, lengths = np.asarray(self.row_splits)[:-1], np.diff(np.asarray(self.row_splits))
        width = int(lengths.max(initial=0)) if sizes[1] is None else sizes[1]
        fill = (b"" if values.dtype.kind == "O" else 0) if default_value is None else to_tensor(default_value).numpy()
        num_rows = len(self) if sizes[0] is None else sizes[0]
        padded = np.full((num_rows, width, *tuple(values.shape)[1:]), fill, values.dtype)
        is_there = (np.arange(width) < lengths[:, None])[:num_rows]
        padded[: len(is_there)][is_there] = values[(starts[:, None] + np.arange(width))[:num_rows][is_there]]
        return wrap(padded)

    def to_sparse(self, name: Any = None) -> SparseTensor:
        """Convert to a SparseTensor."""
        present = RaggedTensor.to_tensor(self._like(np.ones(tuple(self.flat_values.shape), bool)))
        return SparseTensor(np.argwhere(present), self.flat_values.reshape(-1), tuple(present.shape))

    def _like(self, flat: Any) -> RaggedTensor:
        """Return other values in the same rows."""
        inner = self.values._like(flat) if isinstance(self.values, RaggedTensor) else flat
        return RaggedTensor(inner, self.row_splits)

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, index: int) -> Any:
        if not isinstance(index, (int, np.integer)):
            raise TypeError(f"a ragged tensor is indexed by one number, got {index!r}")
        number = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= number < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self._rows(int(self.row_splits[number]), int(self.row_splits[number + 1]))

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def _rows(self, start: int, stop: int) -> Any:
        if not isinstance(self.values, RaggedTensor):
            return self.values[start:stop]
        first, last = int(self.values.row_splits[start]), int(self.values.row_splits[stop])
        return RaggedTensor(self.values._rows(first, last), self.values.row_splits[start : stop + 1] - first)

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"


def stack_ragged(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    """Stack ragged tensors: each becomes a row of the result."""
    joined = _concatenate(parts)
    counts = np.cumsum([0, *(len(part) for part in parts)])
    return RaggedTensor(joined, counts.astype(parts[0].row_splits.dtype))


def _concatenate(parts: Sequence[Any]) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        return np.concatenate([np.asarray(part) for part in parts])
    lengths = np.concatenate([np.diff(part.row_splits) for part in parts])
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(parts[0].row_splits.dtype)
    return RaggedTensor(_concatenate([part.values for part in parts]), splits)
