"""What parts are made of."""

from __future__ import annotations

import numpy as np
import pytest

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
from tfrkit.orders.part_orders import Without, check_fixed, list_parts


def records(order: Order) -> list[int]:
    return [int(record) for record in order.at(np.arange(order.size, dtype=np.uint64))]


@pytest.mark.parametrize("left_out", [[], [0], [6], [0, 1, 2], [4, 5, 6], [1, 3, 5], [0, 2, 3, 6], list(range(7))])
def test_without_gives_what_the_list_does_not(left_out: list[int]) -> None:
    order = Without(Whole(7), np.array(left_out, np.uint64))
    assert records(order) == [record for record in range(7) if record not in left_out]
    assert order.size == 7 - len(left_out)


def test_without_answers_single_positions_of_another_order() -> None:
    base = Listed(Whole(9), np.array([8, 6, 4, 2, 0], np.uint64))
    order = Without(base, np.array([1, 3], np.uint64))
    assert [int(order.at(np.array([i], np.uint64))[0]) for i in (2, 0, 1)] == [0, 8, 4]


def test_without_describes_what_it_leaves_out() -> None:
    first = Without(Whole(7), np.array([1], np.uint64))
    second = Without(Whole(7), np.array([2], np.uint64))
    assert first.describe() != second.describe()
    assert first.describe() == Without(Whole(7), np.array([1], np.uint64)).describe()


def test_listed_parts_keep_file_order() -> None:
    parts = list_parts(Whole(6), ["a", "b", "c"], np.array([2, 0, 0, 2, 0, 2]))
    assert {name: records(order) for name, order in parts.items()} == {"a": [1, 2, 4], "b": [], "c": [0, 3, 5]}


@pytest.mark.parametrize(
    "order",
    [
        Whole(8),
        Slice(Permuted(Whole(8), 1), 0, 4),
        Joined([Slice(Whole(8), 0, 2), Listed(Whole(8), np.array([5], np.uint64))]),
        Without(Whole(8), np.array([5], np.uint64)),
    ],
)
def test_order_that_stays_is_accepted(order: Order) -> None:
    check_fixed(order)


@pytest.mark.parametrize(
    ("order", "word"),
    [
        (Shuffled(Whole(8), 1), "shuffled"),
        (WindowShuffled(Whole(8), 1, block=2, window=4), "shuffled"),
        (Repeated(Whole(8), 2), "repeated"),
        (Bucketed(Whole(8), np.arange(8), batch_size=2, seed=0), "bucketed"),
        (Slice(Shuffled(Whole(8), 1), 0, 4), "shuffled"),
        (Joined([Whole(8), Slice(Shuffled(Whole(8), 1), 0, 4)]), "shuffled"),
    ],
)
def test_order_that_changes_with_the_epoch_is_refused(order: Order, word: str) -> None:
    with pytest.raises(ValueError, match=rf"^expected rows in a fixed order, got {word} ones.*\n  split first"):
        check_fixed(order)
