"""The source `rows`: any Python iterable of rows. Its length is known only at the end, so rows are spooled first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfrkit._types import Int64Array
from tfrkit.codec.arrow_streams import is_table
from tfrkit.codec.coerce import Floats
from tfrkit.container.index import ShardIndex, load_index
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.schema import Schema, show_name
from tfrkit.sources.base import Items, RecordReader, Scan
from tfrkit.storage.local import LocalReader, open_to_read
from tfrkit.writer import Writer

_HEAD_NBYTES = 8 + 4  # length, checksum of the length
_FOOT_NBYTES = 4  # checksum of the payload
_READ_AT_ONCE = 1 << 20

_SUFFIXES = {
    "table": (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather"),
    "arrays": (".npy", ".npz"),
    "webdataset": (".tar",),
    "tfrecord": (".tfrecord", ".tfrecords", ".tfrec", ".record"),
    "yolo": (".yaml", ".yml"),
}


class Rows:
    """Rows of an iterable, or of a function that returns one: dicts as `Writer.write` takes them, or encoded records.

    Also a table or a dict of columns, as `Writer.write_columns` takes it.

    Args:
        rows: The rows. A function is called by each build, so that a build can be run again.
        schema: The schema to check each row against; inferred from the rows by default.
        floats: What to do with floats that float32 cannot represent, as in `Writer`.
    """

    kind = "iterable"
    title = "rows"

    def __init__(self, rows: Any, *, schema: Schema | Mapping[str, Any] | None = None, floats: Floats = "ask") -> None:
        if not callable(rows) and not isinstance(rows, Iterable) and not is_table(rows):
            hint = "\n  rows that are not computed yet: collect() them first" if hasattr(rows, "collect") else ""
            raise TypeError(f"source expected a source or an iterable of rows, got {type(rows).__name__}{hint}")
        if isinstance(rows, (str, bytes)):
            source = _find_source(os.fsdecode(rows))
            raise TypeError(
                f"source expected a source or an iterable of rows, got {type(rows).__name__}\n"
                f"  for files: tfr.sources.{source}({rows!r:.200})"
            )
        self._rows = rows
        self._schema = schema if schema is None or isinstance(schema, Schema) else Schema(schema)
        self._floats: Floats = floats

    def options(self) -> dict[str, Any]:
        return {"path": self.title, "floats": self._floats}

    def scan(self, scratch: str) -> Scan:
        path = os.path.join(scratch, "rows.tfrecord")
        rows: Iterable[Any] = self._rows() if callable(self._rows) else self._rows
        with SpoolWriter(path, schema=self._schema, floats=self._floats, index=True) as writer:
            if is_table(rows):
                writer.write_columns(rows)
                rows = ()
            for row in rows:
                if isinstance(row, (bytes, bytearray, memoryview)):
                    writer.write_record(row)
                else:
                    writer.write(row)
            num_rows = writer.num_records
        return Scan(
            looked_for="rows of the iterable",
            items=Items(num_rows),
            reader=SpoolReader(path),
            schema=self._schema,
            order="source",
            floats=self._floats,
            fingerprint=_digest_file(path),
            notes=writer.notes,
        )


class SpoolWriter(Writer):
    """A writer for a temporary file: its warnings become notes of the report."""

    notes: list[str] = []  # noqa: RUF012 - replaced, never changed

    def _warn_of_guesses(self, names: Sequence[str]) -> None:
        listed = ", ".join(map(show_name, names))
        what = f"empty in every row, stored as empty lists of bytes: {listed}; give their types: {{schema}}"
        self.notes = [Hint(Step(what, schema=...))]


class SpoolReader(RecordReader):
    """Reads records of the spool by number, without checking them again."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: tuple[LocalReader, ShardIndex] | None = None

    def read_records(self, numbers: Int64Array) -> Sequence[bytes]:
        if self._open is None:
            reader = LocalReader(self._path)
            index = load_index(reader)
            if index is None:
                raise SourceError("the spool of rows has no index", shard=self._path)
            self._open = reader, index
        reader, index = self._open
        span = memoryview(reader.span() or b"")
        records = []
        for number in numbers.tolist():
            start = int(index.offsets[number])
            stop = int(index.offsets[number + 1]) if number + 1 < len(index.offsets) else len(span)
            records.append(bytes(span[start + _HEAD_NBYTES : stop - _FOOT_NBYTES]))
        return records

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_open": None}


def _digest_file(path: str) -> str:
    digest = hashlib.sha256()
    with open_to_read(path) as file:
        while piece := file.read(_READ_AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()[:32]


def _find_source(path: str) -> str:
    """Return the source that probably reads a path, by its suffix; folders are usually class folders.

    Example:
        >>> _find_source("a/b.csv"), _find_source("pictures/")
        ('table', 'class_folders')
    """
    suffix = os.path.splitext(path)[1].lower()
    return next((source for source, suffixes in _SUFFIXES.items() if suffix in suffixes), "class_folders")
