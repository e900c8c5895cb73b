"""The limit of a query: DuckDB on the same rows in Parquet, its own columnar format."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
from tool_questions import digest_groups, print_query
from work import Work


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what DuckDB does here, by the name of the work."""
    path = root / "tabular.parquet"
    ask = partial(run_query, path, threads)
    if threads > 1 and not path.exists():
        write_parquet(path, data.sizes_of(root).tabular)
    return {
        "sql_tabular": Work(
            {"duckdb.sql on Parquet": lambda: len(ask()) and data.sizes_of(root).tabular}, lambda: digest_groups(ask())
        )
    }


def write_parquet(path: Path, num_rows: int) -> None:
    """Write the rows of the tabular file."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(data.tabular_columns(num_rows)), path)


def run_query(path: Path, threads: int) -> list[tuple[int, int, float]]:
    """Count and average by group."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    rows: list[tuple[int, int, float]] = connection.sql(print_query(str(path))).fetchall()
    return rows
