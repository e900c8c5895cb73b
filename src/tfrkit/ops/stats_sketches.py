"""Summaries of many values in little memory: the frequent ones, how many differ, and where their quantiles lie.

Each takes arrays, is merged with others of its kind, and holds the same content for the same sequence of merges: no
random choice, no seed, no clock. Each is exact until it has to forget something, and says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.ops.stats_scratch import scratch

Array = np.ndarray[Any, np.dtype[Any]]

# Different values that are counted one by one.
MAX_VALUES = 4096
# Hashes kept to estimate how many values differ: the standard error is 1 / sqrt(NUM_HASHES), 1.6 %.
NUM_HASHES = 4096
# Values of one buffer of a QuantileSketch, at most twice as many. A rank is off by less than
# log2(num_values / BUFFER_SIZE) / (2 * BUFFER_SIZE): 0.2 % of a million values, 0.5 % of a billion.
BUFFER_SIZE = 2048

_HASH_RANGE = 2.0**64


def mix(keys: UInt64Array) -> UInt64Array:
    """Scatter 64-bit keys evenly, in place (the last steps of splitmix64); different keys stay different."""
    shifted = scratch.take("shifted", np.uint64, len(keys))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(keys, np.uint64(shift), out=shifted)
        np.bitwise_xor(keys, shifted, out=keys)
        np.multiply(keys, np.uint64(factor), out=keys)
    np.right_shift(keys, np.uint64(31), out=shifted)
    np.bitwise_xor(keys, shifted, out=keys)
    return keys


def hash_numbers(values: Array) -> UInt64Array:
    """One evenly spread 64-bit hash a number, in memory that the next call uses again; equal for equal numbers."""
    hashes = scratch.take("hashes", np.uint64, len(values))
    if values.dtype == np.float32:
        # Adding zero makes one of the two zeros.
        single = scratch.take("single", np.float32, len(values))
        np.add(values, np.float32(0), out=single)
        np.copyto(hashes, single.view(np.uint32))
    else:
        np.copyto(hashes, values.view(np.uint64))
    return mix(hashes)


class ValueTable:
    """Values with their counts, in ascending order: all of them, or the most frequent ones (Misra and Gries).

    Where there were more than MAX_VALUES, `slack` is what a count may be too low by, and the count of a value that is
    not listed; it is less than the number of values divided by MAX_VALUES. A table does not change.

    Example:
        >>> table = ValueTable(np.array([3, 5]), np.array([1, 2])).merge(ValueTable(np.array([5]), np.array([7])))
        >>> table.values.tolist(), table.counts.tolist(), table.is_exact
        ([3, 5], [1, 9], True)
    """

    __slots__ = ("counts", "slack", "values")

    def __init__(self, values: Array, counts: Int64Array, slack: int = 0) -> None:
        surplus = len(values) - MAX_VALUES
        if surplus > 0:
            # The count of the largest that has to go is taken off every one: whoever stays was more frequent.
            kept = counts > 1
            cut = 1
            if np.count_nonzero(kept) > MAX_VALUES:
                cut = int(np.partition(counts, surplus - 1)[surplus - 1])
                kept = counts > cut
            values, counts, slack = values[kept], counts[kept] - cut, slack + cut
        self.values = values
        self.counts = counts
        self.slack = slack

    @property
    def is_exact(self) -> bool:
        return self.slack == 0

    def merge(self, other: ValueTable) -> ValueTable:
        """A table of what both counted."""
        slack = self.slack + other.slack
        if len(other.values) == 0:
            return ValueTable(self.values, self.counts, slack)
        if len(self.values) == 0:
            return ValueTable(other.values, other.counts, slack)
        if len(self.values) == len(other.values) and (self.values == other.values).all():
            return ValueTable(self.values, self.counts + other.counts, slack)
        values = np.concatenate([self.values, other.values])
        order = np.argsort(values, kind="stable")  # two runs that are in order already
        values = values[order]
        starts = find_runs(values)
        counts = np.add.reduceat(np.concatenate([self.counts, other.counts])[order], starts)
        return ValueTable(values[starts], counts, slack)

    def list_top(self, count: int) -> list[tuple[Any, int]]:
        """The most frequent values with their counts; of equally frequent ones the smaller value first."""
        order = np.argsort(-self.counts, kind="stable")[:count]
        return list(zip(self.values[order].tolist(), self.counts[order].tolist(), strict=True))


def count_sorted(in_order: Array) -> ValueTable:
    """The table of an array in ascending order.

    Example:
        >>> count_sorted(np.array([3, 5, 5])).counts.tolist()
        [1, 2]
    """
    is_start = find_starts(in_order)
    if np.count_nonzero(is_start) <= MAX_VALUES:
        starts: Int64Array = is_start.nonzero()[0]
        return ValueTable(in_order[starts], count_runs(starts, len(in_order)))
    # One is taken off every count: what is left are the values that come again, as often as they do.
    again = in_order[np.logical_not(is_start, out=is_start)]
    starts = find_runs(again)
    return ValueTable(again[starts], count_runs(starts, len(again)), 1)


NO_VALUES = ValueTable(np.empty(0, np.int64), np.empty(0, np.int64))


class DistinctSketch:
    """How many values differ, from the smallest of their hashes; exact up to NUM_HASHES."""

    __slots__ = ("hashes", "is_exact")

    def __init__(self, hashes: UInt64Array, limit: int | None = None) -> None:
        """From hashes that are spread evenly over 64 bits.

        `limit` is that of the sketch that this one will be merged into: larger hashes would be dropped there.
        """
        kept: UInt64Array | None = None
        if limit is not None:
            kept = _take_low(hashes, limit)
        elif len(hashes) > 2 * NUM_HASHES:
            # If all differ, those below this are a few more than are kept.
            kept = _take_low(hashes, int(1.15 * NUM_HASHES / len(hashes) * _HASH_RANGE))
            kept = kept if len(kept) >= NUM_HASHES else None
        self.is_exact = kept is None
        if kept is None:
            kept = sort_unique(hashes)
            self.is_exact = len(kept) <= NUM_HASHES
        self.hashes = kept[:NUM_HASHES].copy()

    @property
    def limit(self) -> int | None:
        """The largest hash kept; None while there is room for any."""
        return int(self.hashes[-1]) if len(self.hashes) == NUM_HASHES else None

    @property
    def count(self) -> int:
        """The number, or the estimate of it."""
        if self.is_exact:
            return len(self.hashes)
        return round((NUM_HASHES - 1) / (float(self.hashes[-1]) / _HASH_RANGE))

    def merge(self, other: DistinctSketch) -> None:
        """Count the values of both, those they share once."""
        added = other.hashes
        if len(self.hashes) == NUM_HASHES:
            added = added[: np.searchsorted(added, self.hashes[-1], side="right")]
        merged = sort_unique(np.concatenate([self.hashes, added])) if len(added) else self.hashes
        is_whole = len(merged) <= NUM_HASHES and len(added) == len(other.hashes)
        self.is_exact = self.is_exact and other.is_exact and is_whole
        self.hashes = merged[:NUM_HASHES]


class QuantileSketch:
    """Where the quantiles of many numbers lie: sorted buffers in which each value stands for 1, 2, 4 … values.

    Two buffers of one weight that are full become one of twice the weight, by every second of their values, the odd
    and the even ones in turn (the collapse of Manku, Rajagopalan and Lindsay).
    """

    __slots__ = ("_buffers", "_turns")

    def __init__(self, values: Array, counts: Int64Array | None = None) -> None:
        """From values in ascending order, each there once or `counts` times."""
        num_values = len(values) if counts is None else int(counts.sum())
        level = max(0, (-(-num_values // (2 * BUFFER_SIZE)) - 1).bit_length())
        step = 1 << level
        if counts is not None:
            places = np.arange(step // 2, num_values, step)
            kept = values[np.searchsorted(np.cumsum(counts), places, side="right")]
        else:
            kept = values[step // 2 :: step].copy()  # the rest need not be kept for it
        self._buffers: dict[int, Array] = {level: kept} if len(kept) else {}
        self._turns: dict[int, int] = {}

    @property
    def is_exact(self) -> bool:
        """Does every value stand for itself?"""
        return not any(self._buffers)

    def merge(self, other: QuantileSketch) -> None:
        """Take the values of another sketch in."""
        for level in sorted(other._buffers):
            self._add(level, other._buffers[level])

    def to_weighted(self) -> tuple[Array, Int64Array]:
        """Values in ascending order, and how many each of them stands for."""
        if not self._buffers:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        values = np.concatenate([self._buffers[level] for level in sorted(self._buffers)])
        weights = np.concatenate(
            [np.full(len(self._buffers[level]), 1 << level, np.int64) for level in sorted(self._buffers)]
        )
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]

    def _add(self, level: int, values: Array) -> None:
        while True:
            here = self._buffers.pop(level, None)
            if here is not None:
                values = np.sort(np.concatenate([here, values]))
            if len(values) <= 2 * BUFFER_SIZE:
                self._buffers[level] = values
                return
            turn = self._turns.get(level, 0)
            self._turns[level] = 1 - turn
            values = values[turn::2]
            level += 1


def _take_low(hashes: UInt64Array, limit: int) -> UInt64Array:
    """The different hashes up to a limit, in ascending order."""
    is_low = np.less_equal(hashes, np.uint64(limit), out=scratch.take("is_low", bool, len(hashes)))
    return sort_unique(hashes[is_low])


def sort_unique(values: Array) -> Array:
    """The different values, in ascending order."""
    in_order = np.sort(values)
    unique: Array = in_order[find_starts(in_order)]
    return unique


def find_starts(values: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each value of a sorted array is the first of its kind, in memory that the next call uses again."""
    is_start = scratch.take("is_start", bool, len(values))
    is_start[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start


def find_runs(values: Array) -> Int64Array:
    """Where each run of equal values of a sorted array starts."""
    starts: Int64Array = find_starts(values).nonzero()[0]
    return starts


def count_runs(starts: Int64Array, num_values: int) -> Int64Array:
    """How long each run is."""
    counts = np.empty(len(starts), np.int64)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1])
    counts[-1:] = num_values - starts[-1:]
    return counts


def find_quantile(values: Array, weights: Int64Array, share: float) -> Any:
    """The smallest value that at least this share of all values is not above.

    Example:
        >>> find_quantile(np.array([1, 2, 9]), np.array([1, 1, 2]), 0.5)
        2
    """
    reached = np.cumsum(weights)
    place = int(np.searchsorted(reached, share * int(reached[-1]), side="left"))
    return values[min(place, len(values) - 1)].item()
