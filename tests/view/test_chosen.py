"""The items of a selection: the same positions in each form, and little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tfrkit.view.chosen import Bitmap, Chosen, ListedItems, choose_form

NUM_RECORDS = 3000


def pick(share: float) -> Any:
    return np.flatnonzero(np.random.default_rng(1).random(NUM_RECORDS) < share)


def test_many_in_file_order_are_a_bitmap_and_others_a_list() -> None:
    assert isinstance(choose_form(pick(0.5), NUM_RECORDS), Bitmap)
    assert isinstance(choose_form(pick(0.01), NUM_RECORDS), ListedItems)
    assert isinstance(choose_form(pick(0.5)[::-1], NUM_RECORDS), ListedItems)
    assert isinstance(choose_form(np.array([-1, 0, 1]), 3), ListedItems)
    assert isinstance(choose_form(np.empty(0, np.int64), 0), ListedItems)


@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
@pytest.mark.parametrize(
    "make", [lambda items: Bitmap.of_items(items, NUM_RECORDS), ListedItems, lambda items: ListedItems(items[::-1])]
)
def test_items_and_positions_agree(make: Callable[[Any], Chosen], share: float) -> None:
    items = pick(share)
    chosen = make(items)
    wanted = list(chosen)
    assert sorted(wanted) == items.tolist()
    assert len(chosen) == len(wanted)
    assert [chosen.item_at(position) for position in range(len(wanted))] == wanted
    positions = {item: position for position, item in enumerate(wanted)}
    assert [chosen.position_of(item) for item in range(-1, NUM_RECORDS + 1)] == [
        positions.get(item) for item in range(-1, NUM_RECORDS + 1)
    ]


@pytest.mark.parametrize("ranges", [[], [(0, 3000)], [(3, 5), (6, 7), (9, 100), (512, 1024), (2999, 3000)]])
def test_ranges_hold_exactly_their_records(ranges: list[tuple[int, int]]) -> None:
    expected = [record for start, stop in ranges for record in range(start, stop)]
    assert list(Bitmap.of_ranges(ranges, NUM_RECORDS)) == expected


def test_a_million_records_of_two_take_a_quarter_megabyte() -> None:
    assert choose_form(np.arange(0, 2_000_000, 2), 2_000_000).nbytes < 300_000
