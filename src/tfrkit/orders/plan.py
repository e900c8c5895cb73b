"""Plan of an epoch: the rows of each batch, and its division among ranks and worker processes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tfrkit._types import UInt64Array

Even = Literal["drop", "pad"]
"""How the last batch is made even between ranks: drop rows, or repeat some."""


def check_ranks(rank: int, world_size: int, even: Even) -> None:
    """Raise if the rank, the world size or `even` is invalid."""
    if world_size < 1:
        raise ValueError(f"world_size expected at least 1, got {world_size}")
    if not 0 <= rank < world_size:
        raise ValueError(f"rank expected 0 to {world_size - 1}, got {rank}")
    if even not in ("drop", "pad"):
        raise ValueError(f"even expected 'drop' or 'pad', got {even!r}")


def share_of_worker(num_batches: int, worker: int, num_workers: int) -> range:
    """Return the numbers of the batches that a worker process of a rank makes: every `num_workers`-th one.

    Workers take turns, so that the batches arrive in the order of the epoch for any number of workers.
    """
    return range(worker, num_batches, num_workers)


@dataclass(frozen=True)
class BatchPlan:
    """Cuts the rows [start, size) of an epoch into global batches, and each global batch into a slice for every rank.

    Global batch k is the rows [start + k * batch_size, start + (k + 1) * batch_size), for any number of ranks or
    workers. All ranks get the same number of batches of the same size.
    """

    size: int
    batch_size: int
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1
    even: Even = "pad"
    start: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"size expected at least 1, got {self.batch_size}")
        check_ranks(self.rank, self.world_size, self.even)
        if self.batch_size % self.world_size:
            below = self.batch_size // self.world_size * self.world_size
            nearest = f"{below} or {below + self.world_size}" if below else f"{self.world_size}"
            raise ValueError(
                f"a batch of {self.batch_size} rows cannot be divided between {self.world_size} ranks\n"
                f"  the size is of all ranks together, nearest that work: {nearest}    "
                f"for {self.batch_size} rows on each: per_rank=True"
            )

    @property
    def num_batches(self) -> int:
        """The number of batches from `start` to the end of the epoch, the same for every rank."""
        num_rows = max(0, self.size - self.start)
        whole, rest = divmod(num_rows, self.batch_size)
        if self.drop_last or rest == 0 or (self.even == "drop" and rest < self.world_size):
            return whole
        return whole + 1

    @property
    def num_equal_rows(self) -> int | None:
        """The number of rows in every batch of this rank; None if the last batch has fewer."""
        is_even = self.drop_last or self.size % self.batch_size == 0
        return self.batch_size // self.world_size if is_even and self.num_batches else None

    def rows(self, number: int) -> UInt64Array:
        """Return the rows of batch `number` for this rank."""
        first = self.start + number * self.batch_size
        num_rows = min(self.batch_size, self.size - first)
        share, rest = divmod(num_rows, self.world_size)
        if rest and self.even == "pad":
            share += 1
        mine = np.arange(first + self.rank * share, first + (self.rank + 1) * share, dtype=np.uint64)
        # Only the last batch can need more rows than there are: they are taken from the start of the epoch.
        return np.where(mine < self.size, mine, mine % np.uint64(self.size)) if rest else mine

    def stop_of(self, number: int) -> int:
        """Return the number of rows of the epoch before the end of batch `number`."""
        return min(self.size, self.start + (number + 1) * self.batch_size)

    def resume(self, row: int) -> BatchPlan:
        """Return the same plan, starting at `row`."""
        return replace(self, start=row)
