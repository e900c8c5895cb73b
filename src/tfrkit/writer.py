"""Writer: the face of the write street for one file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tfrkit import _native
from tfrkit._types import Row
from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.conform import SchemaCoercer
from tfrkit.codec.encode_columns import encode_columns
from tfrkit.container.compression import COMPRESSIONS, Compression, Level
from tfrkit.container.locate import save_index
from tfrkit.container.writer import ShardWriter
from tfrkit.errors import FeatureKindError
from tfrkit.features.schema import Schema, encode_name, show_name
from tfrkit.storage.resolve import open_writer

# Frames are handed on in pieces of about this size: large enough for the codec, small enough for the cache.
_FLUSH_NBYTES = 1 << 18
# Columns of many rows are encoded in runs, so that memory stays bounded by the run and not by the column.
_RUN_ROWS = 1 << 14


class Writer:
    """Writes one TFRecord file. It appears whole when the `with` block ends well, or not at all.

    A row is a dict of feature names to values: int, float, bytes, str, lists of these, NumPy arrays. A dict
    {"context": {...}, "feature_lists": {...}} is written as a SequenceExample, where each feature list is a
    sequence of frames. None is a feature with no value; a key that is not there is absent.

    Equal rows give equal bytes: keys sorted, lists packed. Not thread-safe.

    Args:
        path: The file to write; an existing one is replaced at the end.
        compression: "none", "gzip" or "zlib"; "xz" and "zstd", which TensorFlow cannot read.
        level: "default", "fast", "small", or a number the codec knows.
        schema: Checks each row; may ask for plain lists where an array would become a serialized tensor.
        floats: What to do with floats that float32 does not hold: "ask" raises, "float32" rounds, "float64"
            keeps them as serialized tensors.
        index: Also write `_index/<name>.tfidx`, so that counting and random access need no scan.

    Example:
        >>> with Writer("digits.tfrecord") as w:
        ...     w.write({"data": 7, "label": 1})
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compression: Compression = "none",
        level: Level = "default",
        schema: Schema | None = None,
        floats: Floats = "ask",
        index: bool = False,
    ) -> None:
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression expected one of {', '.join(COMPRESSIONS)}, got {compression!r}")
        self._path = os.fspath(path)
        self._floats: Floats = floats
        self._coercer = Coercer(floats)
        self._schema = schema
        self._conformer = None if schema is None else SchemaCoercer(floats)
        self._encoder = _native.RowEncoder(floats == "float32", self._coercer)
        self._index = index
        self._shard: ShardWriter | None = ShardWriter(open_writer(self._path), compression=compression, level=level)

    @property
    def num_records(self) -> int:
        """Records written so far."""
        return self._encoder.num_records

    def write(self, row: Row) -> None:
        """Write one row as an Example, or as a SequenceExample if it has a context or feature lists."""
        shard = self._require_open()
        self._coercer.row = self._encoder.num_records
        if not isinstance(row, dict):
            raise TypeError(f"row expected a dict, got {type(row).__name__}")
        if _is_sequence(row):
            pending = self._write_sequence(row)
        else:
            if self._conformer is not None and self._schema is not None:
                row = self._conformer.conform(row, self._schema.features, self._coercer.row)
            pending = self._encoder.write(row)
        if pending >= _FLUSH_NBYTES:
            shard.write(self._encoder.take().data)

    def write_columns(self, columns: Mapping[str, Any]) -> None:
        """Write many rows as Examples: each column is an array, `Ragged`, `BytesColumn` or list, of one length.

        The bytes are those of writing the rows one by one.
        """
        shard = self._require_open()
        if not isinstance(columns, Mapping):
            raise TypeError(f"columns expected a dict of columns, got {type(columns).__name__}")
        if self._conformer is not None:
            for row in _rows_of_columns(columns):
                self.write(row)
            return
        num_rows = len(next(iter(columns.values()), ()))
        if num_rows > _RUN_ROWS and all(len(column) == num_rows for column in columns.values()):
            for start in range(0, num_rows, _RUN_ROWS):
                self._write_run({name: column[start : start + _RUN_ROWS] for name, column in columns.items()}, shard)
        else:
            self._write_run(columns, shard)

    def write_record(self, record: bytes | bytearray | memoryview) -> None:
        """Write a payload as it is, whatever it means."""
        shard = self._require_open()
        if self._encoder.write_record(record) >= _FLUSH_NBYTES:
            shard.write(self._encoder.take().data)

    def close(self) -> None:
        """Make the file appear. Leaving the `with` block does it."""
        if self._shard is None:
            return
        shard, self._shard = self._shard, None
        try:
            shard.write(self._encoder.take().data)
            shard.commit()
        except BaseException:
            shard.discard()
            raise
        if self._index:
            save_index(self._path)

    def discard(self) -> None:
        """Give up: nothing appears."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            shard.discard()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # A writer that was neither closed nor discarded must not leave its temporary file.
        if getattr(self, "_shard", None) is not None:
            self.discard()

    def _require_open(self) -> ShardWriter:
        if self._shard is None:
            raise ValueError(f"write to a closed writer - at {self._path}")
        return self._shard

    def _write_sequence(self, row: Row) -> int:
        context = row.get("context") or {}
        lists = row.get("feature_lists") or {}
        number = self._coercer.row
        if self._conformer is not None and self._schema is not None:
            context = self._conformer.conform(context, self._schema.features, number)
            specs = self._schema.feature_lists
            self._conformer.check_names(lists, specs, number)
            lists = {
                name: [self._conformer.conform_value(name, frame, specs[name], number) for frame in frames]
                for name, frames in lists.items()
            }
        return self._encoder.write_sequence(_sorted_items(context), _sorted_items(lists))

    def _write_run(self, columns: Mapping[str, Any], shard: ShardWriter) -> None:
        self._coercer.row = self._encoder.num_records
        encoded, num_rows = encode_columns(columns, coercer=self._coercer, floats=self._floats)
        for name, column in zip(sorted(columns, key=encode_name), encoded, strict=True):
            kind = column[1]
            known = self._encoder.kind_of(name, kind)
            if known != kind and num_rows:
                raise FeatureKindError(
                    f"feature {show_name(name)} expected {known} as in rows before, got {kind} "
                    f"- at row {self._coercer.row}"
                )
        if self._encoder.write_columns(encoded, num_rows) >= _FLUSH_NBYTES:
            shard.write(self._encoder.take().data)


def _is_sequence(row: Row) -> bool:
    keys = row.keys()
    return (
        0 < len(row) <= 2
        and keys <= {"context", "feature_lists"}
        and all(isinstance(value, dict) or value is None for value in row.values())
        and any(value is not None for value in row.values())
    )


def _sorted_items(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(values.items(), key=lambda item: encode_name(item[0]))


def _rows_of_columns(columns: Mapping[str, Any]) -> list[Row]:
    names = list(columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
