"""Save the result of a query as a file: Parquet, CSV, JSON lines, or TFRecord."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tfrkit._types import Record, UInt64Array
from tfrkit.container.codecs import Compression, CompressionWord, compression_of_name, read_compression
from tfrkit.container.names import resembles_shard_name
from tfrkit.container.records import read_records
from tfrkit.container.writer import ShardWriter, frame_records
from tfrkit.errors import QueryError
from tfrkit.features.schema import PARTS, Schema
from tfrkit.features.spec import Spec, StorageKind
from tfrkit.ops.preview import json_to_cell
from tfrkit.ops.query.places import NUMBER_COLUMN
from tfrkit.ops.query.text import ask_for_numbers, find_copied_table, is_ordered
from tfrkit.outputs.target import require_output
from tfrkit.sidecars.places import remove_own
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.resolve import open_writer
from tfrkit.storage.sync import sync_folder, sync_tree
from tfrkit.storage.temporaries import MadeFolders, TemporaryFolder, make_scratch
from tfrkit.writer import Writer

if TYPE_CHECKING:
    from tfrkit.ops.query.query import Answer, QuerySession
    from tfrkit.ops.query.scan import QueryTable

FileKind = Literal["parquet", "csv", "jsonl", "tfrecord"]

# Types that can be stored in an Example in only one way; lists of these too.
_STORED_TYPES: dict[str, StorageKind] = {
    **dict.fromkeys(
        [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "UBIGINT",
            "HUGEINT",
        ],
        "int64",
    ),
    "FLOAT": "float",
    "VARCHAR": "bytes",
    "BLOB": "bytes",
}
_PIECE_NBYTES = 1 << 20


@dataclass(frozen=True)
class Saved:
    """Report of a written file; `copied` is True if records were copied byte for byte."""

    output: str
    records: int
    columns: list[str]
    copied: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: output, records, columns, copied."""
        return dict(vars(self))


def save_answer(
    answer: Answer, session: QuerySession, path: str, *, force: bool, compression: CompressionWord | None
) -> Saved:
    """Write the result of a query to a file, in the format of its suffix."""
    kind = find_kind(path)
    if compression is not None and kind != "tfrecord":
        raise ValueError(f"compression applies to TFRecord output only, got {compression!r} for {path}")
    given = read_compression(compression)
    if has_scheme(path):
        return _store(answer, session, path, kind, given, force=force)

    def require_free(is_repeated: bool) -> None:
        require_output(path, sources=session.files, force=force or is_repeated)

    made = MadeFolders()
    with session.make_output(path, given, require_free):
        made.make(os.path.dirname(os.path.abspath(path)))
        try:
            saved = _save(answer, session, path, kind, given)
            made.keep()
            return saved
        finally:
            made.remove()


def _store(
    answer: Answer, session: QuerySession, address: str, kind: FileKind, compression: Compression | None, *, force: bool
) -> Saved:
    """Write the file to the local disk, and store it when it is complete."""
    from tfrkit.outputs.stored import require_free as require_free_object  # imported only for remote addresses
    from tfrkit.storage.upload import upload_file

    def require_free(is_repeated: bool) -> None:
        require_free_object(address, sources=session.files, force=force or is_repeated)

    with session.make_output(address, compression, require_free), make_scratch("tfrkit-output") as scratch:
        local = os.path.join(scratch, os.path.basename(address))
        saved = _save(answer, session, local, kind, compression)
        if kind == "tfrecord":
            remove_own(address)  # they describe an object that is replaced
        upload_file(local, address)
        return replace(saved, output=address)


def _save(answer: Answer, session: QuerySession, path: str, kind: FileKind, compression: Compression | None) -> Saved:
    if kind == "parquet":
        return Saved(path, _save_parquet(session, path), answer.columns)
    if kind == "csv":
        return Saved(path, _save_text(path, _csv_lines(answer)) - 1, answer.columns)
    if kind == "jsonl":
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in answer.json_rows())
        return Saved(path, _save_text(path, lines), answer.columns)
    if compression is None:
        compression = compression_of_name(path)
    name = find_copied_table(session.parsed)
    if name is not None and name in session.tables:
        return Saved(path, _copy_records(session, session.tables[name], path, compression), answer.columns, copied=True)
    return Saved(path, _write_rows(answer, path, compression or "none"), answer.columns)


def find_kind(path: str) -> FileKind:
    """Return the format for a file name; raises `ValueError` if it is unknown."""
    lower = os.path.basename(path).lower()
    if lower.endswith((".parquet", ".pq")):
        return "parquet"
    if lower.endswith(".csv"):
        return "csv"
    if lower.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    if resembles_shard_name(lower) or compression_of_name(lower) is not None:
        return "tfrecord"
    raise ValueError(f"output expected a name that ends in .tfrecord, .parquet, .csv or .jsonl, got {path!r}")


# -- TFRecord ----------------------------------------------------------------------------------------------------------


def _copy_records(session: QuerySession, table: QueryTable, path: str, compression: Compression | None) -> int:
    """Copy the records that a query selects, and return their count. Memory: 8 bytes per record."""
    table.refuse_column(NUMBER_COLUMN)
    numbers = np.asarray(session.fetch_numbers(ask_for_numbers(session.connection, session.parsed)), np.uint64)
    in_order = is_ordered(session.parsed)
    if not in_order:
        numbers = np.sort(numbers)
    used = {shard.compression for shard in table.shard_set.shards}
    kept: Compression = used.pop() if len(used) == 1 else "none"
    with ShardWriter(open_writer(path), compression=compression or kept) as writer:
        records = _pick_records(table, numbers) if in_order else _read_sorted(table, numbers)
        for piece in _gather(records):
            writer.write(frame_records(piece))
        writer.commit()
    return len(numbers)


