"""Spans of an order, compared with enumerating every position."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit._types import UInt64Array
from tfrkit.orders.mixed import Mixed
from tfrkit.orders.order import (
    Bucketed,
    Joined,
    Listed,
    Order,
    Permuted,
    Repeated,
    Shuffled,
    Slice,
    Whole,
    WindowShuffled,
)
from tfrkit.orders.part_orders import Without
from tfrkit.orders.spans import count_by_span, count_splits, find_spans

STARTS = [0, 10, 10, 25, 60, 100]
WHOLE = Whole(100)


def numbers(*values: int) -> UInt64Array:
    return np.array(values, np.uint64)


ORDERS: dict[str, Order] = {
    "whole": WHOLE,
    "empty": Slice(WHOLE, 5, 5),
    "front": Slice(WHOLE, 0, 10),
    "across": Slice(WHOLE, 9, 26),
    "steps": Slice(WHOLE, 3, 100, 30),
    "backwards": Slice(WHOLE, 59, 9, -7),
    "slice of steps": Slice(Slice(WHOLE, 0, 100, 9), 2, 5),
    "steps of backwards": Slice(Slice(WHOLE, 99, -1, -1), 10, 90, 11),
    "joined": Joined([Slice(WHOLE, 60, 100), Slice(WHOLE, 0, 3)]),
    "slice of joined": Slice(Joined([Slice(WHOLE, 60, 100), Slice(WHOLE, 0, 30)]), 38, 45),
    "steps of joined": Slice(Joined([Slice(WHOLE, 60, 100), Slice(WHOLE, 0, 30)]), 0, 70, 3),
    "listed": Listed(WHOLE, numbers(99, 12, 3, 3)),
    "without": Without(Slice(WHOLE, 0, 25), np.arange(10, dtype=np.uint64)),
    "part of a split": Slice(Permuted(WHOLE, 0), 0, 7),
    "shuffled front": Shuffled(Slice(WHOLE, 0, 10), 1),
    "window": WindowShuffled(Slice(WHOLE, 20, 70), 1, block=4, window=16),
    "bucketed": Bucketed(Slice(WHOLE, 0, 30), np.arange(100), batch_size=4, seed=0),
    "repeated": Repeated(Shuffled(Slice(WHOLE, 25, 60), 1), 3),
    "slice of repeated": Slice(Repeated(Listed(WHOLE, numbers(1, 99)), 50), 1, 100),
    "short slice of repeated": Slice(Repeated(Listed(WHOLE, numbers(1, 99, 30)), 50), 1, 3),
    "mixed": Mixed([Slice(Whole(25), 0, 5), Shuffled(Whole(40), 1)], [0.5, 0.5], [0, 60], seed=1, size=9),
}


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("epoch", [0, 3])
def test_spans_are_those_that_every_position_names(name: str, epoch: int) -> None:
    order = ORDERS[name]
    records = order.at(np.arange(order.size, dtype=np.uint64), epoch).astype(np.int64)
    wanted = [int(((records >= start) & (records < stop)).sum()) for start, stop in zip(STARTS, STARTS[1:])]  # noqa: B905, RUF007
    assert count_by_span(order, STARTS, epoch).tolist() == wanted
    assert find_spans(order, STARTS, epoch) == [span for span, count in enumerate(wanted) if count]


@pytest.mark.parametrize("name", ORDERS)
def test_runs_are_the_records_in_order_and_are_covered(name: str) -> None:
    order = ORDERS[name]
    records = order.at(np.arange(order.size, dtype=np.uint64)).tolist()
    runs = order.runs()
    if runs is not None:
        assert [number for run in runs for number in run] == records
    assert set(records) <= {number for run in order.cover() for number in run}
    members = order.members()
    assert set(members.at(np.arange(members.size, dtype=np.uint64)).tolist()) == set(records)


def test_an_order_without_end_names_its_spans_at_once() -> None:
    endless = Repeated(Listed(WHOLE, numbers(1, 99)), (1 << 60) // 2)
    assert find_spans(endless, STARTS) == [0, 4]
    assert find_spans(Slice(endless, 5, endless.size), STARTS) == [0, 4]


def test_rows_of_a_part_are_counted_by_split() -> None:
    splits: dict[str, Order] = {
        "train": Joined([Slice(WHOLE, 0, 25), Slice(WHOLE, 60, 100)]),
        "test": Slice(WHOLE, 25, 60),
    }
    assert count_splits(Slice(WHOLE, 20, 30), splits, 100) == {"train": 5, "test": 5}
    assert count_splits(Listed(WHOLE, numbers(99, 99, 0)), splits, 100) == {"train": 3}
    assert count_splits(WHOLE, {}, 100) == {}
