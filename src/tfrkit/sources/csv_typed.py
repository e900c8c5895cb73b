"""CSV straight into columns: the fast path, taken only if no cell loses anything.

Types are given, or guessed from rows taken all over the file, and the core parses stretches of it on several threads.
It takes a number only where it is written as numbers are: 7 and not 007. At any other cell, a quote, a ragged row or
a wrong guess the caller reads cell by cell instead, which reports what is wrong.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal

from tfrkit import _native
from tfrkit._ahead import count_cores, map_ahead
from tfrkit._limits import LIMITS
from tfrkit.codec.columns import BytesColumn
from tfrkit.sources.cell_types import kind_of_cell
from tfrkit.sources.csv_file import CsvFile
from tfrkit.sources.table_spool import SpoolColumn, TableSpooler

GuessedKind = Literal["int64", "float", "text", "none"]
Parsed = tuple[int, list[tuple[Any, Any, Any, int, int]]]

# Rows sampled for a guess, and the number of places in the file.
_NUM_GUESSED = 200
_NUM_PLACES = 8
_LOOK_NBYTES = 1 << 16
_NUM_THREADS = 4


def spool_typed(file: CsvFile, spooler: TableSpooler, types: Mapping[str, str]) -> tuple[int, list[str]] | None:
    """Spool all columns: the number of rows, and columns without any value; None where that needs a closer look.

    `types` are those given by the user, by column. The spool is empty again where the result is None.
    """
    if file.encoding.lower() not in ("utf-8", "utf8") or len(file.separator.encode()) != 1:
        return None
    with open(file.path, "rb", buffering=0) as opened:
        descriptor = opened.fileno()
        size = os.fstat(descriptor).st_size
        start = _find_first_row(descriptor, file.has_header)
        kinds = None if start is None else _guess(descriptor, file, start, size)
        if start is None or kinds is None:
            return None
        kinds = [types.get(name, kind) for name, kind in zip(file.columns, kinds, strict=True)]  # type: ignore[misc]
        columns = [
            None if kind == "none" else spooler.add(name, kind) for name, kind in zip(file.columns, kinds, strict=True)
        ]
        num_rows = _spool(descriptor, file, kinds, columns, _cut(descriptor, start, size), types)
    if num_rows is None:
        spooler.clear()
        return None
    return num_rows, [name for name, kind in zip(file.columns, kinds, strict=True) if kind == "none"]


def _spool(
    descriptor: int,
    file: CsvFile,
    kinds: Sequence[GuessedKind],
    columns: Sequence[SpoolColumn | None],
    stretches: Iterator[tuple[int, int]],
    given: Container[str],
) -> int | None:
    """Parse the stretches and append them in order; the number of rows, or None where one needs a closer look."""
    missing = [word.encode() for word in sorted(file.missing) if word]

    def parse(stretch: tuple[int, int]) -> Parsed | None:
        rows = _read_stretch(descriptor, *stretch)
        return None if rows is None else _native.parse_csv(rows, file.separator, kinds, missing)

    num_rows = 0
    num_cells = [0] * len(columns)
    num_like_numbers = [0] * len(columns)
    parsing = map_ahead(parse, stretches, threads=min(_NUM_THREADS, count_cores()))
    with contextlib.closing(parsing):
        for parsed in parsing:
            if parsed is None:
                return None
            for index, (values, offsets, gaps, num_missing, num_like) in enumerate(parsed[1]):
                column = columns[index]
                num_cells[index] += parsed[0] - num_missing
                num_like_numbers[index] += num_like
                if column is not None:
                    column.append(values if offsets is None else BytesColumn(values, offsets), None, gaps)
            num_rows += parsed[0]
    # A column guessed as text in which most cells are numbers is a mistake somewhere, or no text at all.
    counts = zip(file.columns, num_like_numbers, num_cells, strict=True)
    return None if any(2 * like > count and name not in given for name, like, count in counts) else num_rows


def _read_stretch(descriptor: int, start: int, stop: int) -> bytes | None:
    """All bytes of a range; None if the file was truncated."""
    pieces = []
    # The system gives at most 2 GB at a time.
    while start < stop and (piece := os.pread(descriptor, stop - start, start)):
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces) if start == stop else None


def _find_first_row(descriptor: int, has_header: bool) -> int | None:
    """Where the rows start: after the byte order mark and the header; None where it is not clear where that ends."""
    mark = 3 if os.pread(descriptor, 3, 0) == b"\xef\xbb\xbf" else 0
    if not has_header:
        return mark
    stop = _find_line(descriptor, mark)
    header = (_read_stretch(descriptor, mark, stop) or b"").removesuffix(b"\n").removesuffix(b"\r")
    # A line break inside quotes ends no line; one more quote opens a cell than closes one then.
    return None if b"\r" in header or header.count(b'"') % 2 else stop


def _find_line(descriptor: int, offset: int) -> int:
    """Where the line after the one at `offset` starts, or the end of the file."""
    while piece := os.pread(descriptor, _LOOK_NBYTES, offset):
        found = piece.find(b"\n")
        if found >= 0:
            return offset + found + 1
        offset += len(piece)
    return offset


def _cut(descriptor: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Stretches of whole lines of about one size."""
    while start < size:
        stop = _find_line(descriptor, start + LIMITS.csv_nbytes) if start + LIMITS.csv_nbytes < size else size
        yield start, stop
        start = stop


def _guess(descriptor: int, file: CsvFile, start: int, size: int) -> list[GuessedKind] | None:
    """What rows from all over the file say; None where one of them is not a plain row."""
    seen: list[set[str]] = [set() for _ in file.columns]
    for place in range(_NUM_PLACES):
        offset = start + (size - start) * place // _NUM_PLACES
        if place:
            offset = _find_line(descriptor, offset)
        lines = os.pread(descriptor, _LOOK_NBYTES, offset).split(b"\n")
        # The last one may be cut off; it counts where it ends with the file.
        if offset + _LOOK_NBYTES < size:
            lines.pop()
        for line in lines[: _NUM_GUESSED // _NUM_PLACES]:
            if not line.strip(b"\r"):
                continue
            cells = line.removesuffix(b"\r").decode("utf-8", "replace").split(file.separator)
            if len(cells) != len(seen):
                return None
            for kinds, cell in zip(seen, cells, strict=True):
                if cell not in file.missing:
                    kinds.add(kind_of_cell(cell))
    return [
        "none" if not kinds else "int64" if kinds == {"int64"} else "text" if "text" in kinds else "float"
        for kinds in seen
    ]
