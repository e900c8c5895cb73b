"""Striped order: shuffled blocks of adjacent records, owned by groups, so that ranks read whole blocks.

The N positions of the base are cut into blocks of `block` adjacent ones. The blocks are shuffled and dealt to `groups`
groups; each group shuffles its rows within windows of some blocks. A global batch of B rows takes B / groups rows of
every group, in the order of the groups. Ranks take contiguous slices of a batch, so a rank that has a whole number of
groups reads the blocks of these groups and no others.

    batch 0     | group 0      | group 1      | ... | group G - 1  |
    batch 1     | group 0      | group 1      | ... | group G - 1  |
                 rank 0 of 2 .........         rank 1 of 2 ........
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tfrkit._types import UInt64Array
from tfrkit.orders.order import Order, Rearranged, derive_key, permute

MAX_GROUPS = 64
# A group mixes this many blocks: two adjacent rows are of one block with a probability of 1 / 16.
WINDOW_BLOCKS = 16

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Stripes:
    """Sizes of a striped order: rows per block, number of groups, blocks per window of a group."""

    block: int
    groups: int
    depth: int = WINDOW_BLOCKS

    @property
    def window(self) -> int:
        """Rows in the windows of all groups together: what one rank alone holds in memory."""
        return self.block * self.groups * self.depth


def choose_stripes(num_rows: int, row_nbytes: float, *, block_nbytes: int, window_nbytes: int) -> Stripes:
    """Choose sizes: blocks of `block_nbytes`, and as many groups as fit into windows of `window_nbytes` in all.

    They depend on the dataset alone, so that every machine gets the same order.
    """
    # A range of just under a block's bytes is one request; rows differ in size.
    block = max(1, int(block_nbytes * 15 / 16 / max(1.0, row_nbytes)))
    num_blocks = num_rows // block
    fitting = min(MAX_GROUPS, num_blocks // WINDOW_BLOCKS, window_nbytes // (WINDOW_BLOCKS * block_nbytes))
    groups = 1 << max(0, int(fitting).bit_length() - 1)
    return Stripes(block, groups)


def fit_groups(groups: int, batch: int) -> int:
    """Return the number of groups for a batch: every group has the same number of its rows.

    Example:
        >>> fit_groups(64, 256), fit_groups(64, 96), fit_groups(64, 100), fit_groups(12, 256)
        (64, 32, 4, 4)
    """
    return int(np.gcd(groups, batch))


class Striped(Rearranged):
    """Another order in stripes; see the module. Every row once per epoch, for any sizes."""

    def __init__(self, base: Order, seed: int, stripes: Stripes, *, batch: int | None = None) -> None:
        """`batch` is the size of the global batches that are read; by default one row of each group."""
        self._base = base
        self._seed = seed
        self._requested = stripes
        self.batch = batch or stripes.groups
        self.stripes = replace(stripes, groups=fit_groups(stripes.groups, self.batch))
        self.size = base.size
        block, groups = self.stripes.block, self.stripes.groups
        self._num_whole = self.size // block  # blocks; a shorter one may follow
        self._dealt = self._num_whole // groups * block  # rows of a group in whole blocks that it has alone
        rest = self.size - groups * self._dealt
        self._rest = rest // groups  # rows of a group in the blocks that are left over
        self._rows = self._dealt + self._rest  # of each group
        self._share = self.batch // groups  # rows of a group in a batch
        span = self.stripes.depth * block
        # A last window of less than half the size is a part of the one before.
        self._num_windows = max(1, (self._rows + span // 2) // span)
        self._span = span

    def for_batch(self, batch: int) -> Striped:
        """Return the same order for global batches of another size."""
        return Striped(self._base, self._seed, self._requested, batch=batch)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        groups, rows, is_tail = self._deal(positions)
        inner = self._mix(groups, rows, epoch)
        block, dealt, rest = np.uint64(self.stripes.block), np.uint64(self._dealt), np.uint64(self._rest)
        is_alone = inner < dealt
        start = np.uint64(self.stripes.groups) * dealt
        places = np.where(is_alone, groups * dealt + inner, start + groups * rest + (inner - dealt))
        # Fewer rows than groups are left at the end of an epoch.
        places = np.where(is_tail, positions, places)
        blocks = places // block
        is_whole = blocks < np.uint64(self._num_whole)
        key = derive_key("stripes", self._seed, epoch)
        blocks[is_whole] = permute(self._num_whole, key, blocks[is_whole])
        # Blocks start elsewhere in every epoch, so that no record is always in the last batch, which may be dropped.
        shift = np.uint64(derive_key("stripes-start", self._seed, epoch) % max(1, self.size))
        moved = blocks * block + places % block + shift
        return self._base.at(np.where(moved >= np.uint64(self.size), moved - np.uint64(self.size), moved), epoch)

    def _deal(
        self, positions: UInt64Array
    ) -> tuple[UInt64Array, UInt64Array, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """Return the group of each position, its row in the group, and whether it is in none."""
        batch, share = np.uint64(self.batch), np.uint64(self._share)
        num_batches = np.uint64(self._rows // self._share)
        left = np.uint64(self._rows % self._share)  # rows of a group in the last, shorter batch
        numbers, inside = positions // batch, positions % batch
        is_whole = numbers < num_batches
        after = positions - np.minimum(positions, num_batches * batch)
        divisor = max(np.uint64(1), left)
        groups = np.where(is_whole, inside // share, after // divisor)
        rows = np.where(is_whole, numbers * share + inside % share, num_batches * share + after % divisor)
        is_tail = positions >= np.uint64(self._rows * self.stripes.groups)
        return np.where(is_tail, np.uint64(0), groups), np.where(is_tail, np.uint64(0), rows), is_tail

    def _mix(self, groups: UInt64Array, rows: UInt64Array, epoch: int) -> UInt64Array:
        """Shuffle the rows of each group within its windows.

        One permutation serves all groups, started at another place for each of them: they hold different blocks.
        """
        mixed = np.zeros_like(rows)
        if self._rows == 0:  # fewer rows than groups
            return mixed
        windows = np.minimum(rows // np.uint64(self._span), np.uint64(self._num_windows - 1))
        sorting = np.argsort(windows, kind="stable")  # one look at each row, however many windows there are
        for chosen in np.split(sorting, np.flatnonzero(np.diff(windows[sorting])) + 1) if len(rows) else []:
            window = int(windows[chosen[0]])
            start, size = self._bounds(window)
            key = derive_key("stripe", self._seed, epoch, window)
            # Multiplication spreads neighbouring groups over the window; overflow is wanted.
            turn = ((groups[chosen] + np.uint64(key | 1)) * _GOLDEN) >> np.uint64(20)
            inner = permute(size, key, rows[chosen] - np.uint64(start))
            mixed[chosen] = np.uint64(start) + (inner + turn % np.uint64(size)) % np.uint64(size)
        return mixed

    def _bounds(self, window: int) -> tuple[int, int]:
        """Return the first row of a window in its group, and its number of rows."""
        start = window * self._span
        return start, (self._rows if window == self._num_windows - 1 else start + self._span) - start

    def windows_of(self, positions: UInt64Array) -> list[tuple[int, int, int]]:
        """Return the windows of a slice of a batch, as (window, first group, last group + 1).

        None for the last, shorter batch: its slices may have rows of other groups, whose windows are not worth reading.
        """
        num_batches = self._rows // self._share
        whole = positions[positions < np.uint64(num_batches * self.batch)]
        if len(whole) == 0:
            return []
        groups, rows, _ = self._deal(whole)
        windows = np.minimum(rows // np.uint64(self._span), np.uint64(self._num_windows - 1))
        first, stop = int(groups.min()), int(groups.max()) + 1
        return [(int(window), first, stop) for window in np.unique(windows)]

    def next_window(self, window: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """Return the window that the same groups read next in this epoch."""
        number, first, stop = window
        return (number + 1, first, stop) if number + 1 < self._num_windows else None

    def numbers_of(self, window: tuple[int, int, int], epoch: int) -> UInt64Array:
        """Return all record numbers of a window of some groups."""
        number, first, stop = window
        start, size = self._bounds(number)
        rows = np.arange(start, start + size, dtype=np.uint64)
        return np.concatenate([self.at(self._positions(group, rows), epoch) for group in range(first, stop)])

    def _positions(self, group: int, rows: UInt64Array) -> UInt64Array:
        """Return the positions of rows of a group: the inverse of `_deal`."""
        share, left = np.uint64(self._share), np.uint64(self._rows % self._share)
        num_batches = np.uint64(self._rows // self._share)
        numbers = rows // share
        whole = numbers * np.uint64(self.batch) + np.uint64(group) * share + rows % share
        last = num_batches * np.uint64(self.batch) + np.uint64(group) * left + (rows - num_batches * share)
        return np.where(numbers < num_batches, whole, last)

    def describe(self) -> object:
        block, groups, depth = self.stripes.block, self.stripes.groups, self.stripes.depth
        return ["striped", self._seed, block, groups, depth, self.batch, self._base.describe()]
