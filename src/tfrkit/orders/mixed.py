"""An order that mixes several orders by weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.orders.order import Order, OrderStep, derive_key, permute


class Mixed:
    """Mixes several orders by weight. Each block of positions has the same number of each order, shuffled.

    The records of source i are numbered from `starts[i]`. An exhausted source restarts with its next epoch.
    """

    block = 10_000

    def __init__(
        self, parts: Sequence[Order], weights: Sequence[float], starts: Sequence[int], *, seed: int, size: int | None
    ) -> None:
        self._parts = list(parts)
        self._starts = list(starts)
        self._seed = seed
        self._shares = apportion(weights, self.block)
        self._owners = np.repeat(np.arange(len(self._parts)), self._shares)
        self._last: tuple[tuple[int, int], tuple[Int64Array, Int64Array]] | None = None
        if size is None:
            # End before a source would have to restart.
            size = min(self._first_end(part) for part in range(len(self._parts)) if self._shares[part])
        self.size = size

    def _first_end(self, part: int) -> int:
        """Count the positions before source `part` would restart."""
        whole, rest = divmod(self._parts[part].size, self._shares[part])
        owners, _ = self._lay_out(whole, 0)
        return whole * self.block + int(np.flatnonzero(owners == part)[rest])

    def _lay_out(self, block: int, epoch: int) -> tuple[Int64Array, Int64Array]:
        """Return the source of each position of a block, and the number of its draw in this block."""
        last = self._last
        if last is not None and last[0] == (block, epoch):
            return last[1]
        places = np.arange(self.block, dtype=np.uint64)
        owners = self._owners[permute(self.block, derive_key("mix", self._seed, epoch, block), places)]
        draws = np.empty(self.block, np.int64)
        for part, share in enumerate(self._shares):
            draws[owners == part] = np.arange(share)
        self._last = ((block, epoch), (owners, draws))
        return owners, draws

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        blocks = positions // np.uint64(self.block)
        for block in np.unique(blocks).tolist():
            chosen = np.flatnonzero(blocks == block)
            owners, draws = self._lay_out(block, epoch)
            places = positions[chosen] % np.uint64(self.block)
            for part in np.unique(owners[places]).tolist():
                mine = owners[places] == part
                drawn = draws[places[mine]] + block * self._shares[part]
                numbers[chosen[mine]] = self._draw(part, drawn.astype(np.uint64), epoch)
        return numbers

    def _draw(self, part: int, drawn: UInt64Array, epoch: int) -> UInt64Array:
        """Return the records of the draws with these numbers from a source."""
        order = self._parts[part]
        size = np.uint64(order.size)
        # An epoch of the mix restarts every source, in another order.
        rounds_per_epoch = self.size * self._shares[part] // (self.block * order.size) + 2
        numbers = np.empty_like(drawn)
        rounds = drawn // size
        for number in np.unique(rounds):
            chosen = rounds == number
            numbers[chosen] = order.at(drawn[chosen] % size, epoch * rounds_per_epoch + int(number))
        return numbers + np.uint64(self._starts[part])

    def runs(self) -> None:
        return None

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return None

    def cover(self) -> list[range]:
        parts = zip(self._parts, self._starts, strict=True)
        return [range(run.start + start, run.stop + start, run.step) for part, start in parts for run in part.cover()]

    def members(self) -> Order:
        return self

    def describe(self) -> object:
        return ["mixed", self._seed, self.size, self._shares, *(part.describe() for part in self._parts)]


def apportion(weights: Sequence[float], total: int) -> list[int]:
    """Divide `total` by weight into integers, by largest remainder; every positive weight gets at least one."""
    if not weights or any(not 0 <= weight < float("inf") for weight in weights) or not sum(weights):
        raise ValueError(f"weights expected numbers of 0 or more, not all 0, got {list(weights)}")
    exact = [weight * total / sum(weights) for weight in weights]
    shares = [max(int(share), 1 if share else 0) for share in exact]
    remainders = sorted(range(len(shares)), key=lambda part: (int(exact[part]) - exact[part], part))
    for part in remainders[: max(0, total - sum(shares))]:
        shares[part] += 1
    while sum(shares) > total:  # units given to tiny weights are taken from the largest
        shares[shares.index(max(shares))] -= 1
    return shares
