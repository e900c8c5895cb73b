"""Figures of the core for blocks of values, compared with NumPy."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.codec.columns import BytesColumn
from tfrkit.ops.stats.sketches import MAX_VALUES, NUM_HASHES, SIZES, hash_numbers


class Figures(NamedTuple):
    num_nan: int
    num_finite: int
    zeros: int
    low: Any
    high: Any
    mean: float
    m2: float
    values: np.ndarray
    counts: np.ndarray
    is_whole: bool
    level: int
    ranks: np.ndarray | None
    hashes: np.ndarray | None


def find_slowly(values: np.ndarray, limit: int | None = None) -> Figures:
    """The figures as `native/core/stats/column_figures.h` defines them."""
    numbers = values[~np.isnan(values)]
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    mean = math.fsum(finite) / max(1, len(finite))
    m2 = math.fsum((finite - mean) ** 2)
    in_order = np.sort(numbers + values.dtype.type(0))
    unique, counts = np.unique(in_order, return_counts=True)
    is_whole = len(unique) <= MAX_VALUES
    ranks = hashes = None
    level = 0
    if not is_whole:
        hashes = np.sort(hash_numbers(unique))
        hashes = hashes[hashes <= np.uint64((1 << 64) - 1 if limit is None else limit)][:NUM_HASHES]
        while -(-len(in_order) >> level) > SIZES[2]:
            level += 1
        ranks = in_order[(1 << level) // 2 :: 1 << level]
        unique, counts = unique[counts > 1], counts[counts > 1] - 1
    low, high = (in_order[0], in_order[-1]) if len(in_order) else (None, None)
    zeros = int((numbers == 0).sum())
    num_nan = len(values) - len(numbers)
    return Figures(num_nan, len(finite), zeros, low, high, mean, m2, unique, counts, is_whole, level, ranks, hashes)


def compare(values: np.ndarray, limit: int | None = None) -> _native.NumberFigures:
    summarize = _native.summarize_floats if values.dtype == np.float32 else _native.summarize_ints
    found, expected = summarize(values, SIZES, limit), find_slowly(values, limit)
    for name in ("num_nan", "num_finite", "zeros", "low", "high", "is_whole", "level"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("values", "counts", "ranks", "hashes"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) is (other is None), name
        assert one is None or np.array_equal(one, other), name
    assert found.mean == pytest.approx(expected.mean, rel=1e-12, abs=1e-12 * max(1.0, math.sqrt(expected.m2)))
    assert found.m2 == pytest.approx(expected.m2, rel=1e-9)
    return found


SIZES_OF_BLOCKS = [1, 2, 7, 9, 511, 512, 4096, 4097, 8193, 32768]


@pytest.mark.parametrize("size", SIZES_OF_BLOCKS)
@pytest.mark.parametrize("range_bits", [1, 4, 12, 13, 21, 22, 23, 32, 33, 50, 62])
def test_figures_of_integers_are_those_of_the_slow_way(size: int, range_bits: int) -> None:
    compare(np.random.default_rng(size).integers(-(1 << range_bits) // 3, 1 << range_bits, size))


@pytest.mark.parametrize("size", SIZES_OF_BLOCKS)
@pytest.mark.parametrize("kind", ["normal", "rounded", "near one", "with nan", "with infinities", "tiny"])
def test_figures_of_floats_are_those_of_the_slow_way(size: int, kind: str) -> None:
    random = np.random.default_rng(size)
    values = random.normal(size=size)
    if kind == "rounded":
        values = np.round(values, 1)
    elif kind == "near one":  # and one outlier: the leading bits are useless
        values = 1 + values * 1e-5
        values[0] = 1e30
    elif kind == "with nan":
        values[random.random(size) < 0.3] = np.nan
    elif kind == "with infinities":
        values[random.random(size) < 0.3] = np.inf
        values[random.random(size) < 0.1] = -np.inf
    elif kind == "tiny":
        values = values * 1e-42
    values[random.random(size) < 0.05] = -0.0
    values[random.random(size) < 0.05] = 0.0
    compare(values.astype(np.float32))


def test_figures_at_the_ends_of_the_range_do_not_overflow() -> None:
    ends = [-(1 << 63), (1 << 63) - 1, 0, -1, 1]
    compare(np.array(ends))
    compare(np.array(ends * 3000 + list(range(0, 1 << 62, 1 << 49))))
    compare(np.array([(1 << 63) - 1] * 10))
    compare(np.array([-(1 << 63), -(1 << 63) + 1]))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.999])
def test_hashes_above_a_limit_are_left_out(share: float) -> None:
    limit = int(share * 2.0**64)
    compare(np.random.default_rng(0).integers(0, 1 << 40, 20_000), limit)
    compare(np.random.default_rng(0).normal(size=20_000).astype(np.float32), limit)


def test_values_whose_hashes_are_all_high_still_give_enough() -> None:
    # The first guess of the range finds too few of them.
    values = np.arange(200_000)
    values = values[hash_numbers(values) > np.uint64(1 << 63)][:32768]
    found = compare(values)
    assert found.hashes is not None
    assert len(found.hashes) == NUM_HASHES


def test_figures_do_not_depend_on_what_stands_around_a_block() -> None:
    values = np.random.default_rng(1).normal(size=50_000).astype(np.float32)
    block = values[101:30_000]
    one, other = (_native.summarize_floats(array, SIZES, None) for array in (block, block.copy()))
    for name in ("num_nan", "num_finite", "zeros", "low", "high", "mean", "m2"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("num_different", [1, 40, 4096, 4097, 20_000])
def test_figures_of_bytes_are_those_of_the_slow_way(num_different: int) -> None:
    random = np.random.default_rng(num_different)
    values = [b"v" * (number % 40) + b"%d" % number for number in random.integers(0, num_different, 24_000).tolist()]
    column = BytesColumn.from_values(values)
    keys = _native.hash_values(column.data, column.offsets)
    found = _native.summarize_bytes(column.data, column.offsets, SIZES)
    unique, times = np.unique(keys, return_counts=True)
    assert found.is_whole is (len(unique) <= MAX_VALUES)
    if not found.is_whole:
        assert np.array_equal(found.hashes, unique[:NUM_HASHES])
        unique, times = unique[times > 1], times[times > 1] - 1
    assert np.array_equal(found.keys, unique)
    assert np.array_equal(found.counts, times)
    assert np.array_equal(keys[found.rows], unique)
    first = zip(found.keys.tolist()[:20], found.rows.tolist(), strict=False)
    assert all(keys.tolist().index(key) == row for key, row in first)
    nbytes = [len(value) for value in values]
    assert (found.sizes.num_finite, found.sizes.low, found.sizes.high) == (len(values), min(nbytes), max(nbytes))
    assert len(found.images) == 0


IMAGE_HEADS = [b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"RIFF....WEBP", b"BM", b"II*\0", b"MM\0*", b"\0\0\0\x1cftyp"]


@pytest.mark.parametrize("head", IMAGE_HEADS, ids=repr)
def test_rows_that_begin_as_images_do_are_found(head: bytes) -> None:
    values = [b"text", head.ljust(12, b"."), head.ljust(12, b".")[:11], head[:-1].ljust(12, b"."), b"", head.ljust(99)]
    column = BytesColumn.from_values(values)
    assert _native.summarize_bytes(column.data, column.offsets, SIZES).images.tolist() == [1, 5]


@pytest.mark.parametrize("offsets", [[0, 5], [3, 2], [-1, 2], [0, 3, 2]])
def test_offsets_outside_the_data_are_refused(offsets: list[int]) -> None:
    with pytest.raises(IndexError, match="offsets lie outside the data"):
        _native.summarize_bytes(b"abcd", np.array(offsets), SIZES)


def test_tables_without_as_many_counts_as_values_are_refused() -> None:
    one, two = np.arange(1), np.arange(2)
    with pytest.raises(ValueError, match="as many counts as values are needed"):
        _native.merge_counts(one, two, one, one)


def test_arrays_of_other_kinds_are_refused_and_not_converted() -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.merge_sorted(np.array([0.5]), np.array([1.5]))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.summarize_floats(np.array([0.5]), SIZES)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.summarize_ints(np.arange(10)[::2], SIZES)
