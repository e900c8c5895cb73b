"""Finds the records that match a condition, and computes new values for them, with DuckDB."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._threads import choose_threads
from tfrkit._types import UInt64Array
from tfrkit.errors import CodecError, Hint, MissingFeatureError, QueryError, SchemaError, Step
from tfrkit.features.schema import PARTS, Schema, describe_missing, find_part, show_name
from tfrkit.features.spec import Spec
from tfrkit.ops.edit.values import Classes, EncodeValue, make_encoder
from tfrkit.ops.query.engine import defer_signals, get_engine, import_duckdb
from tfrkit.ops.query.errors import QueryPart, to_query_error
from tfrkit.ops.query.places import RECORD_COLUMN
from tfrkit.ops.query.query import QuerySession
from tfrkit.ops.query.scan import RAW_COLUMN, QueryTable
from tfrkit.ops.query.text import parse_sql
from tfrkit.sidecars.read import Sidecars

TABLE = "tfrkit_dataset"
_FETCHED_ROWS = 1024
CONDITION = "the condition"
# Functions that may return several rows, or none.
_SEVERAL = frozenset({"unnest", "unlist", "generate_subscripts"})

Values = tuple[bytes | None, ...]
Locate = Callable[[int], tuple[str, int]]
"""Maps a record number of the dataset to its shard and its number in that shard."""


class Matches:
    """The numbers of the matching records, ascending, and the new feature values of each."""

    def __init__(self, numbers: UInt64Array, names: Sequence[str], values: Sequence[Values], table: QueryTable) -> None:
        self.numbers = numbers
        self.names = names
        self.values = values
        self.is_raw = table.is_raw
        self.features = () if table.is_raw else tuple(table.schema.names)


def find_matches(
    paths: Sequence[str],
    where: str | None,
    expressions: Mapping[str, str],
    *,
    locate: Locate,
    binary: Collection[str] = (),
    jobs: int | None = None,
) -> Matches:
    """Run an SQL condition and SQL expressions over the records of some shards.

    Holds 8 bytes and the new values of each matching record in memory. Raises `QueryError` with the position in the
    user's text; errors of values have shard and record.
    """
    text, parts = compose_query(where, expressions)
    session = QuerySession(text, {TABLE: list(paths)}, threads=choose_threads(jobs), binary=binary, parts=parts)
    with contextlib.closing(session):
        table = session.tables[TABLE]
        table.refuse_column(RECORD_COLUMN)
        names = [_find_target(table, name) for name in expressions]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"feature {name!r} is set more than once")
        types = [kind for _, kind in session.describe()[1:]]
        encoders = [_make_encoder(table, name, kind) for name, kind in zip(names, types, strict=True)]
        numbers, values = _run(session, encoders, locate)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    if len(numbers) > 1 and (numbers[1:] == numbers[:-1]).any():
        raise QueryError("expression expected one value per record, got several")
    return Matches(numbers, names, [values[at] for at in order.tolist()] if values else [], table)


def compose_query(where: str | None, expressions: Mapping[str, str]) -> tuple[str, list[QueryPart]]:
    """Return the query, and the positions of the user's texts in it."""
    duckdb = import_duckdb()
    connection = get_engine(duckdb).connect()
    parts: list[QueryPart] = []
    text = f"select {RECORD_COLUMN}"

    def add(piece: str, name: str) -> str:
        nonlocal text
        text += "("
        part = QueryPart(len(text.encode()), piece, name)
        with defer_signals():
            _check_expression(duckdb, connection, part)
        parts.append(part)
        # The bracket is on a new line, so that a comment in the text ends before it.
        text += f"{piece}\n)"
        return text

    try:
        for number, (feature, expression) in enumerate(expressions.items()):
            text += ", "
            add(expression, f"the value of {show_name(feature)}")
            text += f" as tfrkit_value_{number}"
        text += f" from {TABLE}"
        if where is not None:
            text += " where "
            add(where, CONDITION)
    finally:
        connection.close()
    return text, parts


