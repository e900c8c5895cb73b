"""`tfr count`: count records."""

from __future__ import annotations

from typing import Any

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, OnCluster, Paths
from tfrkit.cli.output import print_result, print_table

HELP = """Count the records of each file.

\b
  tfr count 'train-*'
  tfr count data/ --format json

Reads the header of each frame and skips its payload, limited by disk seeks. With an index
(see tfr index) the count is read from there. A compressed file without an index has to be inflated once.

JSON: records, files (path, records).
"""

COLUMNS = ("path", "records")


def run(
    paths: Paths,
    *,
    on: OnCluster,
    format: FormatOption = "text",
) -> int:
    """Print one line per file, and the total of several."""
    from tfrkit.ops.count import count_records

    counted = count_records(paths, **on.choose())
    rows = [to_row(path, records) for path, records in counted]
    print_result(
        format,
        document=lambda: {"records": sum_records(rows), "files": rows},
        rows=lambda: rows,
        columns=COLUMNS,
        text=lambda: print_text(rows),
    )
    return ExitCode.DONE


def to_row(path: str, records: int) -> dict[str, Any]:
    """Return one file as a row."""
    return {"path": path, "records": records}


def sum_records(rows: list[dict[str, Any]]) -> int:
    """Return the number of records in all files."""
    return sum(row["records"] for row in rows)


def print_text(rows: list[dict[str, Any]]) -> None:
    """Print counts first and without thousands separators, for scripts."""
    lines = [(row["records"], row["path"]) for row in rows]
    if len(rows) > 1:
        lines.append((sum_records(rows), "total"))
    print_table(("records", "path"), lines, right=("records",))
