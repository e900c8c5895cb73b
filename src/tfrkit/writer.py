"""Write rows to one file."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Row
from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.columns import BytesColumn
from tfrkit.codec.conform import SchemaCoercer
from tfrkit.codec.encode_columns import check_columns, encode_columns, encode_written_name, rows_of_columns
from tfrkit.codec.untyped import UntypedLists, is_untyped_column
from tfrkit.container.codecs import CompressionWord, Level, compression_of_name, read_compression
from tfrkit.container.names import refuse_foreign_suffix
from tfrkit.container.writer import Digest, ShardWriter
from tfrkit.errors import GuessedKindWarning, LostRowsWarning, MissingFeatureError, at_row
from tfrkit.features.schema import Schema, show_name
from tfrkit.sidecars.places import remove_own
from tfrkit.storage.resolve import open_writer, show_address

# Long columns are encoded in runs, so that memory is bounded by the run, not by the column.
_RUN_ROWS = 1 << 14


_INSTEAD = dict.fromkeys((bytes, bytearray, memoryview), "; write_record() takes a record's bytes")


class Writer:
    """Writes one TFRecord file. It appears when the `with` block ends without an error, or not at all.

    A writer that is never closed loses its rows; that is a `LostRowsWarning`.

    A row is a dict of feature names to values: int, float, bytes, str, lists of these, NumPy arrays. A dict
    {"context": {...}, "feature_lists": {...}} is written as a SequenceExample, where each feature list is a
    list of values, one per step. None is a feature with no value; a missing key is absent. An empty list takes the kind
    it has in other rows; if no row has values, it is stored as bytes, with a `GuessedKindWarning`.

    Equal rows give equal bytes: keys sorted, lists packed. Not thread-safe.

    Args:
        path: The file to write, or an address (s3://bucket/x.tfrecord); an existing one is replaced at the end.
        compression: "none", "gzip" or "zlib"; "xz" and "zstd", which TensorFlow cannot read. "GZIP", "gz" and "" are
            understood too. None, the default, follows the suffix: .gz, .zlib, .xz and .zst are compressed.
        level: "default", "fast", "small", or a level of the codec.
        schema: Checks each row; may request plain lists for arrays, which otherwise become serialized tensors.
        floats: What to do with floats that float32 cannot represent: "ask" raises, "float32" rounds, "float64"
            keeps them as serialized tensors.
        index: Also write `_index/<name>.tfidx`, so that counting and random access need no scan.
        digest: Updated with every byte of the file, e.g. `hashlib.sha256()`.

    Example:
        >>> with Writer("digits.tfrecord") as w:
        ...     w.write({"data": 7, "label": 1})
    """

    def __init__(
        self,
        path: str | bytes | os.PathLike[str],
        *,
        compression: CompressionWord | None = None,
        level: Level = "default",
        schema: Schema | Mapping[str, Any] | None = None,
        floats: Floats = "ask",
        index: bool = False,
        digest: Digest | None = None,
    ) -> None:
        self._path = show_address(path)
        if compression is None:
            refuse_foreign_suffix(self._path)
        chosen = read_compression(compression) or compression_of_name(self._path) or "none"
        if chosen == "none" and level not in ("default", "fast", "small") and not isinstance(level, int):
            raise ValueError(f"level expected 'default', 'fast', 'small' or a number, got {level!r}")
        self._floats: Floats = floats
        self._coercer = Coercer(floats)
        if schema is not None and not isinstance(schema, Schema):
            if not isinstance(schema, Mapping):
                raise TypeError(f"schema expected a Schema or a dict of features, got {type(schema).__name__}")
            schema = Schema(schema)
        self._schema = schema
        self._conformer = None if schema is None else SchemaCoercer(floats)
        self._encoder = _native.RowEncoder(floats, self._coercer)
        self._untyped = UntypedLists(self._encoder)
        self._num_flushed = 0
        self._index = index
        self._failure: BaseException | None = None
        self._num_flushes = 0
        if self._schema is not None:
            for name, spec in self._schema.features.items():
                self._encoder.kind_of(name, spec.kind)
            for name, spec in self._schema.feature_lists.items():
                self._encoder.kind_of(name, spec.kind, is_list=True)
        shard = ShardWriter(open_writer(self._path), compression=chosen, level=level, digest=digest, index=index)
        self._shard: ShardWriter | None = shard
        # A writer that is neither closed nor discarded must not leave its temporary file or lose its rows silently.
        caller = sys._getframe(1)
        self._place = (caller.f_code.co_filename, caller.f_lineno)
        self._unclosed = weakref.finalize(self, _lose, self._path, self._encoder, shard, self._place, os.getpid())

    @property
    def num_records(self) -> int:
        """The number of records written so far."""
        return self._encoder.num_records

    def write(self, row: Row) -> None:
        """Write one row as an Example, or as a SequenceExample if it has a context or feature lists.

        A row that cannot be written raises and is not written; the writer remains usable.
        """
        coercer = self._coercer
        if coercer.untyped is None or coercer.untyped:
            coercer.untyped = []
        if type(row) is dict and len(row) > 2 and self._schema is None and self._shard is not None:
            # The fast path for most rows: the checks below take about as long as encoding a row.
            coercer.row = self._encoder.num_records
            pending = self._encoder.write(row)
            if coercer.untyped:
                self._untyped.keep(coercer.row, row, coercer.untyped, False)
        else:
            pending = self._write_any(row)
        if pending >= LIMITS.flush_nbytes:
            self._flush_if_settled(pending)

    def _write_any(self, row: Row) -> int:
        self._require_open()
        self._coercer.row = self._encoder.num_records
        if not isinstance(row, dict):
            raise TypeError(f"row expected a dict, got {type(row).__name__}{_INSTEAD.get(type(row), '')}")
        is_sequence = _is_sequence(row)
        if self._schema is not None and is_sequence != (self._schema.kind == "sequence_example"):
            wanted, got = ("Example", "SequenceExample") if is_sequence else ("SequenceExample", "Example")
            raise at_row(TypeError, f"row expected the form of an {wanted}, got a {got}", self._coercer.row)
        pending = self._encode(row)
        if self._coercer.untyped:
            self._untyped.keep(self._coercer.row, row, self._coercer.untyped, is_sequence)
        return pending

    def write_columns(self, columns: Mapping[str, Any] | Any) -> None:
        """Write many rows as Examples: each column is an array, `Ragged`, `BytesColumn` or list, of equal length.

        Also accepts a table or a dict of columns of pandas, polars or pyarrow (anything with Arrow's stream): a missing
        value is absent from its row, and a pandas index is a column if it has a name, else left out. To pandas NaN is a
        missing value, so it is absent; NaN of polars and pyarrow is stored, and so is NaN in a list of floats of any of
        these libraries.

        The bytes are the same as if the rows were written one by one. Columns that cannot be written raise; if some of
        their rows are already on disk, the writer is discarded, since they cannot be removed.
        """
        self._require_open()
        before, pending, flushes = self._encoder.num_records, self._encoder.num_pending, self._num_flushes
        try:
            for part in self._split_columns(columns):
                self._write_part(part)
        except BaseException as error:
            if self._num_flushes != flushes:
                self._give_up(error)
            else:
                self._encoder.rollback(before, pending)
                self._untyped.forget(before)
            raise

    def _split_columns(self, columns: Any) -> Iterable[Mapping[str, Any]]:
        """Return columns unchanged; read a table of another library in batches."""
        from tfrkit.codec.arrow_streams import has_stream, holds_series, read_columns, to_arrow_table

        if holds_series(columns):
            columns = to_arrow_table(columns)
        return read_columns(columns, self._coercer, self._floats) if has_stream(columns) else [columns]

    def _write_part(self, columns: Mapping[str, Any]) -> None:
        num_rows = check_columns(columns)
        is_untyped = any(
            is_untyped_column(column) and self._encoder.kind_of(name) is None for name, column in columns.items()
        )
        if self._conformer is not None or is_untyped:
            for row in rows_of_columns(columns):
                self.write(row)
            return
        for start in range(0, num_rows, _RUN_ROWS):
            stop = min(num_rows, start + _RUN_ROWS)
            self._write_run({name: column[start:stop] for name, column in columns.items()})

    def write_record(self, record: bytes | bytearray | memoryview) -> None:
        """Write a record's bytes unchanged."""
        if self._shard is None:
            self._require_open()
        pending = self._encoder.write_record(record)
        if pending >= LIMITS.flush_nbytes:
            self._flush_if_settled(pending)

    def close(self) -> None:
        """Make the file appear. The end of the `with` block does this too. Raises if a write failed for good."""
        if self._failure is not None:
            raise self._failure
        if self._shard is None:
            return
        self._flush()
        shard, self._shard = self._shard, None
        self._unclosed.detach()
        try:
            shard.commit()
        except BaseException as error:
            self._failure = error
            shard.discard()
            raise
        remove_own(self._path)
        if self._index:
            shard.save_index()
        if self._untyped.guessed:
            self._warn_of_guesses(self._untyped.guessed)

    def discard(self) -> None:
        """Close the writer without a file."""
        if self._shard is not None:
            shard, self._shard = self._shard, None
            self._unclosed.detach()
            shard.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _require_open(self) -> ShardWriter:
        if self._failure is not None:
            raise self._failure
        if self._shard is None:
            raise ValueError(f"write to a closed writer - at {self._path}")
        return self._shard

    def _flush_if_settled(self, pending: int) -> None:
        """Write pending frames, unless that would fix the kind of empty lists that a later row may define."""
        if not self._untyped or self._untyped.is_settled or pending >= LIMITS.unsettled_nbytes:
            self._flush()

    def _flush(self) -> None:
        self._num_flushes += 1
        try:
            shard = self._require_open()
            frames: Any = self._encoder.take().data
            if self._untyped:
                frames = self._untyped.retype(frames, self._num_flushed, self._encode)
            self._num_flushed = self._encoder.num_records
            shard.write(frames)
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        """Discard the file; every further call raises this error."""
        self._failure = error
        self.discard()

    def _warn_of_guesses(self, names: Sequence[str]) -> None:
        warnings.warn_explicit(
            f"feature{'' if len(names) == 1 else 's'} {', '.join(map(show_name, names))} had only empty lists, stored "
            f"as empty lists of bytes - at {self._path}\n  give their types: Writer(..., schema=ds.schema)",
            GuessedKindWarning,
            *self._place,
        )

    def _encode(self, row: Row) -> int:
        """Pass a row to the encoder; return the number of pending bytes."""
        if _is_sequence(row):
            return self._write_sequence(row)
        if self._conformer is not None and self._schema is not None:
            row = self._conformer.conform(row, self._schema.features, self._coercer.row)
        return self._encoder.write(row)

    def _write_sequence(self, row: Row) -> int:
        context = row.get("context") or {}
        lists = row.get("feature_lists") or {}
        number = self._coercer.row
        for name, frames in lists.items():
            if isinstance(frames, (str, bytes, bytearray)) or not isinstance(frames, (Sequence, np.ndarray)):
                raise at_row(
                    TypeError,
                    f"feature list {show_name(name)} expected a sequence of frames, got {type(frames).__name__}",
                    number,
                )
        if self._conformer is not None and self._schema is not None:
            context = self._conformer.conform(context, self._schema.features, number)
            specs = self._schema.feature_lists
            self._conformer.check_names(lists, specs, number)
            for name, spec in specs.items():
                if name not in lists and not spec.optional:
                    raise self._coercer.make_error(MissingFeatureError, name, "expected in every row, got none")
            lists = {
                name: [self._conformer.conform_value(name, frame, specs[name], number) for frame in frames]
                for name, frames in lists.items()
            }
        lists = {name: _plain_frames(frames) for name, frames in lists.items()}
        return self._encoder.write_sequence(_sorted_items(context), _sorted_items(lists))

    def _write_run(self, columns: Mapping[str, Any]) -> None:
        self._coercer.row = self._encoder.num_records
        self._coercer.untyped = None
        encoded, num_rows = encode_columns(
            columns, coercer=self._coercer, floats=self._floats, kind_of=lambda name: self._encoder.kind_of(name)
        )
        native = []
        for raw_name, kind, *rest in encoded:
            name = raw_name.decode()
            known = self._encoder.kind_of(name)
            if kind is not None and known not in (None, kind):
                raise self._coercer.wrong_kind(name, known, kind)
            native.append((raw_name, kind or known or "int64", *rest))
        pending = self._encoder.write_columns(native, num_rows)
        for raw_name, kind, *_ in encoded:
            if kind is not None:
                self._encoder.kind_of(raw_name.decode(), kind)
        if pending >= LIMITS.flush_nbytes:
            self._flush_if_settled(pending)


def _lose(path: str, encoder: _native.RowEncoder, shard: ShardWriter, place: tuple[str, int], process: int) -> None:
    """Warn that rows are lost because the writer was never closed, at the line that created it."""
    if os.getpid() != process:
        return  # a forked child: the parent still writes
    num_rows = encoder.num_records
    shard.discard()
    if not num_rows:
        return  # nothing is lost
    warnings.warn_explicit(
        f"{num_rows:,} row{'' if num_rows == 1 else 's'} lost, the writer was never closed - at {path}\n"
        f"  write in a with block: with tfrkit.Writer({path!r}) as w: ..., or call close()",
        LostRowsWarning,
        *place,
    )


def _is_sequence(row: Row) -> bool:
    keys = row.keys()
    return (
        0 < len(row) <= 2
        and keys <= {"context", "feature_lists"}
        and all(isinstance(value, dict) or value is None for value in row.values())
        and any(value is not None for value in row.values())
    )


def _sorted_items(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(values.items(), key=lambda item: encode_written_name(item[0]))


def _plain_frames(frames: Any) -> Any:
    """Return the steps of a feature list as a list; a step of several bytes values becomes a list."""
    return [list(frame) if isinstance(frame, BytesColumn) else frame for frame in frames]
