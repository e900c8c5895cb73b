"""Splits: exact, disjoint, exhaustive, for any sizes, shares, classes, groups and seeds."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tfrkit.orders.group_split import check_groups, split_grouped
from tfrkit.orders.order import Listed, Order, Whole
from tfrkit.orders.shares import parse_parts, round_table
from tfrkit.orders.split import fold_orders, split_hashed, split_order, split_stratified

SEEDS = st.integers(-(2**70), 2**70)


@st.composite
def shares(draw: st.DrawFn, max_parts: int = 5) -> dict[str, float]:
    """Ratios in hundredths that sum to 1, none of them 0."""
    num_parts = draw(st.integers(1, max_parts))
    cuts = sorted(draw(st.sets(st.integers(1, 99), min_size=num_parts - 1, max_size=num_parts - 1)))
    edges = [0, *cuts, 100]
    return {f"part {i}": (edges[i + 1] - edges[i]) / 100 for i in range(num_parts)}


# Few large classes, many tiny ones, and everything between.
VALUES = st.one_of(
    st.lists(st.integers(0, 3), min_size=5, max_size=200),
    st.lists(st.integers(0, 500), min_size=5, max_size=200),
    st.lists(st.integers(1, 9), min_size=2, max_size=30).map(
        lambda sizes: np.repeat(range(len(sizes)), sizes).tolist()
    ),
)


def records(order: Order) -> list[int]:
    return [int(record) for record in order.at(np.arange(order.size, dtype=np.uint64))]


def try_counts(parts: dict[str, Any], size: int) -> dict[str, int]:
    """The counts, or a rejected example where a part would be empty."""
    try:
        return parse_parts(parts, size)
    except ValueError as error:
        assert "would have 0 of" in str(error)
        assume(False)
        raise


def assert_is_partition(parts: list[Order], base: Order) -> None:
    found = [record for part in parts for record in records(part)]
    assert len(found) == base.size
    assert sorted(found) == sorted(records(base))


@given(shares(), st.integers(1, 10**15), st.randoms(use_true_random=False))
def test_counts_are_within_one_of_the_share_and_sum_to_the_size(
    parts: dict[str, float], size: int, random: Any
) -> None:
    counts = try_counts(parts, size)
    assert sum(counts.values()) == size
    for name, ratio in parts.items():
        assert abs(counts[name] - Fraction(str(ratio)) * size) < 1
    names = list(parts)
    random.shuffle(names)
    assert parse_parts({name: parts[name] for name in names}, size) == counts


@given(shares(), st.integers(1, 400), SEEDS)
def test_parts_are_exact_disjoint_and_exhaustive(parts: dict[str, float], size: int, seed: int) -> None:
    counts = try_counts(parts, size)
    split = split_order(Whole(size), parts, seed)
    assert {name: order.size for name, order in split.items()} == counts
    assert_is_partition(list(split.values()), Whole(size))
    again = split_order(Whole(size), parts, seed)
    assert [records(order) for order in again.values()] == [records(order) for order in split.values()]


@given(st.integers(30, 400), SEEDS, SEEDS)
def test_another_seed_gives_other_parts(size: int, seed: int, other: int) -> None:
    assume(seed != other)
    parts = {"a": 0.5, "b": 0.5}
    assert records(split_order(Whole(size), parts, seed)["a"]) != records(split_order(Whole(size), parts, other)["a"])


@given(st.integers(2, 400), st.integers(1, 99), st.integers(1, 99), SEEDS)
def test_first_part_grows_with_its_share(size: int, first: int, second: int, seed: int) -> None:
    small, large = sorted([first, second])
    before = {"train": small / 100, "test": None}
    after = {"train": large / 100, "test": None}
    try_counts(before, size)
    try_counts(after, size)
    kept = records(split_order(Whole(size), before, seed)["train"])
    assert records(split_order(Whole(size), after, seed)["train"])[: len(kept)] == kept


@given(shares(), VALUES, SEEDS)
def test_every_class_is_within_one_record_of_its_share_in_every_part(
    parts: dict[str, float], labels: list[int], seed: int
) -> None:
    size = len(labels)
    counts = try_counts(parts, size)
    base = Listed(Whole(2 * size), np.arange(1, 2 * size, 2, dtype=np.uint64))
    split = split_stratified(base, parts, np.array(labels), seed)
    assert {name: order.size for name, order in split.items()} == counts
    assert_is_partition(list(split.values()), base)
    class_sizes = Counter(labels)
    for name, order in split.items():
        found = records(order)
        assert found == sorted(found)
        held = Counter(labels[record // 2] for record in found)
        for label, class_size in class_sizes.items():
            ideal = Fraction(class_size * counts[name], size)
            assert math.floor(ideal) <= held[label] <= math.ceil(ideal)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 10), st.data())
def test_table_is_rounded_within_its_sums(
    num_rows: int, num_columns: int, denominator: int, data: st.DataObject
) -> None:
    """Sums of random whole tables, divided by their number, are tables whose sums are whole."""
    cells = st.lists(st.integers(0, num_columns - 1), min_size=num_rows, max_size=num_rows)
    numerators = np.zeros((num_rows, num_columns), np.int64)
    for _ in range(denominator):
        for row, column in enumerate(data.draw(cells)):
            numerators[row, column] += 1
    # Every row now sums to the denominator; one more row makes the columns do so too.
    last = -numerators.sum(axis=0) % denominator
    numerators = np.concatenate([numerators, last[None]])
    rounded = round_table(numerators, denominator)
    assert (rounded * denominator).sum(axis=0).tolist() == numerators.sum(axis=0).tolist()
    assert (rounded * denominator).sum(axis=1).tolist() == numerators.sum(axis=1).tolist()
    assert ((rounded >= numerators // denominator) & (rounded <= -(-numerators // denominator))).all()


@given(shares(3), VALUES, SEEDS, st.booleans())
def test_no_group_is_in_two_parts(parts: dict[str, float], groups: list[int], seed: int, with_labels: bool) -> None:
    size = len(groups)
    try_counts(parts, size)
    assume(len(set(groups)) >= len(parts))
    labels = np.arange(size) % 3 if with_labels else None
    split = split_grouped(Whole(size), parts, np.array(groups), seed, labels)
    assert_is_partition(list(split.parts.values()), Whole(size))
    owners: dict[int, set[str]] = {}
    for name, order in split.parts.items():
        assert order.size == split.counts[name] > 0
        for record in records(order):
            owners.setdefault(groups[record], set()).add(name)
    assert all(len(names) == 1 for names in owners.values())
    assert check_groups(split.parts, np.array(groups)) == split.num_groups
    if not with_labels:
        for name, asked in split.asked.items():
            assert split.counts[name] - asked < split.largest_group[1]
    else:
        assert split.class_counts is not None
        for name, order in split.parts.items():
            held = Counter(record % 3 for record in records(order))
            assert {label: count for label, count in split.class_counts[name].items() if count} == held


@given(shares(3), st.integers(20, 300), SEEDS)
def test_groups_of_one_record_are_split_exactly(parts: dict[str, float], size: int, seed: int) -> None:
    counts = try_counts(parts, size)
    assert split_grouped(Whole(size), parts, np.arange(size), seed).counts == counts


@given(shares(3), st.sets(st.binary(max_size=8), min_size=60, max_size=200), SEEDS)
def test_records_added_later_move_no_old_one(parts: dict[str, float], keys: set[bytes], seed: int) -> None:
    ordered = sorted(keys)
    try:
        before = split_hashed(Whole(len(keys)), parts, ordered, seed)
        more = [b"a new one", *ordered, b"another", ordered[0]]
        after = split_hashed(Whole(len(more)), parts, more, seed)
    except ValueError as error:
        assert "would have 0 of" in str(error)
        assume(False)
        raise
    for name in parts:
        held = {more[record] for record in records(after[name])}
        assert {ordered[record] for record in records(before[name])} == held & keys
    assert_is_partition(list(after.values()), Whole(len(more)))


@given(st.integers(2, 9), st.integers(9, 200), SEEDS, st.booleans(), st.data())
def test_each_record_is_in_exactly_one_test_part(
    k: int, size: int, seed: int, with_labels: bool, data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.integers(0, 12), min_size=size, max_size=size)) if with_labels else None
    folds = fold_orders(Whole(size), k, seed, labels=labels)
    assert len(folds) == k
    assert_is_partition([test for _, test in folds], Whole(size))
    for fold in folds:
        assert_is_partition(list(fold), Whole(size))
    sizes = [test.size for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for label in set(labels or ()):
        held = [sum(labels[record] == label for record in records(test)) for _, test in folds]
        assert max(held) - min(held) <= 1


@given(st.integers(2, 5), VALUES, SEEDS, st.booleans())
def test_no_group_is_on_both_sides_of_a_fold(k: int, groups: list[int], seed: int, with_labels: bool) -> None:
    assume(len(set(groups)) >= k)
    labels = np.arange(len(groups)) % 2 if with_labels else None
    folds = fold_orders(Whole(len(groups)), k, seed, labels=labels, groups=np.array(groups))
    assert_is_partition([test for _, test in folds], Whole(len(groups)))
    for train, test in folds:
        assert_is_partition([train, test], Whole(len(groups)))
        assert sum(check_groups({"train": train, "test": test}, np.array(groups)).values()) == len(set(groups))
