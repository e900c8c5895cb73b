from __future__ import annotations

import json

import numpy as np
import pytest

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
    derive_key,
    keyed_permutation,
    score_mixing,
)

SIZES = [1, 2, 3, 10, 255, 256, 257, 1000, 4099]


def all_of(order: Order, epoch: int = 0) -> list[int]:
    return order.at(np.arange(order.size, dtype=np.uint64), epoch).tolist()


ORDERS = {
    "permuted": lambda n: Permuted(Whole(n), 3),
    "shuffled": lambda n: Shuffled(Whole(n), 3),
    "window": lambda n: WindowShuffled(Whole(n), 3, block=7, window=100),
    "window of one block": lambda n: WindowShuffled(Whole(n), 3, block=64, window=1),
    "bucketed": lambda n: Bucketed(Shuffled(Whole(n), 1), np.arange(n) % 13, batch_size=8, seed=1, num_batches=5),
    "joined": lambda n: Joined([Slice(Whole(n), n // 3, n), Slice(Whole(n), 0, n // 3)]),
    "backwards": lambda n: Slice(Whole(n), n - 1, -1, -1),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ORDERS)
def test_every_order_of_all_records_holds_each_once(name: str, size: int) -> None:
    order = ORDERS[name](size)
    assert order.size == size
    for epoch in (0, 1, 9):
        assert sorted(all_of(order, epoch)) == list(range(size))


@pytest.mark.parametrize("name", ORDERS)
def test_any_positions_agree_with_all_positions(name: str) -> None:
    order = ORDERS[name](1000)
    whole = np.array(all_of(order, 2))
    chosen = np.random.default_rng(0).integers(0, 1000, 77).astype(np.uint64)
    assert order.at(chosen, 2).tolist() == whole[chosen].tolist()
    assert order.at(np.empty(0, np.uint64), 2).tolist() == []


@pytest.mark.parametrize("name", ["shuffled", "window", "bucketed"])
def test_every_epoch_has_its_own_order(name: str) -> None:
    order = ORDERS[name](1000)
    assert all_of(order, 0) != all_of(order, 1)
    assert all_of(order, 1) == all_of(ORDERS[name](1000), 1)


def test_orders_are_pinned() -> None:
    # Stable: a state saved by one version is read by the next.
    assert derive_key("shuffle", 7, 0) == 14887601133894236919
    assert all_of(Shuffled(Whole(10), 7)) == PINNED["shuffled"]
    assert all_of(Shuffled(Whole(10), 7), 1) == PINNED["shuffled, epoch 1"]
    assert all_of(Shuffled(Whole(1_000_000), 7))[:5] == PINNED["shuffled, a million"]
    assert all_of(Permuted(Whole(10), 7)) == PINNED["permuted"]
    assert all_of(WindowShuffled(Whole(20), 7, block=3, window=9)) == PINNED["window"]
    assert all_of(Mixed([Whole(10), Whole(10)], [0.7, 0.3], [0, 100], seed=1, size=12)) == PINNED["mixed"]


PINNED = {
    "shuffled": [3, 5, 4, 2, 0, 7, 9, 8, 1, 6],
    "shuffled, epoch 1": [7, 5, 3, 2, 0, 6, 1, 4, 8, 9],
    "shuffled, a million": [523928, 821475, 742158, 185849, 613415],
    "permuted": [3, 4, 0, 7, 1, 6, 5, 9, 8, 2],
    "window": [12, 5, 0, 4, 1, 14, 3, 2, 13, 16, 9, 10, 11, 8, 6, 7, 17, 15, 19, 18],
    "mixed": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1],
}


def test_seeds_differ() -> None:
    firsts = {tuple(all_of(Shuffled(Whole(100), seed))) for seed in (-1, 0, 1, 2**70)}
    assert len(firsts) == 4


def test_window_keeps_blocks_together_within_a_window() -> None:
    order = WindowShuffled(Whole(1000), 0, block=10, window=50)
    numbers = np.array(all_of(order))
    for start in range(0, 1000, 50):
        blocks = np.unique(numbers[start : start + 50] // 10)
        assert len(blocks) == 5


def test_mixing_scores_differ_between_orders() -> None:
    size = 100_000
    exact = score_mixing(Shuffled(Whole(size), 1))
    window = score_mixing(WindowShuffled(Whole(size), 1, block=100, window=10_000))
    narrow = score_mixing(WindowShuffled(Whole(size), 1, block=100, window=200))
    assert exact == pytest.approx(1, abs=0.03)
    assert window == pytest.approx(0.99, abs=0.03)
    assert narrow == pytest.approx(0.5, abs=0.05)
    assert score_mixing(Whole(size)) < 0.001
    assert score_mixing(Whole(1)) == 1


def test_listed_positions_are_of_the_base() -> None:
    order = Listed(Slice(Whole(100), 50, 100), np.array([3, 1], np.uint64))
    assert all_of(order) == [53, 51]


def test_repeated_is_epoch_after_epoch() -> None:
    base = Shuffled(Whole(5), 3)
    assert all_of(Repeated(base, 3)) == all_of(base, 0) + all_of(base, 1) + all_of(base, 2)
    assert all_of(Repeated(base, 3), 1) == all_of(base, 3) + all_of(base, 4) + all_of(base, 5)
    assert all_of(Repeated(Whole(1), 3)) == [0, 0, 0]


def test_bucketed_batches_hold_like_lengths() -> None:
    lengths = np.random.default_rng(1).integers(1, 500, 5000)
    order = Bucketed(Shuffled(Whole(5000), 1), lengths, batch_size=10, seed=1)
    batches = lengths[np.array(all_of(order))].reshape(-1, 10)
    plain = lengths[np.array(all_of(Shuffled(Whole(5000), 1)))].reshape(-1, 10)
    assert np.ptp(batches, axis=1).mean() < np.ptp(plain, axis=1).mean() / 10
    assert np.abs(np.diff(batches.mean(axis=1))).mean() > 50  # but the batches themselves are mixed


def test_descriptions_are_json_and_differ_between_orders() -> None:
    orders: list[Order] = [make(100) for make in ORDERS.values()]
    orders += [Whole(100), Whole(99), Shuffled(Whole(100), 4), Repeated(Whole(100), 2)]
    orders += [Listed(Whole(100), np.array([1, 2], np.uint64)), Listed(Whole(100), np.array([2, 1], np.uint64))]
    orders += [Mixed([Whole(10)], [1], [0], seed=0, size=5)]
    texts = [json.dumps(order.describe()) for order in orders]
    assert len(set(texts)) == len(texts)


def test_keyed_permutation_is_that_of_the_first_epoch() -> None:
    positions = np.arange(9, dtype=np.uint64)
    assert keyed_permutation(9, 5).at_many(positions).tolist() == all_of(Shuffled(Whole(9), 5))
