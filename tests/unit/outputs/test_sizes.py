"""Sizes of shards."""

from __future__ import annotations

import pytest

from tfrkit.outputs.sizes import ShardSizes, parse_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("100", 100),
        ("1.5 kb", 1500),
        ("256MB", 256_000_000),
        ("2G", 2_000_000_000),
        ("3KiB", 3 << 10),
        ("64MiB", 64 << 20),
        ("1GiB", 1 << 30),
    ],
)
def test_sizes_are_read_with_their_units(text: str, nbytes: int) -> None:
    assert parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "MB", "10 TB", "-5", "1e9"])
def test_size_that_is_none_raises(text: str) -> None:
    with pytest.raises(ValueError, match="size expected a number of bytes such as 256MB or 1GiB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("sizes", "num_records", "num_shards"),
    [
        (ShardSizes(nbytes=100), 9, 2),
        (ShardSizes(nbytes=101), 9, 1),
        (ShardSizes(5), 2, 2),
        (ShardSizes({"b": 3}), 9, 1),
    ],
)
def test_number_of_shards_is_by_count_or_size(sizes: ShardSizes, num_records: int, num_shards: int) -> None:
    assert sizes.num_shards("a", num_records, 101) == num_shards
