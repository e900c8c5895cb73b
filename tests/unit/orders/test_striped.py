"""Striped order: every row once, blocks of a rank's own groups, a slow twin, and pinned values."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.orders.order import Slice, Whole, WindowShuffled, derive_key, score_mixing
from tfrkit.orders.plan import BatchPlan
from tfrkit.orders.striped import Striped, Stripes, choose_stripes, fit_groups


def list_all(order: Striped, epoch: int = 0) -> list[int]:
    return [int(number) for number in order.at(np.arange(order.size, dtype=np.uint64), epoch)]


def list_slowly(size: int, seed: int, stripes: Stripes, batch: int, epoch: int) -> list[int]:
    """All record numbers in order, made of lists: deal the blocks, shuffle the windows, then take turns."""
    block, groups, depth = stripes.block, stripes.groups, stripes.depth

    def shuffled(items: list[int], key: int) -> list[int]:
        permutation = _native.Permutation(len(items), key)
        return [items[int(permutation.at_many(np.array([at], np.uint64))[0])] for at in range(len(items))]

    shift = derive_key("stripes-start", seed, epoch) % size
    rows = [(row + shift) % size for row in range(size)]
    num_whole = size // block
    blocks = [rows[at * block : (at + 1) * block] for at in range(num_whole)]
    if num_whole:
        key = derive_key("stripes", seed, epoch)
        blocks = [blocks[at] for at in shuffled(list(range(num_whole)), key)]
    each = num_whole // groups
    streams = [list(itertools.chain(*blocks[at * each : (at + 1) * each])) for at in range(groups)]
    rest = list(itertools.chain(*blocks[groups * each :])) + rows[num_whole * block :]
    share = len(rest) // groups
    for number, stream in enumerate(streams):
        stream += rest[number * share : (number + 1) * share]
    tail = rest[groups * share :]

    span, length = depth * block, len(streams[0])
    num_windows = max(1, (length + span // 2) // span)
    for number, stream in enumerate(streams if length else []):
        mixed = []
        for window in range(num_windows):
            inside = stream[window * span : None if window == num_windows - 1 else (window + 1) * span]
            key = derive_key("stripe", seed, epoch, window)
            turn = (((number + (key | 1)) * 0x9E3779B97F4A7C15) % 2**64 >> 20) % len(inside)
            mixed += shuffled(inside[turn:] + inside[:turn], key)
        stream[:] = mixed

    taken = batch // groups
    made = []
    for start in range(0, length, taken):
        for stream in streams:
            made += stream[start : start + taken]
    return made + tail


@pytest.mark.parametrize("seed", range(60))
def test_order_is_that_of_its_slow_twin(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.choice([1, 2, 63, 64, 65, 500, 1001])
    groups = chance.choice([1, 2, 3, 4, 16, 64])
    batch = groups * chance.choice([1, 2, 5])
    stripes = Stripes(chance.choice([1, 2, 7, 16, 100]), groups, chance.choice([1, 2, 4]))
    order = Striped(Whole(size), seed, stripes, batch=batch)
    for epoch in (0, 3):
        assert list_all(order, epoch) == list_slowly(size, seed, stripes, batch, epoch)


def test_order_never_changes() -> None:
    order = Striped(Whole(100), 7, Stripes(4, 2, 3), batch=8)
    assert list_all(order)[:16] == PINNED[0]
    assert list_all(order, 5)[:16] == PINNED[1]
    large = Striped(Whole(10**10), 7, Stripes(8192, 64, 16), batch=4096)
    assert large.at(np.array([0, 1, 63, 64, 5 * 10**9, 10**10 - 1], np.uint64), 2).tolist() == PINNED[2]
    assert large.describe() == ["striped", 7, 8192, 64, 16, 4096, ["whole", 10**10]]


PINNED = (
    [81, 48, 2, 5, 14, 77, 15, 74, 46, 49, 79, 3, 75, 6, 8, 16],
    [90, 96, 95, 87, 46, 16, 15, 43, 60, 61, 97, 98, 56, 57, 17, 18],
    [1325070935, 2590107211, 2850805633, 6129669708, 3949854598, 5633119279],
)


@pytest.mark.parametrize("size", [1, 5, 64, 100, 4097, 10_007])
@pytest.mark.parametrize("batch", [1, 32, 96, 256])
@pytest.mark.parametrize("groups", [1, 6, 64])
def test_every_record_comes_once_for_any_sizes(size: int, batch: int, groups: int) -> None:
    order = Striped(Whole(size), 1, Stripes(7, groups, 4)).for_batch(batch)
    assert sorted(list_all(order, 1)) == list(range(size))
    assert size < 10 or list_all(order, 1) != list_all(order, 2)


def test_part_of_a_dataset_is_striped_by_its_own_positions() -> None:
    part = Slice(Whole(1000), 100, 900)
    assert sorted(list_all(Striped(part, 0, Stripes(8, 4)))) == list(range(100, 900))


def count_touched(order: Striped | WindowShuffled, batch: int, ranks: int, epoch: int) -> float:
    """Blocks that ranks read in an epoch, each counted once for every rank; rows of the last batch are read alone."""
    block = 64
    shift = derive_key("stripes-start", 0, epoch) % order.size if isinstance(order, Striped) else 0
    touched = 0.0
    for rank in range(ranks):
        plan = BatchPlan(order.size, batch, rank=rank, world_size=ranks)
        rows = np.concatenate([plan.rows(number) for number in range(plan.num_batches)])
        numbers = (order.at(rows, epoch) + np.uint64(order.size - shift)) % np.uint64(order.size)
        blocks = numbers // np.uint64(block)
        last = len(plan.rows(plan.num_batches - 1))
        held = np.unique(blocks[:-last])
        touched += len(held) + np.sum(~np.isin(blocks[-last:], held)) / block
    return touched


def test_blocks_are_read_once_by_1_to_64_ranks() -> None:
    size, batch = 64 * 10_000 + 777, 1024
    order = Striped(Whole(size), 0, Stripes(64, 64, 16), batch=batch)
    ideal = size / 64
    for ranks in (1, 2, 4, 8, 16, 32, 64):
        assert count_touched(order, batch, ranks, 1) / ideal < 1.02, ranks
    window = WindowShuffled(Whole(size), 0, block=64, window=65536)
    assert count_touched(window, batch, 64, 1) / ideal > 30


def test_mixing_is_at_least_90_percent() -> None:
    for size in (10**5, 10**7, 10**10):
        order = Striped(Whole(size), 3, choose_stripes(size, 1000.0, block_nbytes=1 << 16, window_nbytes=1 << 30))
        for batch in (64, 4096):
            assert score_mixing(order.for_batch(batch), 1) > 0.9, (size, batch)


def test_batches_of_all_ranks_together_do_not_depend_on_their_number() -> None:
    size, batch = 10_000, 128
    order = Striped(Whole(size), 0, Stripes(32, 16, 4), batch=batch)
    plans = [BatchPlan(size, batch, rank=rank, world_size=16) for rank in range(16)]
    whole = BatchPlan(size, batch)
    for number in (0, 3, 77):
        shared = np.concatenate([order.at(plan.rows(number)) for plan in plans])
        assert shared.tolist() == order.at(whole.rows(number)).tolist()


def test_windows_of_a_slice_hold_its_records_and_no_others_blocks() -> None:
    size, batch = 20_000, 128
    order = Striped(Whole(size), 0, Stripes(32, 16, 4), batch=batch)
    plan = BatchPlan(size, batch, rank=1, world_size=4)
    held: set[int] = set()
    for number in range(plan.num_batches):
        rows = plan.rows(number)
        windows = order.windows_of(rows)
        assert all(window[1:] == (4, 8) for window in windows)
        assert bool(windows) == (number < plan.num_batches - 1)
        for window in windows:
            held |= set(order.numbers_of(window, 2).tolist())
        missing = set(order.at(rows, 2).tolist()) - held
        assert not missing or number == plan.num_batches - 1
    first = order.windows_of(plan.rows(0))[0]
    assert order.next_window(first) == (first[0] + 1, 4, 8)
    assert len(held) < size / 3


def test_sizes_depend_on_the_dataset() -> None:
    small = choose_stripes(10**6, 1000.0, block_nbytes=8 << 20, window_nbytes=1 << 30)
    large = choose_stripes(10**9, 1000.0, block_nbytes=8 << 20, window_nbytes=1 << 30)
    assert small == Stripes(7864, 4) and large == Stripes(7864, 8)
    assert choose_stripes(10, 1e9, block_nbytes=8 << 20, window_nbytes=1 << 30) == Stripes(1, 1)
    assert large.window * 1000 <= 1 << 30
    assert fit_groups(64, 96) == 32
