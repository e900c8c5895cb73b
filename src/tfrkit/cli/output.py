"""Printing results: the same rows as text, JSON, JSON lines or CSV.

Results go to stdout, notes to stderr. Text from files is escaped here, in one place: terminal control sequences in a
record must have no effect.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal
from unicodedata import combining, east_asian_width

from tfrkit.cli.exit_codes import ExitCode

Format = Literal["text", "json", "jsonl", "csv"]
Cells = Sequence[object]

# C0 and C1 controls, line separators, bidirectional marks, and surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
# Minimum width of a folded table column.
_MIN_FOLDED = 8
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# One command per process: set while options are parsed, before the result is printed.
_quiet = False
_verdict = ExitCode.DONE


def print_result(
    format: Format,
    *,
    document: Callable[[], Any],
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    text: Callable[[], None],
    columns: Sequence[str] = (),
) -> None:
    """Print one result in the requested format.

    `document` is the whole result for JSON, `rows` its lines for JSON lines and for CSV, whose header is
    `columns`; `text` prints the text form. Only the needed ones are called.
    """
    if format == "text":
        text()
    elif format == "json":
        print_json(document(), indent=2)
    elif format == "jsonl":
        for row in rows():
            print_json(row)
    else:
        print_csv(columns, rows())


def print_document(
    format: Format,
    result: dict[str, Any],
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    text: Callable[[dict[str, Any]], None],
) -> None:
    """Print a result that is one JSON object, with its rows; `text` prints it as text."""
    print_result(format, document=lambda: result, rows=lambda: rows, columns=columns, text=lambda: text(result))


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print one JSON value; non-ASCII text is escaped unless stdout is UTF-8."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, indent=indent, ensure_ascii=not is_utf8, allow_nan=False)
    # Outside strings JSON has none of the unsafe characters except line feeds, so its meaning is unchanged.
    print(_UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text))


def print_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a header and one line per row; a missing value is an empty cell, a list or an object is JSON.

    Line feeds and tabs are quoted; other control characters are escaped.
    """
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([escape_controls(name) for name in columns])
    for row in rows:
        writer.writerow([_UNSAFE.sub(_escape_unless_space, _csv_cell(row.get(name))) for name in columns])


def print_table(columns: Sequence[str], rows: Iterable[Cells], *, right: Sequence[str] = ()) -> None:
    """Print aligned columns; `right` names the right-aligned ones.

    On a terminal long cells are folded to its width; elsewhere every row is one line.
    """
    cells = [[escape_controls(str(cell)) for cell in row] for row in rows]
    # Names of features and query columns come from files, too.
    is_right = [name in right for name in columns]
    columns = [escape_controls(name) for name in columns]
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    widths = [max(map(_measure, column)) for column in zip(columns, *cells, strict=True)]
    if is_terminal:
        widths = _fit_widths(widths, shutil.get_terminal_size().columns)
    for number, row in enumerate([columns, *cells]):
        folded = [_fold(cell, width) if is_terminal else [cell] for cell, width in zip(row, widths, strict=True)]
        for pieces in zip_longest(*folded, fillvalue=""):
            line = "  ".join(map(_align, pieces, widths, is_right)).rstrip()
            print(f"\x1b[1m{line}\x1b[0m" if is_terminal and number == 0 and "NO_COLOR" not in os.environ else line)


def print_line(text: str) -> None:
    """Print one line of a text result."""
    print(escape_controls(text))


def say(text: str) -> None:
    """Print a note on stderr, unless quiet; a note may have several lines."""
    if not is_quiet():
        print_error(text)


def print_error(text: str) -> None:
    """Print on stderr why a command could not finish."""
    print("\n".join(map(escape_controls, text.split("\n"))), file=sys.stderr)


def set_quiet(wanted: bool) -> bool:
    """Suppress notes and progress if set."""
    global _quiet
    _quiet = wanted
    return wanted


def set_verdict(code: ExitCode) -> ExitCode:
    """Set the exit code, which also applies if the reader closes the pipe."""
    global _verdict
    _verdict = code
    return code


def get_verdict() -> ExitCode:
    """Return the exit code to use if the reader closes the pipe."""
    return _verdict


def is_quiet() -> bool:
    """Whether only results and errors are printed."""
    return _quiet


def escape_controls(text: str) -> str:
    """Escape the control characters of a text.

    Example:
        >>> escape_controls("a\\x1b[31mb")
        'a\\\\x1b[31mb'
    """
    return _UNSAFE.sub(_escape_one, text)


def count_noun(number: int, noun: str) -> str:
    """Return a number and its noun, in the plural if needed.

    Example:
        >>> count_noun(1, "record"), count_noun(12000, "record")
        ('1 record', '12,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def name_place(row: Mapping[str, Any]) -> str:
    """Return the place of damage: shard, record, and byte or range of bytes; what is None is left out."""
    where = [row["shard"]]
    if row["record"] is not None:
        where.append(f"record {row['record']}{'' if row['record_certain'] else ' (uncertain)'}")
    if row["stop"] is not None:
        where.append(f"bytes {row['offset']} to {row['stop']}")
    elif row["offset"] is not None:
        where.append(f"byte {row['offset']}")
    return ", ".join(where)


def explain_uncertain(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a note on the meaning of uncertain record numbers, if there are any."""
    if not all(row["record_certain"] for row in rows):
        say("note: uncertain record numbers count each range of lost bytes before them as one record")


def show_nbytes(nbytes: float) -> str:
    """Return a size with its unit.

    Example:
        >>> show_nbytes(1), show_nbytes(999), show_nbytes(1234), show_nbytes(252_410_000)
        ('1 byte', '999 bytes', '1.2 kB', '252.4 MB')
    """
    size = float(nbytes)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return count_noun(round(size), "byte") if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def _escape_one(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMED.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _escape_unless_space(match: re.Match[str]) -> str:
    return match[0] if match[0] in "\n\t" else _escape_one(match)


def _csv_cell(value: Any) -> str:
    if isinstance(value, Mapping):
        from tfrkit.ops.preview import json_to_cell

        value = json_to_cell(value)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


def _measure(text: str) -> int:
    """Return the width of a text on a terminal: Chinese characters take two columns, combining accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def _fit_widths(widths: list[int], limit: int) -> list[int]:
    """Reduce widths to fit into `limit` columns with two spaces between, the widest first."""
    widths = list(widths)
    while sum(widths) + 2 * (len(widths) - 1) > limit and max(widths) > _MIN_FOLDED:
        widths[widths.index(max(widths))] -= 1
    return widths


def _fold(text: str, width: int) -> list[str]:
    """Split the text into lines of at most `width` columns."""
    if _measure(text) <= width:
        return [text]
    lines = [""]
    for one in text:
        if _measure(lines[-1] + one) > width:
            lines.append("")
        lines[-1] += one
    return lines


def _align(text: str, width: int, to_right: bool) -> str:
    space = " " * (width - _measure(text))
    return space + text if to_right else text + space
