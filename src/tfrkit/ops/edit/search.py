"""Search for records by an SQL condition; the search reports progress and can be stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from tfrkit._threads import choose_threads
from tfrkit._types import UInt64Array
from tfrkit.errors import QueryError
from tfrkit.ops.edit.query import TABLE, compose_query
from tfrkit.ops.query.engine import get_engine, import_duckdb
from tfrkit.ops.query.errors import QueryPart
from tfrkit.ops.query.places import RECORD_COLUMN
from tfrkit.ops.query.query import QuerySession
from tfrkit.ops.query.scan import QueryPolicy
from tfrkit.ops.query.text import parse_query


def compose_condition(where: str | None) -> tuple[str, list[QueryPart]]:
    """Return the query of a condition over the records; `QueryError` if it names other files."""
    text, parts = compose_query(where, {})
    with contextlib.closing(get_engine(import_duckdb()).connect()) as connection:
        others = [name for name in parse_query(connection, text).tables if name != TABLE]
    if others:
        raise QueryError(f"a condition expected columns of the records, got another table, {others[0]!r:.64}")
    return text, parts


class RecordSearch:
    """A search for the records that match an SQL condition, which reports progress and can be stopped.

    Memory: 8 bytes per matching record. Call `run` once, and `close` at the end.
    """

    def __init__(
        self,
        paths: Sequence[str],
        where: str | None,
        *,
        order_by: str | None = None,
        policy: QueryPolicy | None = None,
        timeout: float | None = None,
    ) -> None:
        """Prepare the search. `order_by` is an SQL expression; without it, records are in file order."""
        text, parts = compose_condition(where)
        if order_by is not None:
            text += f" order by {order_by}, {RECORD_COLUMN}"
        self._is_sorted = order_by is not None
        self._session = QuerySession(
            text,
            {TABLE: list(paths)},
            threads=choose_threads(None),
            timeout=timeout,
            parts=parts,
            policy=policy,
        )
        try:
            self._session.tables[TABLE].refuse_column(RECORD_COLUMN)
        except QueryError:
            self._session.close()
            raise

    @property
    def num_read(self) -> int:
        """Records read so far."""
        return max((scan.num_read for scan in self._session.scans), default=0)

    @property
    def reads_records(self) -> bool:
        """Whether records are decoded; a condition on numbers alone reads none. Known after `run`."""
        return any(scan.features for scan in self._session.scans)

    def run(self) -> UInt64Array:
        """Return the numbers of the records, counted over all files: ascending, or in the requested order."""
        self._session.describe()
        numbers = np.ma.getdata(self._session.fetch_numbers(self._session.parsed)).astype(np.uint64)
        return numbers if self._is_sorted else np.sort(numbers)

    def stop(self) -> None:
        """End `run` with an error, from another thread."""
        self._session.connection.interrupt()

    def close(self) -> None:
        """Close files and connection."""
        self._session.close()
