"""Export as lines of text: JSON lines, which lose nothing, and CSV, which spreadsheets read.

Values have the JSON form of ops/preview.py: bytes are a string if they are UTF-8, else {"base64": "..."}. Each line of
JSON is one record; an absent feature has no key, and one with no kind set is null. In CSV an absent value is an empty
cell, an empty text is "", and several values are a JSON array. A single number is a plain number, even nan or a number
stored as a tensor.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from tfrkit import _native
from tfrkit.features.schema import Schema, decode_name
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.report import Export
from tfrkit.ops.export.tables import export_table
from tfrkit.ops.preview import is_sequence_row, json_to_cell, row_to_json, value_to_json
from tfrkit.passes.shard_tasks import VerbEngine, choose_cluster
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

_BLOCK_LINES = 512
# Created once: json.dumps creates an encoder per call unless all options have their defaults.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
# Characters that need quotes in CSV.
_QUOTED = re.compile(r'[,"\n\r]|^ | \Z')
# Spreadsheets skip spaces and control characters before a formula.
_FORMULA = re.compile(r"[\s\0]*[=+@\uff1d\uff0b\uff20\uff0d-]|[\t\r]")
# Output size by input size: bytes as base64 grow by a third, numbers and names by more.
_TEXT_GROWTH = 2.0


def export_jsonl(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    select: Sequence[str] | None = None,
    force: bool = False,
    incomplete: bool = False,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
    progress: Progress | None = None,
) -> Export:
    """Write one JSON object per record, each on its own line; only the kind of an empty list is lost.

    Records that are not Examples are {"record": bytes}. A feature whose kind differs between records is written with
    the kind that each record has. `output` is a file, "-" for standard output, or a folder for one file per split.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The file or folder to write.
        select: Only these features.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        engine: With "ray" or "dask", workers of a cluster write the lines, each a shard at a time; see `build`.
        engine_address: Address of the cluster.
        progress: Progress callback.
    """
    return export_table(
        "jsonl",
        address,
        output,
        lambda source, file, shards: write_json_lines(source, file, shards, select),
        growth=_TEXT_GROWTH,
        to_stdout=True,
        force=force,
        incomplete=incomplete,
        progress=progress,
        lines=write_json_lines,
        select=select,
        cluster=choose_cluster(engine, engine_address),
    )


def export_csv(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    select: Sequence[str] | None = None,
    safe: bool = False,
    force: bool = False,
    incomplete: bool = False,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
    progress: Progress | None = None,
) -> Export:
    """Write a header and one line per record, in UTF-8 with line feeds.

    A SequenceExample has the columns context/x and feature_lists/x. `output` is a file, "-" for standard output, or a
    folder for one file per split. Text that a spreadsheet would run as a formula is written as it is, unless `safe`:
    then a quote (') stands before it, and the file no longer reads back the same. Other arguments are those of
    `export_jsonl`.
    """
    lines = partial(write_csv_lines, safe=safe)

    def write(source: ExportInput, file: BinaryIO, shards: Sequence[int] | None) -> None:
        columns = _list_columns(source, select)
        file.write(to_csv_line(_disarm(columns) if safe else columns))
        lines(source, file, shards, select)

    return export_table(
        "csv",
        address,
        output,
        write,
        growth=_TEXT_GROWTH,
        to_stdout=True,
        force=force,
        incomplete=incomplete,
        progress=progress,
        lines=lines,
        select=select,
        cluster=choose_cluster(engine, engine_address),
    )


def write_json_lines(
    source: ExportInput, file: BinaryIO, shards: Sequence[int] | None, select: Sequence[str] | None
) -> None:
    """Write one JSON object per record."""
    _write_blocks(file, map(to_json_line, _read_documents(source, shards, select)))


def write_csv_lines(
    source: ExportInput,
    file: BinaryIO,
    shards: Sequence[int] | None,
    select: Sequence[str] | None,
    *,
    safe: bool,
) -> None:
    """Write one line of CSV per record, without a header; with `safe`, without formulas."""
    cells = _read_cells(source, shards, select)
    _write_blocks(file, map(to_csv_line, map(_disarm, cells) if safe else cells))


def _read_cells(source: ExportInput, shards: Sequence[int] | None, select: Sequence[str] | None) -> Iterator[list[Any]]:
    columns = _list_columns(source, select)
    documents = _read_documents(source, shards, select)
    flat = map(_flatten, documents) if source.schema.kind == "sequence_example" else documents
    return ([row.get(name) for name in columns] for row in flat)


def _disarm(cells: Iterable[Any]) -> list[Any]:
    """Put a quote before text that a spreadsheet takes for a formula; numbers stay."""
    return [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) is not None else cell for cell in cells]


def to_json_line(document: Any) -> bytes:
    """Encode a JSON value as one line of UTF-8."""
    text = _encode(document)
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:  # a feature name that is not UTF-8
        return f"{json.dumps(document, allow_nan=False, separators=(',', ':'))}\n".encode()


def to_csv_line(cells: Sequence[Any]) -> bytes:
    r"""Encode JSON values as one line of CSV.

    Example:
        >>> to_csv_line(["a,b", 1, None, "", [1, 2]])
        b'"a,b",1,,"","[1,2]"\n'
    """
    line = ",".join(map(_to_cell, cells))
    # Most readers skip blank lines, so an absent value in the only column is written as "" to keep the row.
    return f"{line or chr(34) * 2}\n".encode("utf-8", "backslashreplace")


def _to_cell(value: Any) -> str:
    if isinstance(value, dict):
        value = json_to_cell(value)
    if value is None:
        return ""
    if isinstance(value, str):
        text = value
    elif isinstance(value, (int, float)):
        return repr(value) if not isinstance(value, bool) else _encode(value)
    else:
        text = _encode(value)
    if not text or _QUOTED.search(text) is not None:
        return '"' + text.replace('"', '""') + '"'
    return text


def _write_blocks(file: BinaryIO, lines: Iterable[bytes]) -> None:
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if len(block) == _BLOCK_LINES:
            file.write(b"".join(block))
            block.clear()
    file.write(b"".join(block))


def _list_columns(source: ExportInput, select: Sequence[str] | None) -> list[str]:
    if source.schema.kind == "raw":
        return ["record"]
    schema = source.schema if select is None else source.schema.select(select)
    if source.kind == "mixed" and schema.kind == "example":
        return [*schema.names, "record"]
    if schema.kind == "sequence_example":
        columns = [f"context/{name}" for name in schema.features]
        columns += [f"feature_lists/{name}" for name in schema.feature_lists]
        return [*columns, "record"] if source.kind == "mixed" else columns
    return list(schema.names)


def _read_documents(
    source: ExportInput, shards: Sequence[int] | None, select: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    """Yield the records in their JSON form."""
    schema = source.schema if select is None or source.schema.kind == "raw" else source.schema.select(select)
    has_kinds = any(schema[name].seen is not None for name in schema.names)
    if source.kind in ("raw", "mixed") or has_kinds:
        read = _make_reader(source, schema)
        yield from map(read, source.records(shards=shards))
        return
    for _, row in source.rows(None if select is None else list(schema.names), shards=shards):
        yield (
            row_to_json(row)
            if is_sequence_row(row)
            else {name: value_to_json_fast(value) for name, value in row.items()}
        )


def value_to_json_fast(value: Any) -> Any:
    """Convert like `value_to_json`, with a fast path for the most common values."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        if value.dtype == np.int64 or (value.dtype == np.float32 and np.isfinite(value).all()):
            return value.tolist()
    elif isinstance(value, int):
        return value
    return value_to_json(value)


def _make_reader(source: ExportInput, schema: Schema) -> Callable[[bytes], dict[str, Any]]:
    """Return a function that converts one record by its own kinds, for records that do not fit into columns."""
    kind = "sequence_example" if schema.kind == "sequence_example" else "example"
    single = {name for name in schema.names if schema[name].num_values == 1}

    def convert(name: str, value_kind: str | None, values: list[Any]) -> Any:
        if value_kind is None:
            return None
        return value_to_json(values[0]) if name in single and len(values) == 1 else value_to_json(values)

    def read(record: bytes) -> dict[str, Any]:
        if schema.kind == "raw" or _native.classify_record(record) == "other":
            return {"record": value_to_json(record)}
        message = _native.read_message(kind, record)
        if isinstance(message, _native.Fault):
            return {"record": value_to_json(record)}
        features, lists = message
        named = [(decode_name(name), value_kind, values) for name, value_kind, values in features or []]
        flat = {name: convert(name, kind_of, values) for name, kind_of, values in named if name in schema.features}
        if kind == "example":
            return flat
        frames = {
            name: [convert(name, *frame) for frame in given]
            for name, given in ((decode_name(name), given) for name, given in lists or [])
            if name in schema.feature_lists
        }
        return {"context": flat, "feature_lists": frames}

    return read


def _flatten(document: dict[str, Any]) -> dict[str, Any]:
    if set(document) != {"context", "feature_lists"}:
        return document
    flat = {f"context/{name}": value for name, value in document["context"].items()}
    return flat | {f"feature_lists/{name}": value for name, value in document["feature_lists"].items()}
