"""Number of records in each part of a split."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tfrkit.orders.shares import divide_classes, parse_parts, parse_shares, round_table

THIRDS = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


@pytest.mark.parametrize(
    ("parts", "size", "counts"),
    [
        ({"train": 0.8, "val": 0.1, "test": 0.1}, 10, [8, 1, 1]),
        ({"train": 0.6, "test": 0.4}, 5, [3, 2]),  # 0.6 is a little less than 3/5 as a double
        ({"train": 0.7, "test": 0.3}, 10, [7, 3]),
        (THIRDS, 3, [1, 1, 1]),
        (THIRDS, 4, [2, 1, 1]),  # equal remainders and ratios: the first name
        ({"c": 1 / 3, "b": 1 / 3, "a": 1 / 3}, 4, [1, 1, 2]),
        ({"a small one": 0.25, "the large one": 0.75}, 6, [1, 5]),  # equal remainders: the larger ratio
        ({"train": 20, "test": 5}, 25, [20, 5]),
        ({"train": 20, "test": 5, "none": 0}, 25, [20, 5, 0]),
        ({"test": 5, "train": 0.9, "val": 0.1}, 25, [5, 18, 2]),
        ({"test": 5, "train": None}, 25, [5, 20]),
        ({"train": 0.8, "test": None}, 10, [8, 2]),
        ({"test": 5, "train": 0.8, "val": None}, 25, [5, 16, 4]),
        ({"all": 1.0}, 7, [7]),
        ({"all": None}, 7, [7]),
        ({"all": 1.0, "none": 0.0}, 7, [7, 0]),
        ({"one": 1}, 1, [1]),
        ({"train": np.float32(0.9), "test": np.float32(0.1)}, 10, [9, 1]),
        ({"train": np.int64(4), "test": Fraction(1, 1)}, 10, [4, 6]),
        ({"none": 0}, 0, [0]),
        ({"a": 0.999_999_999_5, "b": 0.000_000_000_0}, 1000, [1000, 0]),  # misses 1 by less than 1e-9
    ],
)
def test_counts_are_exact(parts: dict[str, Any], size: int, counts: list[int]) -> None:
    found = parse_parts(parts, size)
    assert list(found.items()) == list(zip(parts, counts, strict=True))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"train": 0.8, "val": 0.1},
            r"^ratios sum to 0\.9, 0\.1 of the records would be in no part\n  name the missing",
        ),
        ({"train": 0.8, "val": 0.3}, r"^ratios sum to 1\.1, expected 1$"),
        ({"train": 0.8, "val": 0.3, "test": None}, r"^ratios sum to 1\.1, expected 1$"),
        ({"train": 1 - 2e-9}, r"^ratios sum to 0\.999999998, 2e-09 of the records"),
        ({"train": 60, "test": 50}, r"^parts ask for 110 records, there are 100$"),
        (
            {"train": 60, "test": 30},
            r"^parts have 90 of 100 records, 10 would be in no part\n  give one part None",
        ),
        ({"train": 0.999, "val": 0.001}, r"^split 'val' would have 0 of 100 records\n  raise its share"),
        ({"train": 100, "val": None}, r"^split 'val' would have 0 of 100 records"),
        ({"train": 1.0, "val": None}, r"^split 'val' would have 0 of 100 records"),
        ({"train": 100, "val": 1.0}, r"^split 'val' would have 0 of 100 records"),
        ({"train": -1, "val": 1.0}, r"^part 'train' expected a count of 0 or more, got -1$"),
        (
            {"train": 80.0, "val": 20.0},
            r"^part 'train' expected a ratio from 0 to 1, got 80\.0\n  a number of records is",
        ),
        ({"train": -0.1}, r"^part 'train' expected a ratio from 0 to 1, got -0\.1"),
        ({"train": float("nan")}, r"^part 'train' expected a ratio from 0 to 1, got nan"),
        ({"train": float("inf")}, r"^part 'train' expected a ratio from 0 to 1, got inf"),
        ({"a": None, "b": None}, r"^one part may take the rest, got 2: 'a', 'b'$"),
        ({}, r"^parts expected at least one name, got none$"),
    ],
)
def test_wrong_parts_are_refused_with_their_values(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_parts(parts, 100)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": "80%"}, r"^part 'train' expected a ratio, a count or None, got '80%'$"),
        ({"train": True}, r"^part 'train' expected a ratio, a count or None, got True$"),
        ({3: 1.0}, r"^name of a part expected str, got 3$"),
        ({"": 1.0}, r"^name of a part expected str, got ''$"),
        ([0.8, 0.2], r"^parts expected a dict of names and shares, got list\n  name them"),
    ],
)
def test_parts_of_a_wrong_type_are_refused(parts: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        parse_parts(parts, 100)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_part_without_a_record_is_named(size: int) -> None:
    with pytest.raises(ValueError, match=rf"^split '(train|val|test)' would have 0 of {size} records"):
        parse_parts({"train": 0.8, "val": 0.1, "test": 0.1}, size)


def test_shares_are_those_written() -> None:
    assert parse_shares({"a": 0.1, "b": 0.2, "c": None}) == {
        "a": Fraction(1, 10),
        "b": Fraction(1, 5),
        "c": Fraction(7, 10),
    }
    assert parse_shares(THIRDS) == dict.fromkeys("abc", Fraction(1, 3))


def test_shares_refuse_counts() -> None:
    with pytest.raises(TypeError, match=r"^part 'test' expected a ratio from 0 to 1, got the count 5$"):
        parse_shares({"train": 0.8, "test": 5})


def test_table_is_rounded_within_its_sums() -> None:
    numerators = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [6, 3, 3]])
    rounded = round_table(numerators, 3)
    assert rounded.sum(axis=0).tolist() == [3, 2, 2]
    assert rounded.sum(axis=1).tolist() == [1, 1, 1, 4]
    assert rounded[3].tolist() == [2, 1, 1]


def test_table_of_a_walk_that_meets_a_column_first_is_rounded() -> None:
    """The walk from row 0 goes through a column twice before it comes back to a row."""
    numerators = np.array([[1, 0, 0, 4], [4, 1, 0, 0], [0, 4, 1, 0], [0, 0, 4, 1], [0, 3, 2, 0], [0, 2, 3, 0]])
    assert set(numerators.sum(axis=0).tolist()) == {5, 10} and set(numerators.sum(axis=1).tolist()) == {5}
    rounded = round_table(numerators, 5)
    assert rounded.sum(axis=0).tolist() == (numerators.sum(axis=0) // 5).tolist()
    assert rounded.sum(axis=1).tolist() == [1] * 6
    assert ((rounded >= numerators // 5) & (rounded <= -(-numerators // 5))).all()


def test_class_division_is_pinned() -> None:
    cells = divide_classes(np.array([5, 4, 2, 3, 1]), [9, 3, 3], 0)
    assert cells.tolist() == [[3, 1, 1], [3, 1, 0], [2, 0, 0], [1, 1, 1], [0, 0, 1]]


def test_no_classes_are_divided_into_nothing() -> None:
    assert divide_classes(np.zeros(0, np.int64), [0, 0], 0).shape == (0, 2)
