"""Plans the output shards: names, splits and boundaries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tfrkit.container.locate import load_frames, scan_frames_once
from tfrkit.container.names import name_shard
from tfrkit.container.records import Policy
from tfrkit.ops.reshape.outputs import OutShard
from tfrkit.ops.reshape.rewrite import STDOUT
from tfrkit.outputs.sizes import ShardSizes
from tfrkit.outputs.target import Target, name_dataset
from tfrkit.passes.frame_sources import FrameSources, PartsOf, UInt32Array
from tfrkit.sidecars.carry import Carried
from tfrkit.storage.resolve import show_address


@dataclass(frozen=True)
class Group:
    """Source shards of one split, or without a split: their numbers and record counts."""

    split: str | None
    shards: tuple[int, ...]
    counts: tuple[int, ...]
    nbytes: int

    @property
    def num_records(self) -> int:
        """Number of records in all shards of the group."""
        return sum(self.counts)


def group_sources(sources: FrameSources, *, by_split: bool = True) -> list[Group]:
    """Group the source shards by split; shards without a split form one group."""
    splits: dict[str | None, list[int]] = {}
    if by_split:
        splits.update(sources.sidecars.splits)
    taken = {number for numbers in splits.values() for number in numbers}
    rest = [number for number in range(len(sources.paths)) if number not in taken]
    if rest:
        splits[None] = rest
    counts = sources.counts
    return [
        Group(
            split,
            tuple(numbers),
            tuple(counts[number].num_records for number in numbers),
            sum(counts[number].nbytes for number in numbers),
        )
        for split, numbers in splits.items()
    ]


def read_sizes(shards: int | None, shard_size: int | str | None) -> ShardSizes:
    """Parse and check the number or size of shards."""
    sizes = ShardSizes.of(shards, shard_size)
    sizes.check({})
    return sizes


def choose_name(carried: Carried, out: str) -> str:
    """Return the name of the new dataset: that of its source if valid, else one from its folder."""
    name = carried.name
    return name if name is not None and name_dataset(name) == name else name_dataset(out)


def choose_target(output: str | os.PathLike[str]) -> Target:
    """Return the target: one file if the name has a record suffix, else a folder."""
    path = show_address(output)
    if path == STDOUT:
        raise ValueError("output expected a file or a folder, got standard output, which takes one shard only")
    return Target(path, as_file=Target(path).is_file)


def name_shards(name: str, split: str | None, counts: Sequence[int | None]) -> list[OutShard]:
    """Return the shards of one split with their usual names, and their record counts if known."""
    stem = f"{name}.tfrecord" if split is None else f"{name}-{split}.tfrecord"
    return [OutShard(name_shard(stem, number, len(counts)), split, count) for number, count in enumerate(counts)]


def cut_evenly(num_records: int, num_shards: int) -> list[int]:
    """Return the boundaries of shards with nearly equal numbers of records.

    Example:
        >>> cut_evenly(10, 3)
        [0, 3, 6, 10]
    """
    return [num_records * number // num_shards for number in range(num_shards + 1)]


def cut_by_size(sources: FrameSources, group: Group, num_shards: int) -> list[int]:
    """Return the boundaries of shards of nearly equal size, none empty. Needs the offset of each record."""
    wanted = [group.nbytes * number // num_shards for number in range(1, num_shards)]
    cuts: list[int] = []
    first_record = first_byte = 0
    for number, count in zip(group.shards, group.counts, strict=True):
        shard = sources.shards[number]
        index = load_frames(shard, Policy()) or scan_frames_once(shard, Policy())
        stop = first_byte + index.inflated_size
        while len(cuts) < len(wanted) and wanted[len(cuts)] < stop:
            at = np.searchsorted(index.offsets, np.uint64(wanted[len(cuts)] - first_byte))
            cuts.append(first_record + int(at))
        first_record += count
        first_byte = stop
    cuts += [first_record] * (len(wanted) - len(cuts))
    return [0, *_spread(cuts, group.num_records), group.num_records]


def _spread(cuts: Sequence[int], num_records: int) -> list[int]:
    """Move cuts at least one record apart from each other and from both ends. REQUIRES: more records than cuts."""
    spread = []
    last = 0
    for left, cut in zip(range(len(cuts), 0, -1), cuts, strict=True):
        last = min(max(cut, last + 1), num_records - left)
        spread.append(last)
    return spread


def parts_by_position(groups: Sequence[Group], cuts: Sequence[Sequence[int]]) -> PartsOf:
    """Return a function that finds the output shard of each record; shards are numbered across groups."""
    first_part = [0, *accumulate(len(group_cuts) - 1 for group_cuts in cuts)]
    place: dict[int, tuple[int, int]] = {}
    for at, group in enumerate(groups):
        for number, start in zip(group.shards, [0, *accumulate(group.counts)], strict=False):
            place[number] = at, start

    def find_parts(shard: int, start: int, stop: int) -> UInt32Array:
        at, base = place[shard]
        positions = np.arange(base + start, base + stop, dtype=np.int64)
        found: Any = np.searchsorted(np.asarray(cuts[at][1:], np.int64), positions, side="right") + first_part[at]
        return found.astype(np.uint32)  # type: ignore[no-any-return]

    return find_parts


def lay_out(name: str, groups: Sequence[Group], cuts: Sequence[Sequence[int]]) -> list[OutShard]:
    """Return the output shards of all groups, in order."""
    shards = []
    for group, group_cuts in zip(groups, cuts, strict=True):
        shards += name_shards(name, group.split, [stop - start for start, stop in pairwise(group_cuts)])
    return shards


def note_fewer_shards(shards: Sequence[OutShard], wanted: int | None) -> list[str]:
    """Return a note for each split that has fewer shards than requested, because it has too few records."""
    notes = []
    for split in dict.fromkeys(shard.split for shard in shards):
        counts = [shard.num_records or 0 for shard in shards if shard.split == split]
        if wanted is not None and len(counts) < wanted:
            whose = "" if split is None else f"{split}: "
            notes.append(f"{whose}{len(counts)} shards instead of {wanted}, only {sum(counts)} records")
    return notes
