"""Tables of other libraries, read as Arrow streams (the PyCapsule protocol): pandas, polars, pyarrow, DuckDB, others.

Only pyarrow is imported here. A null is an absent feature; pandas exports NaN, NaT and None as nulls.
NaN in lists of floats stays NaN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._optional import import_or_explain
from tfrkit.codec.arrow_columns import (
    ColumnTarget,
    NoKindError,
    convert_array,
    flatten_fields,
    judge_type,
    pick_column,
)
from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.columns import ABSENT, PRESENT, BytesColumn, Column, Ragged, to_splits
from tfrkit.codec.encode_columns import encode_columns
from tfrkit.codec.frame_columns import (
    IN_MEMORY,
    find_cells,
    list_cells,
    refuse_large_integer,
    refuse_large_integers,
    refuse_lost_type,
    refuse_lost_types,
    restore_nan,
)
from tfrkit.errors import SourceError

NO_VALUES = "no column holds any value"

# Column names that pandas gives to an unnamed index.
_NAMELESS_INDEX = re.compile(r"__index_level_\d+__")


def has_stream(data: object) -> bool:
    """Whether this is a table or column with an Arrow stream."""
    return hasattr(data, "__arrow_c_stream__")


def is_table(data: object) -> bool:
    """Whether this is a table or a dict of columns; False for iterables of rows such as a Dataset."""
    return isinstance(data, Mapping) or (has_stream(data) and not getattr(data, "gives_rows", False))


def holds_series(columns: object) -> bool:
    """Whether this is a dict of columns, some of them Series of another library."""
    return isinstance(columns, Mapping) and any(has_stream(column) for column in columns.values())


def to_arrow_table(columns: Mapping[str, Any]) -> Any:
    """Convert a dict of columns of any library to one Arrow table."""
    arrow = import_or_explain("pyarrow", "arrow")
    arrays = {}
    for name, column in columns.items():
        refuse_lost_type(name, getattr(column, "dtype", None))
        try:
            if has_stream(column):
                arrays[name] = restore_nan(arrow.chunked_array(column), list_cells(column), arrow)
            else:
                arrays[name] = arrow.array(column)
        except (arrow.ArrowException, ValueError, OverflowError) as error:
            if isinstance(error, OverflowError):
                refuse_large_integer(name, column)
            raise SourceError(
                f"column {name!r} cannot become one of Arrow, {_explain(error)}", shard=IN_MEMORY
            ) from None
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise SourceError(f"columns expected one length, got {listed}", shard=IN_MEMORY)
    return arrow.table(arrays)


def open_stream(data: Any) -> tuple[Any, Iterator[Any], int]:
    """Return (schema, record batches, number of unnamed index columns, which are left out) of a table."""
    arrow = import_or_explain("pyarrow", "arrow")
    refuse_lost_types(data)
    try:
        reader = arrow.RecordBatchReader.from_stream(data)
    except (arrow.ArrowException, ValueError, OverflowError) as error:
        if isinstance(error, OverflowError):
            refuse_large_integers(data)
        if _is_one_column(data, arrow):
            raise SourceError(
                f"expected a table, got one column ({type(data).__name__})",
                shard=IN_MEMORY,
                hint='give it a name: {"x": column}',
            ) from None
        raise SourceError(
            f"the table cannot become columns of Arrow, {_explain(error)}",
            shard=IN_MEMORY,
            hint='give each column one type and a unique name, or leave it out: df.drop(columns=["x"])',
        ) from None
    kept = [index for index, name in enumerate(reader.schema.names) if not _NAMELESS_INDEX.fullmatch(name)]
    ranges = _find_named_ranges(reader.schema)
    fields = [arrow.field(name, arrow.int64()) for name in ranges]
    schema = arrow.schema([*(reader.schema.field(index) for index in kept), *fields])
    if not schema.names and hasattr(data, "__len__") and len(data):
        raise SourceError(NO_VALUES, shard=IN_MEMORY)
    cells = {index: find_cells(data, index) for index in kept}

    def pick(batch: Any, index: int, start: int) -> Any:
        array, column = batch.column(index), cells[index]
        return array if column is None else restore_nan(array, column[start : start + len(array)], arrow)

    def batches() -> Iterator[Any]:
        start = 0
        for batch in reader:
            stop = start + batch.num_rows
            parts = [index[start:stop] for index in ranges.values()]
            numbers = [arrow.array(np.arange(part.start, part.stop, part.step)) for part in parts]
            yield arrow.record_batch([*(pick(batch, index, start) for index in kept), *numbers], schema=schema)
            start = stop

    return schema, batches(), len(reader.schema.names) - len(kept)


def _find_named_ranges(schema: Any) -> dict[str, range]:
    """Find the named range indexes of pandas, which are only in the metadata, not in the columns."""
    described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return {
        str(index["name"]): range(index["start"], index["stop"], index["step"])
        for index in described.get("index_columns", ())
        if isinstance(index, dict) and index.get("kind") == "range" and index.get("name") is not None
    }


def _is_one_column(data: Any, arrow: Any) -> bool:
    try:
        arrow.chunked_array(data)
    except (arrow.ArrowException, ValueError, TypeError):
        return False
    return True


def require_different(names: Sequence[str], where: str) -> None:
    """Raise if two columns have the same name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SourceError(
            f"columns expected different names, got twice {', '.join(map(repr, twice[:5]))}",
            shard=where,
            hint="give them different names",
        )


