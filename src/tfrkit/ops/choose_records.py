"""Choose records of a dataset by number: evenly spaced, random, or matching a condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrkit._types import UInt64Array
from tfrkit.errors import StorageError
from tfrkit.orders.order import Shuffled, Whole


def choose_records(num_records: int, count: int, seed: int | None) -> list[int]:
    """Return `count` record numbers, ascending: evenly spaced from first to last, or random with a seed.

    Example:
        >>> choose_records(100, 4, None), choose_records(3, 36, None)
        ([0, 33, 66, 99], [0, 1, 2])
    """
    if count >= num_records:
        return list(range(num_records))
    if seed is not None:
        chosen: UInt64Array = Shuffled(Whole(num_records), seed).at(np.arange(count, dtype=np.uint64))
        return sorted(chosen.tolist())
    return [place * (num_records - 1) // max(1, count - 1) for place in range(count)]


def find_records(paths: Sequence[str], where: str) -> list[int]:
    """Return the numbers, counted over all files, of the records that match an SQL condition, ascending."""
    from tfrkit.ops.edit.query import find_matches

    if "-" in paths:
        raise StorageError("expected files, got a pipe, whose records cannot be chosen", hint="write it first")
    # Without expressions, no message needs the place of a record.
    found = find_matches(paths, where, {}, locate=lambda number: (paths[0], number))
    return [int(number) for number in found.numbers]
