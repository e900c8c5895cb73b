"""Tables that know their types into the spool: Parquet, Arrow, and what pandas, polars or a dict hold in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import SourceError
from tfrkit.sources.arrow_columns import (
    ArrowType,
    NoKindError,
    cast_column,
    convert_array,
    flatten_fields,
    judge_type,
    pick_column,
    read_batches,
)
from tfrkit.sources.base import Problem
from tfrkit.sources.table_options import TableOptions
from tfrkit.sources.table_spool import LoadedTable, SpoolColumn, TableSpooler

_BATCH_ROWS = 1 << 16
# Columns are looked at on so many threads; pyarrow lets go of the interpreter while it works.
NUM_THREADS = 4


def require_arrow(*parts: str) -> Any:
    """The pyarrow module with some of its parts loaded, or an ImportError with the command that installs it."""
    arrow = import_or_explain("pyarrow", "arrow")
    for part in parts:
        import_or_explain(f"pyarrow.{part}", "arrow")
    return arrow


def load_arrow_file(path: str, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """A Parquet or Arrow file."""
    arrow = require_arrow("compute", "parquet", "ipc")
    try:
        schema, batches = read_batches(path, arrow, rows=_BATCH_ROWS)
        return _load_arrow(schema, batches, options, spooler, arrow, path, os.path.getsize(path))
    except (arrow.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"not a sound Parquet or Arrow file, {str(error).splitlines()[0][:200]}", shard=path
        ) from None


def _load_arrow(
    schema: Any,
    batches: Iterator[Any],
    options: TableOptions,
    spooler: TableSpooler,
    arrow: Any,
    title: str,
    nbytes: int,
) -> LoadedTable:
    fields = flatten_fields(schema, arrow)
    options.check_names([name for name, _, _ in fields], title)
    twice = sorted({name for name, _, _ in fields if [other for other, _, _ in fields].count(name) > 1})
    if twice:
        raise SourceError(f"columns expected different names, got twice {', '.join(map(repr, twice[:5]))}", shard=title)
    problems: list[Problem] = []
    columns: list[tuple[SpoolColumn, tuple[int, ...], ArrowType, str | None]] = []
    empty = []
    for name, path, kind in fields:
        wanted = options.types.get(name)
        try:
            judged = _wanted_type(wanted) if wanted else judge_type(kind, arrow)
        except NoKindError as error:
            reason = f"is of type {error}, which no record holds; --type {name}=text or {name}=int64 makes it one"
            problems.append(Problem(f"{title}, column {name!r}", reason, blocking=True))
            continue
        if judged is None:
            empty.append(name)
            continue
        value_kind = "float" if judged.kind.startswith("float") else judged.kind
        column = spooler.add(name, value_kind, is_list=judged.is_list)  # type: ignore[arg-type]
        columns.append((column, path, judged, wanted))
    num_rows = 0
    if not problems:
        with ThreadPoolExecutor(min(NUM_THREADS, os.cpu_count() or 1)) as pool:
            for batch in batches:
                found = pool.map(lambda column: _append_arrow(column, batch, arrow), columns)  # noqa: B023 - run at once
                for (column, *_), problem in zip(columns, found, strict=True):
                    if problem is not None:
                        row, reason = problem
                        where = f"{title}, row {num_rows + row}, column {column.name!r}"
                        problems.append(Problem(where, reason, blocking=True))
                num_rows += batch.num_rows
                if problems:
                    break
    loaded = spooler.finish(num_rows, nbytes, lambda rows: {row: f"{title}, row {row}" for row in rows})
    loaded.problems[:0] = problems
    if empty:
        loaded.notes.append(f"columns without any value, left out: {', '.join(map(repr, empty))}")
    return loaded


def _wanted_type(wanted: str) -> ArrowType:
    return ArrowType({"int64": "int64", "float": "float64", "text": "text"}[wanted])  # type: ignore[arg-type]


def _append_arrow(
    column: tuple[SpoolColumn, tuple[int, ...], ArrowType, str | None], batch: Any, arrow: Any
) -> tuple[int, str] | None:
    """Spool one column of a batch; (row in the batch, reason) of a value that does not fit."""
    spooled, path, judged, wanted = column
    array = pick_column(batch, path, arrow)
    try:
        if wanted is not None:
            array = cast_column(array, wanted, arrow)
        spooled.append(*convert_array(array, judged, arrow))
    except ValueError as error:  # ArrowInvalid is one
        if len(error.args) == 2:
            return error.args[1], error.args[0]
        return 0, str(error).splitlines()[0][:200]
    return None


def load_memory(data: Any, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """A table of pandas, polars, pyarrow or DuckDB through Arrow, or a dict of columns."""
    title = "a table in memory"
    if isinstance(data, Mapping):
        return _load_columns(data, options, spooler, title)
    if not hasattr(data, "__arrow_c_stream__"):
        got = type(data).__name__
        raise TypeError(f"table expected a file, a table of pandas, polars or pyarrow, or a dict of columns, got {got}")
    arrow = require_arrow("compute")
    reader = arrow.RecordBatchReader.from_stream(data)
    # How pandas calls an index that has no name.
    kept = [index for index, name in enumerate(reader.schema.names) if name != "__index_level_0__"]
    schema = arrow.schema([reader.schema.field(index) for index in kept])
    nbytes = 0

    def batches() -> Iterator[Any]:
        nonlocal nbytes
        for batch in reader:
            nbytes += batch.nbytes
            yield batch.select(kept)

    loaded = _load_arrow(schema, batches(), options, spooler, arrow, title, 0)
    loaded.nbytes = nbytes
    if len(kept) < len(reader.schema.names):
        loaded.notes.append("the table's index has no name and was left out")
    return loaded


def _load_columns(data: Mapping[str, Any], options: TableOptions, spooler: TableSpooler, title: str) -> LoadedTable:
    """A dict of columns: arrays of numbers, and lists of values as JSON has them."""
    options.check_names(data, title)
    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SourceError(f"columns expected one length, got {listed}", shard=title)
    num_rows = next(iter(lengths.values()), 0)
    nbytes = 0
    for name, values in data.items():
        array = values if isinstance(values, np.ndarray) else np.asarray(values, object)
        if array.ndim != 1:
            raise SourceError(f"column {name!r} expected one value a row, got an array of {array.shape}", shard=title)
        if array.dtype.kind in "iub":
            if array.dtype == np.uint64 and len(array) and int(array.max()) >= 1 << 63:
                raise SourceError(f"column {name!r} expected integers of 64 bits with sign", shard=title)
            spooler.add(name, "int64").append(array.astype(np.int64))
        elif array.dtype.kind == "f":
            spooler.add(name, "float").append(array.astype(np.float64))
        else:
            _append_objects(spooler, name, array.tolist(), title)
        nbytes += array.nbytes
    return spooler.finish(num_rows, nbytes, lambda rows: {row: f"{title}, row {row}" for row in rows})


def _append_objects(spooler: TableSpooler, name: str, values: list[Any], title: str) -> None:
    kinds = {_object_kind(value) for value in values} - {None}
    if kinds == {"int64", "float"}:
        kinds = {"float"}
    if len(kinds) != 1 or "other" in kinds:
        got = " and ".join(sorted(map(str, kinds))) or "no value at all"
        raise SourceError(f"column {name!r} expected values of one type, got {got}", shard=title)
    kind = kinds.pop()
    missing = np.array([value is None for value in values], np.uint8) if None in values else None
    column = spooler.add(name, kind)  # type: ignore[arg-type]
    if kind in ("text", "bytes"):
        column.append(BytesColumn.from_values([b"" if value is None else value for value in values]), None, missing)
    else:
        filled = [0 if value is None else value for value in values]
        column.append(np.array(filled, np.int64 if kind == "int64" else np.float64), None, missing)


def _object_kind(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, (bool, int, np.integer)):
        return "int64" if -(1 << 63) <= int(value) < 1 << 63 else "other"
    if isinstance(value, (float, np.floating)):
        return "float"
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, bytes) else "other"
