"""Mergeable statistics of arrays of numbers: range, moments, frequent values, quantiles and a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array
from tfrkit.ops.stats.sketches import (
    NO_VALUES,
    SIZES,
    Array,
    DistinctSketch,
    QuantileSketch,
    ValueTable,
    find_quantiles,
    hash_numbers,
)

QUANTILES = {"p1": 0.01, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}
NUM_BINS = 20
# A 64-bit float can represent every integer up to this one.
_MAX_WHOLE = 1 << 53


Bins = list[tuple[float, float, int]]


class NumberSummary:
    """Statistics of many numbers. Mean, deviation and histogram cover only the finite numbers.

    Quantiles, histogram, the number of distinct values and the most frequent values are exact for up to MAX_VALUES
    distinct values (`table.is_exact`). Everything else is always exact.
    """

    __slots__ = ("count", "distinct", "high", "low", "m2", "mean", "num_finite", "num_nan", "ranks", "table", "zeros")

    def __init__(self) -> None:
        self.count = 0  # including NaN and infinities
        self.num_nan = 0
        self.num_finite = 0
        self.zeros = 0
        self.low: int | float | None = None
        self.high: int | float | None = None
        self.mean = 0.0
        self.m2 = 0.0  # sum of squared deviations from the mean
        self.table = NO_VALUES
        # Created when the table first has to drop values: until then the table is exact.
        self.ranks: QuantileSketch | None = None
        self.distinct: DistinctSketch | None = None

    @property
    def num_infinite(self) -> int:
        return self.count - self.num_nan - self.num_finite

    @property
    def std(self) -> float | None:
        """Population standard deviation of the finite numbers."""
        return math.sqrt(self.m2 / self.num_finite) if self.num_finite else None

    @property
    def num_distinct(self) -> int:
        """Number of distinct values without NaN, or an estimate of it."""
        return len(self.table.values) if self.distinct is None else min(self.count, self.distinct.count)

    def merge(self, other: NumberSummary) -> None:
        """Add the numbers of another summary."""
        if other.count == 0:
            return
        if self.low == self.high == other.low == other.high and self.count == self.num_finite:
            self._merge_equal(other)
            return
        self._merge_moments(other)
        self.count += other.count
        self.num_nan += other.num_nan
        self.zeros += other.zeros
        self.low = _choose(min, self.low, other.low)
        self.high = _choose(max, self.high, other.high)
        ranks, distinct = self.ranks, self.distinct
        before = self.table
        self.table = before.merge(other.table)
        if self.table.is_exact:
            return
        self.ranks = QuantileSketch.from_table(before) if ranks is None else ranks
        self.distinct = DistinctSketch(hash_numbers(before.values)) if distinct is None else distinct
        self.ranks.merge(other.ranks or QuantileSketch.from_table(other.table))
        self.distinct.merge(other.distinct or DistinctSketch(hash_numbers(other.table.values)))

    def weigh(self) -> tuple[Array, Int64Array]:
        """Return values in ascending order, and how many numbers each represents: all values if the table is exact."""
        return (self.table.values, self.table.counts) if self.ranks is None else self.ranks.to_weighted()

    def describe(self) -> tuple[dict[str, Any] | None, Bins]:
        """Return the quantiles named in QUANTILES, without NaN, and a histogram of the finite numbers.

        Without numbers the quantiles are None. A bin is (start, stop, count); the last one includes its stop.
        """
        values, weights = self.weigh()
        return _find_quantiles(values, weights), self._count_bins(values, weights)

    def count_between(self, edges: Sequence[float]) -> list[int]:
        """Count the finite numbers in each bin given by `edges`, often those of a merged summary."""
        return self._count_between(*self.weigh(), np.array(edges, np.float64))

    def _count_bins(self, values: Array, weights: Int64Array) -> Bins:
        values, weights = _keep_finite(values, weights)
        if len(values) == 0:
            return []
        low = values[0].item() if self.low is None or math.isinf(self.low) else self.low
        high = values[-1].item() if self.high is None or math.isinf(self.high) else self.high
        edges = _choose_edges(low, high)
        counts = self._count_between(values, weights, edges)
        return list(zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True))

    def _count_between(
        self, values: Array, weights: Int64Array, edges: np.ndarray[Any, np.dtype[np.float64]]
    ) -> list[int]:
        values, weights = _keep_finite(values, weights)
        if len(values) == 0:
            return [0] * (len(edges) - 1)
        # Values are sorted, so the count of a bin is the difference of the counts below its edges.
        reached = np.cumsum(weights)
        places = np.searchsorted(values.astype(np.float64), edges[1:-1])
        below = np.where(places > 0, reached[places - 1], 0)
        share = self.num_finite / int(reached[-1])
        rounded = np.round(np.concatenate([[0], below, reached[-1:]]) * share)  # so that the bins add up
        counts: list[int] = np.diff(rounded).astype(int).tolist()
        return counts

    def _merge_equal(self, other: NumberSummary) -> None:
        """Add a summary of the same single value, the usual case for lengths."""
        self.count += other.count
        self.num_nan += other.num_nan
        self.num_finite += other.num_finite
        self.zeros += other.zeros
        self.table = ValueTable(self.table.values, self.table.counts + other.table.counts)

    def _merge_moments(self, other: NumberSummary) -> None:
        total = self.num_finite + other.num_finite
        if total == 0:
            return
        if self.num_finite == 0:  # exact: merging into an empty summary must not round
            self.mean, self.m2, self.num_finite = other.mean, other.m2, total
            return
        gap = other.mean - self.mean
        self.m2 += other.m2 + gap * gap * self.num_finite * other.num_finite / total
        self.mean += gap * other.num_finite / total
        self.num_finite = total


def summarize_equal(value: int, count: int) -> NumberSummary:
    """Summarize one integer that occurs `count` times."""
    summary = NumberSummary()
    if count:
        summary.count = summary.num_finite = count
        summary.low = summary.high = value
        summary.mean = float(value)
        summary.zeros = count if value == 0 else 0
        summary.table = ValueTable(np.array([value], np.int64), np.array([count], np.int64))
    return summary


def summarize_ints(values: Int64Array, limit: int | None = None) -> NumberSummary:
    """Summarize 64-bit integers; hashes above `limit` are left out (see `DistinctSketch`)."""
    return take_figures(len(values), _native.summarize_ints(values, SIZES, limit))


def summarize_floats(values: np.ndarray[Any, np.dtype[np.float32]], limit: int | None = None) -> NumberSummary:
    """Summarize 32-bit floats; `limit` as in `summarize_ints`."""
    return take_figures(len(values), _native.summarize_floats(values, SIZES, limit))


def take_figures(count: int, figures: _native.NumberFigures) -> NumberSummary:
    """Make the summary of `count` numbers from the figures that the native core computed."""
    summary = NumberSummary()
    summary.count = count
    summary.num_nan, summary.num_finite, summary.zeros = figures.num_nan, figures.num_finite, figures.zeros
    summary.low, summary.high, summary.mean, summary.m2 = figures.low, figures.high, figures.mean, figures.m2
    summary.table = ValueTable(figures.values, figures.counts, 0 if figures.is_whole else 1)
    if not figures.is_whole:
        summary.ranks = QuantileSketch(figures.ranks, figures.level)
        summary.distinct = DistinctSketch(figures.hashes, is_exact=False)
    return summary


def _find_quantiles(values: Array, weights: Int64Array) -> dict[str, Any] | None:
    if len(values) == 0:
        return None
    return dict(zip(QUANTILES, find_quantiles(values, weights, list(QUANTILES.values())), strict=True))


def _choose_edges(low: int | float, high: int | float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return bin edges: one bin per integer if there are few, otherwise bins of equal width."""
    is_few = isinstance(low, int) and high - low < NUM_BINS and max(abs(low), abs(high)) < _MAX_WHOLE
    if is_few:
        return np.arange(low, high + 2, dtype=np.float64)
    if low == high:
        return np.array([low, low], np.float64)
    return np.linspace(float(low), float(high), NUM_BINS + 1)


def _keep_finite(values: Array, weights: Int64Array) -> tuple[Array, Int64Array]:
    if not np.issubdtype(values.dtype, np.floating):
        return values, weights
    is_finite = np.isfinite(values)
    return values[is_finite], weights[is_finite]


def _choose(pick: Any, one: int | float | None, other: int | float | None) -> Any:
    return other if one is None else one if other is None else pick(one, other)
