"""Several orders drawn from by weight."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit.orders.mixed import Mixed, apportion
from tfrkit.orders.order import Order, Shuffled, Whole


def all_of(order: Order) -> list[int]:
    return order.at(np.arange(order.size, dtype=np.uint64)).tolist()


def test_mix_draws_by_weight_and_in_the_order_of_each_source() -> None:
    order = Mixed([Whole(70_000), Whole(30_000)], [0.7, 0.3], [0, 1_000_000], seed=1, size=None)
    numbers = np.array(all_of(order))
    first, second = numbers[numbers < 1_000_000], numbers[numbers >= 1_000_000] - 1_000_000
    assert order.size == pytest.approx(100_000, abs=10)
    assert first.tolist() == list(range(len(first)))
    assert second.tolist() == list(range(len(second)))
    assert np.bincount((numbers >= 1_000_000).reshape(-1)[:10_000]).tolist() == [7000, 3000]


@pytest.mark.parametrize(("sizes", "weights"), [([3, 1000], [0.5, 0.5]), ([7, 5], [1, 3]), ([1, 1], [1, 1])])
def test_mix_without_a_size_ends_before_a_source_begins_again(sizes: list[int], weights: list[float]) -> None:
    order = Mixed([Whole(size) for size in sizes], weights, [0, 10_000], seed=5, size=None)
    numbers = all_of(order)
    assert len(set(numbers)) == len(numbers)
    more = Mixed([Whole(size) for size in sizes], weights, [0, 10_000], seed=5, size=order.size + 1)
    assert len(set(all_of(more))) == len(numbers)  # the next draw is one that was there


def test_mix_with_a_size_begins_again_with_another_epoch() -> None:
    order = Mixed([Shuffled(Whole(100), 1), Whole(10)], [0.5, 0.5], [0, 1000], seed=1, size=1000)
    numbers = np.array(all_of(order))
    mine = numbers[numbers < 1000]
    assert sorted(mine[:100].tolist()) == sorted(mine[100:200].tolist()) == list(range(100))
    assert mine[:100].tolist() != mine[100:200].tolist()


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([1], [10]),
        ([1, 1], [5, 5]),
        ([1, 1, 1], [4, 3, 3]),
        ([0.7, 0.3], [7, 3]),
        ([1e-9, 1], [1, 9]),
        ([0, 2], [0, 10]),
    ],
)
def test_weights_are_apportioned(weights: list[float], shares: list[int]) -> None:
    assert apportion(weights, 10) == shares


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1]])
def test_weights_that_mean_nothing_raise(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="weights expected numbers of 0 or more, not all 0, got"):
        apportion(weights, 10)
