from __future__ import annotations

from itertools import product

import pytest

from tfrkit.orders.plan import BatchPlan


def rows_of(plan: BatchPlan) -> list[list[int]]:
    return [plan.rows(number).tolist() for number in range(plan.num_batches)]


@pytest.mark.parametrize(("size", "batch", "world"), list(product([0, 1, 5, 12, 13, 24], [4, 12], [1, 2, 4])))
def test_ranks_together_have_every_row_once_and_equal_batches(size: int, batch: int, world: int) -> None:
    for even in ("drop", "pad"):
        shares = [rows_of(BatchPlan(size, batch, rank=rank, world_size=world, even=even)) for rank in range(world)]
        assert len({tuple(map(len, share)) for share in shares}) == 1
        together = [[row for share in shares for row in share[k]] for k in range(len(shares[0]))]
        given = [row for rows in together for row in rows]
        if even == "drop":
            assert len(given) == len(set(given))
            assert size - len(given) < world
        else:
            assert set(given) == set(range(size))
            assert len(given) - size < world
        alone = rows_of(BatchPlan(size, batch))
        whole = size // batch
        assert together[:whole] == alone[:whole]


def test_last_batch_is_short_or_left_out() -> None:
    assert [len(rows) for rows in rows_of(BatchPlan(10, 4))] == [4, 4, 2]
    assert [len(rows) for rows in rows_of(BatchPlan(10, 4, drop_last=True))] == [4, 4]
    assert rows_of(BatchPlan(0, 4)) == []


def test_drop_leaves_out_a_last_batch_with_fewer_rows_than_ranks() -> None:
    assert BatchPlan(9, 4, rank=0, world_size=4, even="drop").num_batches == 2
    assert BatchPlan(9, 4, rank=0, world_size=4, even="pad").num_batches == 3
    assert [BatchPlan(9, 4, rank=r, world_size=4).rows(2).tolist() for r in range(4)] == [[8], [0], [1], [2]]


def test_resumed_plan_continues_at_the_row() -> None:
    plan = BatchPlan(10, 4)
    assert rows_of(plan.resume(4)) == rows_of(plan)[1:]
    assert rows_of(plan.resume(5)) == [[5, 6, 7, 8], [9]]
    assert rows_of(plan.resume(10)) == []
    assert [plan.stop_of(k) for k in range(3)] == [4, 8, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "size expected at least 1, got 0"),
        ({"world_size": 0}, "world_size expected at least 1, got 0"),
        ({"rank": 2, "world_size": 2}, "rank expected 0 to 1, got 2"),
        ({"even": "odd"}, "even expected 'drop' or 'pad', got 'odd'"),
        ({"batch_size": 10, "world_size": 4}, "10 rows cannot be divided between 4 ranks\n.*8 or 12"),
        ({"batch_size": 3, "world_size": 4}, "3 rows cannot be divided between 4 ranks\n.*work: 4"),
    ],
)
def test_plan_that_cannot_be_raises(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BatchPlan(**{"size": 100, "batch_size": 8, **options})  # type: ignore[arg-type]
