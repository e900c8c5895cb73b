from __future__ import annotations

import math

import numpy as np
import pytest

from tfrkit.ops.stats.numbers import NumberSummary, summarize_equal, summarize_floats, summarize_ints


def merge(*parts: NumberSummary) -> NumberSummary:
    whole = NumberSummary()
    for part in parts:
        whole.merge(part)
    return whole


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


INTS = [
    [0],
    [5, 5, 5],
    [-3, 0, 0, 7],
    [-(1 << 63), (1 << 63) - 1],
    [1 << 60, (1 << 60) + 5],
    list(range(1000)),
    [n * 1_000_003 for n in range(-500, 500)],
]


@pytest.mark.parametrize("values", INTS, ids=lambda values: f"{len(values)} from {values[0]}")
def test_integers_have_exact_figures(values: list[int]) -> None:
    found = summarize_ints(np.array(values, np.int64))
    assert (found.count, found.num_finite, found.num_nan) == (len(values), len(values), 0)
    assert (found.low, found.high, found.zeros) == (min(values), max(values), values.count(0))
    # In 64-bit floats, which is what a mean is computed in.
    assert found.mean == pytest.approx(sum(values) / len(values), rel=1e-12, abs=1e-15 * max(map(abs, values)))
    exact = math.sqrt(sum((value - sum(values) / len(values)) ** 2 for value in values) / len(values))
    assert found.std == pytest.approx(exact, rel=1e-9)
    assert found.num_distinct == len(set(values))
    assert found.describe()[0]["p50"] == sorted(values)[(len(values) - 1) // 2]
    assert sum(count for _, _, count in found.describe()[1]) == len(values)


def test_floats_have_exact_figures() -> None:
    values = np.random.default_rng(0).normal(3, 2, 1000).astype(np.float32)
    found = summarize_floats(values)
    assert (found.low, found.high) == (values.min(), values.max())
    assert found.mean == pytest.approx(values.astype(np.float64).mean(), rel=1e-12)
    assert found.std == pytest.approx(values.astype(np.float64).std(), rel=1e-12)
    assert found.num_distinct == len(np.unique(values))
    assert found.describe()[0]["p75"] == np.quantile(values, 0.75, method="inverted_cdf")


def test_nan_and_infinities_are_counted_and_left_out_of_the_moments() -> None:
    found = summarize_floats(floats(np.nan, 1, -np.inf, 3, np.inf, np.inf, np.nan, 0, -0.0))
    assert (found.count, found.num_nan, found.num_infinite, found.num_finite) == (9, 2, 3, 4)
    assert (found.low, found.high, found.zeros) == (-math.inf, math.inf, 2)
    assert found.mean == 1.0
    assert found.std == pytest.approx(math.sqrt(1.5))
    assert found.num_distinct == 5
    assert [count for _, _, count in found.describe()[1] if count] == [2, 1, 1]


def test_numbers_that_are_all_nan_have_no_range() -> None:
    found = merge(summarize_floats(floats(np.nan, np.nan)), summarize_floats(floats(np.nan)))
    assert (found.count, found.num_nan, found.low, found.std) == (3, 3, None, None)
    assert found.describe() == (None, [])


def test_no_numbers_have_nothing() -> None:
    for found in (summarize_ints(np.empty(0, np.int64)), summarize_floats(floats()), summarize_equal(1, 0)):
        assert (found.count, found.num_distinct, found.describe()) == (0, 0, (None, []))


@pytest.mark.parametrize("size", [0, 1, 50, 4097, 30_000])
def test_merged_parts_equal_the_whole_in_all_that_is_exact(size: int) -> None:
    values = np.random.default_rng(1).integers(-100, 100, size)
    parts = np.array_split(values, 5)
    whole, merged = summarize_ints(values), merge(*map(summarize_ints, parts))
    for name in ("count", "num_finite", "num_nan", "zeros", "low", "high", "num_distinct"):
        assert getattr(merged, name) == getattr(whole, name), name
    assert merged.mean == pytest.approx(whole.mean, rel=1e-12)
    assert merged.m2 == pytest.approx(whole.m2, rel=1e-12)
    assert merged.describe() == whole.describe()


def test_many_different_numbers_have_figures_that_are_near() -> None:
    values = np.random.default_rng(2).normal(size=200_000).astype(np.float32)
    merged = merge(*map(summarize_floats, np.array_split(values, 13)))
    assert not merged.table.is_exact
    for name, share in (("p1", 0.01), ("p50", 0.5), ("p99", 0.99)):
        found = merged.describe()[0][name]
        assert (values <= found).mean() == pytest.approx(share, abs=0.002)
    assert merged.num_distinct == pytest.approx(len(np.unique(values)), rel=0.08)
    bins = merged.describe()[1]
    exact, _ = np.histogram(values, 20, (values.min(), values.max()))
    assert sum(count for _, _, count in bins) == len(values)
    assert np.abs(np.array([count for _, _, count in bins]) - exact).max() < 0.004 * len(values)


def test_summary_that_is_merged_into_nothing_is_the_same() -> None:
    part = summarize_ints(np.array([3, 8, 8], np.int64))
    copy = merge(part)
    assert (copy.mean, copy.m2, copy.low, copy.high) == (part.mean, part.m2, 3, 8)
    copy.merge(part)
    assert part.count == 3  # what was merged is left as it was
    assert part.table.counts.tolist() == [1, 2]


def test_parts_of_few_and_of_many_different_numbers_merge() -> None:
    few, many = summarize_equal(7, 10_000), summarize_ints(np.arange(0, 1_000_000, 100))
    for merged in (merge(few, many), merge(many, few)):
        assert merged.count == 20_000
        assert merged.table.list_top(1)[0][0] == 7
        assert merged.describe()[0]["p25"] == 7
        assert merged.num_distinct == pytest.approx(10_001, rel=0.08)


def test_histogram_of_few_integers_has_a_bin_for_each() -> None:
    assert summarize_ints(np.array([2, 4, 4], np.int64)).describe()[1] == [(2, 3, 1), (3, 4, 0), (4, 5, 2)]
