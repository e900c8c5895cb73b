"""Load tables that have types into the spool: Parquet, Arrow, and tables of pandas, polars or a dict in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit._threads import count_cores
from tfrkit.codec.arrow_columns import (
    ColumnTarget,
    NoKindError,
    cast_column,
    convert_array,
    flatten_fields,
    judge_type,
    pick_column,
)
from tfrkit.codec.arrow_streams import (
    has_stream,
    holds_series,
    open_stream,
    require_different,
    to_arrow_table,
)
from tfrkit.codec.columns import BytesColumn
from tfrkit.codec.frame_columns import IN_MEMORY
from tfrkit.errors import SourceError
from tfrkit.sources.arrow_files import is_parquet, read_arrow_batches
from tfrkit.sources.base import Problem
from tfrkit.sources.table_options import TableOptions
from tfrkit.sources.table_spool import LoadedTable, SpoolColumn, TableSpooler
from tfrkit.storage.inputs import copy_of

_BATCH_ROWS = 1 << 16
# Threads that convert columns; pyarrow releases the interpreter lock while it works.
NUM_THREADS = 4
# Columns of Parquet are read in this many groups: enough for all threads to finish at about the same time, and few
# enough to open the file rarely.
_NUM_GROUPS = 16


def require_arrow(*parts: str) -> Any:
    """Import pyarrow and these submodules; raises an ImportError with the command that installs it.

    `pyarrow.compute` is slow to import, so callers request it only when they need it.
    """
    arrow = import_or_explain("pyarrow", "arrow")
    for part in parts:
        import_or_explain(f"pyarrow.{part}", "arrow")
    return arrow


ArrowColumn = tuple[SpoolColumn, tuple[int, ...], ColumnTarget, "str | None"]
"""The spool column, the path of the column in a batch, its type in the spool, and the type that the user wants."""
Spooled = tuple[int, list[tuple[SpoolColumn, int, str]]]
"""The number of rows, and (column, row, reason) of the first value of each column that does not fit."""
Spool = Callable[[Sequence[ArrowColumn]], Spooled]


def load_arrow_file(path: str, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """Load a Parquet or Arrow file."""
    arrow = require_arrow("parquet", "ipc")
    local = copy_of(path)
    try:
        schema, batches = read_arrow_batches(local, arrow, rows=_BATCH_ROWS)
        spool: Spool = partial(_spool_together, batches, arrow)
        # pyarrow selects columns of Parquet by name, and interprets a dot in a name as an inner field.
        if (
            is_parquet(local)
            and len(set(schema.names)) == len(schema)
            and not any("." in name for name in schema.names)
        ):
            spool = partial(_spool_apart, local, schema.names, arrow)
        return _load_arrow(schema, spool, options, spooler, arrow, path, os.path.getsize(local))
    except (arrow.ArrowInvalid, OSError) as error:
        spooler.clear()
        raise SourceError(
            f"not a valid Parquet or Arrow file, {str(error).splitlines()[0][:200]}", shard=path
        ) from None


def _spool_together(batches: Iterable[Any], arrow: Any, columns: Sequence[ArrowColumn]) -> Spooled:
    """Spool batch by batch, the columns of a batch on several threads."""
    with ThreadPoolExecutor(min(NUM_THREADS, count_cores())) as pool:
        return _spool_batches(batches, arrow, columns, pool.map)


def _spool_apart(path: str, names: Sequence[str], arrow: Any, columns: Sequence[ArrowColumn]) -> Spooled:
    """Spool groups of columns of a Parquet file on several threads, each group from its first row to its last."""
    metadata = arrow.parquet.read_metadata(path)
    num_rows = int(metadata.num_rows)

    def spool(group: Sequence[int]) -> Spooled:
        chosen = [names[index] for index in group]
        inside = [
            (column, (group.index(place[0]), *place[1:]), judged, wanted)
            for column, place, judged, wanted in columns
            if place[0] in group
        ]
        file = arrow.parquet.ParquetFile(path, metadata=metadata, page_checksum_verification=True)
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=chosen, use_threads=False)
        found, problems = _spool_batches((batch.select(chosen) for batch in batches), arrow, inside)
        if found != num_rows and not problems:
            raise OSError(f"column {chosen[0]!r} has {found} rows, expected {num_rows}")
        return found, problems

    fields = sorted({place[0] for _, place, _, _ in columns})
    num_groups = min(len(fields), _NUM_GROUPS)
    groups = [fields[number::num_groups] for number in range(num_groups)]
    with ThreadPoolExecutor(min(NUM_THREADS, count_cores())) as pool:
        spooled = list(pool.map(spool, groups))
    return num_rows, [problem for _, problems in spooled for problem in problems]


def _spool_batches(
    batches: Iterable[Any], arrow: Any, columns: Sequence[ArrowColumn], each: Callable[..., Iterable[Any]] = map
) -> Spooled:
    """Spool batches up to the first with a value that does not fit; `each` is `map`, or the `map` of a pool."""
    num_rows = 0
    for batch in batches:
        answers = each(lambda column: _append_arrow(column, batch, arrow), columns)  # noqa: B023 - run at once
        problems = [
            (column[0], num_rows + answer[0], answer[1])
            for column, answer in zip(columns, answers, strict=True)
            if answer is not None
        ]
        num_rows += batch.num_rows
        if problems:
            return num_rows, problems
    return num_rows, []


def _load_arrow(
    schema: Any,
    spool: Spool,
    options: TableOptions,
    spooler: TableSpooler,
    arrow: Any,
    title: str,
    nbytes: int,
) -> LoadedTable:
    fields = flatten_fields(schema, arrow)
    options.check_names([name for name, _, _ in fields], title)
    require_different([name for name, _, _ in fields], title)
    problems: list[Problem] = []
    columns: list[ArrowColumn] = []
    empty = []
    for name, path, kind in fields:
        wanted = options.types.get(name)
        try:
            judged = _wanted_type(wanted) if wanted else judge_type(kind, arrow)
        except NoKindError as error:
            reason = f"is of type {error}, which records cannot store; {_advise(name, kind, arrow, title == IN_MEMORY)}"
            problems.append(Problem(f"{title}, column {name!r}", reason, blocking=True, input=None))
            continue
        if judged is None:
            empty.append(name)
            continue
        value_kind = "float" if judged.kind.startswith("float") else judged.kind
        column = spooler.add(name, value_kind, is_list=judged.is_list)  # type: ignore[arg-type]
        columns.append((column, path, judged, wanted))
    num_rows = 0
    if not problems:
        num_rows, found = spool(columns)
        if found:
            # The spooled columns may differ in length, and nothing is read from them any more.
            num_rows = 0
        for column, row, reason in found:
            where = f"{title}, row {row}, column {column.name!r}"
            problems.append(Problem(where, reason, blocking=True, input=None))
    loaded = spooler.finish(num_rows, nbytes, lambda rows: {row: f"{title}, row {row}" for row in rows})
    loaded.problems[:0] = problems
    if empty:
        loaded.notes.append(f"columns without any value, left out: {', '.join(map(repr, empty))}")
    return loaded


def _wanted_type(wanted: str) -> ColumnTarget:
    return ColumnTarget({"int64": "int64", "float": "float64", "text": "text"}[wanted])  # type: ignore[arg-type]


def _append_arrow(column: ArrowColumn, batch: Any, arrow: Any) -> tuple[int, str] | None:
    """Spool one column of a batch; return (row in the batch, reason) of a value that does not fit, or None."""
    spooled, path, judged, wanted = column
    array = pick_column(batch, path, arrow)
    if wanted is not None:
        try:
            array = cast_column(array, wanted, arrow)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0][:200]
            return _find_misfit(array, wanted, arrow), f"cannot become {wanted}, {reason[:1].lower()}{reason[1:]}"
    try:
        spooled.append(*convert_array(array, judged, arrow))
    except ValueError as error:  # includes ArrowInvalid
        if len(error.args) == 2:
            return error.args[1], error.args[0]
        return 0, str(error).splitlines()[0][:200]
    return None


def _find_misfit(array: Any, wanted: str, arrow: Any) -> int:
    """Return the first row whose value cannot be cast. REQUIRES: there is one."""
    start, stop = 0, len(array)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            cast_column(array[start:middle], wanted, arrow)
            start = middle
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            stop = middle
    return start


def _advise(name: str, kind: Any, arrow: Any, is_in_memory: bool) -> str:
    """Return advice for a column whose type cannot be stored in a record."""
    possible: tuple[str, str] | None = None
    if arrow.types.is_temporal(kind):
        possible = ("text", "int64")
    elif arrow.types.is_decimal(kind):
        possible = ("float", "text")
    if possible is None:
        return "convert it to numbers, text, or lists of these, or leave it out"
    if is_in_memory:
        first, second = (f"types={{{name!r}: {word!r}}}" for word in possible)
        return f"tfrkit.sources.table(data, {first}) or {second} makes it one"
    first, second = (f"{name}={word}" for word in possible)
    return f"--type {first} or {second} makes it one"


def load_memory(data: Any, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """Load a table of pandas, polars, pyarrow or DuckDB through Arrow, or a dict of columns."""
    if isinstance(data, Mapping):
        if not holds_series(data):
            return _load_columns(data, options, spooler, IN_MEMORY)
        data = to_arrow_table(data)
    if not has_stream(data):
        got = type(data).__name__
        raise TypeError(f"table expected a file, a table of pandas, polars or pyarrow, or a dict of columns, got {got}")
    arrow = require_arrow()
    schema, stream, num_dropped = open_stream(data)
    nbytes = 0

    def batches() -> Iterator[Any]:
        nonlocal nbytes
        for batch in stream:
            nbytes += batch.nbytes
            yield batch

    spool = partial(_spool_together, batches(), arrow)
    try:
        loaded = _load_arrow(schema, spool, options, spooler, arrow, IN_MEMORY, 0)
    except BaseException:
        spooler.clear()
        raise
    loaded.nbytes = nbytes
    if num_dropped:
        loaded.notes.append("the table's index has no name and was left out")
    return loaded


def _load_columns(data: Mapping[str, Any], options: TableOptions, spooler: TableSpooler, title: str) -> LoadedTable:
    """Load a dict of columns: arrays of numbers, or lists of numbers, text or bytes."""
    options.check_names(data, title)
    for name, values in data.items():
        if not hasattr(values, "__len__") or isinstance(values, (str, bytes)):
            raise SourceError(
                f"column {name!r} expected values of many rows, got {type(values).__name__}",
                shard=title,
                hint="rows go into a list: [{...}, {...}]",
            )
    lengths = {name: len(values) for name, values in data.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SourceError(f"columns expected one length, got {listed}", shard=title)
    num_rows = next(iter(lengths.values()), 0)
    nbytes = 0
    for name, values in data.items():
        array = np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, object)
        if array.ndim != 1:
            raise SourceError(
                f"column {name!r} expected one value per row, got an array of {array.shape}",
                shard=title,
                hint="arrays of more dimensions: tfrkit.sources.arrays(...)",
            )
        if array.dtype.kind in "iub":
            if array.dtype == np.uint64 and len(array) and int(array.max()) >= 1 << 63:
                raise SourceError(f"column {name!r} expected signed 64-bit integers", shard=title)
            spooler.add(name, "int64").append(array.astype(np.int64))
        elif array.dtype.kind == "f":
            spooler.add(name, "float").append(array.astype(np.float64))
        else:
            _append_objects(spooler, name, array.tolist(), title)
        nbytes += array.nbytes
    return spooler.finish(num_rows, nbytes, lambda rows: {row: f"{title}, row {row}" for row in rows})


def _append_objects(spooler: TableSpooler, name: str, values: list[Any], title: str) -> None:
    kinds = {_object_kind(value) for value in values} - {None}
    if len(kinds) == 2 and "float" in kinds and all(value != value for value in values if isinstance(value, float)):
        row = next(row for row, value in enumerate(values) if isinstance(value, float))
        raise SourceError(
            f"column {name!r} expected values of the same type, got NaN and {' '.join(map(str, kinds - {'float'}))}",
            shard=f"{title}, row {row}",
            hint='where NaN means no value: None, or df.fillna("")',
        )
    if kinds == {"int64", "float"}:
        kinds = {"float"}
    if len(kinds) != 1 or "other" in kinds:
        got = " and ".join(sorted(map(str, kinds))) or "no value at all"
        raise SourceError(f"column {name!r} expected values of the same type, got {got}", shard=title)
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
