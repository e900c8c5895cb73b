"""Slices of named splits. tests/interop compares them with TFDS."""

from __future__ import annotations

import re

import pytest

from tfrkit.errors import QueryError
from tfrkit.orders.slice_syntax import resolve_slices

SHARDS = {"train": [30, 30, 0, 40], "test": [7], "train-extra": [5, 5], "none": [0]}
SIZES = {name: sum(sizes) for name, sizes in SHARDS.items()}


def resolve(spec: str) -> list[tuple[str, int, int]]:
    return [tuple(found) for found in resolve_slices(spec, SIZES, shard_sizes=SHARDS)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("train", [("train", 0, 100)]),
        ("train-extra", [("train-extra", 0, 10)]),
        ("train[:75%]", [("train", 0, 75)]),
        ("train[100:]", [("train", 100, 100)]),
        ("train[10:20]", [("train", 10, 20)]),
        ("train[-10:]", [("train", 90, 100)]),
        ("train[:-10]", [("train", 0, 90)]),
        ("train[-0:]", [("train", 0, 100)]),
        ("train[:-4shard]", [("train", 0, 0)]),
        ("train[-10%:]", [("train", 90, 100)]),
        ("train[0:0]", [("train", 0, 0)]),
        ("train[:1_0]", [("train", 0, 10)]),
        ("train[-100:]", [("train", 0, 100)]),
        ("train[-100%:]", [("train", 0, 100)]),
        ("train[:0%]", [("train", 0, 0)]),
        ("train[.5%:5.%]", [("train", 0, 5)]),
        ("train[10:20%]", [("train", 10, 20)]),
        ("test[:50%]", [("test", 0, 4)]),  # 3.5, halves to even
        ("test[50%:]", [("test", 4, 7)]),
        ("test[:21.5%]", [("test", 0, 2)]),  # 1.505
        ("test[10:20%]", [("test", 1, 1)]),  # one unit for both bounds, as in TFDS
        ("train[10%:20%]+test[:5]", [("train", 10, 20), ("test", 0, 5)]),
        ("train + test", [("train", 0, 100), ("test", 0, 7)]),
        ("train[:5]+train[:5]", [("train", 0, 5), ("train", 0, 5)]),
        ("all", [("train", 0, 100), ("test", 0, 7), ("train-extra", 0, 10), ("none", 0, 0)]),
        ("test+all", [("test", 0, 7), ("train", 0, 100), ("test", 0, 7), ("train-extra", 0, 10), ("none", 0, 0)]),
        ("train[:2shard]", [("train", 0, 60)]),
        ("train[1shard:]", [("train", 30, 100)]),
        ("train[1shard:3shard]", [("train", 30, 60)]),
        ("train[0shard]", [("train", 0, 30)]),
        ("train[2shard]", [("train", 60, 60)]),
        ("train[-1shard]", [("train", 60, 100)]),
        ("train[-4shard]", [("train", 0, 30)]),
        ("train[-1shard:]", [("train", 60, 100)]),
        ("train[:-1shard]", [("train", 0, 60)]),
        ("train[4shard:]", [("train", 100, 100)]),
        ("none[:50%]", [("none", 0, 0)]),
        ("none[-1%:]", [("none", 0, 0)]),
    ],
)
def test_spec_names_these_records(spec: str, expected: list[tuple[str, int, int]]) -> None:
    assert resolve(spec) == expected


