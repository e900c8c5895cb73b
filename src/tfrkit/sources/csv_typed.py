"""Parse CSV directly into columns: the fast path, used only if no cell loses anything.

Types are given or guessed from rows sampled all over the file, and the core parses pieces of the file on several
threads. It accepts only numbers in their usual form: 7 but not 007. Where a piece has another cell, the column is read
as text there and its cells are counted one by one; if that shows that the guess was wrong, the file is parsed again
with the right types. After a ragged row or unsound quotes the caller reads the whole file cell by cell instead, which
reports the problem.
"""

from __future__ import annotations

import bisect
import contextlib
import csv
import io
import itertools
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit._threads import count_cores, map_ahead
from tfrkit.codec.columns import BytesColumn
from tfrkit.sources.cell_types import CellKind, CellTally, convert_cells, decide_kind, is_gap, kind_of_cell, tally_cells
from tfrkit.sources.csv_file import CsvFile
from tfrkit.sources.table_spool import SpoolColumn, TableSpooler
from tfrkit.storage.inputs import copy_of

GuessedKind = Literal["int64", "float", "text", "none"]

_MAX_HEADER_NBYTES = 1 << 20
_NUM_THREADS = 4
_MAX_KNOWN = 1000
# Rounds until all guesses are right: one wrong guess may hide another, text that is a float that is an integer.
_MAX_ROUNDS = 4


class Place(NamedTuple):
    """A place between two rows: bytes, rows and lines before it."""

    offset: int
    num_rows: int
    num_lines: int


class Typed(NamedTuple):
    """Columns that were parsed: the counts of the cell types of each column, and the ends of the parsed pieces."""

    tallies: list[CellTally]
    ends: list[Place]

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.ends[-1].num_rows

    def lines_of(self, file: CsvFile, rows: Iterable[int]) -> dict[int, int]:
        """Return the line in which each of these rows starts, as `CsvFile.lines_of`, but read only their pieces."""
        lines = {}
        with open(copy_of(file.path), "rb", buffering=0) as opened:
            for row in rows:
                index = bisect.bisect_right(self.ends, row, key=lambda end: end.num_rows)
                if 0 < index < len(self.ends):
                    start = self.ends[index - 1]
                    text = _read_stretch(opened.fileno(), start.offset, self.ends[index].offset) or b""
                    inside = file.rows_of(io.StringIO(text.decode(), newline=""))
                    line, _ = next(itertools.islice(inside, row - start.num_rows, None))
                    lines[row] = start.num_lines + line
        return lines


class _Piece(NamedTuple):
    """Some rows as the core parsed them: columns, and the indexes of those that were read as text instead."""

    num_rows: int
    columns: list[tuple[Any, Any, Any, int, int]]
    others: frozenset[int]
    nbytes: int
    num_lines: int


@dataclass
class _Column:
    """A column while it is parsed."""

    kind: GuessedKind
    given: CellKind | None
    spooled: SpoolColumn | None
    tally: CellTally = field(default_factory=CellTally)

    def add(self, num_rows: int, cells: tuple[Any, Any, Any, int, int]) -> None:
        """Spool and count rows that are of this kind."""
        values, offsets, gaps, num_missing, num_simpler = cells
        tally = self.tally
        num_others = num_rows - num_missing - num_simpler
        tally.num_missing += num_missing
        if self.kind == "int64":
            tally.num_int += num_others
        elif self.kind == "float":
            tally.num_int += num_simpler
            tally.num_float += num_others
        elif self.kind == "text":
            values = BytesColumn(values, offsets)
            tally.num_float += num_simpler  # or integers, which does not matter for text
            tally.num_text += num_others
            tally.has_words = tally.has_words or (self.given is None and _has_words(values))
        if self.spooled is not None and self.is_right:
            self.spooled.append(values, None, gaps)

    def add_others(self, first_row: int, texts: tuple[Any, Any, Any, int, int]) -> None:
        """Count rows with a cell that is not of this kind, one by one, and spool them if all of them are after all."""
        values, offsets, gaps, _, _ = texts
        cells: list[str | None] = [cell.decode() for cell in BytesColumn(values, offsets)]
        if gaps is not None:
            cells = [None if gap else cell for cell, gap in zip(cells, gaps.tolist(), strict=True)]
        tally_cells(cells, self.tally, first_row, self.given)
        if self.spooled is not None and self.is_right:
            values, missing = convert_cells(cells, cast(CellKind, self.kind))
            self.spooled.append(values, None, missing)

    @property
    def is_right(self) -> bool:
        """Whether all cells so far fit into this kind."""
        tally = self.tally
        if self.kind == "int64":
            return not (tally.num_text or tally.num_float or tally.num_wide)
        if self.kind == "float":
            return not (tally.num_text or tally.num_inexact)
        return self.kind == "text" or tally.num_cells == 0

    def better_kind(self) -> GuessedKind:
        """Return the kind to parse the column as: its own if the counts are exact enough for a verdict."""
        tally = self.tally
        verdict = decide_kind(tally, self.given)
        if self.given is None and self.kind == "int64" and tally.num_float and not tally.num_text:
            # Integers that float64 does not hold are counted only in a column of floats.
            return "float"
        if verdict.reason:
            # The cells that a reason names are counted only where the core refuses them; it refuses none as text.
            return "float" if self.kind == "text" else self.kind
        return verdict.kind or "none"