def read_columns(data: Any, coercer: Coercer, floats: Floats) -> Iterator[dict[str, Column]]:
    """Yield batches of a table's columns for `Writer.write_columns`. Columns without a value are left out.

    The records are the same as in a build of the same table.
    """
    arrow = import_or_explain("pyarrow", "arrow")
    schema, batches, _ = open_stream(data)
    fields = flatten_fields(schema, arrow)
    require_different([name for name, _, _ in fields], IN_MEMORY)
    judged = [(name, path, _judge(name, kind, arrow)) for name, path, kind in fields]
    for batch in batches:
        columns: dict[str, Column] = {}
        for name, path, kind in judged:
            if kind is None:
                continue
            try:
                converted = convert_array(pick_column(batch, path, arrow), kind, arrow)
            except ValueError as error:  # ArrowInvalid is one
                at = f", row {error.args[1]} of its batch" if len(error.args) == 2 else ""
                raise SourceError(f"column {name!r} {_explain(error)}", shard=f"{IN_MEMORY}{at}") from None
            columns[name] = _make_column(name, *converted, coercer, floats)
        if not columns and batch.num_rows:
            raise SourceError(NO_VALUES, shard=IN_MEMORY)
        yield columns


def _judge(name: str, kind: Any, arrow: Any) -> ColumnTarget | None:
    try:
        return judge_type(kind, arrow)
    except NoKindError as error:
        raise SourceError(
            f"column {name!r} is of type {error}, which records cannot store",
            shard=IN_MEMORY,
            hint="convert it to numbers, text, or lists of these, or leave it out",
        ) from None


def _make_column(name: str, values: Any, lengths: Any, missing: Any, coercer: Coercer, floats: Floats) -> Column:
    presence = None if missing is None else np.where(missing, ABSENT, PRESENT).astype(np.uint8)
    if not isinstance(values, BytesColumn) and values.dtype == np.float64 and (floats != "float64"):
        values = coercer.to_float32(name, values, must_be_exact=floats == "ask")
    if lengths is not None:
        return Ragged(values, to_splits(lengths), presence)
    if isinstance(values, BytesColumn):
        return BytesColumn(values.data, values.offsets, presence)
    if presence is None:
        return np.asarray(values)
    if values.dtype == np.float64:
        [(_, _, data, offsets, _, _, _)], _ = encode_columns({name: values}, coercer=coercer, floats=floats)
        return BytesColumn(data, offsets, presence)
    return Ragged(values[presence == PRESENT], to_splits(presence == PRESENT), presence)


def _explain(error: BaseException) -> str:
    """Return an error of another library in one line and lower case; pyarrow adds the column as a second argument."""
    text = "; ".join(str(part).splitlines()[0].rstrip(".") for part in error.args if isinstance(part, str) and part)
    return (text[:1].lower() + text[1:])[:200] or type(error).__name__
