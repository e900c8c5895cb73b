"""Ranges of bytes of an object: those that are near are requested together, large ones in parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tfrkit._limits import LIMITS


class Range(NamedTuple):
    """Bytes [start, stop) of an object."""

    start: int
    stop: int


def coalesce(ranges: Iterable[Range], gap: int, limit: int) -> list[tuple[Range, list[int]]]:
    """Join ranges that overlap, or are at most `gap` bytes apart, up to `limit` bytes; return each with its ranges.

    Example:
        >>> coalesce([Range(0, 10), Range(500, 510), Range(12, 20)], gap=4, limit=100)
        [(Range(start=0, stop=20), [0, 2]), (Range(start=500, stop=510), [1])]
    """
    joined: list[tuple[Range, list[int]]] = []
    for number, (start, stop) in sorted(enumerate(ranges), key=lambda one: one[1]):
        if joined:
            last, numbers = joined[-1]
            if start < last.stop or (start - last.stop <= gap and stop - last.start <= limit):
                numbers.append(number)
                joined[-1] = Range(last.start, max(stop, last.stop)), numbers
                continue
        joined.append((Range(start, stop), [number]))
    return joined


def cut_range(joined: Range, *, in_blocks: bool = False) -> list[Range]:
    """Return the requests for a range: equal ones of one to two blocks, or with `in_blocks` whole blocks.

    Example:
        >>> cut_range(Range(0, 20 << 20))
        [Range(start=0, stop=10485760), Range(start=10485760, stop=20971520)]
    """
    nbytes, block = joined.stop - joined.start, LIMITS.block_nbytes
    step = block if in_blocks else -(-nbytes // max(1, nbytes // block))
    return [Range(at, min(joined.stop, at + step)) for at in range(joined.start, joined.stop, step)]
