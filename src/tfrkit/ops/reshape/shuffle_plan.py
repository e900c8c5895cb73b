"""The order of a shuffle: the record at each position and the position of each record, as arithmetic.

Positions of all groups are concatenated and cut twice: into output shards, and into buckets that fit into memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import UInt64Array
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.layout import Group, cut_evenly
from tfrkit.orders.order import keyed_permutation
from tfrkit.passes.frame_sources import PartsOf, UInt32Array

# Buckets have equal numbers of records, but some have more bytes than others.
HEADROOM = 1.1


@dataclass(frozen=True)
class ShufflePlan:
    """Groups of source shards, the cuts of their positions into output shards, and the seed. It can be pickled."""

    groups: tuple[Group, ...]
    cuts: tuple[tuple[int, ...], ...]
    seed: int
    _permutations: dict[int, Any] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> Any:
        return ShufflePlan, (self.groups, self.cuts, self.seed)

    @cached_property
    def starts(self) -> list[int]:
        """First position of each group, and the end."""
        return [0, *accumulate(group.num_records for group in self.groups)]

    @cached_property
    def shard_starts(self) -> list[int]:
        """First position of each output shard, and the end."""
        starts = [start + cut for start, cuts in zip(self.starts, self.cuts, strict=False) for cut in cuts[:-1]]
        return [*starts, self.starts[-1]]

    @property
    def num_records(self) -> int:
        """Number of records of all groups."""
        return self.starts[-1]

    @property
    def nbytes(self) -> int:
        """Size of the frames of all groups."""
        return sum(group.nbytes for group in self.groups)

    def find_group(self, position: int) -> int:
        """Return the group of a position."""
        return next(at for at in range(len(self.groups)) if self.starts[at] <= position < self.starts[at + 1])

    def permute(self, at: int, start: int, stop: int) -> UInt64Array:
        """Return the records at positions `start` to `stop` of group `at`, as numbers in that group."""
        first = self.starts[at]
        found: UInt64Array = self._permutation(at).at_range(start - first, stop - first)
        return found

    def locate(self, at: int, items: UInt64Array) -> tuple[UInt32Array, UInt64Array]:
        """Return the source shard of each record of a group, and its number there."""
        group = self.groups[at]
        firsts = np.cumsum([0, *group.counts], dtype=np.uint64)
        places = np.searchsorted(firsts, items, side="right") - 1
        return np.asarray(group.shards, np.uint32)[places], items - firsts[places]

    def rank(self, start: int, stop: int) -> UInt64Array:
        """Return, for each position, the rank of its record among the records of these positions."""
        items = self.permute(self.find_group(start), start, stop)
        ranks = np.empty(len(items), np.uint64)
        ranks[np.argsort(items)] = np.arange(len(items), dtype=np.uint64)
        return ranks

    def find_parts(self, part_starts: Sequence[int]) -> PartsOf:
        """Return a function that maps records to part numbers; a part is a range of output positions."""
        bounds = np.asarray(part_starts[1:], np.uint64)
        place: dict[int, tuple[int, int]] = {}
        for at, group in enumerate(self.groups):
            for number, first in zip(group.shards, [0, *accumulate(group.counts)], strict=False):
                place[number] = at, first

        def find(shard: int, start: int, stop: int) -> UInt32Array:
            at, first = place[shard]
            positions = self._permutation(at).positions_of_range(first + start, first + stop)
            positions = positions + np.uint64(self.starts[at])
            found: UInt32Array = np.searchsorted(bounds, positions, side="right").astype(np.uint32)
            return found

        return find

    def cut_buckets(self, memory: int) -> list[int]:
        """Return the first position of each bucket, and the end; a bucket never spans two groups."""
        # The offsets of an output shard, kept for its index, use memory, too.
        widest = max((stop - start for start, stop in pairwise(self.shard_starts)), default=0)
        bucket_nbytes = max(memory // 8, memory // 4 - 4 * widest)
        starts: list[int] = []
        for start, group in zip(self.starts, self.groups, strict=False):
            number = max(1, -(-int(group.nbytes * HEADROOM) // bucket_nbytes))
            starts += [
                start + cut for cut in cut_evenly(group.num_records, min(number, max(1, group.num_records)))[:-1]
            ]
        starts.append(self.starts[-1])
        if len(starts) - 1 > LIMITS.max_buckets + len(self.groups):
            needed = self.nbytes * 2 / LIMITS.max_buckets
            raise misuse(
                f"memory expected at least {needed / 1e6:,.0f}MB for this much data, got {memory / 1e6:,.0f}MB",
                Step("give it that much: {memory}", memory=f"{-(-int(needed) // 10**6)}MB"),
                "or run it as one part, which has no such limit: tfr shuffle … --part 0/1 --parts DIR",
            )
        return starts

    def cut_shard_buckets(self, memory: int) -> list[int]:
        """Return the first position of each bucket, and the end; a bucket never spans two output shards."""
        starts: list[int] = []
        for start, stop in pairwise(self.shard_starts):
            at = min(bisect_right(self.starts, start) - 1, len(self.groups) - 1)
            mean = self.groups[at].nbytes * HEADROOM / max(1, self.groups[at].num_records)
            number = max(1, -(-int(mean * (stop - start)) // max(1, memory // 4)))
            starts += [start + cut for cut in cut_evenly(stop - start, min(number, max(1, stop - start)))[:-1]]
        return [*starts, self.starts[-1]]

    def _permutation(self, at: int) -> Any:
        if at not in self._permutations:
            self._permutations[at] = keyed_permutation(self.groups[at].num_records, self.seed)
        return self._permutations[at]
