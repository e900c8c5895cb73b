"""Splits and folds without groups. The literal values are pinned: changing them is a breaking change."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tfrkit.orders.order import Listed, Order, Shuffled, Whole, derive_key
from tfrkit.orders.split import fold_orders, part_of_keys, split_hashed, split_order, split_stratified

PARTS = {"train": 0.6, "val": 0.2, "test": 0.2}


def records(order: Order) -> list[int]:
    return [int(record) for record in order.at(np.arange(order.size, dtype=np.uint64))]


def all_records(parts: dict[str, Order]) -> dict[str, list[int]]:
    return {name: records(order) for name, order in parts.items()}


# --- by count


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, {"train": [9, 4, 5, 8, 6, 2], "val": [0, 1], "test": [3, 7]}),
        (-7, {"train": [6, 0, 1, 9, 2, 5], "val": [7, 8], "test": [4, 3]}),
    ],
)
def test_split_is_pinned(seed: int, expected: dict[str, list[int]]) -> None:
    assert all_records(split_order(Whole(10), PARTS, seed)) == expected


def test_split_of_a_part_gives_records_of_the_part() -> None:
    base = Listed(Whole(100), np.array([90, 80, 70, 60, 50], np.uint64))
    parts = all_records(split_order(base, {"a": 3, "b": 2}, 0))
    assert sorted(parts["a"] + parts["b"]) == [50, 60, 70, 80, 90]


def test_first_part_grows_with_its_share() -> None:
    small = split_order(Whole(1000), {"train": 0.6, "test": 0.4}, 5)["train"]
    large = split_order(Whole(1000), {"train": 0.8, "val": 0.1, "test": 0.1}, 5)["train"]
    assert records(large)[:600] == records(small)


def test_seed_is_any_integer_and_nothing_else() -> None:
    huge = split_order(Whole(50), PARTS, 2**200)
    assert all_records(huge) != all_records(split_order(Whole(50), PARTS, 2**200 + 1))
    assert all_records(split_order(Whole(50), PARTS, np.int32(3))) == all_records(split_order(Whole(50), PARTS, 3))
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        split_order(Whole(50), PARTS, 1.5)  # type: ignore[arg-type]


def test_split_of_a_trillion_records_holds_no_list() -> None:
    train = split_order(Whole(10**12), {"train": 0.9, "test": 0.1}, 0)["train"]
    assert train.size == 9 * 10**11
    assert len(set(records(Listed(train, np.array([0, 1, 9 * 10**11 - 1], np.uint64))))) == 3


@pytest.mark.parametrize("split", ["order", "stratified", "hashed", "folds"])
def test_shuffled_rows_are_not_split(split: str) -> None:
    base = Shuffled(Whole(10), 0)
    values = np.arange(10)
    with pytest.raises(ValueError, match="expected rows in a fixed order, got shuffled ones"):
        {
            "order": lambda: split_order(base, PARTS, 0),
            "stratified": lambda: split_stratified(base, PARTS, values, 0),
            "hashed": lambda: split_hashed(base, PARTS, values, 0),
            "folds": lambda: fold_orders(base, 2, 0),
        }[split]()


# --- stratified

LABELS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 4])


def test_stratified_split_is_pinned() -> None:
    assert all_records(split_stratified(Whole(15), PARTS, LABELS, 0)) == {
        "train": [1, 2, 3, 6, 7, 8, 9, 10, 11],
        "val": [0, 5, 12],
        "test": [4, 13, 14],
    }


@pytest.mark.parametrize(
    "labels",
    [
        LABELS.astype(np.uint8),
        (LABELS * -1000).tolist(),
        [f"class {label}" for label in LABELS],
        np.array([b"class %d" % label for label in LABELS], object),
    ],
)
def test_stratified_split_does_not_depend_on_names_of_classes(labels: Any) -> None:
    expected = all_records(split_stratified(Whole(15), PARTS, LABELS, 0))
    assert all_records(split_stratified(Whole(15), PARTS, labels, 0)) == expected


def test_stratified_split_of_one_class_is_mixed() -> None:
    parts = all_records(split_stratified(Whole(100), {"a": 50, "b": 50}, np.zeros(100, np.int64), 3))
    assert parts["a"] != list(range(50)) and parts["b"] != list(range(50))


def test_stratified_split_of_single_records_is_mixed() -> None:
    parts = all_records(split_stratified(Whole(100), {"a": 50, "b": 50}, np.arange(100), 3))
    assert parts["a"] != list(range(50)) and parts["a"] != list(range(0, 100, 2)) and len(parts["a"]) == 50


def test_stratified_split_of_nothing_is_nothing() -> None:
    assert all_records(split_stratified(Whole(0), {"a": 0}, [], 0)) == {"a": []}


def test_stratified_split_with_too_few_labels_raises() -> None:
    with pytest.raises(ValueError, match=r"^expected one label per record, got 14 for 15 records$"):
        split_stratified(Whole(15), PARTS, LABELS[1:], 0)


# --- hashed

KEYS = [b"", b"0", b"1", b"img_001", b"img_002", "é".encode(), b"\x00\xff"]


@pytest.mark.parametrize(
    ("seed", "percentiles"),
    [(0, [71, 17, 97, 42, 75, 36, 32]), (12345678901234567890, [31, 49, 33, 6, 0, 87, 22])],
)
def test_percentile_of_a_key_is_pinned(seed: int, percentiles: list[int]) -> None:
    assert part_of_keys(KEYS, [Fraction(1, 100)] * 100, seed).tolist() == percentiles


def test_hashed_split_is_pinned() -> None:
    keys = [f"img_{number:03}" for number in range(10)]
    assert all_records(split_hashed(Whole(10), PARTS, keys, 1)) == {
        "train": [0, 1, 3, 4, 6, 7, 8],
        "val": [9],
        "test": [2, 5],
    }


def test_part_of_a_key_is_where_its_hash_falls() -> None:
    """The slow twin, with fractions."""
    keys = [b"%d" % number for number in range(300)]
    shares = [Fraction(1, 3), Fraction(0), Fraction(1, 2), Fraction(1, 6)]
    salt = derive_key("hash", 9).to_bytes(8, "little")
    expected = []
    for key in keys:
        at = Fraction(int.from_bytes(hashlib.blake2b(key, digest_size=8, salt=salt).digest(), "little"), 2**64)
        expected.append(next(part for part in range(4) if at < sum(shares[: part + 1])))
    assert part_of_keys(keys, shares, 9).tolist() == expected
    assert set(expected) == {0, 2, 3}


def test_key_whose_hash_is_the_bound_is_in_the_part_above() -> None:
    salt = derive_key("hash", 0).to_bytes(8, "little")
    number = int.from_bytes(hashlib.blake2b(b"key", digest_size=8, salt=salt).digest(), "little")
    for bound, part in [(number, 1), (number + 1, 0)]:
        share = Fraction(bound, 2**64)
        assert part_of_keys([b"key"], [share, 1 - share], 0).tolist() == [part]


def test_parts_without_a_share_hold_no_key() -> None:
    keys = [b"%d" % number for number in range(300)]
    assert set(part_of_keys(keys, [Fraction(0), Fraction(1), Fraction(0)], 0).tolist()) == {1}
    assert part_of_keys([], [Fraction(1)], 0).tolist() == []


def test_keys_of_any_kind_fall_alike() -> None:
    numbers = np.arange(200)
    expected = all_records(split_hashed(Whole(200), PARTS, numbers, 0))
    assert all_records(split_hashed(Whole(200), PARTS, [str(number) for number in numbers], 0)) == expected
    assert all_records(split_hashed(Whole(200), PARTS, [b"%d" % number for number in numbers], 0)) == expected


def test_hashed_part_without_a_record_is_named() -> None:
    with pytest.raises(ValueError, match=r"^split '(val|test)' would have 0 of 10 records"):
        split_hashed(Whole(10), PARTS, [b"one"] * 10, 0)


def test_hashed_split_refuses_counts() -> None:
    with pytest.raises(TypeError, match="part 'test' expected a ratio from 0 to 1, got the count 5"):
        split_hashed(Whole(10), {"train": None, "test": 5}, np.arange(10), 0)


# --- folds


def test_folds_are_pinned() -> None:
    assert [(records(train), records(test)) for train, test in fold_orders(Whole(7), 3, 0)] == [
        ([6, 0, 1, 5, 4], [2, 3]),
        ([2, 3, 1, 5, 4], [6, 0]),
        ([2, 3, 6, 0], [1, 5, 4]),
    ]


def test_stratified_folds_are_pinned() -> None:
    folds = fold_orders(Whole(9), 3, 0, labels=[0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert [(records(train), records(test)) for train, test in folds] == [
        ([0, 2, 3, 5, 6, 7], [1, 4, 8]),
        ([1, 2, 3, 4, 6, 8], [0, 5, 7]),
        ([0, 1, 4, 5, 7, 8], [2, 3, 6]),
    ]


def test_grouped_folds_are_pinned() -> None:
    folds = fold_orders(Whole(9), 3, 0, groups=[0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert [(records(train), records(test)) for train, test in folds] == [
        ([4, 5, 6, 7, 8], [0, 1, 2, 3]),
        ([0, 1, 2, 3, 4, 5, 6], [7, 8]),
        ([0, 1, 2, 3, 7, 8], [4, 5, 6]),
    ]


def test_folds_of_a_trillion_records_hold_no_list() -> None:
    train, test = fold_orders(Whole(10**12), 5, 0)[2]
    assert (train.size, test.size) == (8 * 10**11, 2 * 10**11)
    assert len(set(records(Listed(train, np.array([0, 8 * 10**11 - 1], np.uint64))))) == 2


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (1, r"^folds expected from 2 up, got 1$"),
        (0, r"^folds expected from 2 up, got 0$"),
        (8, r"^8 folds expected at least 8 records, got 7$"),
    ],
)
def test_number_of_folds_out_of_range_raises(k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fold_orders(Whole(7), k, 0)


def test_fold_for_each_record_is_possible() -> None:
    folds = fold_orders(Whole(7), 7, 0)
    assert sorted(records(test)[0] for _, test in folds) == list(range(7))


def test_more_folds_than_groups_raise() -> None:
    with pytest.raises(ValueError, match=r"^3 parts expected at least 3 groups, got 2$"):
        fold_orders(Whole(6), 3, 0, groups=[0, 0, 0, 1, 1, 1])
