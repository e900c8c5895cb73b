"""Columns of a table on disk: written once during the scan, then read by row number in any process.

A column is a few plain files of numbers: values and, if needed, offsets of bytes, splits of lists, and flags of missing
rows. The files are memory-mapped, so a worker reads only its rows, and all workers share the memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.coerce import Coercer
from tfrkit.codec.column_frames import ColumnFramer, Frames, PlainColumn, frame_columns
from tfrkit.codec.columns import ABSENT, PRESENT, BytesColumn, Column, Ragged, to_splits
from tfrkit.codec.encode_columns import encode_columns, rows_of_columns
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.sources.base import FrameReader

SpoolKind = Literal["int64", "float32", "float64", "bytes"]

# An empty list of text; empty lists of numbers are arrays, which have a dtype already.
_NO_TEXTS = np.empty(0, "S1")
_DTYPES: dict[SpoolKind, str] = {"int64": "<i8", "float32": "<f4", "float64": "<f8", "bytes": "u1"}


@dataclass(frozen=True)
class SpooledColumn:
    """One column: its kind, whether its values are lists, and whether some are missing."""

    name: str
    kind: SpoolKind
    is_list: bool = False
    has_missing: bool = False


class ColumnWriter:
    """Appends blocks of one column to its files."""

    def __init__(self, folder: str, index: int, name: str, kind: SpoolKind, *, is_list: bool = False) -> None:
        self._column = SpooledColumn(name, kind, is_list)
        self._files: dict[str, BinaryIO] = {}
        self._prefix = os.path.join(folder, f"column{index}")
        self._num_bytes = 0
        self._num_values = 0
        self._num_rows = 0
        self._num_missing = 0
        self._write("values", np.empty(0, np.uint8))
        if kind == "bytes":
            self._write("offsets", np.zeros(1, np.int64))
        if is_list:
            self._write("splits", np.zeros(1, np.int64))

    def append(self, values: Any, *, lengths: Int64Array | None = None, missing: Any = None) -> None:
        """Append a block of rows.

        `values` is an array or a `BytesColumn`; `lengths` is the number of values of each row in a column of lists;
        `missing` marks rows without a value, for which `values` contains an ignored filler unless the rows are lists.
        """
        column = self._column
        if isinstance(values, BytesColumn):
            offsets = np.asarray(values.offsets, np.int64)
            self._write("values", values.data[offsets[0] : offsets[-1]])
            self._write("offsets", offsets[1:] - offsets[0] + self._num_bytes)
            self._num_bytes += int(offsets[-1] - offsets[0])
        else:
            self._write("values", np.ascontiguousarray(values, _DTYPES[column.kind]))
        num_rows = len(values)
        if column.is_list:
            if lengths is None:
                raise TypeError("a column of lists expected lengths, got none")
            num_rows = len(lengths)
            self._write("splits", np.cumsum(lengths, dtype=np.int64) + self._num_values)
            self._num_values += int(np.sum(lengths))
        flags = np.zeros(num_rows, np.uint8) if missing is None else np.ascontiguousarray(missing, np.uint8)
        # The file of flags is created at the first missing row; all rows before it are present.
        if self._num_missing == 0 and flags.any():
            self._write("missing", np.zeros(self._num_rows, np.uint8))
        self._num_missing += int(flags.sum())
        if self._num_missing:
            self._write("missing", flags)
        self._num_rows += num_rows

    def close(self) -> SpooledColumn:
        """Close the files and return the description of the column for the reader."""
        for file in self._files.values():
            file.close()
        column = self._column
        return SpooledColumn(column.name, column.kind, column.is_list, self._num_missing > 0)

    def discard(self) -> None:
        """Close and remove the files."""
        for file in self._files.values():
            file.close()
            os.unlink(file.name)

    @property
    def num_missing(self) -> int:
        """The number of rows without a value."""
        return self._num_missing

    def _write(self, part: str, values: Any) -> None:
        if part not in self._files:
            self._files[part] = open(f"{self._prefix}.{part}", "wb")  # noqa: SIM115 - closed by close
        try:
            self._files[part].write(np.ascontiguousarray(values).data)
        except OSError as error:
            # The error of the operating system does not name the folder.
            raise OSError(error.errno, error.strerror, os.path.dirname(self._prefix)) from None


class ColumnSpool(FrameReader):
    """Reads spooled columns by row number. Picklable: each process maps the files when it first reads them."""

    def __init__(self, folder: str, columns: Sequence[SpooledColumn], num_rows: int) -> None:
        self.columns = tuple(columns)
        self.num_rows = num_rows
        self._folder = folder
        self._maps: dict[tuple[int, str], Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": {}}

    @property
    def row_nbytes(self) -> float:
        """The approximate number of bytes per row."""
        files = os.scandir(self._folder)
        return sum(file.stat().st_size for file in files) / max(1, self.num_rows)

    def read_columns(self, numbers: Int64Array) -> Mapping[str, Column]:
        """Return the columns of these rows, in this order, as `Writer.write_columns` takes them.

        Columns of float64 are returned as serialized tensors.
        """
        return {column.name: self.read_column(index, numbers) for index, column in enumerate(self.columns)}

    def read_rows(self, numbers: Int64Array) -> Iterator[Row]:
        """Yield these rows, in this order, as `Writer.write` takes them; empty lists are arrays with a dtype."""
        for row in rows_of_columns(self.read_columns(numbers)):
            yield {name: _NO_TEXTS if isinstance(value, list) and not value else value for name, value in row.items()}

    def read_column(self, index: int, numbers: Int64Array, *, as_tensors: bool = True) -> Column:
        """Read one column of these rows."""
        column = self.columns[index]
        rows = _as_slice(numbers)
        presence = None
        if column.has_missing:
            missing = self._map(index, "missing", "u1")[rows]
            presence = np.where(missing, ABSENT, PRESENT).astype(np.uint8)
        if column.is_list:
            return self._read_lists(index, rows, presence)
        if column.kind == "bytes":
            data, offsets = self._take(index, self._map(index, "offsets", "<i8"), rows, "u1")
            return BytesColumn(data, offsets, presence)
        values = self._map(index, "values", _DTYPES[column.kind])[rows]
        if column.kind == "float64" and as_tensors:
            return _encode_tensors(values, presence)
        if presence is None:
            return values
        return Ragged(values[presence == PRESENT], to_splits(presence == PRESENT), presence)

    def open_framer(self, keys: Mapping[str, str]) -> Callable[[Int64Array], Frames]:
        """Return a thread-safe function that encodes rows, by number, as frames; `keys` renames columns."""
        if any(column.kind == "float64" for column in self.columns):

            def frame_tensors(numbers: Int64Array) -> Frames:
                columns = self.read_columns(numbers)
                renamed = {keys.get(name, name): column for name, column in columns.items()}
                return frame_columns(renamed, floats="float64")

            return frame_tensors
        plain = {keys.get(column.name, column.name): self._plain(index) for index, column in enumerate(self.columns)}
        return ColumnFramer(plain, self.num_rows).frame_rows

    def _plain(self, index: int) -> PlainColumn:
        """Return a whole column, memory-mapped and not copied, for the core."""
        column = self.columns[index]
        return PlainColumn(
            "float" if column.kind == "float32" else "int64" if column.kind == "int64" else "bytes",
            self._map(index, "values", _DTYPES[column.kind]),
            self._map(index, "offsets", "<i8") if column.kind == "bytes" else None,
            self._map(index, "splits", "<i8") if column.is_list else None,
            self._map(index, "missing", "u1") if column.has_missing else None,
        )

    def with_labels(self, index: int, labels: Int64Array) -> ColumnSpool:
        """Add a column of class ids under the name of the text column `index`, which is renamed to `<name>/text`.

        An id below 0 means that the row has no label.
        """
        name = self.columns[index].name
        writer = ColumnWriter(self._folder, len(self.columns), name, "int64")
        writer.append(labels, missing=labels < 0)
        columns = list(self.columns)
        columns[index] = replace(columns[index], name=f"{name}/text")
        return ColumnSpool(self._folder, [*columns, writer.close()], self.num_rows)

    def digest(self) -> str:
        """Return a digest of all values."""
        digest = hashlib.sha256(repr((self.columns, self.num_rows)).encode())
        for index in range(len(self.columns)):
            for part in ("values", "offsets", "splits", "missing"):
                path = os.path.join(self._folder, f"column{index}.{part}")
                if os.path.exists(path):
                    with open(path, "rb") as file:
                        while piece := file.read(1 << 22):
                            digest.update(piece)
        return digest.hexdigest()[:32]

    def _read_lists(self, index: int, rows: Any, presence: Any) -> Column:
        kind = self.columns[index].kind
        splits = self._map(index, "splits", "<i8")
        if kind != "bytes":
            values, row_splits = self._take(index, splits, rows, _DTYPES[kind])
            lists = Ragged(values, row_splits, presence)
            if kind != "float64":
                return lists
            tensors = BytesColumn.from_values([encode_tensor(np.ascontiguousarray(row)) for row in lists])
            return BytesColumn(tensors.data, tensors.offsets, presence)
        starts, stops = splits[:-1][rows], splits[1:][rows]
        row_splits = to_splits(stops - starts)
        items = _spread(starts, row_splits)
        data, offsets = self._take(index, self._map(index, "offsets", "<i8"), _as_slice(items), "u1")
        return Ragged(BytesColumn(data, offsets), row_splits, presence)

    def _take(self, index: int, splits: Any, rows: Any, dtype: str) -> tuple[Any, Int64Array]:
        """Return the concatenated values of variable-length rows, and the offsets of the rows in them."""
        values = self._map(index, "values", dtype)
        if isinstance(rows, slice):
            offsets = np.asarray(splits[rows.start : rows.stop + 1])
            return values[offsets[0] : offsets[-1]], offsets - offsets[0]
        starts, stops = splits[:-1][rows], splits[1:][rows]
        offsets = to_splits(stops - starts)
        return values[_spread(starts, offsets)], offsets

    def _map(self, index: int, part: str, dtype: str) -> Any:
        mapped = self._maps.get((index, part))
        if mapped is None:
            path = os.path.join(self._folder, f"column{index}.{part}")
            empty = os.path.getsize(path) == 0
            mapped = np.empty(0, dtype) if empty else np.memmap(path, dtype, "r").view(np.ndarray)
            self._maps[index, part] = mapped
        return mapped


def _as_slice(numbers: Int64Array) -> slice | Int64Array:
    """Turn consecutive row numbers into a slice, which needs no copy."""
    if len(numbers) == 0:
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first == len(numbers) - 1 and bool((np.diff(numbers) == 1).all()):
        return slice(first, last + 1)
    return numbers


def _spread(starts: Int64Array, offsets: Int64Array) -> Int64Array:
    """Return the positions of all elements of ranges that start at `starts`; `offsets` are their output offsets."""
    return np.repeat(starts - offsets[:-1], np.diff(offsets)) + np.arange(offsets[-1])


def _encode_tensors(values: Any, presence: Any) -> BytesColumn:
    [(_, _, data, offsets, _, _, _)], _ = encode_columns({"": values}, coercer=Coercer("float64"), floats="float64")
    return BytesColumn(data, offsets, presence)
