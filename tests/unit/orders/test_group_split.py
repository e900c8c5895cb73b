"""Splits that keep groups whole. The literal values are pinned: changing them is a breaking change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tfrkit.orders.group_split import check_groups, split_grouped
from tfrkit.orders.order import Listed, Order, Shuffled, Whole
from tfrkit.orders.split import split_order

PARTS = {"train": 0.6, "val": 0.2, "test": 0.2}


def records(order: Order) -> list[int]:
    return [int(record) for record in order.at(np.arange(order.size, dtype=np.uint64))]


def all_records(parts: dict[str, Order]) -> dict[str, list[int]]:
    return {name: records(order) for name, order in parts.items()}


def make_groups(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def test_grouped_split_is_pinned() -> None:
    split = split_grouped(Whole(15), PARTS, make_groups(5, 4, 2, 3, 1), 0)
    assert all_records(split.parts) == {
        "train": [0, 1, 2, 3, 4, 5, 6, 7, 8],
        "val": [9, 10, 14],
        "test": [11, 12, 13],
    }
    assert split.counts == split.asked == {"train": 9, "val": 3, "test": 3}
    assert split.num_groups == {"train": 2, "val": 2, "test": 1}
    assert split.largest_group == (0, 5)
    assert split.max_miss == 0 and split.max_label_gap is None and split.class_counts is None


def test_split_by_group_and_label_is_pinned() -> None:
    split = split_grouped(Whole(20), PARTS, make_groups(5, 4, 3, 3, 2, 1, 1, 1), 0, np.arange(20) % 3)
    assert all_records(split.parts) == {
        "train": [0, 1, 2, 3, 4, 12, 13, 14, 15, 16, 17, 18],
        "val": [9, 10, 11, 19],
        "test": [5, 6, 7, 8],
    }
    assert split.class_counts == {
        "train": {0: 5, 1: 4, 2: 3},
        "val": {0: 1, 1: 2, 2: 1},
        "test": {0: 1, 1: 1, 2: 2},
    }
    assert split.max_label_gap == pytest.approx(0.2)


def test_result_holds_the_requested_and_actual_sizes() -> None:
    split = split_grouped(Whole(100), {"train": 0.5, "test": 0.5}, make_groups(80, 10, 10), 0)
    assert split.counts in ({"train": 80, "test": 20}, {"train": 20, "test": 80})
    assert split.max_miss == 30
    lines = split_grouped(Whole(100), {"train": 0.9, "test": 0.1}, make_groups(80, 20), 0).describe()
    assert lines == [
        "train: 80 records (80.0%), groups 1, asked 90 (90.0%)",
        "test: 20 records (20.0%), groups 1, asked 10 (10.0%)",
        "group 0 has 80 records, more than the smallest part may have",
    ]


def test_large_group_goes_where_it_fits() -> None:
    for seed in range(20):
        split = split_grouped(Whole(100), {"val": 0.2, "train": 0.8}, make_groups(50, 20, 10, 10, 5, 5), seed)
        assert split.counts == {"val": 20, "train": 80}
        assert records(split.parts["train"])[:50] == list(range(50))


def test_requested_part_gets_a_group_even_if_none_fits() -> None:
    split = split_grouped(Whole(100), {"train": 0.8, "val": 0.2}, make_groups(50, 50), 0)
    assert split.num_groups == {"train": 1, "val": 1}
    labels = np.arange(100) % 2
    split = split_grouped(Whole(100), {"train": 0.98, "val": 0.02}, make_groups(50, 50), 0, labels)
    assert split.num_groups == {"train": 1, "val": 1}


def test_part_of_share_zero_stays_empty() -> None:
    for labels in (None, np.arange(10) % 2):
        split = split_grouped(Whole(10), {"a": 0, "b": 0.5, "c": 0.5}, make_groups(4, 3, 2, 1), 0, labels)
        assert split.counts["a"] == 0
        assert records(split.parts["a"]) == []


def test_small_groups_even_out_large_ones() -> None:
    groups = make_groups(31, 17, 13, 11, 7, 5, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1)
    for seed in range(20):
        assert split_grouped(Whole(100), PARTS, groups, seed).max_miss == 0


def test_sizes_are_refined_after_the_deal() -> None:
    """From the largest down 12+8 and 10+9+5 are found, and only an exchange finds 12+10 and 9+8+5."""
    split = split_grouped(Whole(44), {"a": 0.5, "b": 0.5}, make_groups(12, 10, 9, 8, 5), 0)
    assert split.max_miss == 0


def test_groups_of_one_size_are_spread_in_seeded_order() -> None:
    groups = make_groups(*[2] * 50)
    one = all_records(split_grouped(Whole(100), PARTS, groups, 1).parts)
    two = all_records(split_grouped(Whole(100), PARTS, groups, 2).parts)
    assert one != two
    assert [len(part) for part in one.values()] == [len(part) for part in two.values()] == [60, 20, 20]
    assert any(right - left > 1 for left, right in pairwise(one["train"]))


def test_labels_are_balanced_where_groups_allow() -> None:
    """200 groups, each of one class: sizes alone would not see the classes."""
    groups = np.repeat(np.arange(200), 5)
    labels = groups % 4
    split = split_grouped(Whole(1000), {"train": 0.8, "test": 0.2}, groups, 0, labels)
    assert split.max_label_gap == 0
    assert split.counts == {"train": 800, "test": 200}


def test_fewer_groups_than_parts_raise() -> None:
    with pytest.raises(ValueError, match=r"^3 parts expected at least 3 groups, got 2$"):
        split_grouped(Whole(10), PARTS, make_groups(5, 5), 0)


def test_shuffled_rows_are_not_split() -> None:
    with pytest.raises(ValueError, match="expected rows in a fixed order, got shuffled ones"):
        split_grouped(Shuffled(Whole(10), 0), PARTS, np.arange(10), 0)


def test_nothing_is_split_into_nothing() -> None:
    split = split_grouped(Whole(0), {"a": 0}, [], 0)
    assert split.counts == {"a": 0} and split.largest_group == (None, 0) and split.max_miss == 0
    split = split_grouped(Whole(0), {"a": 0}, [], 0, [])
    assert split.counts == {"a": 0} and split.max_label_gap == 0


# --- the check


def test_check_counts_the_groups_of_each_part() -> None:
    groups = np.array([b"ann", b"bob", b"ann", b"cat"], object)
    parts = {"train": Listed(Whole(4), np.array([0, 2, 3])), "test": Listed(Whole(4), np.array([1]))}
    assert check_groups(parts, groups) == {"train": 2, "test": 1}


def test_check_names_a_group_in_two_parts() -> None:
    groups = np.array([b"ann", b"bob", b"ann", b"cat"], object)
    parts = {"train": Listed(Whole(4), np.array([0, 3])), "test": Listed(Whole(4), np.array([1, 2]))}
    with pytest.raises(
        ValueError, match=r"^group b'ann' is in two parts, 'train' and 'test' - at position 1 of 'test'$"
    ):
        check_groups(parts, groups)


def test_check_finds_the_leak_of_a_split_that_knows_no_groups() -> None:
    groups = np.repeat(np.arange(10), 10)
    with pytest.raises(ValueError, match=r"^group \d is in two parts, 'train' and '(val|test)'"):
        check_groups(split_order(Whole(100), PARTS, 0), groups)


def test_check_takes_groups_of_a_part_by_position() -> None:
    base = Listed(Whole(1000), np.array([900, 5, 700, 30, 31, 2], np.uint64))
    groups = ["x", "y", "x", "y", "z", "z"]
    split = split_grouped(base, {"a": 0.5, "b": 0.5}, groups, 0)
    assert sum(check_groups(split.parts, groups, base).values()) == 3
    wrong = {"a": Listed(base, np.array([0, 1, 3])), "b": Listed(base, np.array([2]))}
    with pytest.raises(ValueError, match=r"^group 'x' is in two parts, 'a' and 'b'"):
        check_groups(wrong, groups, base)


def test_share_of_a_class_in_a_part_of_one_record_is_whole() -> None:
    split = split_grouped(Whole(4), {"train": 0.75, "test": 0.25}, np.arange(4), 0, np.zeros(4, np.int64))
    assert split.counts == {"train": 3, "test": 1} and split.max_label_gap == 0
