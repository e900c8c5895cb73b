"""Write the columns of a table to the spool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.coerce import Floats
from tfrkit.features.spec import Shape, Spec
from tfrkit.sources.base import Problem
from tfrkit.sources.column_spool import ColumnSpool, ColumnWriter, SpoolKind
from tfrkit.sources.rounded_floats import RoundedFloats

ValueKind = Literal["int64", "float", "text", "bytes", "tensor"]
Places = Callable[[Iterable[int]], Mapping[int, str]]
"""Row numbers → places of these rows, for messages: ``train.csv, line 17``."""


@dataclass
class LoadedTable:
    """A table in the spool, with its features, problems and notes."""

    spool: ColumnSpool
    features: dict[str, Spec]
    num_rows: int
    nbytes: int
    places: Places
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class SpoolColumn:
    """One column being spooled."""

    def __init__(self, folder: str, index: int, name: str, kind: ValueKind, *, is_list: bool, floats: Floats) -> None:
        self.name = name
        self.kind = kind
        self.is_list = is_list
        self.rounded = RoundedFloats(floats)
        self.tensor: tuple[str | None, Shape] | None = None  # dtype and shape of tensors serialized in the values
        self._floats = floats
        self._num_rows = 0
        self._num_values = 0
        self._lengths: set[int] = set()
        stored: SpoolKind = "int64" if kind == "int64" else "bytes"
        if kind == "float":
            stored = "float64" if floats == "float64" else "float32"
        self.stored: SpoolKind = stored
        self.writer = ColumnWriter(folder, index, name, stored, is_list=is_list)

    def append(self, values: Any, lengths: Int64Array | None = None, missing: Any = None) -> None:
        """Append a block of rows, as `ColumnWriter.append` takes it."""
        if self.stored == "float32":
            values = self.rounded.narrow(values, self._num_rows, lengths)
        if lengths is not None and len(self._lengths) < 2:
            there = lengths if missing is None else lengths[np.asarray(missing) == 0]
            self._lengths |= set(np.unique(there)[:2].tolist())
        self.writer.append(values, lengths=lengths, missing=missing)
        self._num_rows += len(values) if lengths is None else len(lengths)

    def spec(self, has_missing: bool) -> Spec:
        """Return the spec of the feature."""
        shape: tuple[int | None, ...] = ()
        if self.is_list:
            shape = tuple(self._lengths) if len(self._lengths) == 1 and 0 not in self._lengths else (None,)
        if self.tensor is not None or self.stored == "float64":
            dtype, shape = self.tensor or ("float64", shape)
            return Spec("bytes", shape, logical="tensor", encoding="tensor_proto", dtype=dtype, optional=has_missing)
        if self.kind in ("text", "bytes"):
            return Spec("bytes", shape, logical="text" if self.kind == "text" else "bytes", optional=has_missing)
        return Spec("int64" if self.kind == "int64" else "float", shape, optional=has_missing)


class TableSpooler:
    """Spools the columns of one table."""

    def __init__(self, folder: str, floats: Floats) -> None:
        self._folder = folder
        self._floats = floats
        self._columns: list[SpoolColumn] = []

    def add(self, name: str, kind: ValueKind, *, is_list: bool = False) -> SpoolColumn:
        """Add a column."""
        column = SpoolColumn(self._folder, len(self._columns), name, kind, is_list=is_list, floats=self._floats)
        self._columns.append(column)
        return column

    def clear(self) -> None:
        """Remove all columns, so that the spool is empty again."""
        for column in self._columns:
            column.writer.discard()
        self._columns = []

    def finish(self, num_rows: int, nbytes: int, places: Places) -> LoadedTable:
        """Close the columns and return the table, with a problem for each column whose floats need a choice."""
        closed = [column.writer.close() for column in self._columns]
        features = {
            column.name: column.spec(spooled.has_missing) for column, spooled in zip(self._columns, closed, strict=True)
        }
        table = LoadedTable(ColumnSpool(self._folder, closed, num_rows), features, num_rows, nbytes, places)
        for column in self._columns:
            rounded = column.rounded
            if rounded.count:
                where = places([rounded.row]).get(rounded.row, f"row {rounded.row}")
                table.problems.append(rounded.problem(f"{where}, column {column.name!r}"))
        return table
