"""Columns: one feature of many records, dense, ragged or bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, starmap
from typing import Any, overload

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt8Array

# Presence of a feature in one row.
ABSENT, UNSET, PRESENT = 0, 1, 2

Column = Any
"""A NumPy array, `BytesColumn`, `Ragged` or list, with as many rows as the batch."""


# Values of a viewed column that are copied and checked together.
_COPIED_AT_ONCE = 16


def to_splits(lengths: Sequence[int] | np.ndarray[Any, Any]) -> Int64Array:
    """Return where each row starts and the last one stops, from the number of values of each.

    Example:
        >>> to_splits([2, 0, 1]).tolist()
        [0, 2, 2, 3]
    """
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=splits[1:])
    return splits


class BytesColumn(Sequence[bytes]):
    """One bytes value per row, kept in one buffer: value `i` is `data[offsets[i]:offsets[i + 1]]`.

    Acts as a sequence of bytes. `data` and `offsets` have the layout of Arrow's large_binary.

    Example:
        >>> column = BytesColumn.from_values([b"ab", b"", b"c"])
        >>> column[0], column[-1], len(column)
        (b'ab', b'c', 3)
    """

    __slots__ = ("data", "offsets", "presence")

    def __init__(self, data: UInt8Array, offsets: Int64Array, presence: UInt8Array | None = None) -> None:
        self.data = data
        self.offsets = offsets
        self.presence = presence

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesColumn:
        """Join bytes (or str, as UTF-8) into one buffer."""
        items: Any = values if isinstance(values, (list, tuple)) else list(values)
        packed = _native.pack_bytes(items)
        if packed is None:
            packed = _native.pack_bytes([v.encode() if isinstance(v, str) else bytes(memoryview(v)) for v in items])
            assert packed is not None
        return cls(*packed)

    def __len__(self) -> int:
        return max(0, len(self.offsets) - 1)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> BytesColumn: ...
    def __getitem__(self, index: int | slice) -> bytes | BytesColumn:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            presence = None if self.presence is None else self.presence[index]
            if step != 1:
                picked = BytesColumn.from_values([self[i] for i in range(start, stop, step)])
                return BytesColumn(picked.data, picked.offsets, presence)
            return BytesColumn(self.data, self.offsets[start : max(start, stop) + 1], presence)
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} is out of range, the column has {len(self)} rows")
        if index < 0:
            index += len(self)
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, map(self.data.data.__getitem__, starmap(slice, pairwise(self.offsets.tolist()))))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (BytesColumn, list, tuple)):
            return list(self) == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def lengths(self) -> Int64Array:
        """Size of each value in bytes."""
        return np.diff(self.offsets)

    def __array__(self, dtype: Any | None = None, copy: bool | None = None) -> np.ndarray[Any, np.dtype[Any]]:
        array = np.empty(len(self), object)
        array[:] = list(self)
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"BytesColumn({len(self)} values, {int(self.lengths.sum())} bytes)"


class ViewedBytes(BytesColumn):
    """A column whose values stay in the mapped files they were read from, until they are used.

    Each use copies: one value, or all of them at the first use of `data`. A copy raises `StorageError` if the file was
    truncated or overwritten since the values were read. The maps are held until then.
    """

    __slots__ = ("_made", "_views")

    def __init__(self, views: _native.ByteViews) -> None:
        self._views: _native.ByteViews | None = views
        self._made: dict[str, Any] = {}  # `setdefault` gives all threads the same arrays, which may be written to
        self.presence = None

    @property
    def data(self) -> UInt8Array:  # type: ignore[override]
        views = self._views
        if views is not None:
            _ = self.offsets  # made of the views
            self._made.setdefault("data", views.join())
            self._views = None
        return self._made["data"]  # type: ignore[no-any-return]

    @property
    def offsets(self) -> Int64Array:  # type: ignore[override]
        views = self._views
        if views is not None and "offsets" not in self._made:
            self._made.setdefault("offsets", to_splits(views.lengths()))
        return self._made["offsets"]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        views = self._views
        return super().__len__() if views is None else len(views)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> BytesColumn: ...
    def __getitem__(self, index: int | slice) -> bytes | BytesColumn:
        views = self._views
        if views is None or isinstance(index, slice):
            return super().__getitem__(index)
        number = index + len(views) if index < 0 else index
        if not 0 <= number < len(views):
            raise IndexError(f"row {index} is out of range, the column has {len(views)} rows")
        return views.copy(number, number + 1)[0]

    def __iter__(self) -> Iterator[bytes]:
        views = self._views
        if views is None:
            yield from super().__iter__()
            return
        for start in range(0, len(views), _COPIED_AT_ONCE):
            yield from views.copy(start, min(len(views), start + _COPIED_AT_ONCE))

    def __reduce__(self) -> tuple[type[BytesColumn], tuple[Any, ...]]:
        return BytesColumn, (self.data, self.offsets, self.presence)


def wrap_bytes(values: tuple[UInt8Array, Int64Array] | _native.ByteViews) -> BytesColumn:
    """Make a column from the core's result for bytes."""
    return ViewedBytes(values) if isinstance(values, _native.ByteViews) else BytesColumn(*values)


class Ragged(Sequence[Any]):
    """Rows of different lengths: row `i` is `values[row_splits[i]:row_splits[i + 1]]`.

    `values` is an array, a `BytesColumn`, or a `Ragged` (steps of a feature list). `presence`, if not None,
    distinguishes an absent feature (0) and one without a kind (1) from an empty list (2).

    Example:
        >>> ragged = Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
        >>> [row.tolist() for row in ragged]
        [[1, 2], [], [3]]
    """

    __slots__ = ("presence", "row_splits", "values")

    def __init__(self, values: Column, row_splits: Int64Array, presence: UInt8Array | None = None) -> None:
        self.values = values
        self.row_splits = row_splits
        self.presence = presence

    @classmethod
    def from_rows(cls, rows: Iterable[Any], dtype: Any = np.int64) -> Ragged:
        """Join rows of numbers into one column."""
        arrays = [np.asarray(row, dtype) for row in rows]
        return cls(np.concatenate(arrays) if arrays else np.empty(0, dtype), to_splits([len(a) for a in arrays]))

    def __len__(self) -> int:
        return max(0, len(self.row_splits) - 1)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"a slice of a ragged column has step 1, got {step}")
            presence = None if self.presence is None else self.presence[start:stop]
            return Ragged(self.values, self.row_splits[start : max(start, stop) + 1], presence)
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} is out of range, the column has {len(self)} rows")
        if index < 0:
            index += len(self)
        return self.values[int(self.row_splits[index]) : int(self.row_splits[index + 1])]

    def __iter__(self) -> Iterator[Any]:
        splits = self.row_splits.tolist()
        for start, stop in pairwise(splits):
            yield self.values[start:stop]

    @property
    def lengths(self) -> Int64Array:
        """Number of values of each row."""
        return np.diff(self.row_splits)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {int(self.row_splits[-1] - self.row_splits[0])} values)"
