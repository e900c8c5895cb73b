"""Shares: the number of records in each part of a split, and of each class.

Ratios are read as the decimal number that was written, and all arithmetic is exact, so that the counts are the same
on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.orders.order import derive_key, permute

Parts = Mapping[str, float | int | None]
"""Names of parts: a ratio (float), a count of records (int), or None for the rest."""

_TOLERANCE = Fraction(1, 10**9)


def parse_parts(parts: Parts, size: int) -> dict[str, int]:
    """Compute the number of records of each part; the sum is exactly `size`.

    A float is a ratio, an int a count, None (at most once) the rest. Ratios are fractions of the records left by the
    counts. Records left over by rounding are given to the parts with the largest remainders, on a tie to the larger
    ratio, then to the first name in the alphabet, so the counts do not depend on the order of the parts.

    Example:
        >>> parse_parts({"train": 0.8, "val": 0.1, "test": 0.1}, 25)
        {'train': 20, 'val': 2, 'test': 3}
        >>> parse_parts({"test": 5, "train": 0.9, "val": None}, 25)
        {'test': 5, 'train': 18, 'val': 2}
    """
    asked = _read_parts(parts)
    counts = {name: value for name, value in asked.items() if isinstance(value, int)}
    num_fixed = sum(counts.values())
    if num_fixed > size:
        raise ValueError(f"parts ask for {num_fixed} records, there are {size}")
    num_left = size - num_fixed
    shares = _complete_shares({name: value for name, value in asked.items() if not isinstance(value, int)})
    if not shares and num_left:
        raise ValueError(
            f"parts have {num_fixed} of {size} records, {num_left} would be in no part\n"
            "  give one part None (on the command line: rest) to take the rest"
        )
    counts |= _round_shares(shares, num_left)
    check_not_empty({name: counts[name] for name, share in shares.items() if share or asked[name] is None}, size)
    return {name: counts[name] for name in parts}


def parse_shares(parts: Parts) -> dict[str, Fraction]:
    """Compute the exact share of each part from ratios; the sum is exactly 1."""
    ratios: dict[str, Fraction | None] = {}
    for name, value in _read_parts(parts).items():
        if isinstance(value, int):
            raise TypeError(f"part {name!r} expected a ratio from 0 to 1, got the count {value}")
        ratios[name] = value
    return _complete_shares(ratios)


def _complete_shares(ratios: Mapping[str, Fraction | None]) -> dict[str, Fraction]:
    """Give the rest to the part without a ratio. The sum of all ratios may differ from 1 by 1e-9, as for thirds."""
    shares = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    total = sum(shares.values(), Fraction(0))
    if total > 1 + _TOLERANCE:
        raise ValueError(f"ratios sum to {float(total):.10g}, expected 1")
    if len(shares) == len(ratios) > 0 and total < 1 - _TOLERANCE:
        raise ValueError(
            f"ratios sum to {float(total):.10g}, {float(1 - total):.10g} of the records would be in no part\n"
            "  name the missing part, or give one part None (on the command line: rest) to take the rest"
        )
    complete = {name: max(1 - total, Fraction(0)) if ratio is None else ratio for name, ratio in ratios.items()}
    total = sum(complete.values(), Fraction(0))
    return {name: share / total for name, share in complete.items()}


def check_not_empty(counts: Mapping[str, int], size: int) -> None:
    """Raise if a requested part would be empty."""
    for name, count in counts.items():
        if count == 0:
            raise ValueError(
                f"split {name!r} would have 0 of {size} records\n  raise its share, or leave it out of the parts"
            )


def _read_parts(parts: Parts) -> dict[str, int | Fraction | None]:
    if not isinstance(parts, Mapping):
        raise TypeError(
            f"parts expected a dict of names and shares, got {type(parts).__name__}\n"
            '  name them: {"train": 0.8, "test": 0.2}'
        )
    if not parts:
        raise ValueError("parts expected at least one name, got none")
    asked: dict[str, int | Fraction | None] = {}
    for name, value in parts.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"name of a part expected str, got {name!r}")
        asked[name] = _read_share(name, value)
    rests = [repr(name) for name, value in asked.items() if value is None]
    if len(rests) > 1:
        raise ValueError(f"one part may take the rest, got {len(rests)}: {', '.join(rests)}")
    return asked


def _read_share(name: str, value: Any) -> int | Fraction | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"part {name!r} expected a ratio, a count or None, got {value!r}")
    number: Any = value
    if isinstance(value, Integral):
        if number < 0:
            raise ValueError(f"part {name!r} expected a count of 0 or more, got {number}")
        return int(value)
    if not (math.isfinite(value) and 0 <= number <= 1):
        raise ValueError(
            f"part {name!r} expected a ratio from 0 to 1, got {number}\n  a number of records is written as an int"
        )
    # Use the shortest text that reads back as this float, as the user wrote it: 0.1 means a tenth.
    return Fraction(value) if isinstance(value, Rational) else Fraction(str(value))


def _round_shares(shares: Mapping[str, Fraction], size: int) -> dict[str, int]:
    counts = {name: math.floor(share * size) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: (counts[name] - shares[name] * size, -shares[name], name))
    for name in by_remainder[: size - sum(counts.values())]:
        counts[name] += 1
    return counts


def divide_classes(class_sizes: Int64Array, counts: list[int], seed: int) -> Int64Array:
    """Compute the number of records of each class (rows) in each part (columns).

    Rows sum to the size of the class, columns to `counts`. Every cell is its ideal, size of the class × share of the
    part, rounded down or up. The seed decides which classes are rounded up.
    """
    size = sum(counts)
    products = np.multiply.outer(class_sizes, np.array(counts, np.int64))
    cells = products // max(1, size)
    remainders = products % max(1, size)
    # Classes of one size have equal remainders. Rounding their sums needs a table of at most sqrt(2 × size) rows, for
    # any number of classes.
    distinct, row_of_class, num_classes = np.unique(class_sizes, return_inverse=True, return_counts=True)
    table = np.zeros((len(distinct), len(counts)), np.int64)
    table[row_of_class] = remainders
    order = permute(len(distinct), derive_key("stratify sizes", seed), np.arange(len(distinct), dtype=np.uint64))
    ups = np.zeros_like(table)
    ups[order] = round_table((table * num_classes[:, None])[order], size)
    # The classes of one size form a ring in seeded order; each part takes the next `ups` of them. No part takes
    # more than one round, so no class is rounded up twice for it, and all take the same number of rounds together.
    mixed = permute(len(class_sizes), derive_key("stratify", seed), np.arange(len(class_sizes), dtype=np.uint64))
    rank_of_class = np.empty(len(class_sizes), np.int64)
    by_size = mixed[np.argsort(row_of_class[mixed], kind="stable")]
    first_of_row = np.cumsum(num_classes) - num_classes
    rank_of_class[by_size] = np.arange(len(class_sizes)) - first_of_row[row_of_class[by_size]]
    starts = np.cumsum(ups, axis=1) - ups
    turns = (rank_of_class[:, None] - starts[row_of_class]) % num_classes[row_of_class][:, None]
    cells += turns < ups[row_of_class]
    return cells


def round_table(numerators: Int64Array, denominator: int) -> Int64Array:
    """Round each numerator / denominator down or up so that the sums of rows and columns do not change.

    REQUIRES: the sum of each row and of each column is a multiple of `denominator`.

    A row or column with one fraction has another one, so the fractions contain a cycle. Adding and subtracting the same
    amount in turn along the cycle keeps all sums and makes at least one fraction whole.
    """
    whole: Int64Array = numerators // max(1, denominator)
    fractions = numerators - whole * denominator
    rows: list[dict[int, int]] = [
        {column: value for column, value in enumerate(row) if value} for row in fractions.tolist()
    ]
    columns: list[dict[int, None]] = [dict.fromkeys(np.flatnonzero(column).tolist()) for column in fractions.T]
    for row in range(len(rows)):
        while rows[row]:
            cycle = _find_cycle(row, rows, columns)
            raised, lowered = cycle[::2], cycle[1::2]
            step = min(
                min(denominator - rows[r][c] for r, c in raised),
                min(rows[r][c] for r, c in lowered),
            )
            for (r, c), change in [*((cell, step) for cell in raised), *((cell, -step) for cell in lowered)]:
                value = rows[r][c] + change
                if 0 < value < denominator:
                    rows[r][c] = value
                    continue
                whole[r, c] += value // denominator
                del rows[r][c], columns[c][r]
    return whole


def _find_cycle(row: int, rows: list[dict[int, int]], columns: list[dict[int, None]]) -> list[tuple[int, int]]:
    """Find a cycle of fractions, along rows and columns in turn, starting at a row that has a fraction."""
    cells: list[tuple[int, int]] = []
    seen_rows = {row: 0}
    seen_columns: dict[int, int] = {}
    arrived_by = -1
    while True:
        column = next(column for column in rows[row] if column != arrived_by)
        cells.append((row, column))
        if column in seen_columns:
            return cells[seen_columns[column] :]
        seen_columns[column] = len(cells)
        row, arrived_by = next(other for other in columns[column] if other != row), column
        cells.append((row, column))
        if row in seen_rows:
            return cells[seen_rows[row] :]
        seen_rows[row] = len(cells)
