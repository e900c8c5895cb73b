"""Parse CSV directly into columns: the fast path, used only if no cell loses anything.

Types are given or guessed from rows sampled all over the file, and the core parses pieces of the file on several
threads. It accepts only numbers in their usual form: 7 but not 007. After any other cell, a ragged row, unsound quotes
or a wrong guess the caller reads the file cell by cell instead, which reports the problem.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit._threads import count_cores, map_ahead
from tfrkit.codec.columns import BytesColumn
from tfrkit.sources.cell_types import is_gap, is_text, kind_of_cell
from tfrkit.sources.csv_file import CsvFile
from tfrkit.sources.table_spool import SpoolColumn, TableSpooler
from tfrkit.storage.inputs import copy_of

GuessedKind = Literal["int64", "float", "text", "none"]
Parsed = tuple[int, list[tuple[Any, Any, Any, int, int]]]

# Number of rows sampled for a guess, and number of places in the file that they are read from.
_NUM_GUESSED = 200
_NUM_PLACES = 8
_MAX_HEADER_NBYTES = 1 << 20
_NUM_THREADS = 4
_MAX_KNOWN = 1000


class Typed(NamedTuple):
    """Columns that were spooled: the number of rows, columns without any value, and numbers in columns of text."""

    num_rows: int
    empty: list[str]
    mixed: dict[str, tuple[int, int]]  # numbers and cells, by column whose type was not given


def spool_typed(file: CsvFile, spooler: TableSpooler, types: Mapping[str, str]) -> Typed | None:
    """Spool all columns; None if the fast path fails.

    `types` are the types that the user gave, by column. If the result is None, the spool is empty again.
    """
    if file.encoding.lower() not in ("utf-8", "utf8") or len(file.separator.encode()) != 1:
        return None
    if file.separator in '"\r\n':
        return None
    with open(copy_of(file.path), "rb", buffering=0) as opened:
        descriptor = opened.fileno()
        size = os.fstat(descriptor).st_size
        start = _find_first_row(descriptor, file)
        kinds = None if start is None else _guess(descriptor, file, start, size)
        if start is None or kinds is None:
            return None
        kinds = [types.get(name, kind) for name, kind in zip(file.columns, kinds, strict=True)]  # type: ignore[misc]
        columns = [
            None if kind == "none" else spooler.add(name, kind) for name, kind in zip(file.columns, kinds, strict=True)
        ]
        typed = _spool(file, kinds, columns, _cut(descriptor, file.separator, start, size), types)
    if typed is None:
        spooler.clear()
    return typed


def _spool(
    file: CsvFile,
    kinds: Sequence[GuessedKind],
    columns: Sequence[SpoolColumn | None],
    stretches: Iterator[memoryview | None],
    given: Container[str],
) -> Typed | None:
    """Parse the pieces and append them in order; None if the fast path fails."""
    missing = [word.encode() for word in sorted(file.missing) if word]

    def parse(rows: memoryview | None) -> Parsed | None:
        return None if rows is None else _native.parse_csv(rows, file.separator, kinds, missing)

    num_rows = 0
    num_cells = [0] * len(columns)
    num_simpler = [0] * len(columns)
    has_words = [False] * len(columns)
    parsing = map_ahead(parse, stretches, threads=min(_NUM_THREADS, count_cores()))
    with contextlib.closing(parsing):
        for parsed in parsing:
            if parsed is None:
                return None
            for index, (values, offsets, gaps, num_missing, simpler) in enumerate(parsed[1]):
                column = columns[index]
                num_cells[index] += parsed[0] - num_missing
                num_simpler[index] += simpler
                if column is not None:
                    cells = values if offsets is None else BytesColumn(values, offsets)
                    column.append(cells, None, gaps)
                    has_words[index] = has_words[index] or (offsets is not None and _has_words(cells))
            num_rows += parsed[0]
    mixed = {}
    for name, kind, count, simpler, words in zip(file.columns, kinds, num_cells, num_simpler, has_words, strict=True):
        if name not in given:
            if not _is_decided(kind, count, simpler, words):
                return None
            if kind == "text" and simpler:
                mixed[name] = simpler, count
    empty = [name for name, kind in zip(file.columns, kinds, strict=True) if kind == "none"]
    return Typed(num_rows, empty, mixed)


def _is_decided(kind: GuessedKind, num_cells: int, num_simpler: int, has_words: bool) -> bool:
    """Return whether all cells of a column confirm the guess."""
    if kind == "text":
        return num_cells > 0 and is_text(num_cells, num_simpler, has_words)
    return kind == "none" or num_simpler < num_cells


def _has_words(cells: Any) -> bool:
    """Return whether a cell is neither a number nor a word for a missing cell; the first cell usually is."""
    known: set[bytes] = {b""}
    for cell in cells:
        if cell not in known:
            text = cell.decode()
            if kind_of_cell(text) == "text" and not is_gap(text):
                return True
            if len(known) < _MAX_KNOWN:
                known.add(cell)
    return False


def _read_stretch(descriptor: int, start: int, stop: int) -> bytes | None:
    """Read all bytes of a range; None if the file was truncated."""
    pieces = []
    # The operating system reads at most 2 GB at a time.
    while start < stop and (piece := _platform.read_at(descriptor, stop - start, start)):
        pieces.append(piece)
        start += len(piece)
    return b"".join(pieces) if start == stop else None


def _find_first_row(descriptor: int, file: CsvFile) -> int | None:
    """Return the offset of the first row after byte order mark and header; None if the end of the header is unclear."""
    mark = 3 if _platform.read_at(descriptor, 3, 0) == b"\xef\xbb\xbf" else 0
    if not file.has_header:
        return mark
    head = _platform.read_at(descriptor, _MAX_HEADER_NBYTES, mark)
    stop = _native.find_csv_row_end(head, file.separator, first=True)
    # A carriage return without a line feed ends a header, too; such files are left to the slow path.
    return mark + stop if stop and b"\r" not in head[:stop].removesuffix(b"\r\n") else None


def _cut(descriptor: int, separator: str, start: int, size: int) -> Iterator[memoryview | None]:
    """Yield pieces of whole rows of about equal size; None at the end if the file was truncated or a row is too long.

    A line end inside quotes does not end a row, so each cut is searched for from the one before.
    """
    nbytes = LIMITS.csv_nbytes
    while start < size:
        rows = _read_stretch(descriptor, start, min(start + nbytes, size)) if nbytes <= LIMITS.csv_row_nbytes else None
        if rows is None:
            yield None
            return
        stop = len(rows) if start + nbytes >= size else _native.find_csv_row_end(rows, separator, first=False)
        if stop == 0:
            nbytes *= 2
            continue
        yield memoryview(rows)[:stop]
        start += stop
        nbytes = LIMITS.csv_nbytes


def _guess(descriptor: int, file: CsvFile, start: int, size: int) -> list[GuessedKind] | None:
    """Guess the kinds of columns from rows all over the file; None if one of the first rows is not sound.

    Text with line ends inside quotes may be mistaken for rows. Parsing all cells detects that.
    """
    seen: list[set[str]] = [set() for _ in file.columns]
    for place in range(_NUM_PLACES):
        offset = start + (size - start) * place // _NUM_PLACES
        piece = _platform.read_at(descriptor, LIMITS.csv_sample_nbytes, offset)
        # The last line may be cut off, so it is used only at the end of the file.
        text = piece[: None if offset + len(piece) == size else piece.rfind(b"\n") + 1].decode("utf-8", "replace")
        rows = _read_rows(text, file) if place == 0 else _find_rows(text, file)
        if rows is None:
            return None
        for row in rows:
            for kinds, cell in zip(seen, row, strict=True):
                if cell not in file.missing:
                    kinds.add(kind_of_cell(cell))
    return [
        "none" if not kinds else "int64" if kinds == {"int64"} else "text" if "text" in kinds else "float"
        for kinds in seen
    ]


def _find_rows(text: str, file: CsvFile) -> list[list[str]]:
    """Return the rows of a piece of a file, from its second line on. The piece may start inside a quoted cell."""
    text = text.partition("\n")[2]
    quoted = _read_rows('"' + text, file, num_skipped=1) if '"' in text else None
    return quoted if quoted is not None else _read_rows(text, file) or []


def _read_rows(text: str, file: CsvFile, *, num_skipped: int = 0) -> list[list[str]] | None:
    """Return the first rows of a text; None if it is not sound or the number of cells of a row is wrong."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=file.separator, strict=True):
            if row:
                rows.append(row)
            if len(rows) == _NUM_GUESSED // _NUM_PLACES:
                break
    except csv.Error:
        # If rows were read before, the error is usually a quoted cell that continues after the end of the text.
        if not rows:
            return None
    rows = rows[num_skipped:]
    return rows if all(len(row) == len(file.columns) for row in rows) else None