def spool_typed(file: CsvFile, spooler: TableSpooler, types: Mapping[str, str]) -> Typed | None:
    """Spool all columns; None if the fast path fails.

    `types` are the types that the user gave, by column. If the result is None, the spool is empty again. So it is if
    a column has no kind, as `decide_kind` finds from the counts.
    """
    if file.encoding.lower() not in ("utf-8", "utf8") or len(file.separator.encode()) != 1:
        return None
    if file.separator in '"\r\n':
        return None
    with open(copy_of(file.path), "rb", buffering=0) as opened:
        descriptor = opened.fileno()
        size = os.fstat(descriptor).st_size
        start = _find_first_row(descriptor, file)
        guessed = None if start is None else _guess(descriptor, file, start, size)
        if start is None or guessed is None:
            return None
        given = cast("list[CellKind | None]", [types.get(name) for name in file.columns])
        kinds = [wanted or kind for wanted, kind in zip(given, guessed, strict=True)]
        for _ in range(_MAX_ROUNDS):
            columns = [
                _Column(kind, wanted, None if kind == "none" else spooler.add(name, kind))
                for name, kind, wanted in zip(file.columns, kinds, given, strict=True)
            ]
            ends = [Place(start, 0, _count_lines(_read_stretch(descriptor, 0, start) or b""))]
            is_sound = _spool(file, columns, _cut(descriptor, file.separator, start, size), ends)
            better = [column.better_kind() for column in columns]
            if not is_sound or better != kinds or not all(column.is_right for column in columns):
                spooler.clear()
            if not is_sound:
                return None
            if better == kinds:
                return Typed([column.tally for column in columns], ends)
            kinds = better
    return None


def _spool(
    file: CsvFile, columns: Sequence[_Column], stretches: Iterator[memoryview | None], ends: list[Place]
) -> bool:
    """Parse the pieces, append them in order, and add their ends; return False if the fast path fails."""
    missing = [word.encode() for word in sorted(file.missing) if word]

    def parse(rows: memoryview | None) -> _Piece | None:
        kinds: list[str] = [column.kind for column in columns]
        others: set[int] = set()
        while rows is not None:
            parsed = _native.parse_csv(rows, file.separator, kinds, missing)
            if parsed is None:
                return None
            if not isinstance(parsed, int):
                return _Piece(*parsed, frozenset(others), len(rows), _count_lines(bytes(rows)))
            kinds[parsed] = "text"
            others.add(parsed)
        return None

    parsing = map_ahead(parse, stretches, threads=min(_NUM_THREADS, count_cores()))
    with contextlib.closing(parsing):
        for piece in parsing:
            if piece is None:
                return False
            before = ends[-1]
            for index, (column, cells) in enumerate(zip(columns, piece.columns, strict=True)):
                if index in piece.others:
                    column.add_others(before.num_rows, cells)
                else:
                    column.add(piece.num_rows, cells)
            added = piece.nbytes, piece.num_rows, piece.num_lines
            ends.append(Place(*map(operator.add, before, added)))
    return True


def _count_lines(text: bytes) -> int:
    """Return the number of line ends as the csv module counts them: a carriage return alone is one, too."""
    num_returns = text.count(b"\r")
    return text.count(b"\n") + (num_returns - text.count(b"\r\n") if num_returns else 0)


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
    for place in range(LIMITS.csv_sample_places):
        offset = start + (size - start) * place // LIMITS.csv_sample_places
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
            if len(rows) == LIMITS.csv_sample_rows:
                break
    except csv.Error:
        # If rows were read before, the error is usually a quoted cell that continues after the end of the text.
        if not rows:
            return None
    rows = rows[num_skipped:]
    return rows if all(len(row) == len(file.columns) for row in rows) else None
