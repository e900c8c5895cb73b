"""The base of all loaders: epochs, ranks and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.state import Position
from tfrkit.codec.decode import Batch
from tfrkit.errors import RankBatchWarning, warn_caller
from tfrkit.orders.plan import Even

Item = TypeVar("Item")


class Loader(ABC):
    """A loader of batches for a framework. Each pass over it is the next epoch.

    The state counts delivered batches, not batches read ahead.
    """

    def __init__(self, loop: BatchLoop) -> None:
        self._loop = loop
        self._next = self._position = Position(loop.epoch, 0)

    @abstractmethod
    def _start(self, start: Position) -> Iterator[tuple[Batch, int]]:
        """Start a pass that yields each batch with the row of the epoch where it ends."""

    @property
    def epoch(self) -> int:
        """The epoch that the next pass reads."""
        return self._next.epoch

    def __len__(self) -> int:
        """Number of batches of a whole epoch."""
        return len(self._loop)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._loop.batching.describe()}, epoch {self.epoch}{self._describe()})"

    def _describe(self) -> str:
        """Return additional text for the repr."""
        return ""

    def __iter__(self) -> Iterator[Batch]:
        start = self._next
        self._next, self._position = Position(start.epoch + 1, 0), start
        return self._give(self._start(start), start)

    def _give(self, batches: Iterator[tuple[Batch, int]], start: Position) -> Iterator[Batch]:
        position = start
        for batch, row in batches:
            self._position = position = Position(start.epoch, row)
            yield batch
        if self._position is position:  # no other pass has started since
            self._position = self._next

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that the next pass reads from its start."""
        self._loop.set_epoch(epoch)
        self._next = self._position = Position(epoch, 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the last pass, a JSON value under 1 KB."""
        return self._loop.save(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next pass from a saved state. A state of another dataset or order raises."""
        self._next = self._position = self._loop.load(state)


def make_ahead(items: Iterator[Item], count: int) -> Iterator[Item]:
    """Yield items in order, each after `count` more have been made; an error is raised after the items before it."""
    made: deque[Item] = deque()
    try:
        for item in items:
            made.append(item)
            if len(made) > count:
                yield made.popleft()
    except Exception:
        yield from made
        raise
    yield from made


def share_loop(
    loop: BatchLoop,
    *,
    rank: int | None,
    world_size: int | None,
    even: Even,
    find_rank: Callable[[], tuple[int, int]],
    shows_whole: bool = False,
) -> BatchLoop:
    """Return the part of a loop for this process. `find_rank` returns the default (rank, world size).

    Rank 0 warns if `per_rank` was not given, unless the arrays show the whole batch (`shows_whole`).
    """
    if (rank is None) != (world_size is None):
        raise TypeError(f"rank and world_size go together, got rank {rank} and world_size {world_size}")
    if rank is None or world_size is None:
        rank, world_size = find_rank()
    # Invalid ranks raise now, not at the first batch.
    how = replace(loop.batching, rank=rank, world_size=world_size, even=even)
    how.check_ranks()
    if world_size == 1:
        return loop.by_number()
    if how.size is not None and how.max_tokens is None and how.per_rank is None and rank == 0 and not shows_whole:
        warn_caller(
            RankBatchWarning(
                f"batch({how.size}) over {world_size} ranks is {how.size // world_size} rows on each rank, "
                f"{how.size} on all together\n"
                f"  for {how.size} on each: batch({how.size}, per_rank=True)    to keep this: per_rank=False"
            )
        )
    return loop.rebuild(how).by_number()
