"""What the cells of a text table are: whole numbers, numbers, or text. Decided over a whole column.

A cell counts as a number only where the number says all that the text says: 007 and +49 are text, because 7 and 49
would lose something. Cells are bytes objects or str in the slow way, which is the rule, and Arrow arrays of strings
in the fast way, which must come to the same.
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
    r"|[+-]?(?:0|[1-9][0-9]*)[eE][+-]?[0-9]+|[+-]?(?i:inf|infinity)|(?i:nan))"
)
_IS_INT = re.compile(INT)
_IS_FLOAT = re.compile(FLOAT)
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
# Offending cells that are named; the rest is counted.
_MAX_PLACES = 5
# Cells of a block that are looked at first.
_NUM_SAMPLED = 200
# Digits that float64 holds whatever they are.
_SAFE_DIGITS = 15


@dataclass
class Tally:
    """How many cells of a column are what, and where the unusual ones are: (row, cell)."""

    num_int: int = 0
    num_float: int = 0
    num_text: int = 0
    num_missing: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)
    floats: list[tuple[int, str]] = field(default_factory=list)
    wide: list[tuple[int, str]] = field(default_factory=list)
    num_wide: int = 0
    inexact: list[tuple[int, str]] = field(default_factory=list)
    num_inexact: int = 0

    @property
    def num_cells(self) -> int:
        """Cells that hold something."""
        return self.num_int + self.num_float + self.num_text

    def add_text(self, row: int, cell: str) -> None:
        """One cell that is no number."""
        self.num_text += 1
        _note(self.texts, row, cell)

    def add_float(self, row: int, cell: str) -> None:
        """One number with a point or an exponent."""
        self.num_float += 1
        _note(self.floats, row, cell)
        if _is_too_large(cell):
            self.num_inexact += 1
            _note(self.inexact, row, cell)

    def add_int(self, row: int, cell: str) -> None:
        """One whole number."""
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
    """Is it a number that became infinite on the way: 1e400, but not inf?"""
    return math.isinf(float(cell)) and "inf" not in cell.lower()


def _holds(value: int) -> bool:
    """Does float64 hold this integer?"""
    try:
        return float(value) == value
    except OverflowError:
        return False


@dataclass(frozen=True)
class Verdict:
    """The kind of a column, None where no cell says; or what is wrong, with the cells that show it."""

    kind: CellKind | None
    reason: str = ""
    places: tuple[tuple[int, str], ...] = ()
    num_places: int = 0


def decide_kind(tally: Tally, wanted: CellKind | None = None) -> Verdict:
    """What a column is, over all of its cells; or why it cannot be what is `wanted`, or cannot be anything.

    A column of text with some numbers is text; one of numbers with some text is a mistake somewhere, and is not
    decided here.
    """
    if tally.num_cells == 0:
        return Verdict(wanted)
    if wanted == "text":
        return Verdict("text")
    if tally.num_text and (wanted is not None or tally.num_text < tally.num_cells - tally.num_text):
        what = "whole numbers" if wanted == "int64" or (wanted is None and not tally.num_float) else "numbers"
        return Verdict(None, f"expected {what}, got text", tuple(tally.texts), tally.num_text)
    if tally.num_text:
        return Verdict("text")
    if wanted == "int64" and tally.num_float:
        return Verdict(None, "expected whole numbers, got others", tuple(tally.floats), tally.num_float)
    if tally.num_float == 0 and wanted != "float":
        if tally.num_wide:
            return Verdict(
                None, "expected integers of 64 bits with sign, got larger", tuple(tally.wide), tally.num_wide
            )
        return Verdict("int64")
    if tally.num_inexact:
        reason = "expected numbers that float64 holds, got others"
        return Verdict(None, reason, tuple(sorted(tally.inexact)), tally.num_inexact)
    return Verdict("float")


def kind_of_cell(cell: str) -> CellKind:
    """What one cell is.

    Example:
        >>> [kind_of_cell(cell) for cell in ("7", "-0.5", "007")]
        ['int64', 'float', 'text']
    """
    if _IS_INT.fullmatch(cell):
        return "int64"
    return "float" if _IS_FLOAT.fullmatch(cell) else "text"


# --- the slow way: lists of str, None for a missing cell


def tally_cells(cells: Sequence[str | None], tally: Tally, first_row: int) -> None:
    """Count what the cells of one block are. Answers with nothing, see `tally_strings`."""
    present = [cell for cell in cells if cell is not None]
    tally.num_missing += len(cells) - len(present)
    if _are_small_ints(present):
        tally.num_int += len(present)
        return
    for row, cell in enumerate(cells, first_row):
        if cell is None:
            continue
        if _IS_INT.fullmatch(cell):
            tally.add_int(row, cell)
        elif _IS_FLOAT.fullmatch(cell):
            tally.add_float(row, cell)
        else:
            tally.add_text(row, cell)


def _are_small_ints(cells: list[str]) -> bool:
    """True only for whole numbers that are safe in any kind; most columns of ids and counts are."""
    try:
        return max(map(len, cells), default=0) <= _SAFE_DIGITS and list(map(str, map(int, cells))) == cells
    except ValueError:
        return False


def convert_cells(cells: Sequence[str | None], kind: CellKind, _: None) -> tuple[Any, Any]:
    """The values of one block, with fillers where cells are missing, and which those are (None if none)."""
    missing = None
    if None in cells:
        missing = np.array([cell is None for cell in cells], np.uint8)
    if kind == "text":
        from tfrkit.codec.columns import BytesColumn

        return BytesColumn.from_values([b"" if cell is None else cell.encode() for cell in cells]), missing
    if kind == "int64":
        return np.array([0 if cell is None else int(cell) for cell in cells], np.int64), missing
    return np.array([0.0 if cell is None else float(cell) for cell in cells], np.float64), missing


# --- the fast way: Arrow arrays of strings, null for a missing cell


def tally_strings(cells: Any, tally: Tally, first_row: int, arrow: Any) -> Any:
    """Count what the cells of one block are; `arrow` is the pyarrow module.

    Answers with the values, where all cells are numbers and came out as such on the way, for `convert_strings`.
    """
    compute = arrow.compute
    num_null = cells.null_count
    num_present = len(cells) - num_null
    tally.num_missing += num_null
    if num_present == 0:
        return None
    # A cast that fails costs as much as one that does not, so some cells are asked what is worth trying.
    num_sampled, num_ints, num_numbers = _sample(cells)
    if num_ints == num_sampled:
        values = _read_ints(cells, tally, first_row, arrow)
        if values is not None:
            return values
    if num_numbers == num_sampled:
        values = _read_floats(cells, tally, first_row, arrow)
        if values is not None:
            return values
    if num_numbers < num_sampled // 4 and num_sampled >= _NUM_SAMPLED // 2:
        tally.num_text += num_present
        return None
    is_int = compute.match_substring_regex(cells, f"^{INT}$")
    is_float = compute.match_substring_regex(cells, f"^{FLOAT}$")
    ints = compute.fill_null(is_int, False).to_numpy(zero_copy_only=False)
    numbers = compute.fill_null(is_float, False).to_numpy(zero_copy_only=False)
    present = compute.is_valid(cells).to_numpy(zero_copy_only=False)
    texts = np.flatnonzero(present & ~numbers)
    tally.num_text += len(texts)
    for index in texts[:_MAX_PLACES].tolist():
        _note(tally.texts, first_row + index, cells[index].as_py())
    for index in np.flatnonzero(numbers & ~ints).tolist():
        tally.add_float(first_row + index, cells[index].as_py())
    is_short = compute.fill_null(compute.binary_length(cells), 0).to_numpy(zero_copy_only=False) <= _SAFE_DIGITS
    tally.num_int += int((ints & is_short).sum())
    for index in np.flatnonzero(ints & ~is_short).tolist():
        tally.add_int(first_row + index, cells[index].as_py())
    return None


def _sample(cells: Any) -> tuple[int, int, int]:
    """How many cells, taken from all over the block, are there, are whole numbers, and are numbers."""
    step = max(1, len(cells) // _NUM_SAMPLED)
    sampled = [cell for cell in cells[::step].to_pylist() if cell is not None]
    numbers = [cell for cell in sampled if _IS_FLOAT.fullmatch(cell)]
    return len(sampled), sum(_IS_INT.fullmatch(cell) is not None for cell in numbers), len(numbers)


def _read_ints(cells: Any, tally: Tally, first_row: int, arrow: Any) -> Any:
    """Whole numbers of a block, counted; None where a cell is none, or is not as its number is written: 007, +1."""
    casted = _cast(cells, arrow.int64(), arrow)
    if casted is None:
        return None
    # The cast saw to it that digits follow; what comes first tells 7 from 007, 0x7 and +7.
    lengths, first, second, _ = _first_bytes(cells, arrow)
    is_plain = ((first - 49) < 9) | ((first == 48) & (lengths == 1)) | ((first == 45) & ((second - 49) < 9))
    if not (is_plain | (lengths < 0)).all():
        return None
    values = arrow.compute.fill_null(casted, 0).to_numpy(zero_copy_only=False)
    tally.num_int += len(cells) - cells.null_count
    if lengths.max() > _SAFE_DIGITS:
        with np.errstate(invalid="ignore"):
            inexact = np.flatnonzero(values.astype(np.float64).astype(np.int64) != values)
        tally.num_inexact += len(inexact)
        for index in inexact[:_MAX_PLACES].tolist():
            _note(tally.inexact, first_row + index, str(values[index]))
    return values


def _read_floats(cells: Any, tally: Tally, first_row: int, arrow: Any) -> Any:
    """Numbers of a block, counted; None where a cell is none, or needs a closer look: 007, +1, nan, long integers."""
    casted = _cast(cells, arrow.float64(), arrow)
    if casted is None:
        return None
    lengths, first, second, third = _first_bytes(cells, arrow)
    is_negative = first == 45
    lead, after = np.where(is_negative, second, first), np.where(is_negative, third, second)
    is_plain = ((lead - 49) < 9) | (lead == 46) | ((lead == 48) & ((after == 46) | (after == 0)))
    others = np.flatnonzero(~(is_plain | (lengths < 0)))
    if len(others):
        rest = cells.take(arrow.array(others))
        if not arrow.compute.all(arrow.compute.match_substring_regex(rest, f"^{FLOAT}$")).as_py():
            return None
    if (lengths > _SAFE_DIGITS).any():
        points = arrow.compute.fill_null(arrow.compute.find_substring(cells, "."), 0).to_numpy(zero_copy_only=False)
        if ((lengths > _SAFE_DIGITS) & (points < 0)).any():
            return None
    infinite = np.flatnonzero(np.isinf(casted.to_numpy(zero_copy_only=False)))
    if len(infinite) and any(map(_is_too_large, cells.take(arrow.array(infinite)).to_pylist())):
        return None
    tally.num_float += len(cells) - cells.null_count
    if len(tally.floats) < _MAX_PLACES:
        for index, cell in enumerate(cells[:1000].to_pylist()):
            if cell is not None and not _IS_INT.fullmatch(cell):
                _note(tally.floats, first_row + index, cell)
    return arrow.compute.fill_null(casted, 0).to_numpy(zero_copy_only=False)


def _first_bytes(cells: Any, arrow: Any) -> tuple[Any, Any, Any, Any]:
    """Length of every cell, -1 where it is missing, and its first three bytes, 0 where there are fewer."""
    from tfrkit.codec.arrow_columns import bytes_of_strings

    column = bytes_of_strings(cells, arrow)
    starts, lengths = column.offsets[:-1], np.diff(column.offsets)
    data = column.data
    if len(data) < column.offsets[-1] + 3:
        data = np.append(data, np.zeros(3, np.uint8))
    bytes_at = [np.where(lengths > place, data[starts + place], 0).astype(np.uint8) for place in range(3)]
    if cells.null_count:
        lengths = np.where(arrow.compute.is_null(cells).to_numpy(zero_copy_only=False), -1, lengths)
    return lengths, *bytes_at  # type: ignore[return-value]


def _cast(cells: Any, kind: Any, arrow: Any) -> Any:
    try:
        return arrow.compute.cast(cells, kind)
    except arrow.ArrowInvalid:
        return None


def convert_strings(cells: Any, kind: CellKind, read: Any, arrow: Any) -> tuple[Any, Any]:
    """The values of one block, with fillers where cells are missing, and which those are (None if none).

    `read` is what `tally_strings` answered for it.
    """
    from tfrkit.codec.arrow_columns import bytes_of_strings

    missing = None
    if cells.null_count:
        missing = arrow.compute.is_null(cells).to_numpy(zero_copy_only=False).astype(np.uint8)
    if kind == "text":
        return bytes_of_strings(cells, arrow), missing
    if read is not None and (kind == "float" or read.dtype == np.int64):
        return read.astype(np.int64 if kind == "int64" else np.float64, copy=False), missing
    values = arrow.compute.cast(cells, arrow.int64() if kind == "int64" else arrow.float64())
    return arrow.compute.fill_null(values, 0).to_numpy(zero_copy_only=False), missing
