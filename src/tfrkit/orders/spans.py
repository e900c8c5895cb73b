"""Counts of the records of an order in spans of a dataset, such as its shards or splits.

Computed by arithmetic if the order is made of ranges; otherwise all its positions are evaluated, in chunks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.orders.order import Order

# Positions evaluated per step.
_STRETCH = 1 << 16


def count_by_span(order: Order, starts: Sequence[int], epoch: int = 0) -> Int64Array:
    """Count the positions of an order in each span; span i is starts[i] to starts[i + 1]."""
    bounds = np.asarray(starts, np.int64)
    runs = order.runs()
    if runs is not None:
        return _count_runs(runs, bounds)
    counts = np.zeros(len(bounds) - 1, np.int64)
    for start in range(0, order.size, _STRETCH):
        counts += np.bincount(_find_spans_at(order, start, bounds, epoch), minlength=len(counts))
    return counts


def find_spans(order: Order, starts: Sequence[int], epoch: int = 0) -> list[int]:
    """Find the spans that have a record of an order, ascending. Stops when all possible spans are found."""
    bounds = np.asarray(starts, np.int64)
    order = order.members()
    runs = order.runs()
    possible = _count_runs(order.cover() if runs is None else runs, bounds) > 0
    if runs is not None:
        return np.flatnonzero(possible).tolist()
    seen = np.zeros(len(possible), np.bool_)
    for start in range(0, order.size, _STRETCH):
        seen[_find_spans_at(order, start, bounds, epoch)] = True
        if seen[possible].all():
            break
    return np.flatnonzero(seen).tolist()


def count_splits(order: Order, splits: Mapping[str, Order], size: int, epoch: int = 0) -> dict[str, int]:
    """Count the positions of an order in each split; splits without positions are left out."""
    covers = {name: split.cover() for name, split in splits.items()}
    edges = {0, size, *(edge for runs in covers.values() for run in runs for edge in (run.start, run.stop))}
    bounds = sorted(edges)
    counts = count_by_span(order, bounds, epoch)
    sums = {
        name: sum(int(counts[bisect_left(bounds, run.start) : bisect_left(bounds, run.stop)].sum()) for run in runs)
        for name, runs in covers.items()
    }
    return {name: count for name, count in sums.items() if count}


def _find_spans_at(order: Order, start: int, bounds: Int64Array, epoch: int) -> Int64Array:
    positions = np.arange(start, min(order.size, start + _STRETCH), dtype=np.uint64)
    return np.searchsorted(bounds, order.at(positions, epoch).astype(np.int64), side="right") - 1


def _count_runs(runs: Sequence[range], bounds: Int64Array) -> Int64Array:
    counts = np.zeros(len(bounds) - 1, np.int64)
    for run in runs:
        if not run:
            continue
        rising = run if run.step > 0 else run[::-1]
        first, last = (int(np.searchsorted(bounds, number, side="right")) - 1 for number in (rising[0], rising[-1]))
        edges = bounds[first : last + 2]
        # The count of numbers below each edge; the run starts in the first span and ends in the last.
        below = np.clip(-((rising.start - edges) // rising.step), 0, len(rising))
        counts[first : last + 1] += np.diff(below)
    return counts
