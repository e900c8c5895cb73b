from __future__ import annotations

import numpy as np
import pytest

from tfrkit.orders.order import Order, Repeated, Shuffled, Slice, Whole
from tfrkit.orders.token_batches import TokenBatches, TokenPlan, cut_by_tokens

# Pinned: changing these is a breaking change.
PINNED = [
    [[11], [7], [8], [1, 0, 2, 3], [10], [9], [6], [4, 5]],
    [[8], [1, 0, 2, 3], [6], [11], [9], [7], [4, 5], [10]],
]
LENGTHS = np.random.default_rng(3).integers(0, 60, 2000)


def batches_of(order: TokenBatches, epoch: int = 0) -> list[list[int]]:
    plan = TokenPlan(order, epoch)
    return [order.at(plan.rows(number), epoch).tolist() for number in range(plan.num_batches)]


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "max_rows", "sizes"),
    [
        ([1, 1, 1, 1, 1], 2, 9, [2, 2, 1]),
        ([1, 2, 3, 4], 4, 9, [2, 1, 1]),
        ([1, 2, 3, 4], 8, 9, [2, 2]),
        ([4, 4, 4], 4, 9, [1, 1, 1]),
        ([1] * 5, 100, 2, [2, 2, 1]),
        ([1, 1, 100], 100, 9, [2, 1]),
        ([], 4, 9, []),
    ],
)
def test_cut_takes_as_many_rows_as_fit(lengths: list[int], max_tokens: int, max_rows: int, sizes: list[int]) -> None:
    assert cut_by_tokens(np.array(lengths, np.int64), max_tokens, max_rows).tolist() == sizes


def test_cut_equals_its_slow_twin() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        lengths = np.sort(random.integers(1, 40, int(random.integers(1, 200))))
        max_tokens, max_rows = int(random.integers(40, 300)), int(random.integers(1, 30))
        sizes = [0]
        for row, length in enumerate(lengths.tolist()):
            first = row - sizes[-1]
            is_full = (row + 1 - first) * length > max_tokens or row + 1 - first > max_rows
            sizes += [1] if is_full else [sizes.pop() + 1]
        assert cut_by_tokens(lengths, max_tokens, max_rows).tolist() == sizes


@pytest.mark.parametrize("base", [Whole(2000), Shuffled(Whole(2000), 1), Slice(Whole(2000), 100, 700)])
@pytest.mark.parametrize("max_rows", [None, 7])
def test_every_epoch_has_every_row_once_within_the_budget(base: Order, max_rows: int | None) -> None:
    order = TokenBatches(base, LENGTHS, max_tokens=256, max_rows=max_rows)
    for epoch in range(3):
        batches = batches_of(order, epoch)
        wanted = base.at(np.arange(base.size, dtype=np.uint64), epoch)
        assert sorted(sum(batches, [])) == sorted(wanted.tolist())
        for batch in batches:
            assert len(batch) * max(1, LENGTHS[batch].max()) <= 256
            assert len(batch) <= (max_rows or 256)


def test_batches_hold_like_lengths_and_come_mixed() -> None:
    order = TokenBatches(Shuffled(Whole(2000), 1), LENGTHS, max_tokens=256)
    batches = batches_of(order)
    filled = sum(len(batch) * LENGTHS[batch].max() for batch in batches)
    assert LENGTHS.sum() / filled > 0.95
    longest = [int(LENGTHS[batch].max()) for batch in batches[:64]]
    assert longest != sorted(longest)


def test_rows_repeated_come_as_often() -> None:
    order = TokenBatches(Repeated(Shuffled(Whole(100), 1), 3), LENGTHS, max_tokens=128)
    assert sorted(sum(batches_of(order), [])) == sorted(list(range(100)) * 3)


def test_order_is_pinned() -> None:
    order = TokenBatches(Shuffled(Whole(12), 7), np.arange(12), max_tokens=12)
    assert batches_of(order, 0) == PINNED[0]
    assert batches_of(order, 1) == PINNED[1]


def test_fixed_orders_have_a_number_of_batches() -> None:
    fixed = TokenBatches(Whole(2000), LENGTHS, max_tokens=128)
    assert fixed.is_fixed
    assert {len(fixed.stops(epoch)) for epoch in range(5)} == {len(fixed.stops(0))}
    moving = TokenBatches(Shuffled(Whole(2000), 1), LENGTHS, max_tokens=128)
    assert not moving.is_fixed
    assert len({len(moving.stops(epoch)) for epoch in range(10)}) > 1


@pytest.mark.parametrize("world", [1, 2, 3, 7, 500])
def test_ranks_get_whole_batches_and_equal_counts(world: int) -> None:
    order = TokenBatches(Shuffled(Whole(2000), 1), LENGTHS, max_tokens=512)
    alone = batches_of(order)
    for even in ("drop", "pad"):
        plans = [TokenPlan(order, 0, rank, world, even) for rank in range(world)]
        num_steps = plans[0].num_batches
        assert {plan.num_batches for plan in plans} == {num_steps}
        dealt = [order.at(plan.rows(step)).tolist() for step in range(num_steps) for plan in plans]
        if even == "drop":
            assert dealt == alone[: len(alone) // world * world]
        else:
            assert dealt[: len(alone)] == alone
            assert len(dealt) - len(alone) < world
            assert all(batch in alone for batch in dealt[len(alone) :])


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 3), (3, 1)])
def test_plan_resumes_after_any_step_with_other_ranks(before: int, after: int) -> None:
    order = TokenBatches(Shuffled(Whole(2000), 1), LENGTHS, max_tokens=512)
    alone = batches_of(order)
    first = TokenPlan(order, 0, 0, before)
    for step in range(first.num_batches):
        row = first.stop_of(step)
        plans = [TokenPlan(order, 0, rank, after, "drop", row) for rank in range(after)]
        dealt = [order.at(plan.rows(n)).tolist() for n in range(plans[0].num_batches) for plan in plans]
        given = min((step + 1) * before, len(alone))
        assert alone[:given] + dealt == alone[: given + (len(alone) - given) // after * after]
    assert first.stop_of(first.num_batches - 1) == 2000


def test_row_inside_a_batch_raises() -> None:
    order = TokenBatches(Whole(100), LENGTHS, max_tokens=128)
    stop = int(order.stops(4)[2])
    with pytest.raises(ValueError, match=f"row {stop + 1} is inside a batch of epoch 4, expected the end of one"):
        TokenPlan(order, 4, start=stop + 1)
    with pytest.raises(ValueError, match="rank expected 0 to 1, got 2"):
        TokenPlan(order, 0, 2, 2)


def test_no_rows_are_no_batches() -> None:
    order = TokenBatches(Whole(0), np.empty(0, np.int64), max_tokens=4)
    assert TokenPlan(order).num_batches == 0
    assert TokenPlan(order).rows(0).tolist() == []


def test_descriptions_differ_with_the_budget() -> None:
    def describe(**options: int) -> object:
        return TokenBatches(Whole(9), np.arange(9), **{"max_tokens": 16, **options}).describe()

    assert describe() == describe()
    assert len({str(describe()), str(describe(max_tokens=17)), str(describe(max_rows=3)), str(describe(seed=1))}) == 4
