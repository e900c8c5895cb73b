"""CSV straight into numbers: the fastest way, taken only where no cell can lose anything by it.

Types are guessed from the first rows and pyarrow converts as it parses. It would read 007 as 7 and " 5" as 5, so the
bytes of the file are searched for cells of that kind first; any of them, a guess that does not hold, or a number that
needs a closer look, and the caller takes the way over text.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit.codec.columns import BytesColumn
from tfrkit.sources.cell_types import CellKind, kind_of_cell
from tfrkit.sources.csv_file import CsvFile

_NUM_GUESSED = 200
_NUM_SAMPLED = 200
# Searched in pieces that stay in the processor's cache.
_PIECE_NBYTES = 1 << 18
_OVERLAP = 4
# Whole numbers from here on may be rounded in a column of floats.
_MAX_SAFE = 1e15


@dataclass(frozen=True)
class TypedColumn:
    """One column: its kind, None where no cell holds anything, and its values in blocks of rows, (values, missing)."""

    kind: CellKind | None
    blocks: list[tuple[Any, Any]]


def read_typed(file: CsvFile, arrow: Any) -> list[TypedColumn] | None:
    """All columns of a file, or None where they must be read as text first."""
    if file.encoding.lower() not in ("utf-8", "utf8") or len(file.separator.encode()) != 1:
        return None
    if file.count_quotes() or _has_suspects(file.path, ord(file.separator)):
        return None
    guesses = _guess(file)
    types = {"int64": arrow.int64(), "float": arrow.float64(), "text": arrow.large_string()}
    table = file.read_arrow(arrow, {name: types[kind] for name, kind in zip(file.columns, guesses, strict=True)})
    if table is None:
        return None
    columns = []
    for guess, chunked in zip(guesses, table.columns, strict=True):
        column = _take_column(guess, chunked)
        if column is None:
            return None
        columns.append(column)
    return columns if any(column.kind for column in columns) else None


def _guess(file: CsvFile) -> list[CellKind]:
    """What the first rows say; a column that is missing in all of them may be anything, so it is text for now."""
    rows = [row for _, row in itertools.islice(file.rows(), _NUM_GUESSED) if len(row) == len(file.columns)]
    guesses: list[CellKind] = []
    for index in range(len(file.columns)):
        kinds = {kind_of_cell(row[index]) for row in rows if row[index] not in file.missing}
        guesses.append("int64" if kinds == {"int64"} else "float" if kinds and "text" not in kinds else "text")
    return guesses


def _has_suspects(path: str, separator: int) -> bool:
    """Does a cell start with a blank, +, 0 and a digit or x, -0 and no point, or end with a blank?"""
    with open(path, "rb") as file:
        before = b""
        while piece := file.read(_PIECE_NBYTES):
            data = np.frombuffer(before + piece, np.uint8)
            is_end = (data == separator) | (data == 10) | (data == 13)
            is_blank = ((data == 32) | (data == 9)) & ~is_end
            first, second, third = data[1:-2], data[2:-1], data[3:]
            starts = is_end[:-3]
            is_zero = (first == 48) & (((second - 48) < 10) | ((second | 32) == 120))
            is_minus_zero = (first == 45) & (second == 48) & (third != 46)
            if (starts & (is_zero | is_minus_zero | (first == 43) | is_blank[1:-2])).any():
                return True
            if (is_blank[:-1] & is_end[1:]).any():
                return True
            before = bytes(data[-_OVERLAP:])
    return len(before) > 0 and before[-1:] in b" \t"


def _take_column(guess: CellKind, chunked: Any) -> TypedColumn | None:
    """A column as it was read; None where its text must be looked at."""
    if chunked.null_count == len(chunked):
        return TypedColumn(None, [])
    blocks: list[tuple[Any, Any]] = []
    if guess == "text":
        if not _is_text(chunked):
            return None
        for chunk in chunked.chunks:
            _, offsets, data = chunk.buffers()
            stops = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
            blocks.append((BytesColumn(values, stops), _find_missing(chunk)))
        return TypedColumn("text", blocks)
    for chunk in chunked.chunks:
        missing = _find_missing(chunk)
        dtype = np.int64 if guess == "int64" else np.float64
        numbers: Any = np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset : chunk.offset + len(chunk)]
        if missing is not None:
            numbers = np.where(missing, dtype(0), numbers)
        if guess == "float" and len(numbers) and not float(np.abs(numbers).max()) < _MAX_SAFE:
            return None  # nan compares false too
        blocks.append((numbers, missing))
    return TypedColumn(guess, blocks)


def _is_text(chunked: Any) -> bool:
    """Is hardly any of some cells, taken from all over the column, a number?"""
    step = max(1, math.ceil(len(chunked) / _NUM_SAMPLED))
    sampled = [cell for row in range(0, len(chunked), step) if (cell := chunked[row].as_py()) is not None]
    numbers = sum(kind_of_cell(cell) != "text" for cell in sampled)
    return len(sampled) >= min(len(chunked), _NUM_SAMPLED) // 2 and 4 * numbers < len(sampled)


def _find_missing(chunk: Any) -> Any:
    """1 where a cell is missing, from the bits Arrow keeps; None where none is."""
    if not chunk.null_count:
        return None
    bits = np.unpackbits(np.frombuffer(chunk.buffers()[0], np.uint8), bitorder="little")
    return 1 - bits[chunk.offset : chunk.offset + len(chunk)]
