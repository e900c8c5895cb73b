"""The source `frames` for tables: rows with the same value in one column are the frames of one SequenceExample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.coerce import Floats
from tfrkit.codec.columns import PRESENT
from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Facts, Item, ItemsBuilder, Problem, Scan, fingerprint_file
from tfrkit.sources.column_spool import ColumnSpool
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.frames import read_frames
from tfrkit.sources.image_features import IMAGE, NAME_IMAGE_ROOT, ImageReader, image_specs
from tfrkit.sources.table_load import load_table
from tfrkit.sources.table_options import TableOptions, require_column
from tfrkit.sources.table_spool import LoadedTable

_MAX_NAMED = 100


@dataclass(frozen=True, eq=False)
class FramesTable(DescribedSource):
    """A table whose rows are frames of clips.

    Attributes:
        data: A CSV, JSON lines, Parquet or Arrow file, or a table in memory, as for `Table`.
        group: The column with the clip of each row; it becomes part of the context.
        order: The column by which the rows of a clip are ordered; by default the order of the table.
        context: Columns with one value for a whole clip; all others become feature lists.
        image_column: The column with paths of image files, whose bytes become the list `image/encoded`.
        image_root: The folder that these paths are relative to; by default the folder of the table.
        types, missing, floats: As for `Table`.
        images: How images are stored.
    """

    data: Any
    _: KW_ONLY
    group: str
    order: str | None = None
    context: Sequence[str] = ()
    image_column: str | None = None
    image_root: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    floats: Floats = "ask"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "frames"

    def options(self) -> dict[str, Any]:
        images = self.images.to_json() if self.image_column else None
        return {**super().options(), "missing": sorted(self.missing), "images": images}

    def scan(self, scratch: str) -> Scan:
        """Read the table into the spool, and find the rows of each clip."""
        options = TableOptions(missing=self.missing, types=self.types, floats=self.floats)
        table = load_table(self.data, options, scratch)
        scan = Scan(
            looked_for=f"rows in {self.title}",
            items=ItemsBuilder().build(),
            reader=table.spool,
            schema=None,
            problems=list(table.problems),
            notes=list(table.notes),
            floats=self.floats,
        )
        if isinstance(self.data, str):
            scan.fingerprint, scan.stamp = fingerprint_file(self.data)
        else:
            scan.fingerprint = table.spool.digest()
        if any(problem.blocking for problem in table.problems):
            return scan
        names = [column.name for column in table.spool.columns]
        for name in (self.group, *self.context, *(one for one in (self.order, self.image_column) if one)):
            require_column(name, names, self.title)
        groups = self._group(table)
        scan.problems += self._check_context(table, groups)
        builder = ItemsBuilder()
        for key, rows in groups.items():
            builder.add(key, data=rows.astype("<i8").tobytes(), nbytes=len(rows) * (table.nbytes // table.num_rows))
        scan.items = builder.build()
        root = self.image_root
        if root is None:
            root = os.path.dirname(self.data) if isinstance(self.data, str) else ""
        in_context = (self.group, *self.context)
        scan.reader = FramesTableReader(table.spool, in_context, self.image_column, root, self.images)
        scan.refine = lambda facts: self._make_schema(table, facts)
        scan.explain = self.images.describe_seen
        scan.schema = self._make_schema(table, {})
        scan.notes.append(f"clips: {len(groups)} of {table.num_rows} rows, by column {self.group!r}")
        return scan

    def _group(self, table: LoadedTable) -> dict[str, Int64Array]:
        """Return clip → its row numbers in order."""
        keys = _read_keys(table.spool, self.group, self.title)
        rows: dict[str, list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        order = None if self.order is None else _read_order(table.spool, self.order, self.title)
        if order is None:
            return {key: np.array(found, np.int64) for key, found in rows.items()}
        groups = {}
        for key, found in rows.items():
            ordered = sorted(found, key=lambda row: order[row])
            for before, after in pairwise(ordered):
                if order[before] == order[after]:
                    place = table.places([after]).get(after, f"row {after}")
                    raise SourceError(
                        f"clip {key!r:.64} expected different values in column {self.order!r}, "
                        f"got {order[after]!r:.40} twice",
                        shard=place,
                    )
            groups[key] = np.array(ordered, np.int64)
        return groups

    def _check_context(self, table: LoadedTable, groups: Mapping[str, Int64Array]) -> list[Problem]:
        """Return a problem for each clip in which a context column has several values."""
        problems: list[Problem] = []
        names = [column.name for column in table.spool.columns]
        for name in self.context:
            values = _read_values(table.spool, names.index(name))
            for key, rows in groups.items():
                different = {repr(values[row]) for row in rows.tolist()}
                if len(different) > 1 and len(problems) < _MAX_NAMED:
                    shown = " and ".join(sorted(different)[:2])
                    reason = f"context column {name!r} expected one value in a clip, got {shown:.100}"
                    where = f"{self.title}, clip {key!r:.64}"
                    problems.append(Problem(where, reason, blocking=True, input=None))
        return problems

    def _make_schema(self, table: LoadedTable, facts: Facts) -> Schema:
        in_context = (self.group, *self.context)
        context: dict[str, Spec] = {name: table.features[name] for name in in_context}
        lists = {name: spec.replace(is_list=True) for name, spec in table.features.items() if name not in in_context}
        if self.image_column is not None:
            context |= image_specs(self.images, facts)
            lists[IMAGE] = context.pop(IMAGE).replace(is_list=True)
        return Schema(context, feature_lists=lists)


def _read_values(spool: ColumnSpool, index: int) -> list[Any]:
    """Return the values of a column as Python objects; None for a missing value."""
    column = spool.read_column(index, np.arange(spool.num_rows), as_tensors=False)
    presence = getattr(column, "presence", None)
    if presence is None:
        return column.tolist() if isinstance(column, np.ndarray) else list(column)
    values = [value[0] if isinstance(value, np.ndarray) and len(value) else value for value in column]
    return [value if state == PRESENT else None for value, state in zip(values, presence.tolist(), strict=True)]


def _read_keys(spool: ColumnSpool, name: str, title: str) -> list[str]:
    index = [column.name for column in spool.columns].index(name)
    if spool.columns[index].is_list or spool.columns[index].kind not in ("int64", "bytes"):
        raise SourceError(f"group column {name!r} expected integers or text", shard=title)
    values = _read_values(spool, index)
    if None in values:
        raise SourceError(f"group column {name!r} is empty in row {values.index(None)}", shard=title)
    return [os.fsdecode(value) if isinstance(value, bytes) else str(value) for value in values]


def _read_order(spool: ColumnSpool, name: str, title: str) -> list[Any]:
    index = [column.name for column in spool.columns].index(name)
    values = _read_values(spool, index)
    if spool.columns[index].is_list or None in values:
        raise SourceError(f"order column {name!r} expected one value in every row", shard=title)
    return values


class FramesTableReader(ImageReader):
    """Reads all table rows of a clip as one row."""

    def __init__(
        self, spool: ColumnSpool, context: Sequence[str], image_column: str | None, root: str, images: ImageOptions
    ) -> None:
        super().__init__(root, images)
        self._spool = spool
        self._context = tuple(context)
        self._image_column = image_column

    def files_of(self, item: Item) -> Sequence[str]:
        if self._image_column is None:
            return []
        rows = self._spool.read_rows(np.frombuffer(item.data, "<i8"))
        paths = [os.fsdecode(row.get(self._image_column) or b"") for row in rows]
        return [os.path.join(self._root, path) for path in paths if path]

    def read(self, item: Item) -> Row:
        """Return the row of one clip."""
        numbers = np.frombuffer(item.data, "<i8")
        rows = list(self._spool.read_rows(numbers))
        names = [column.name for column in self._spool.columns]
        context: Row = {name: rows[0][name] for name in self._context if name in rows[0]}
        lists: Row = {name: [row.get(name) for row in rows] for name in names if name not in self._context}
        if self._image_column is not None:
            paths = [os.fsdecode(row.get(self._image_column) or b"") for row in rows]
            if not all(paths):
                raise SourceError(f"image column {self._image_column!r} is empty in row {paths.index('')} of the clip")
            lists[IMAGE], shared = read_frames(self._store, self._root, paths, hint=NAME_IMAGE_ROOT)
            context |= shared
        return {"context": context, "feature_lists": lists}
