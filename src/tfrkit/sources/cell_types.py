"""Types of the columns of a text table: integers, floats or text, decided from all cells of a column.

A cell counts as a number only if converting it loses nothing of the text: 007 and +49 are text, because the numbers
would lose the zeros and the sign. The core's CSV parser (`csv_typed`) follows the same rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

CellKind = Literal["int64", "float", "text"]
CELL_KINDS: tuple[CellKind, ...] = ("int64", "float", "text")

INT = r"(?:0|-?[1-9][0-9]*)"
FLOAT = (
    r"(?:-?(?:0|[1-9][0-9]*)|[+-]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|[+-]?(?:0|[1-9][0-9]*)[eE][+-]?[0-9]+|[+-]?(?ai:inf|infinity)|(?ai:nan))"
)
_IS_INT = re.compile(INT)
_IS_FLOAT = re.compile(FLOAT)
# Numbers in a column whose type the user gave: zeros, signs and spaces may be lost.
_IS_GIVEN_INT = re.compile(r" *[+-]?[0-9]+ *")
_IS_GIVEN_FLOAT = re.compile(
    r" *(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?ai:inf|infinity|nan)) *"
)
# Texts that other programs write for missing cells, in lower case.
_GAPS = frozenset({"na", "n/a", "n.a.", "nan", "null", "none", "nil", "missing", "unknown", "nat"})
_GAP_MARKS = frozenset({"-", "--", "?", ".", "\\n"})
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
# Maximum number of offending cells that are named; the others are only counted.
_MAX_PLACES = 5
# Integers of up to this many digits are exact in float64.
_SAFE_DIGITS = 15


@dataclass
class CellTally:
    """Counts of the cell types of a column, with examples as (row, cell)."""

    num_int: int = 0
    num_float: int = 0
    num_text: int = 0
    num_missing: int = 0
    has_words: bool = False  # text other than words for missing cells
    texts: list[tuple[int, str]] = field(default_factory=list)
    floats: list[tuple[int, str]] = field(default_factory=list)
    wide: list[tuple[int, str]] = field(default_factory=list)
    num_wide: int = 0
    inexact: list[tuple[int, str]] = field(default_factory=list)
    num_inexact: int = 0

    @property
    def num_cells(self) -> int:
        """The number of cells that are not missing."""
        return self.num_numbers + self.num_text

    @property
    def num_numbers(self) -> int:
        """The number of cells that are numbers."""
        return self.num_int + self.num_float

    def add_float(self, row: int, cell: str) -> None:
        """Count a number with a point or an exponent, or inf or nan."""
        self.num_float += 1
        _note(self.floats, row, cell)
        if _is_too_large(cell):
            self.num_inexact += 1
            _note(self.inexact, row, cell)

    def add_int(self, row: int, cell: str) -> None:
        """Count an integer."""
        self.num_int += 1
        if len(cell) > _SAFE_DIGITS:
            value = int(cell)
            if not _INT64_MIN <= value <= _INT64_MAX:
                self.num_wide += 1
                _note(self.wide, row, cell)
            if not _holds(value):
                self.num_inexact += 1
                _note(self.inexact, row, cell)


def _note(places: list[tuple[int, str]], row: int, cell: str) -> None:
    if len(places) < _MAX_PLACES:
        places.append((row, cell))


def _is_too_large(cell: str) -> bool:
    """Return whether a finite number becomes infinite when it is converted: 1e400, but not inf."""
    return math.isinf(float(cell)) and "inf" not in cell.lower()


def _holds(value: int) -> bool:
    """Return whether float64 represents this integer exactly."""
    try:
        return float(value) == value
    except OverflowError:
        return False


@dataclass(frozen=True)
class Verdict:
    """The kind of a column, None if it has no cells; or the reason why it has no kind, and the offending cells."""

    kind: CellKind | None
    reason: str = ""
    places: tuple[tuple[int, str], ...] = ()
    num_places: int = 0


def decide_kind(tally: CellTally, wanted: CellKind | None = None) -> Verdict:
    """Decide the kind of a column from all of its cells, or give the reason why it has none or not the `wanted` one.

    A column of text with some numbers is text. A column that is mostly numbers with some text is probably a mistake,
    and an error; so is one of numbers whose only text are words for missing cells.
    """
    if tally.num_cells == 0:
        return Verdict(wanted)
    if wanted == "text":
        return Verdict("text")
    if tally.num_text and (wanted is not None or not is_text(tally.num_cells, tally.num_numbers, tally.has_words)):
        what = "whole numbers" if wanted == "int64" or (wanted is None and not tally.num_float) else "numbers"
        return Verdict(None, f"expected {what}, got text", tuple(tally.texts), tally.num_text)
    if tally.num_text:
        return Verdict("text")
    if wanted == "int64" and tally.num_float:
        return Verdict(None, "expected whole numbers, got others", tuple(tally.floats), tally.num_float)
    if tally.num_float == 0 and wanted != "float":
        if tally.num_wide:
            return Verdict(None, "expected signed 64-bit integers, got larger", tuple(tally.wide), tally.num_wide)
        return Verdict("int64")
    if tally.num_inexact:
        reason = "expected numbers that float64 holds, got others"
        return Verdict(None, reason, tuple(sorted(tally.inexact)), tally.num_inexact)
    return Verdict("float")


def is_text(num_cells: int, num_numbers: int, has_words: bool) -> bool:
    """Return whether a column with some cells that are not numbers is one of text; see `decide_kind`."""
    return num_numbers == 0 or (has_words and 2 * num_numbers <= num_cells)


def is_gap(cell: str) -> bool:
    """Return whether other programs write this text for a missing cell.

    Example:
        >>> [is_gap(cell) for cell in ("NA", "<null>", "#N/A", "-", "x")]
        [True, True, True, True, False]
    """
    return cell.strip("<>#").lower() in _GAPS or cell.lower() in _GAP_MARKS


def kind_of_cell(cell: str) -> CellKind:
    """Return the type of one cell.

    Example:
        >>> [kind_of_cell(cell) for cell in ("7", "-0.5", "007")]
        ['int64', 'float', 'text']
    """
    if _IS_INT.fullmatch(cell):
        return "int64"
    return "float" if _IS_FLOAT.fullmatch(cell) else "text"


def tally_cells(cells: Sequence[str | None], tally: CellTally, first_row: int, wanted: CellKind | None = None) -> None:
    """Count the cell types of one block; None is a missing cell. With a `wanted` kind, 007 is a number, too."""
    is_int, is_float = (_IS_INT, _IS_FLOAT) if wanted is None else (_IS_GIVEN_INT, _IS_GIVEN_FLOAT)
    present = [cell for cell in cells if cell is not None]
    tally.num_missing += len(cells) - len(present)
    if _are_small_ints(present):
        tally.num_int += len(present)
        return
    texts = []
    for row, cell in enumerate(cells, first_row):
        if cell is None:
            continue
        if not is_float.fullmatch(cell):
            texts.append((row, cell))
        elif is_int.fullmatch(cell):
            tally.add_int(row, cell)
        else:
            tally.add_float(row, cell)
    tally.num_text += len(texts)
    tally.has_words = tally.has_words or not all(is_gap(cell) for _, cell in texts)
    tally.texts += texts[: _MAX_PLACES - len(tally.texts)]


def _are_small_ints(cells: list[str]) -> bool:
    """Return whether all cells are integers that are exact in every kind: a fast path for columns of ids and counts."""
    try:
        return max(map(len, cells), default=0) <= _SAFE_DIGITS and list(map(str, map(int, cells))) == cells
    except ValueError:
        return False


def convert_cells(cells: Sequence[str | None], kind: CellKind) -> tuple[Any, Any]:
    """Convert one block to values, with fillers for missing cells, and a mask of the missing cells (None if none)."""
    missing = None
    if None in cells:
        missing = np.array([cell is None for cell in cells], np.uint8)
    if kind == "text":
        from tfrkit.codec.columns import BytesColumn

        return BytesColumn.from_values([b"" if cell is None else cell.encode() for cell in cells]), missing
    if kind == "int64":
        return np.array([0 if cell is None else int(cell) for cell in cells], np.int64), missing
    return np.array([0.0 if cell is None else float(cell) for cell in cells], np.float64), missing
