"""The source `table`: CSV, JSON lines, Parquet, Arrow, pandas. A row becomes a record, a column a feature.

Types are inferred from whole columns. A missing cell stays missing: the feature is absent from that record. Columns are
written to a spool while the table is scanned, and all workers read them from there, never as Python rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from tfrkit._types import Int64Array, Row
from tfrkit.codec.arrow_streams import NO_VALUES
from tfrkit.codec.coerce import Floats
from tfrkit.codec.columns import PRESENT, Ragged
from tfrkit.errors import SourceError
from tfrkit.features.labels import LabelMap, make_class_map
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Facts, Item, Items, ItemsBuilder, Problem, Scan, fingerprint_file
from tfrkit.sources.class_files import load_classes
from tfrkit.sources.column_spool import ColumnSpool
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import NAME_IMAGE_ROOT, ImageReader, image_row, image_specs
from tfrkit.sources.sequence_lines import holds_sequences, scan_sequences
from tfrkit.sources.table_load import load_table, open_table_file
from tfrkit.sources.table_options import TableOptions, require_column
from tfrkit.sources.table_spool import LoadedTable
from tfrkit.storage.base import describe_os_error
from tfrkit.storage.inputs import read_ahead, stat_input

TableFormat = Literal["auto", "csv", "jsonl", "parquet", "arrow"]

# Maximum number of rows that are named with their lines.
_MAX_NAMED = 100


@dataclass(frozen=True, eq=False)
class Table(DescribedSource):
    """A table, as a file or in memory.

    Attributes:
        data: A CSV, JSON lines, Parquet or Arrow file; or a table of pandas, polars or pyarrow; or a dict of columns.
        format: The format of the file; "auto" detects it from its first bytes and its name.
        separator: The separator of CSV cells; by default detected from the header.
        encoding: The encoding of CSV and JSON lines.
        columns: Names of the columns of a CSV file that has no header.
        missing: CSV cells that count as missing, in addition to empty ones: "NA", "null".
        types: Types of columns that should not be inferred: {"zip": "text"}; int64, float or text.
        floats: What to do with floats that float32 cannot represent: "ask" stops, "float32" rounds, "float64" keeps
            them as serialized tensors.
        label_column: A column whose text becomes a class id under its name; the text is kept as `<name>/text`.
        classes: Class names in the order of their ids, or a file that lists them; sorted names by default.
        label_offset: The id of the first class.
        split_column: The column with the split of each row.
        group_column: A column; rows with the same value in it stay in one split.
        image_column: The column with paths of image files, whose bytes are stored as `image/encoded`.
        image_root: The folder that these paths are relative to; by default the folder of the table.
        images: How images are stored.
    """

    data: Any
    _: KW_ONLY
    format: TableFormat = "auto"
    separator: str | None = None
    encoding: str = "utf-8"
    columns: Sequence[str] | None = None
    missing: Sequence[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    floats: Floats = "ask"
    label_column: str | None = None
    classes: str | Sequence[str] | None = None
    label_offset: int = 0
    split_column: str | None = None
    group_column: str | None = None
    image_column: str | None = None
    image_root: str | None = None
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._table_options()

    def options(self) -> dict[str, Any]:
        images = self.images.to_json() if self.image_column else None
        return {**super().options(), "missing": sorted(self.missing), "images": images}

    def _table_options(self) -> TableOptions:
        return TableOptions(
            self.format, self.separator, self.encoding, self.columns, self.missing, dict(self.types), self.floats
        )

    def scan(self, scratch: str) -> Scan:
        """Read the table once, into the spool."""
        kind = open_table_file(self.data, self.format, scratch) if isinstance(self.data, str) else None
        if kind == "jsonl" and holds_sequences(self.data, self.encoding):
            self._refuse_columns()
            return scan_sequences(self.data, self.encoding, scratch, floats=self.floats)
        table = load_table(self.data, self._table_options(), scratch, kind=kind)
        if table.num_rows and not table.features and not table.problems:
            raise SourceError(NO_VALUES, shard=self.title)
        fingerprint, stamp = fingerprint_file(self.data) if isinstance(self.data, str) else (table.spool.digest(), 0)
        nbytes = np.full(table.num_rows, table.nbytes // max(1, table.num_rows), np.int64)
        scan = Scan(
            looked_for=f"rows in {self.title}",
            items=Items(table.num_rows, nbytes=nbytes),
            reader=table.spool,
            schema=Schema(table.features),
            problems=list(table.problems),
            notes=list(table.notes),
            order="source",
            floats=self.floats,
            fingerprint=fingerprint,
            stamp=stamp,
            # Lines that are not rows count as bad inputs in addition to the rows; problems of columns do not count.
            found=table.num_rows + sum(not problem.blocking for problem in table.problems) or None,
        )
        # Columns without a decided type are not in the spool, and the build stops because of them.
        return scan if any(problem.blocking for problem in table.problems) else self._mark(scan, table)

    def _refuse_columns(self) -> None:
        """Raise if an option names a column: SequenceExamples have none."""
        options = ("columns", "types", "label_column", "split_column", "group_column", "image_column")
        for option in options:
            if getattr(self, option):
                raise SourceError(
                    f"lines with context and feature_lists are SequenceExamples, which have no columns, got {option}",
                    shard=self.title,
                )

    def _mark(self, scan: Scan, table: LoadedTable) -> Scan:
        """Add the labels, splits, groups and images that columns define to the scan."""
        marks = TableMarks(table, self.title)
        labels, label_map = self._label(table, marks)
        splits, split_names = marks.number(self.split_column, "split") if self.split_column else (None, ())
        groups = marks.number(self.group_column, "group")[0] if self.group_column else None
        if all(name.isupper() for name in split_names):
            split_names = tuple(name.lower() for name in split_names)
        scan.items = replace(scan.items, labels=labels, groups=groups, splits=splits, split_names=split_names)
        scan.reader = table.spool
        scan.problems += marks.problems
        if label_map is not None and labels is not None:
            name, features = str(self.label_column), dict(table.features)
            optional = features[name].optional
            features[f"{name}/text"] = features[name]
            features[name] = Spec("int64", logical="class_label", classes=label_map.spec_names(), optional=optional)
            scan.schema = Schema(features)
            counts = np.bincount(labels[labels >= 0] - label_map.offset, minlength=len(label_map))
            scan.counts = {"class": dict(zip(label_map.names, counts.tolist(), strict=True))}
            scan.label_files = {"classes.txt": label_map.to_text()}
        return scan if self.image_column is None else self._with_images(scan, table, marks)

    def _label(self, table: LoadedTable, marks: TableMarks) -> tuple[Int64Array | None, LabelMap | None]:
        """Return the class ids of rows, and the label map if text became ids; that adds a column to the spool."""
        if self.label_column is None:
            return None, None
        index = marks.index_of(self.label_column)
        column = table.spool.columns[index]
        if column.is_list or column.kind not in ("int64", "bytes"):
            raise SourceError(f"label column {column.name!r} expected integers or text", shard=self.title)
        if column.kind == "int64":
            return marks.integers(index), None
        names, codes = marks.texts(index)
        label_map = self._decide_classes(names)
        ids = np.array([label_map.id_of(name) if name in label_map else -1 for name in names] or [0], np.int64)
        marks.report_unknown(label_map, names, codes, column.name)
        labels = np.where(codes >= 0, ids[codes], -1)
        table.spool = table.spool.with_labels(index, labels)
        return labels, label_map

    def _decide_classes(self, names: Sequence[str]) -> LabelMap:
        if self.classes is not None:
            return load_classes(self.classes, label_offset=self.label_offset)
        return make_class_map(names, offset=self.label_offset)

    def _with_images(self, scan: Scan, table: LoadedTable, marks: TableMarks) -> Scan:
        """Turn the scan into one of rows with images. Files must exist now; workers read them later."""
        index = marks.index_of(str(self.image_column))
        column = table.spool.columns[index]
        if column.kind != "bytes" or column.is_list:
            raise SourceError(f"image column {column.name!r} expected paths, got numbers", shard=self.title)
        root = self.image_root
        if root is None:
            root = os.path.dirname(self.data) if isinstance(self.data, str) else ""
        files = table.spool.read_column(index, np.arange(table.num_rows))
        builder = ItemsBuilder(scan.items.split_names)
        problems: dict[int, str] = {}
        paths = map(os.fsdecode, files)
        ahead = read_ahead(paths, lambda path: [os.path.join(root, path)] if path else [], head_nbytes=1)
        for row, path in enumerate(ahead):
            try:
                nbytes, stamp = stat_input(os.path.join(root, path)) if path else (0, 0)
            except OSError as error:
                problems[row] = f"image {path!r:.200} cannot be opened, {describe_os_error(error)}"
                continue
            builder.add(
                f"row {row}, {path}",
                data=row.to_bytes(8, "little"),
                nbytes=nbytes,
                stamp=stamp,
                label=_pick(scan.items.labels, row),
                group=_pick(scan.items.groups, row),
                split=_pick(scan.items.splits, row),
            )
        places = table.places(sorted(problems)[:_MAX_NAMED])
        kind = "images cannot be opened"
        scan.problems += [
            Problem(places.get(row, f"row {row}"), reason, kind=kind, hint=NAME_IMAGE_ROOT)
            for row, reason in problems.items()
        ]
        features = dict(scan.schema.features) if scan.schema is not None else {}
        optional = column.has_missing

        def make_schema(facts: Facts) -> Schema:
            return Schema({**image_specs(self.images, facts, optional=optional), **features})

        scan.items = builder.build(sort=False)
        scan.reader = TableImageReader(table.spool, column.name, root, self.images)
        scan.schema, scan.refine = make_schema({}), make_schema
        scan.explain = self.images.describe_seen
        scan.notes += self.images.describe()
        return scan


def _pick(values: Int64Array | None, row: int) -> int:
    return -1 if values is None else int(values[row])


class TableImageReader(ImageReader):
    """Reads a row of the spool and the image it names."""

    def __init__(self, spool: ColumnSpool, column: str, root: str, images: ImageOptions) -> None:
        super().__init__(root, images)
        self._spool = spool
        self._column = column

    def files_of(self, item: Item) -> Sequence[str]:
        path = item.key.partition(", ")[2]  # of "row 7, a/b.png"
        return [os.path.join(self._root, path)] if path else []

    def read(self, item: Item) -> Row:
        """Return the row with its image, or without image features if it names no file."""
        number = int.from_bytes(item.data, "little")
        row: Row = next(self._spool.read_rows(np.array([number])))
        path = os.fsdecode(row.get(self._column) or b"")
        return {**image_row(self.store(path)), **row} if path else row


class TableMarks:
    """Reads the columns of a loaded table that define the label, split or group of its rows."""

    def __init__(self, table: LoadedTable, title: str) -> None:
        self.problems: list[Problem] = []
        self._table = table
        self._title = title
        self._names = [column.name for column in table.spool.columns]

    def index_of(self, name: str) -> int:
        """Return the index of a column; raises `SourceError` if there is no column of this name."""
        require_column(name, self._names, self._title)
        return self._names.index(name)

    def integers(self, index: int) -> Int64Array:
        """Return the values of a column of integers; -1 for a missing value."""
        column = self._table.spool.read_column(index, np.arange(self._table.num_rows))
        if not isinstance(column, Ragged):
            return np.array(column, np.int64)
        values = np.full(len(column), -1, np.int64)
        values[np.asarray(column.presence) == PRESENT] = column.values
        return values

    def texts(self, index: int) -> tuple[list[str], Int64Array]:
        """Return the sorted distinct texts of a column, and the index of each row's text in them; -1 if missing."""
        column = self._table.spool.read_column(index, np.arange(self._table.num_rows))
        seen: dict[bytes, int] = {}
        codes = np.fromiter((seen.setdefault(value, len(seen)) for value in column), np.int64, len(column))
        if column.presence is not None:
            codes[np.asarray(column.presence) != PRESENT] = -1
        occurring = set(np.unique(codes).tolist())  # the filler of a missing cell is not a value
        used = sorted((value, code) for value, code in seen.items() if code in occurring)
        ranks = np.full(len(seen) + 1, -1, np.int64)
        for rank, (_, code) in enumerate(used):
            ranks[code] = rank
        return [value.decode("utf-8", "surrogateescape") for value, _ in used], ranks[codes]

    def number(self, name: str, what: str) -> tuple[Int64Array, tuple[str, ...]]:
        """Return the index of each row's value among the sorted distinct values, and these; missing is a problem."""
        index = self.index_of(name)
        column = self._table.spool.columns[index]
        if column.is_list or column.kind not in ("int64", "bytes"):
            raise SourceError(f"{what} column {name!r} expected integers or text", shard=self._title)
        if column.kind == "bytes":
            names, codes = self.texts(index)
        else:
            values, codes = np.unique(self.integers(index), return_inverse=True)
            names = [str(value) for value in values.tolist()]
        if column.has_missing:
            empty = np.flatnonzero(codes < 0)
            first = int(empty[0])
            place = self._table.places([first]).get(first, f"row {first}")
            more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
            reason = f"{what} column {name!r} is empty"
            self.problems.append(Problem(f"{place}{more}", reason, blocking=True, input=None))
        return codes.astype(np.int64), tuple(names)

    def report_unknown(self, labels: LabelMap, names: Sequence[str], codes: Int64Array, column: str) -> None:
        """Add a blocking problem for each class that is not in the map."""
        for code, name in enumerate(names):
            if name not in labels:
                rows = np.flatnonzero(codes == code)
                place = self._table.places(rows[:1].tolist()).get(int(rows[0]), f"row {rows[0]}")
                more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
                reason = f"class {name!r:.64} is not one of the {len(labels)} of {labels.origin}"
                where = f"{place}, column {column!r}{more}"
                self.problems.append(Problem(where, reason, blocking=True, input=None))
