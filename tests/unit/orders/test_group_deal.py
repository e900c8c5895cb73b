"""Dealing whole groups to parts."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit.orders.group_deal import deal_mixes, deal_sizes, fill_empty, refine_sizes


def test_groups_of_one_size_are_dealt_by_share() -> None:
    table = deal_sizes(np.array([2, 10]), np.array([50, 10]), [160, 20, 20], [0, 1, 2])
    assert table.tolist() == [[40, 5, 5], [8, 1, 1]]


def test_group_goes_to_the_part_furthest_below_its_share() -> None:
    """The largest go to the large part, but not all of them: the small part gets a 12, not only what is left."""
    sizes = np.array([3, 4, 6, 7, 8, 9, 10, 11, 12, 14, 16])
    table = deal_sizes(sizes, np.ones(11, np.int64), [80, 20], [0, 1])
    assert sizes[table[:, 1] > 0].tolist() == [8, 12]


def test_group_goes_to_a_part_that_holds_it() -> None:
    """The 25 would leave the small part nearer to its share than the large one, but does not fit in it."""
    table = deal_sizes(np.array([10, 15, 25, 50]), np.ones(4, np.int64), [80, 20], [0, 1])
    assert table.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize("ties", [[0, 1], [1, 0]])
def test_ties_between_parts_are_broken_by_the_seeded_rank(ties: list[int]) -> None:
    table = deal_sizes(np.array([3, 5]), np.ones(2, np.int64), [4, 4], ties)
    assert table.tolist() == [ties[::-1], ties]


def test_group_that_fits_nowhere_goes_where_most_room_is() -> None:
    assert deal_sizes(np.array([1, 99]), np.ones(2, np.int64), [30, 70], [1, 0]).tolist() == [[1, 0], [0, 1]]


def test_classes_are_dealt_to_the_part_that_needs_them() -> None:
    """By size alone both groups of class 0 could go to one part."""
    mixes = [[(0, 6)], [(1, 6)], [(0, 5)], [(1, 5)]]
    table = deal_mixes(mixes, np.ones(4, np.int64), [11, 11], [0, 1])
    assert table.tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]


def test_empty_part_takes_the_group_that_hurts_least() -> None:
    sizes = np.array([1, 3, 9])
    table = np.array([[1, 0], [1, 0], [1, 0]])
    fill_empty(table, sizes, [10, 3])
    assert table.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_last_group_of_a_part_is_not_taken_for_an_empty_one() -> None:
    """Sizes would be nearer with the 3 moved, but then another part would be empty."""
    sizes = np.array([2, 3])
    table = np.array([[0, 2, 0], [1, 0, 0]])
    fill_empty(table, sizes, [1, 4, 2])
    assert table.tolist() == [[0, 1, 1], [1, 0, 0]]


def test_move_brings_sizes_to_their_targets() -> None:
    sizes = np.array([2, 7])
    table = np.array([[2, 0], [1, 1]])
    refine_sizes(table, sizes, [9, 9])
    assert table.tolist() == [[1, 1], [1, 1]]


def test_exchange_brings_sizes_to_their_targets() -> None:
    sizes = np.array([2, 6, 9])
    table = np.array([[0, 2], [1, 0], [0, 1]])  # 6 and 13, where 9 and 10 is possible
    refine_sizes(table, sizes, [9, 10])
    assert table.tolist() == [[0, 2], [0, 1], [1, 0]]


def test_part_is_not_emptied_for_the_sake_of_sizes() -> None:
    sizes = np.array([5])
    table = np.array([[1, 1]])
    refine_sizes(table, sizes, [1, 9])
    assert table.tolist() == [[1, 1]]


def test_sizes_on_target_are_left_alone() -> None:
    sizes = np.array([1, 2, 3])
    table = np.array([[1, 1], [2, 0], [0, 1]])
    before = table.copy()
    refine_sizes(table, sizes, [5, 4])
    assert (table == before).all()


def test_groups_of_a_kind_that_were_dealt_together_all_count() -> None:
    """The large part has three groups of the class already, two of them dealt at once; the small one gets the last."""
    table = deal_mixes([[(1, 2)], [(1, 2)]], np.array([1, 3]), [7, 1], [0, 1])
    assert table.tolist() == [[1, 0], [2, 1]]


def test_group_that_would_miss_by_as_much_elsewhere_stays() -> None:
    table = np.array([[0, 2]])
    refine_sizes(table, np.array([10]), [5, 15])
    assert table.tolist() == [[0, 2]]
