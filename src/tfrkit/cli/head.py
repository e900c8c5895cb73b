"""`tfr head`: the first rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from tfrkit.cli.options import FormatOption, OnePath
from tfrkit.cli.output import print_csv, print_line, print_result, say

HELP = """Print the first rows.

\b
  tfr head train.tfrecord -n 3
  tfr head train.tfrecord --format jsonl

As text, images are shown by format and size, long lists and texts are cut, and other bytes are shown in hex.
The other formats give everything: bytes are a string where they are UTF-8 and {"base64": ...} where not, NaN
and infinities are {"float": "nan"}, a serialized tensor is {"tensor": {dtype, shape, values}}, a record that
is no Example is {"record": ...}; an absent feature is absent, one without a value is null.

Reads only the rows it shows.
"""

Count = Annotated[int, typer.Option("-n", min=0, metavar="N", help="How many rows.")]


def run(path: OnePath, n: Count = 5, format: FormatOption = "text") -> int:
    """Print rows as they are read, so that what was read before a damaged record is seen."""
    from tfrkit.ops.preview import row_to_json
    from tfrkit.ops.sample import head_rows

    if format == "csv":
        # The header needs every row's names; only as many rows as were asked for are held.
        flat = [flatten_row(row_to_json(row)) for row in head_rows(path, n)]
        print_csv(collect_names(flat), flat)
        return 0
    rows = head_rows(path, n)
    print_result(
        format,
        document=lambda: [row_to_json(row) for row in rows],
        rows=lambda: map(row_to_json, rows),
        text=lambda: print_text(rows),
    )
    return 0


def print_text(rows: Iterable[Any]) -> None:
    """One block per row, one line per feature."""
    from tfrkit.ops.preview import preview_row

    number = -1
    for number, row in enumerate(rows):
        print_line(f"record {number}")
        previews = preview_row(row)
        width = max(map(len, previews), default=0)
        for name, text in previews.items():
            print_line(f"  {name.ljust(width)}  {text}")
    if number < 0:
        say("no records")


def flatten_row(row: dict[str, Any]) -> dict[str, Any]:
    """A SequenceExample's two parts as columns of one row; other rows as they are."""
    if set(row) != {"context", "feature_lists"} or not all(isinstance(part, dict) for part in row.values()):
        return row
    return {f"{part}/{name}": value for part, values in row.items() for name, value in values.items()}


def collect_names(rows: list[dict[str, Any]]) -> list[str]:
    """Every name, in the order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))