def _pick_records(table: QueryTable, numbers: UInt64Array) -> Iterator[Record]:
    """Yield records by number, in the given order."""
    records = table.shard_set.records
    if len(records):
        for number, shard in enumerate(table.shard_set.shards):
            if shard.compression != "none":
                records.hold_shard(number)  # if it fits: random access to a compressed shard is slow
    for number in numbers.tolist():
        yield records[number]


def _read_sorted(table: QueryTable, numbers: UInt64Array) -> Iterator[Record]:
    """Yield records by ascending number: by random access in plain shards, in one pass over compressed shards."""
    shard_set = table.shard_set
    shards, inside = shard_set.records.locate_many(numbers)
    for number in np.unique(shards).tolist():
        wanted = inside[shards == number]
        shard = shard_set.shards[number]
        if shard.compression == "none":
            access = shard_set.records.open_shard(number)
            yield from map(access.read, wanted.tolist())
            continue
        start = place = 0
        for records in read_records(shard, shard_set.policy.for_one_pass()):
            stop = start + len(records)
            while place < len(wanted) and int(wanted[place]) < stop:
                yield records[int(wanted[place]) - start]
                place += 1
            if place == len(wanted):
                break
            start = stop


def _gather(records: Iterable[Record]) -> Iterator[list[Record]]:
    piece: list[Record] = []
    nbytes = 0
    for record in records:
        piece.append(record)
        nbytes += len(record)
        if nbytes >= _PIECE_NBYTES or len(piece) >= 4096:
            yield piece
            piece, nbytes = [], 0
    if piece:
        yield piece


def _write_rows(answer: Answer, path: str, compression: Compression) -> int:
    """Write rows as Examples, or as SequenceExamples if the only columns are the structs of one; return the count."""
    specs: dict[str, Spec] = {}
    is_sequence = set(answer.columns) <= set(PARTS) and all(kind.startswith("STRUCT") for kind in answer.types)
    for name, kind in zip(answer.columns, answer.types, strict=True):
        element = re.sub(r"\[\d*\]$", "", kind)
        if element in _STORED_TYPES:
            specs[name] = Spec(_STORED_TYPES[element], () if element == kind else (None,), optional=True)
        elif not is_sequence:
            wanted = "float" if kind.startswith(("DOUBLE", "DECIMAL")) else "varchar"
            raise QueryError(
                f"column {name!r} expected a type that a TFRecord can store, got {kind}",
                hint=f"say what it becomes: (…)::{wanted} as {_plain_name(name)}",
            )
    # The kind of an empty list cannot be found from its values.
    has_lists = any(spec.shape for spec in specs.values())
    with Writer(path, compression=compression, schema=Schema(specs) if has_lists else None) as writer:
        for row in answer.rows():
            try:
                writer.write(_leave_out_nulls(row))
            except OverflowError as error:
                # DuckDB has wider integers, and sums are such.
                name = next((name for name, value in row.items() if _is_wide(value)), "name")
                hint = f"say what it becomes: (…)::float as {_plain_name(name)}, or ::varchar for all digits"
                raise QueryError(str(error), hint=hint) from None
        return writer.num_records


def _is_wide(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_wide, value))
    return isinstance(value, int) and not -(1 << 63) <= value < 1 << 63


def _plain_name(name: str) -> str:
    """Return a name that needs no quotes in a query."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "name"


def _leave_out_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _leave_out_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }


# -- other files -------------------------------------------------------------------------------------------------------


def _save_parquet(session: QuerySession, path: str) -> int:
    """Write Parquet with a second DuckDB: the one that runs the query has no access to files."""
    target = os.path.realpath(path)
    try:
        with TemporaryFolder(target) as folder:
            written = os.path.join(folder, "answer.parquet")
            quoted = written.replace("'", "''")
            limits = {"memory_limit": f"{session.memory}B", "temp_directory": folder}
            config = {"autoinstall_known_extensions": "false", **limits}
            with contextlib.closing(session.duckdb.connect(":memory:", config=config)) as other, session.own_errors():
                other.register("answer", session.open_stream())
                copy = f"copy (select * from answer) to '{quoted}' (format parquet)"
                ((count,),) = session.call(lambda: other.execute(copy).fetchall(), other)
            sync_tree(folder, path)
            os.replace(written, target)
        sync_folder(os.path.dirname(target))
    except OSError as error:
        raise explain_os_error(error, path, verb="write") from None
    return int(count)


def _save_text(path: str, lines: Iterable[str]) -> int:
    """Write lines and return their count."""
    count = 0
    pending: list[str] = []
    with open_writer(path) as writer:
        for line in lines:
            pending.append(line)
            count += 1
            if len(pending) >= 1024:
                writer.write("".join(pending).encode("utf-8", "surrogateescape"))
                pending.clear()
        writer.write("".join(pending).encode("utf-8", "surrogateescape"))
        writer.commit()
    return count


def _csv_lines(answer: Answer) -> Iterator[str]:
    """Yield a header and a CSV line per row: an absent value is an empty cell, a list or an object is JSON."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(answer.columns)
    yield buffer.getvalue()
    for row in answer.json_rows():
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([_csv_cell(value) for value in row.values()])
        yield buffer.getvalue()


def _csv_cell(value: Any) -> Any:
    value = json_to_cell(value)
    if value is None:
        return ""
    if isinstance(value, (str, float)):
        return value
    return json.dumps(value, ensure_ascii=False)
