"""Sketches of many values in little memory: frequent values, the number of distinct values, and quantiles.

Sketches are made from arrays and merged. They are deterministic: the same sequence of merges gives the same content.
Each sketch is exact until it has to drop values; see `is_exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt64Array

Array = np.ndarray[Any, np.dtype[Any]]

# Number of distinct values that are counted exactly.
MAX_VALUES = 4096
# Hashes kept to estimate the number of distinct values: the standard error is 1 / sqrt(NUM_HASHES), 1.6 %.
NUM_HASHES = 4096
# A buffer of a QuantileSketch holds at most twice this many values. A rank is off by less than
# log2(num_values / BUFFER_SIZE) / (2 * BUFFER_SIZE): 0.2 % of a million values, 0.5 % of a billion.
BUFFER_SIZE = 2048
# Number of values, hashes and ranks that the native core returns for a block of values.
SIZES = (MAX_VALUES, NUM_HASHES, 2 * BUFFER_SIZE)

_HASH_RANGE = 2.0**64


def scatter(keys: UInt64Array) -> UInt64Array:
    """Scatter 64-bit keys evenly (the last steps of splitmix64); different keys stay different."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(31))


def hash_numbers(values: Array) -> UInt64Array:
    """Return an evenly distributed 64-bit hash of each number; equal numbers have equal hashes."""
    if values.dtype == np.float32:
        # Adding zero turns -0.0 into 0.0.
        return scatter((values + np.float32(0)).view(np.uint32).astype(np.uint64))
    return scatter(values.view(np.uint64))


class ValueTable:
    """Values with their counts, in ascending order: all values, or the most frequent ones (Misra and Gries).

    If there were more than MAX_VALUES, a count may be too low by up to `slack`, and a value that is not listed may have
    occurred up to `slack` times; it is less than the number of values divided by MAX_VALUES. A table is immutable.

    Example:
        >>> table = ValueTable(np.array([3, 5]), np.array([1, 2])).merge(ValueTable(np.array([5]), np.array([7])))
        >>> table.values.tolist(), table.counts.tolist(), table.is_exact
        ([3, 5], [1, 9], True)
    """

    __slots__ = ("counts", "slack", "values")

    def __init__(self, values: Array, counts: Int64Array, slack: int = 0) -> None:
        surplus = len(values) - MAX_VALUES
        if surplus > 0:
            # The largest count that is dropped is subtracted from all counts: the values that stay were more frequent.
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
        """Return a table with the counts of both."""
        slack = self.slack + other.slack
        if len(other.values) == 0:
            return ValueTable(self.values, self.counts, slack)
        if len(self.values) == 0:
            return ValueTable(other.values, other.counts, slack)
        if len(self.values) == len(other.values) and (self.values == other.values).all():
            return ValueTable(self.values, self.counts + other.counts, slack)
        values, counts = _native.merge_counts(self.values, self.counts, other.values, other.counts)
        return ValueTable(values, counts, slack)

    def list_top(self, count: int) -> list[tuple[Any, int]]:
        """List the most frequent values with their counts; the smaller of two equally frequent values is first."""
        order = np.argsort(-self.counts, kind="stable")[:count]
        return list(zip(self.values[order].tolist(), self.counts[order].tolist(), strict=True))


NO_VALUES = ValueTable(np.empty(0, np.int64), np.empty(0, np.int64))


class DistinctSketch:
    """Estimates the number of distinct values from their smallest hashes; exact up to NUM_HASHES."""

    __slots__ = ("hashes", "is_exact")

    def __init__(self, hashes: UInt64Array, *, is_exact: bool | None = None) -> None:
        """Create a sketch from evenly distributed 64-bit hashes of all values, in any order.

        If `is_exact` is given, these are the smallest in ascending order, as selected by the native core, which omits
        hashes above the `limit` of the sketch that this one will be merged into: they would be dropped there.
        """
        if is_exact is None:
            hashes = np.unique(hashes)
            is_exact = len(hashes) <= NUM_HASHES
            hashes = hashes[:NUM_HASHES]
        self.is_exact = is_exact
        self.hashes = hashes

    @property
    def limit(self) -> int | None:
        """The largest hash kept; None while the sketch is not full."""
        return int(self.hashes[-1]) if len(self.hashes) == NUM_HASHES else None

    @property
    def count(self) -> int:
        """The number of distinct values, or an estimate of it."""
        if self.is_exact:
            return len(self.hashes)
        return round((NUM_HASHES - 1) / (float(self.hashes[-1]) / _HASH_RANGE))

    def merge(self, other: DistinctSketch) -> None:
        """Add the values of another sketch; values in both count once."""
        merged, num_different = _native.merge_unique(self.hashes, other.hashes, NUM_HASHES)
        self.is_exact = self.is_exact and other.is_exact and num_different <= NUM_HASHES
        self.hashes = merged


class QuantileSketch:
    """Estimates quantiles of many numbers, by sorted buffers in which each value represents 1, 2, 4 … values.

    Every second value of a full buffer moves to the buffer of twice the weight, the others are dropped; odd and even
    positions alternate (the collapse of Manku, Rajagopalan and Lindsay).
    """

    __slots__ = ("_buffers", "_turns")

    def __init__(self, values: Array, level: int = 0) -> None:
        """Create a sketch from at most 2 * BUFFER_SIZE values in ascending order, each representing 2**level."""
        self._buffers: dict[int, Array] = {level: values} if len(values) else {}
        self._turns: dict[int, int] = {}

    @classmethod
    def from_table(cls, table: ValueTable) -> QuantileSketch:
        """Create a sketch from values with their counts."""
        num_values = int(table.counts.sum())
        level = max(0, (-(-num_values // (2 * BUFFER_SIZE)) - 1).bit_length())
        places = np.arange((1 << level) // 2, num_values, 1 << level)
        return cls(table.values[np.searchsorted(np.cumsum(table.counts), places, side="right")], level)

    @property
    def is_exact(self) -> bool:
        """Does every value represent only itself?"""
        return not any(self._buffers)

    def merge(self, other: QuantileSketch) -> None:
        """Add the values of another sketch."""
        for level in sorted(other._buffers):
            self._add(level, other._buffers[level])

    def to_weighted(self) -> tuple[Array, Int64Array]:
        """Return values in ascending order, and how many values each represents."""
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
                values = _native.merge_sorted(here, values)
            if len(values) <= 2 * BUFFER_SIZE:
                self._buffers[level] = values
                return
            turn = self._turns.get(level, 0)
            self._turns[level] = 1 - turn
            values = values[turn::2].copy()  # a view would keep the whole array in memory
            level += 1


def find_quantiles(values: Array, weights: Int64Array, shares: Sequence[float]) -> list[Any]:
    """For each share, return the smallest value that at least this share of all values does not exceed.

    Example:
        >>> find_quantiles(np.array([1, 2, 9]), np.array([1, 1, 2]), [0.25, 0.5])
        [1, 2]
    """
    reached = np.cumsum(weights)
    places = np.searchsorted(reached, np.array(shares) * int(reached[-1]), side="left")
    found: list[Any] = values[np.minimum(places, len(values) - 1)].tolist()
    return found