def _check_expression(duckdb: Any, connection: Any, part: QueryPart) -> None:
    """Raise unless the text is a single expression with one value per record."""
    start = "select ("
    query = f"{start}{part.text}\n)"
    own = QueryPart(len(start), part.text, part.name)
    place = _find_closing(duckdb, part.text)
    if place is not None:
        facts = {"exception_message": "a bracket is closed that was not opened", "position": len(start) + place}
        raise to_query_error(facts, query, parts=[own])
    content = parse_sql(connection, query)
    if content["error"]:
        raise to_query_error(content, query, parts=[own])
    nodes = [statement["node"] for statement in content["statements"]]
    is_one = len(nodes) == 1 and nodes[0]["type"] == "SELECT_NODE" and len(nodes[0]["select_list"]) == 1
    if not is_one or nodes[0]["from_table"]["type"] not in ("EMPTY", "EMPTY_FROM"):
        raise QueryError(f"{part.name} expected one expression, got {part.text!r:.64}")
    top = nodes[0]["select_list"][0]
    if top.get("function_name") == "row":
        is_value = part.name != CONDITION
        raise QueryError(
            f"{part.name} expected one expression, got several, {part.text!r:.64}",
            hint=Hint(Step("one for each feature: {set}", set=...)) if is_value else "combine conditions with and, or",
        )
    several = next((name for name in _list_functions(top) if name in _SEVERAL), None)
    if several is not None:
        raise QueryError(
            f"{part.name} expected one value for each record, got {several}(), which gives several or none",
            hint="set a whole list: [...], or take one of its values: feature[1]",
        )


def _find_closing(duckdb: Any, text: str) -> int | None:
    """Return the byte position of an unmatched closing bracket outside strings and comments, or None."""
    data = text.encode()
    depth = 0
    for place, _ in duckdb.tokenize(text):
        depth += {b"(": 1, b")": -1}.get(data[place : place + 1], 0)
        if depth < 0:
            return int(place)
    return None


def _list_functions(node: Any) -> Iterator[str]:
    """Yield the functions called per record; those in subqueries are left out."""
    if isinstance(node, list):
        for one in node:
            yield from _list_functions(one)
    elif isinstance(node, dict) and node.get("class") != "SUBQUERY":
        if node.get("class") == "FUNCTION":
            yield str(node.get("function_name")).lower()
        for one in node.values():
            yield from _list_functions(one)


def _find_target(table: QueryTable, name: str) -> str:
    """Return the feature that a name refers to; for SequenceExamples, one of the context: only these can be set."""
    if table.is_raw:
        if name != RAW_COLUMN:
            raise MissingFeatureError(
                f"no feature {show_name(name)}, the records are not Examples",
                hint=f"the bytes of each are {RAW_COLUMN}",
            )
        return name
    schema = table.schema
    try:
        part, plain = find_part(schema, name)
    except MissingFeatureError:
        raise miss_feature(table, name) from None
    if plain in schema.features and plain in schema.feature_lists and part != PARTS[0]:
        if part is None:
            named = " and ".join(f"{one}.{plain}" for one in PARTS)
            what = f"feature {show_name(plain)} is in both parts, {named}"
            raise QueryError(what, hint=f"name it: {PARTS[0]}.{plain}")
        # Only the spec of the feature list says that it cannot be set.
        make_encoder(name, schema.feature_lists[plain], "BIGINT", None)
    return plain


def miss_feature(table: QueryTable, name: str) -> MissingFeatureError:
    """Return the error for a feature that a table does not have."""
    names = list(table.schema.names)
    known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return MissingFeatureError(describe_missing(name, names), shard=table.files[0], hint=f"features: {known}")


def _make_encoder(table: QueryTable, name: str, sql_type: str) -> EncodeValue:
    if table.is_raw:
        if sql_type not in ("VARCHAR", "BLOB"):
            raise SchemaError(f"{RAW_COLUMN} expected bytes or text, got {sql_type}")
        return lambda value: value.encode() if isinstance(value, str) else value
    schema = table.schema
    spec = schema.features.get(name) or schema.feature_lists[name]
    return make_encoder(name, spec, sql_type, find_classes(schema, name, spec, table.files))


def find_classes(schema: Schema, name: str, spec: Spec, files: Sequence[str]) -> Classes | None:
    """Return the classes of a feature: from the schema, else from the class file if this is the only class label."""
    if spec.kind != "int64" or spec.logical != "class_label":
        return None
    if spec.classes is not None:
        return Classes.of(enumerate(spec.classes))
    labels = [other for other, one in schema.features.items() if one.logical == "class_label" and one.classes is None]
    beside = Sidecars(files).class_file if labels == [name] else None
    if beside is not None:
        return Classes.of((beside.id_of(text), text) for text in beside.names)
    return None if spec.num_classes is None else Classes({}, range(spec.num_classes))


def _run(session: QuerySession, encoders: Sequence[EncodeValue], locate: Locate) -> tuple[UInt64Array, list[Values]]:
    numbers: list[int] = []
    values: list[Values] = []
    for number, *row in session.run(_FETCHED_ROWS):
        numbers.append(number)
        if not encoders:
            continue
        try:
            values.append(tuple(encode(value) for encode, value in zip(encoders, row, strict=True)))
        except (CodecError, SchemaError) as error:
            shard, record = locate(number)
            raise error.replace(shard=shard, record=record) from None
    return np.array(numbers, np.uint64), values
