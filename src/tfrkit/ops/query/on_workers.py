"""A query on the workers of a cluster: each runs a part of it over one shard, this process runs the rest.

Workers return partial aggregates, or rows with the columns that the query names; both are bounded, and a query that
would bring more to this machine is refused. The tables of a worker have the columns that this process found, so that
all of them agree on names and types.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrkit._limits import LIMITS
from tfrkit._types import Verify
from tfrkit.engines.base import Tick
from tfrkit.errors import Hint, QueryError
from tfrkit.ops.query.engine import get_engine, import_duckdb
from tfrkit.ops.query.errors import read_facts, to_query_error
from tfrkit.ops.query.partials import PARTIALS, CutQuery, cut_aggregates, cut_rows
from tfrkit.ops.query.places import PLACE_COLUMNS, SPLIT_COLUMN
from tfrkit.ops.query.scan import KnownTable, QueryTable, quote_table
from tfrkit.ops.query.text import ParsedQuery, parse_query
from tfrkit.passes.frame_sources import measure_on
from tfrkit.passes.shard_tasks import Workers

if TYPE_CHECKING:
    from tfrkit.ops.query.query import QuerySession

_FETCHED_ROWS = 1024


class PartialRows(NamedTuple):
    """The result of a worker: types and values of columns, and their size in bytes."""

    types: list[str]
    columns: list[list[Any]]
    nbytes: int


@dataclass(frozen=True)
class QueryTask:
    """Runs a query over one shard of one table; `text` is the whole query, which chooses the columns."""

    path: str
    name: str
    text: str
    partial: str
    known: KnownTable
    everything: bool
    verify: Verify
    max_nbytes: int

    def run(self, tick: Tick) -> PartialRows:
        """Return the rows."""
        duckdb = import_duckdb()
        engine = get_engine(duckdb)
        with contextlib.closing(engine.connect()) as connection:
            table = QueryTable(self.path, verify=self.verify, known=self.known)
            try:
                parsed = parse_query(connection, self.text)
                scan = table.scan(parsed, everything=self.everything, threads=1)
                table.show(connection, self.name, "tfrkit_scan", scan, parsed)
                try:
                    rows = self._fetch(connection)
                except duckdb.Error as error:
                    if scan.error is not None:
                        raise scan.error from None
                    facts = read_facts(error)
                    facts.pop("position", None)  # in a text that the user did not write
                    columns = [*table.columns, *((name, name) for name in PLACE_COLUMNS)]
                    raise to_query_error(facts, self.text, columns=columns) from None
                tick(scan.num_read, 0, 0)
                return rows
            finally:
                table.shard_set.close()

    def _fetch(self, connection: Any) -> PartialRows:
        result = connection.execute(self.partial)
        types = [str(column[1]) for column in result.description]
        columns: list[list[Any]] = [[] for _ in types]
        nbytes = 0
        while rows := result.fetchmany(_FETCHED_ROWS):
            for column, values in zip(columns, zip(*rows, strict=True), strict=True):
                column.extend(values)
            nbytes += _measure(rows)
            _refuse_above(nbytes, self.max_nbytes)
        return PartialRows(types, columns, nbytes)


def _measure(value: Any) -> int:
    """Return the approximate size of a value in bytes."""
    if isinstance(value, (str, bytes)):
        return 8 + len(value)
    if isinstance(value, (list, tuple)):
        return 8 + sum(map(_measure, value))
    return 8 + sum(map(_measure, value.values())) if isinstance(value, dict) else 8


def _refuse_above(nbytes: int, limit: int) -> None:
    if nbytes > limit:
        raise QueryError(
            f"the query brings more than {limit / 1e6:,.0f} MB from the workers to this machine",
            hint=Hint(
                "workers put count, sum, min, max and avg of one table together by themselves, and apply its WHERE",
                "any other query runs on one machine, without an engine",
            ),
        )


def gather_tables(session: QuerySession, workers: Workers, parsed: ParsedQuery, text: str, verify: Verify) -> str:
    """Let workers read the tables of a prepared query; return the query to run over their results.

    `text` is the query that this process would run.
    """
    connection = session.connection
    whole = ParsedQuery(text, parsed.tables, parsed.names, parsed.wants_all, parsed.whole_structs, parsed.statement)
    cuts = {name: _cut(session, whole, name) for name in session.tables}
    left = LIMITS.gathered_nbytes
    for number, (name, table) in enumerate(session.tables.items()):
        cut = cuts[name]
        place = PARTIALS if cut.merge is not None else f"tfrkit_rows_{number}"
        session.call(partial(_create, connection, place, cut.partial))
        tasks = _make_tasks(session, workers, table, name, parsed, cut, verify)
        for rows in workers.run(tasks, lambda *_: None):
            left -= rows.nbytes
            session.call(partial(_insert, connection, place, rows))
            if left < LIMITS.gathered_nbytes // 2 and cut.merge is not None:
                session.call(partial(_merge, connection, cut.merge))
                left = min(LIMITS.gathered_nbytes, left + _count_saved(connection, rows, LIMITS.gathered_nbytes - left))
            _refuse_above(LIMITS.gathered_nbytes - left, LIMITS.gathered_nbytes)
        if cut.merge is None:
            connection.execute(f"create or replace temp view {quote_table(name)} as select * from {place}")
    only = list(cuts.values())
    return only[0].final if len(only) == 1 else text


def _cut(session: QuerySession, parsed: ParsedQuery, name: str) -> CutQuery:
    """Cut a query for one of its tables, in the best way that DuckDB can bind."""
    connection = session.connection
    is_only = len(session.tables) == 1 and len(parsed.tables) == 1
    if is_only:
        columns = [column for column, _ in session.tables[name].columns]
        expected = [kind for _, kind in session.described]
        with contextlib.suppress(session.duckdb.Error):
            cut = cut_aggregates(connection, parsed, columns, [column for column, _ in session.described])
            if cut is not None:
                session.call(partial(_create, connection, PARTIALS, cut.partial))
                if [str(kind) for kind in connection.sql(cut.final).types] == expected:
                    return cut
        with contextlib.suppress(session.duckdb.Error):
            cut = cut_rows(connection, parsed, name, with_filter=True)
            if [str(kind) for kind in connection.sql(cut.final).types] == expected:
                _ = connection.sql(cut.partial).types
                return cut
    return cut_rows(connection, parsed, name, with_filter=False)


def _make_tasks(
    session: QuerySession,
    workers: Workers,
    table: QueryTable,
    name: str,
    parsed: ParsedQuery,
    cut: CutQuery,
    verify: Verify,
) -> list[QueryTask]:
    counts = table.shard_set.records.known_counts
    if counts is None:
        counts = [count.num_records for count in measure_on(workers, table.files)]
    splits = table.shard_set.sidecars.split_names if parsed.names_column(SPLIT_COLUMN) else repeat(None)
    return [
        QueryTask(
            path,
            name,
            parsed.text,
            cut.partial,
            table.know(first, split),
            session.is_everything,
            verify,
            LIMITS.gathered_nbytes,
        )
        for path, first, split in zip(table.files, accumulate(counts, initial=0), splits, strict=False)
    ]


def _create(connection: Any, place: str, partial: str) -> None:
    """Make an empty table with the columns of a partial result. Nothing is read."""
    relation = connection.sql(partial)
    columns = zip(map(quote_table, relation.columns), map(str, relation.types), strict=True)
    connection.execute(f"create or replace temp table {place} ({', '.join(map(' '.join, columns))})")


def _insert(connection: Any, place: str, rows: PartialRows) -> None:
    if rows.columns and rows.columns[0]:
        values = ", ".join(f"unnest(?::{kind}[])" for kind in rows.types)
        connection.execute(f"insert into {place} select {values}", rows.columns)


def _merge(connection: Any, merge: str | None) -> None:
    connection.execute(f"create or replace temp table tfrkit_merged as {merge}")
    connection.execute(f"create or replace temp table {PARTIALS} as select * from tfrkit_merged")


def _count_saved(connection: Any, rows: PartialRows, nbytes: int) -> int:
    """Estimate the bytes that are gone after partial results were merged."""
    ((left,),) = connection.execute(f"select count(*) from {PARTIALS}").fetchall()
    mean = rows.nbytes / max(1, len(rows.columns[0]) if rows.columns else 0)
    return max(0, nbytes - int(left * mean))
