"""Compare the stored bytes of two datasets in file order, without creating a record object for each equal record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, Record
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.passes.walk import walk_frames
from tfrkit.storage.base import ByteSource

# Size of a run: one run of each side fits into the cache, and the allocator reuses blocks of this size.
_RUN_NBYTES = 112 << 10
_RUN_FRAMES = 4096
_HEADER_NBYTES = 8 + 4  # length, its checksum
_FOOTER_NBYTES = 4  # the payload's checksum


class RecordRuns:
    """A cursor over the records of a dataset. The next `num_left` records are in one buffer; `fill` loads more."""

    def __init__(self, shards: Sequence[Shard], policy: Policy) -> None:
        self._runs = walk_frames(shards, policy, _native.index_frames, _RUN_FRAMES, _RUN_NBYTES)
        self._data: ByteSource = b""
        self._starts: Int64Array = np.zeros(1, np.int64)
        self._place = 0
        self.number = 0
        """Of the next record, over all shards."""
        self.nbytes = 0
        """Passed so far, as frames."""

    @property
    def num_left(self) -> int:
        return len(self._starts) - 1 - self._place

    def fill(self) -> bool:
        """Load the next run if the current one is used up; return False at the end of the dataset."""
        while not self.num_left:
            run = next(self._runs, None)
            if run is None:
                return False
            self._data, self._starts = run.data, np.append(run.taken, np.uint64(run.stop)).view(np.int64)
            self._place = 0
        return True

    def ends(self, count: int) -> Int64Array:
        """Return 0 and the end of each of the next `count` frames, as offsets from the start of the first one."""
        starts = self._starts[self._place : self._place + count + 1]
        ends: Int64Array = starts - starts[0]
        return ends

    def frames(self, count: int) -> bytes:
        """Return the stored bytes of the next `count` frames."""
        start, stop = self._starts[self._place], self._starts[self._place + count]
        return bytes(self._data[int(start) : int(stop)])

    def record(self, ahead: int) -> Record:
        """Return the payload of the record `ahead` positions after the next one."""
        start, stop = self._starts[self._place + ahead], self._starts[self._place + ahead + 1]
        return bytes(self._data[int(start) + _HEADER_NBYTES : int(stop) - _FOOTER_NBYTES])

    def skip(self, count: int) -> None:
        """Skip the next `count` records."""
        self.nbytes += int(self._starts[self._place + count] - self._starts[self._place])
        self._place += count
        self.number += count

    def skip_rest(self) -> int:
        """Skip all remaining records and return their count."""
        before = self.number
        while self.fill():
            self.skip(self.num_left)
        return self.number - before


def compare_ahead(a: RecordRuns, b: RecordRuns) -> tuple[int, list[int]]:
    """Compare the next records of both sides; return how many were compared, and the positions of those that differ.

    Positions count from the next record. REQUIRES: both sides have a next record.
    """
    count = min(a.num_left, b.num_left)
    ends_a, ends_b = a.ends(count), b.ends(count)
    other = np.flatnonzero(ends_a != ends_b)
    # Frames are at equal offsets up to the first one that differs in length.
    num_aligned = int(other[0]) - 1 if len(other) else count
    differing: list[int] = []
    frames_a, frames_b = a.frames(num_aligned), b.frames(num_aligned)
    if frames_a != frames_b:
        places = np.flatnonzero(np.frombuffer(frames_a, np.uint8) != np.frombuffer(frames_b, np.uint8))
        differing = np.unique(np.searchsorted(ends_a[: num_aligned + 1], places, "right") - 1).tolist()
    if len(other):
        differing.append(num_aligned)
        return num_aligned + 1, differing
    return count, differing
