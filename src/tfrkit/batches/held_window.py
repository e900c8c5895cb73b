"""The records of a shuffled window in memory: remote shards as stretches of frames, others as payloads."""

from __future__ import annotations

import numpy as np

from tfrkit import _native
from tfrkit._types import Record, UInt64Array, Verify
from tfrkit.batches.access import Records, ShardAccess, expect_records
from tfrkit.storage.remote import read_many


class HeldStretch:
    """Adjacent frames of a remote shard, read by one range. Numbers count from the first of them."""

    is_remote = True

    def __init__(self, access: ShardAccess, first: int, table: _native.FrameTable) -> None:
        self._access = access
        self._first = first
        self.table = table

    @property
    def name(self) -> str:
        return self._access.name

    def offset_of(self, record: int) -> int:
        return self._access.offset_of(self._first + record)

    def record_of(self, record: int) -> int:
        return self._access.record_of(self._first + record)

    def read_again(self, record: int) -> Record:
        return self._access.read_again(self._first + record)


class HeldWindow:
    """Stretches of all records of a window, by the number of their first record. Immutable."""

    def __init__(self, starts: UInt64Array, stops: UInt64Array, stretches: list[HeldStretch]) -> None:
        self._starts = starts
        self._stops = stops
        self.stretches = stretches

    def find(self, numbers: UInt64Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the stretch of each record, -1 for those of other windows."""
        if not len(self._starts):
            return np.full(len(numbers), -1, np.int64)
        places = np.searchsorted(self._starts, numbers, side="right").astype(np.int64) - 1
        return np.where((places >= 0) & (numbers < self._stops[places]), places, -1)

    def ordinals(self, numbers: UInt64Array, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> UInt64Array:
        """Return the number of each record in its stretch."""
        return numbers - self._starts[places]


def hold_stretches(records: Records, numbers: UInt64Array, verify: Verify) -> HeldWindow | None:
    """Read the records with these numbers from remote shards, adjacent ones together; None if one is compressed."""
    numbers = np.unique(numbers)
    shards, ordinals = records.locate_many(numbers)
    breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(shards) != 0)) + 1
    firsts = np.concatenate([[0], breaks]).astype(np.int64) if len(numbers) else np.empty(0, np.int64)
    lasts = np.append(firsts[1:], len(numbers)) - 1
    records.open_together(np.unique(shards).tolist())
    opened = {shard: records.open_shard(shard) for shard in np.unique(shards).tolist()}
    if not all(access.is_remote for access in opened.values()):
        return None
    wanted: dict[int, list[tuple[int, int]]] = {}
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        wanted.setdefault(int(shards[first]), []).append((int(ordinals[first]), int(ordinals[last]) + 1))
    expect_records((opened[shard], [at for span in spans for at in range(*span)]) for shard, spans in wanted.items())
    asked = [
        (opened[shard].reader, [opened[shard].span_of(start, stop) for start, stop in spans])
        for shard, spans in wanted.items()
    ]
    stretches = []
    for (shard, spans), pieces in zip(wanted.items(), read_many(asked), strict=True):
        access = opened[shard]
        for (start, stop), data in zip(spans, pieces, strict=True):
            offsets = access.offsets_of(start, stop)
            table = _native.FrameTable(data, offsets - offsets[:1], verify)
            stretches.append(HeldStretch(access, start, table))
    return HeldWindow(numbers[firsts], numbers[lasts] + np.uint64(1), stretches)
