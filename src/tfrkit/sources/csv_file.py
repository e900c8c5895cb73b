"""CSV files: detect the separator and the names of columns, and read cells in blocks of rows.

Files are read with Python's csv module; see `csv_typed` for the fast path for sound files. Rows with too few or too
many cells are never repaired; they are reported with their lines.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.sources.walk import describe_unreadable
from tfrkit.storage.inputs import copy_of

# Separators that are detected; if two are equally frequent, the first one is chosen.
_SEPARATORS = ",\t;|"
# A cell may be as long as memory allows; csv stops at 131,072 characters by default.
_MAX_CELL = 1 << 30
# Maximum number of ragged rows that are named.
_MAX_NAMED = 100
# Number of rows that the header is compared with.
_SAMPLE_ROWS = 20

Block = list[list[str | None]]
"""Columns of some rows; None is a missing cell."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file with known separator, encoding and columns."""

    path: str
    columns: tuple[str, ...]
    separator: str
    encoding: str = "utf-8"
    has_header: bool = True
    missing: frozenset[str] = frozenset({""})
    notes: list[str] = field(default_factory=list, compare=False)
    doubt: str = ""  # a warning with advice if the header looks like a row of data

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of every row of data; `line` is the line in which the row starts."""
        try:
            with open(copy_of(self.path), encoding=_with_mark(self.encoding), newline="") as file:
                yield from self.rows_of(file, has_header=self.has_header)
        except UnicodeDecodeError as error:
            raise SourceError(
                f"expected {self.encoding} text, got byte {error.object[error.start]:#04x}",
                shard=self.path,
                hint=_advise_encoding(self.path),
            ) from None

    def rows_of(self, text: Iterable[str], *, has_header: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of every row of data in these lines; they are those of the file, or a part of them."""
        limit = csv.field_size_limit(_MAX_CELL)
        reader = csv.reader(text, delimiter=self.separator, strict=True)
        try:
            before = 0
            is_first = has_header
            for row in reader:
                line, before = before + 1, reader.line_num
                if is_first:
                    is_first = False
                elif row:
                    yield line, row
        except csv.Error as error:
            raise SourceError(
                f"not valid CSV, {str(error).lower()}", shard=f"{self.path}, line {reader.line_num}"
            ) from None
        finally:
            csv.field_size_limit(limit)

    def find_ragged(self) -> list[tuple[int, str]]:
        """Return (line, reason) of each row whose number of cells differs from that of the header."""
        expected = len(self.columns)
        ragged = [(line, len(row)) for line, row in self.rows() if len(row) != expected]
        named = [(line, f"row expected {expected} cells, got {got}") for line, got in ragged[:_MAX_NAMED]]
        if len(ragged) > _MAX_NAMED:
            named.append(
                (ragged[_MAX_NAMED][0], f"and {len(ragged) - _MAX_NAMED} more rows with another number of cells")
            )
        return named

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """Return the line in which each of these rows starts. Row numbers do not count ragged rows."""
        wanted = set(rows)
        lines: dict[int, int] = {}
        whole = (line for line, cells in self.rows() if len(cells) == len(self.columns))
        for row, line in enumerate(whole):
            if row in wanted:
                lines[row] = line
                if len(lines) == len(wanted):
                    break
        return lines

    def blocks(self) -> Iterator[Block]:
        """Yield the cells in blocks of rows. Ragged rows are left out; `find_ragged` reports them."""
        width = len(self.columns)
        rows: list[list[str]] = []
        for _, row in self.rows():
            if len(row) == width:
                rows.append(row)
                if len(rows) == LIMITS.csv_rows:
                    yield self._turn(rows)
                    rows = []
        if rows:
            yield self._turn(rows)

    def _turn(self, rows: list[list[str]]) -> Block:
        missing = self.missing
        return [[None if cell in missing else cell for cell in column] for column in zip(*rows, strict=True)]


_NAME_COLUMNS = Step("if it has no header, name its columns: {columns}", columns=...)