@pytest.mark.parametrize(
    ("spec", "at", "message"),
    [
        ("", 0, "expected the name of a split, got the end"),
        (" train", 0, "expected the name of a split, got ' '"),
        ("train ", 5, "expected '[', '+' or the end, got ' '"),
        ("train+", 6, "expected the name of a split, got the end"),
        ("train++test", 6, "expected the name of a split, got '+'"),
        ("train [:5]", 5, "expected '[', '+' or the end, got ' '"),
        ("train[:5]test", 9, "expected '+' or the end, got 't'"),
        ("train[", 6, "expected a number or ':', got the end"),
        ("train[]", 6, "expected a number or ':', got ']'"),
        ("train[:]", 7, "expected a number in the slice, got none"),
        ("train[: 5]", 7, "expected ']', got ' '"),
        ("train[5:", 8, "expected ']', got the end"),
        ("train[1:2:3]", 9, "expected ']', got ':'"),
        ("train[5]", 7, "expected ':', got ']'"),
        ("train[5%]", 8, "expected ':', got ']'"),
        ("train[5", 7, "expected a number or ':', got the end"),
        ("train[x:]", 6, "expected a number or ':', got 'x'"),
        ("train[:5pct]", 8, "expected ']', got 'p'"),
        ("train[--5:]", 6, "expected a number or ':', got '-'"),
        ("train[2.5:]", 6, "expected a whole number, got '2.5'"),
        ("train[:1.5shard]", 7, "expected a whole number, got '1.5'"),
        ("train[:1__0]", 7, "expected a whole number, got '1__0'"),
        ("train[:1.2.3%]", 7, "expected a number, got '1.2.3'"),
        ("train[:101%]", 7, "expected a percentage from -100 to 100, got 101"),
        ("train[-100.5%:]", 6, "expected a percentage from -100 to 100, got -100.5"),
        ("train[:101]", 7, "101 is outside the split, which has 100 records"),
        ("train[-101:]", 6, "-101 is outside the split, which has 100 records"),
        ("train[20:10]", 0, "slice of 'train' starts at record 20, after its stop at 10"),
        ("test+train[60%:-60%]", 5, "slice of 'train' starts at record 60, after its stop at 40"),
        ("all[:5]", 0, "'all' expected no slice"),
        # Accepted by TFDS with surprising results:
        ("test[-1%:]", 5, "-1% of 7 records is none, so the slice has no bound there"),
        ("test[:-1%]", 6, "-1% of 7 records is none, so the slice has no bound there"),
        ("train[:-0%]", 7, "-0% of 100 records is none, so the slice has no bound there"),
        ("train[10%:2shard]", 0, "expected one unit in a slice, got '%' and 'shard'"),
        ("train[:0shard]", 7, "a slice that stops at shard 0 is empty"),
        ("train[:-0shard]", 7, "a slice that stops at shard 0 is empty"),
        ("train[:5shard]", 7, "shard 5 is outside the split, which has 4 shards"),
        ("train[-5shard:]", 6, "shard -5 is outside the split, which has 4 shards"),
        ("train[4shard]", 6, "shard 4 is outside the split, which has 4 shards"),
    ],
)
def test_wrong_spec_is_pointed_at(spec: str, at: int, message: str) -> None:
    expected = f"{message} - at character {at}\n  {spec}\n  {' ' * at}^"
    with pytest.raises(QueryError, match="^" + re.escape(expected)):
        resolve(spec)


def test_percentage_is_multiplied_before_it_is_divided() -> None:
    """0.35 × 90 is a little less than 31.5 as a double; 35 × 90 / 100 is 31.5, and goes to the even 32."""
    assert resolve_slices("train[:35%]", {"train": 90}) == [("train", 0, 32)]


def test_unknown_split_lists_the_known_and_the_nearest() -> None:
    message = (
        "unknown split 'trian', there are 'train', 'test', 'train-extra', 'none' - at character 5\n"
        "  test+trian[:5]\n"
        "       ^ the nearest name is 'train'"
    )
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$"):
        resolve("test+trian[:5]")


def test_unknown_split_suggests_a_synonym() -> None:
    with pytest.raises(QueryError, match="the nearest name is 'val'$"):
        resolve_slices("validation", {"train": 5, "val": 3})
    with pytest.raises(QueryError, match=r"there are 'train' - at character 0\n  zebra\n  \^$"):
        resolve_slices("zebra", {"train": 5})


def test_dataset_without_splits_says_so() -> None:
    with pytest.raises(QueryError, match="unknown split 'train', there are none"):
        resolve_slices("train", {})
    assert resolve_slices("all", {}) == []


def test_unknown_shard_counts_are_refused() -> None:
    with pytest.raises(QueryError, match="shards of 'train' are not known - at character 0"):
        resolve_slices("train[:1shard]", {"train": 5})


def test_split_with_other_characters_is_found_by_its_whole_name() -> None:
    sizes = {"2020.v1+x": 3, "all": 4}
    assert resolve_slices("2020.v1+x", sizes) == [("2020.v1+x", 0, 3)]
    assert resolve_slices("all", sizes) == [("all", 0, 4)]
    assert resolve_slices("all[:2]", sizes) == [("all", 0, 2)]


def test_spec_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="spec of splits expected str, got int"):
        resolve_slices(5, SIZES)  # type: ignore[arg-type]
