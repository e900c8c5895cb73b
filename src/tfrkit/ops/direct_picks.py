"""Frames picked from their files in any order, without holding the files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._types import UInt64Array
from tfrkit.container.faults import fault_to_error
from tfrkit.container.locate import load_frames, scan_frames
from tfrkit.container.records import Policy
from tfrkit.ops.frame_sources import FrameSources, UInt32Array
from tfrkit.ops.shard_output import Tally

_CHUNK_NBYTES = 4 << 20


class Picked(NamedTuple):
    """A run of frames: how many picks it is, and what to say of it."""

    frames: Any
    num_picks: int
    tally: Tally


class DirectPicks:
    """Random access to the frames of uncompressed files, every checksum compared.

    Pages of mapped files count as memory of this process while they are mapped; they are let go after `held_nbytes`.
    """

    def __init__(self, sources: FrameSources, *, held_nbytes: int) -> None:
        self._held_nbytes = held_nbytes
        self._names = sources.paths
        self._readers = [shard.reader for shard in sources.shards]
        self._offsets: list[UInt64Array] = []
        self._tables: list[_native.FrameTable] = []
        self._unreleased = 0
        for shard in sources.shards:
            index = load_frames(shard, Policy()) or scan_frames(shard, Policy())
            span = shard.reader.span()
            assert span is not None
            self._tables.append(_native.FrameTable(span, index.offsets, "all"))
            self._offsets.append(np.append(index.offsets, np.uint64(index.inflated_size)))

    def gather(self, shards: UInt32Array, records: UInt64Array) -> Iterator[Picked]:
        """The frames `records[i]` of shard `shards[i]`, in that order, a few megabytes at a time."""
        stops = np.cumsum(self._measure(shards, records))
        start = 0
        while start < len(records):
            before = stops[start - 1] if start else np.uint64(0)
            after = int(np.searchsorted(stops, before + np.uint64(_CHUNK_NBYTES), side="right"))
            after = max(after, start + 1)
            yield self._gather_run(shards[start:after], records[start:after])
            start = after

    def _measure(self, shards: UInt32Array, records: UInt64Array) -> UInt64Array:
        sizes = np.empty(len(records), np.uint64)
        for shard in np.unique(shards).tolist():
            mine = shards == shard
            offsets, wanted = self._offsets[shard], records[mine]
            sizes[mine] = offsets[wanted + np.uint64(1)] - offsets[wanted]
        return sizes

    def _gather_run(self, shards: UInt32Array, records: UInt64Array) -> Picked:
        frames, digest, num_frames, fault = _native.gather_picks(
            self._tables, np.ascontiguousarray(shards), np.ascontiguousarray(records), "all"
        )
        if fault is not None:
            shard, record = int(shards[num_frames]), int(records[num_frames])
            offset = int(self._offsets[shard][record])
            raise fault_to_error(fault, shard=self._names[shard], record=record, offset=offset)
        self._unreleased += len(frames)
        if self._unreleased >= self._held_nbytes:
            self._unreleased = 0
            for reader in self._readers:
                reader.release(0, reader.size or 0)
        return Picked(frames, len(records), Tally(num_frames, len(frames), digest))
