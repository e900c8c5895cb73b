"""Printing of rows, shared by all commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfrkit.cli.output import Format, print_csv, print_line, print_result, say

ROWS_HELP = """\
As text, images are shown by format and size, long lists and texts are cut, and other bytes are shown in hex.
The other formats are complete: bytes are a string if they are UTF-8, else {"base64": ...}, NaN
and infinities are {"float": "nan"}, a serialized tensor is {"tensor": {dtype, shape, values}}, a record that
is not an Example is {"record": ...}; an absent feature is absent, one without a value is null."""


def print_rows(format: Format, rows: Iterable[tuple[int, Any]]) -> None:
    """Print (record number, row) pairs as they are read, so that rows before a damaged record are shown."""
    from tfrkit.ops.preview import row_to_json

    values = (row_to_json(row) for _, row in rows)
    if format == "csv":
        # The header needs the names of all rows, so the rows are kept.
        flat = [join_parts(value) for value in values]
        print_csv(list(dict.fromkeys(name for row in flat for name in row)), flat)
        return
    print_result(format, document=lambda: list(values), rows=lambda: values, text=lambda: print_text(rows))


def print_text(rows: Iterable[tuple[int, Any]]) -> None:
    """Print one block per row, one line per feature."""
    from tfrkit.ops.preview import preview_row

    is_empty = True
    for number, row in rows:
        is_empty = False
        print_line(f"record {number}")
        previews = preview_row(row)
        width = max(map(len, previews), default=0)
        for name, text in previews.items():
            print_line(f"  {name.ljust(width)}  {text}")
    if is_empty:
        say("no records")


def join_parts(row: dict[str, Any]) -> dict[str, Any]:
    """Return both parts of a SequenceExample as columns of one row; other rows unchanged."""
    if set(row) != {"context", "feature_lists"} or not all(isinstance(part, dict) for part in row.values()):
        return row
    return {f"{part}/{name}": value for part, values in row.items() for name, value in values.items()}
