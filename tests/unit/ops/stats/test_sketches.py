from __future__ import annotations

import numpy as np
import pytest

from tfrkit.ops.stats import sketches as stats_sketches
from tfrkit.ops.stats.sketches import (
    BUFFER_SIZE,
    MAX_VALUES,
    DistinctSketch,
    QuantileSketch,
    ValueTable,
    find_quantiles,
    hash_numbers,
    scatter,
)


def table_of(values: np.ndarray) -> ValueTable:
    return ValueTable(*np.unique(values, return_counts=True))


def distinct_of(values: np.ndarray) -> DistinctSketch:
    return DistinctSketch(hash_numbers(values))


def quantiles_of(values: np.ndarray) -> QuantileSketch:
    """The sketch of a block, with the values the core keeps."""
    in_order = np.sort(values)
    level = max(0, (-(-len(values) // (2 * BUFFER_SIZE)) - 1).bit_length())
    return QuantileSketch(in_order[(1 << level) // 2 :: 1 << level].copy(), level)


def worst_rank(values: np.ndarray, sketch: QuantileSketch) -> float:
    """Largest rank error of a quantile, over many fractions."""
    kept, weights = sketch.to_weighted()
    in_order = np.sort(values)
    worst = 0.0
    shares = np.linspace(0.001, 0.999, 200).tolist()
    for share, found in zip(shares, find_quantiles(kept, weights, shares), strict=True):
        low = np.searchsorted(in_order, found, side="left") / len(values)
        high = np.searchsorted(in_order, found, side="right") / len(values)
        worst = max(worst, low - share, share - high)
    return worst


# --- frequent values


def test_table_of_few_values_counts_them_exactly() -> None:
    random = np.random.default_rng(0)
    parts = [random.integers(0, 500, size) for size in (1, 0, 7, 3000, 100)]
    table = table_of(parts[0])
    for part in parts[1:]:
        table = table.merge(table_of(part))
    unique, counts = np.unique(np.concatenate(parts), return_counts=True)
    assert table.is_exact
    assert table.values.tolist() == unique.tolist()
    assert table.counts.tolist() == counts.tolist()


@pytest.mark.parametrize("num_values", [MAX_VALUES - 1, MAX_VALUES, MAX_VALUES + 1])
def test_table_is_exact_up_to_its_size_and_says_when_it_is_not(num_values: int) -> None:
    table = table_of(np.arange(num_values))
    assert table.is_exact is (num_values <= MAX_VALUES)
    assert len(table.values) == (num_values if num_values <= MAX_VALUES else 0)


def test_table_that_overflows_keeps_frequent_values_within_its_slack() -> None:
    random = np.random.default_rng(1)
    parts = [np.concatenate([random.integers(0, 1 << 40, 5000), np.full(900, 7), np.full(50, 9)]) for _ in range(20)]
    table = table_of(parts[0])
    for part in parts[1:]:
        table = table.merge(table_of(part))
    num_values = sum(map(len, parts))
    assert 0 < table.slack <= num_values / MAX_VALUES + len(parts)
    (first, count), (second, other) = table.list_top(2)
    assert (first, second) == (7, 9)
    assert 18000 - table.slack <= count <= 18000
    assert 1000 - table.slack <= other <= 1000


def test_table_takes_what_it_drops_off_what_it_keeps() -> None:
    counts = np.arange(1, MAX_VALUES + 11)
    table = ValueTable(np.arange(len(counts)), counts)
    assert (len(table.values), table.slack) == (MAX_VALUES, 10)
    assert np.array_equal(table.values, np.arange(10, len(counts)))
    assert np.array_equal(table.counts, counts[10:] - 10)


def test_top_of_equally_frequent_values_lists_the_smaller_first() -> None:
    assert table_of(np.array([5, 3, 3, 5, 1])).list_top(3) == [(3, 2), (5, 2), (1, 1)]


# --- different values


def test_mix_keeps_keys_apart() -> None:
    keys = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(scatter(keys))) == 100_000


def test_zeros_of_either_sign_have_one_key() -> None:
    keys = hash_numbers(np.array([0.0, -0.0, 1.0], np.float32))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("num_values", [0, 1, 4095, 4096])
def test_distinct_count_is_exact_while_it_fits(num_values: int) -> None:
    sketch = distinct_of(np.arange(num_values))
    assert (sketch.count, sketch.is_exact) == (num_values, True)


@pytest.mark.parametrize("num_values", [4097, 100_000, 3_000_000])
def test_distinct_count_of_many_is_within_five_standard_errors(num_values: int) -> None:
    sketch = distinct_of(np.arange(num_values) * 3)
    assert not sketch.is_exact
    assert abs(sketch.count - num_values) < 5 / 64 * num_values


def test_distinct_count_does_not_depend_on_how_values_are_parted() -> None:
    values = np.random.default_rng(2).permutation(50_000)
    whole = distinct_of(values)
    for num_parts in (2, 7):
        parts = np.array_split(np.concatenate([values, values[:1000]]), num_parts)
        merged = distinct_of(parts[0])
        for part in parts[1:]:
            merged.merge(distinct_of(part))
        assert merged.count == whole.count
        assert merged.is_exact is False


def test_hashes_above_the_limit_of_what_a_sketch_is_merged_into_change_nothing() -> None:
    parts = np.array_split(np.random.default_rng(8).integers(0, 1 << 50, 60_000), 6)
    plain, limited = distinct_of(parts[0]), distinct_of(parts[0])
    for part in parts[1:]:
        hashes = distinct_of(part).hashes
        plain.merge(DistinctSketch(hashes, is_exact=False))
        limited.merge(DistinctSketch(hashes[hashes <= np.uint64(limited.limit)], is_exact=False))
    assert np.array_equal(plain.hashes, limited.hashes)
    assert plain.is_exact is limited.is_exact is False


def test_many_values_of_which_few_differ_are_counted_exactly() -> None:
    sketch = distinct_of(np.arange(100_000) % 3000)
    assert (sketch.count, sketch.is_exact) == (3000, True)


def test_distinct_counts_of_the_same_values_merge_to_the_same_count() -> None:
    sketch = distinct_of(np.arange(4096))
    sketch.merge(distinct_of(np.arange(4096)))
    assert (sketch.count, sketch.is_exact) == (4096, True)
    sketch.merge(distinct_of(np.arange(4097)))
    assert not sketch.is_exact


# --- quantiles


def test_quantiles_of_few_values_are_exact() -> None:
    values = np.sort(np.random.default_rng(3).normal(size=2 * BUFFER_SIZE).astype(np.float32))
    sketch = quantiles_of(values)
    assert sketch.is_exact
    kept, weights = sketch.to_weighted()
    for share in (0.01, 0.5, 0.99):
        assert find_quantiles(kept, weights, [share]) == [np.quantile(values, share, method="inverted_cdf")]


@pytest.mark.parametrize("size", [2 * BUFFER_SIZE + 1, 16384, 100_000])
def test_quantiles_of_one_large_array_are_near(size: int) -> None:
    values = np.random.default_rng(4).normal(size=size).astype(np.float32)
    assert worst_rank(values, quantiles_of(values)) < 0.001


@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "few values"])
def test_quantiles_of_many_merged_parts_are_within_the_bound(kind: str) -> None:
    values = np.random.default_rng(5).normal(size=400_000).astype(np.float32)
    if kind == "ascending":
        values = np.sort(values)
    elif kind == "descending":
        values = np.sort(values)[::-1]
    elif kind == "few values":
        values = np.round(values, 2)
    sketch = quantiles_of(values[:0])
    start = 0
    for size in [1, 10, 4000, 5000, *[9000] * 44]:
        sketch.merge(quantiles_of(values[start : start + size]))
        start += size
    assert start >= len(values)
    kept, weights = sketch.to_weighted()
    assert len(kept) < 20 * BUFFER_SIZE
    assert abs(int(weights.sum()) - len(values)) < 0.001 * len(values)
    assert worst_rank(values, sketch) < 0.005


def test_errors_of_the_halves_cancel_out() -> None:
    values = np.random.default_rng(5).normal(size=500_000).astype(np.float32)
    sketch = quantiles_of(values[:0])
    for part in np.array_split(values, 100):
        sketch.merge(quantiles_of(part))
    # Taking the lower half every time gives 0.0007.
    assert worst_rank(values, sketch) < 0.0005


def test_quantiles_of_a_table_equal_those_of_the_values_themselves() -> None:
    values = np.sort(np.random.default_rng(6).integers(0, 50, 30_000))
    one, other = quantiles_of(values).to_weighted(), QuantileSketch.from_table(table_of(values)).to_weighted()
    assert np.array_equal(one[0], other[0])
    assert np.array_equal(one[1], other[1])
    assert set(one[1].tolist()) == {8}


def test_sketches_hold_the_same_for_the_same_merges() -> None:
    random = np.random.default_rng(7)
    parts = [np.sort(random.normal(size=6000).astype(np.float32)) for _ in range(9)]

    def merge() -> tuple[np.ndarray, np.ndarray]:
        sketch = quantiles_of(parts[0])
        for part in parts[1:]:
            sketch.merge(quantiles_of(part))
        return sketch.to_weighted()

    assert all(np.array_equal(one, other) for one, other in zip(merge(), merge(), strict=True))


def test_constants_keep_the_errors_that_are_promised() -> None:
    assert 1 / np.sqrt(stats_sketches.NUM_HASHES) < 0.016
    assert np.log2(1e9 / BUFFER_SIZE) / (2 * BUFFER_SIZE) < 0.005