def open_csv(
    path: str,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    columns: Sequence[str] | None = None,
    missing: Iterable[str] = (),
    headerless: Step | str = _NAME_COLUMNS,
) -> CsvFile:
    """Detect the separator and the columns of a CSV file. `columns` are its names if it has no header.

    `headerless` is the advice for a file that seems to have no header.
    """
    notes: list[str] = []
    first = _first_line(path, encoding)
    if separator is None:
        separator = "\t" if path.endswith(".tsv") else find_separator(first)
    elif len(separator) != 1:
        raise ValueError(f"separator expected one character, got {separator!r}")
    names = tuple(columns) if columns is not None else _read_header(path, encoding, separator)
    is_suspect = columns is None and _looks_like_data(names, _read_rows(path, encoding, separator))
    doubt: str = ""
    if is_suspect:
        what = "the first line, taken as names of columns, looks like the rows below it"
        doubt = Hint(what, headerless, gap="; ")
        notes.append(doubt)
    unnamed = [index for index, name in enumerate(names) if not name.strip()]
    if unnamed:
        numbers = ", ".join(str(index + 1) for index in unnamed)
        notes.append(f"columns without a name, called column_<number>: {numbers}")
    named = tuple(f"column_{index + 1}" if index in unnamed else name.strip() for index, name in enumerate(names))
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise SourceError(
            f"columns expected different names, got twice {', '.join(map(repr, twice[:5]))}",
            shard=path,
            hint=Hint(headerless) if is_suspect else "give them different names in its first line",
        )
    has_header = columns is None
    return CsvFile(path, named, separator, encoding, has_header, frozenset({"", *missing}), notes, doubt)


def find_separator(line: str) -> str:
    """Return the character that separates the cells of a header.

    Example:
        >>> find_separator('"a, b";c;d')
        ';'
    """
    counts = dict.fromkeys(_SEPARATORS, 0)
    is_quoted = False
    for character in line:
        if character == '"':
            is_quoted = not is_quoted
        elif character in counts and not is_quoted:
            counts[character] += 1
    return max(_SEPARATORS, key=lambda mark: counts[mark])


def _first_line(path: str, encoding: str) -> str:
    try:
        with open(copy_of(path), encoding=_with_mark(encoding), errors="replace", newline="") as file:
            line = file.readline(1 << 20)
    except OSError as error:
        raise SourceError(describe_unreadable(error, "open"), shard=path) from None
    except LookupError:
        raise ValueError(f"encoding expected one that Python supports, got {encoding!r:.64}") from None
    if line.startswith(("\x1f\ufffd", "PK\x03\x04")):
        raise SourceError("expected text, got a compressed file", shard=path, hint="unpack it first")
    if not line.strip():
        what = "an empty file" if os.path.getsize(copy_of(path)) == 0 else "an empty first line"
        raise SourceError(f"expected a header with names of columns, got {what}", shard=path)
    return line


def _read_header(path: str, encoding: str, separator: str) -> tuple[str, ...]:
    reading = CsvFile(path, (), separator, encoding, has_header=False)
    return tuple(next(reading.rows())[1])


def _read_rows(path: str, encoding: str, separator: str) -> list[list[str]]:
    """Return the first rows of data, up to the first that cannot be read, which is reported when all rows are read."""
    rows: list[list[str]] = []
    with contextlib.suppress(SourceError):
        for _, cells in CsvFile(path, (), separator, encoding).rows():
            rows.append(cells)
            if len(rows) == _SAMPLE_ROWS:
                break
    return rows


def _looks_like_data(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line has numbers in exactly the columns in which the rows below have numbers.

    Example:
        >>> _looks_like_data(["a.jpg", "640"], [["b.jpg", "480"]]), _looks_like_data(["file", "width"], [["b", "480"]])
        (True, False)
    """
    rows = [row for row in rows if len(row) == len(header)]
    numbers = {index for index, cell in enumerate(header) if _is_number(cell)}
    if not numbers or not rows:
        return False
    return numbers == {index for index in range(len(header)) if all(_is_number(row[index]) for row in rows)}


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _advise_encoding(path: str) -> str:
    """Return a hint with the encoding detected from the first bytes, or with encodings to try."""
    with open(copy_of(path), "rb") as file:
        is_utf16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_utf16:
        return Hint(Step("it looks like UTF-16: {encoding}", encoding="utf-16"))
    return Hint(Step("name its encoding, such as gbk or utf-16: {encoding}", encoding="latin-1"))


def _with_mark(encoding: str) -> str:
    """Return the codec for an encoding; for UTF-8 the one that removes a byte order mark from the first name."""
    return "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
