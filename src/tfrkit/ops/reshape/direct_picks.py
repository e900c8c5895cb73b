"""Random access to frames of files, with bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._types import UInt64Array
from tfrkit.container.faults import fault_to_error
from tfrkit.container.locate import load_frames, scan_frames
from tfrkit.container.records import Policy
from tfrkit.ops.reshape.shuffle_plan import ShufflePlan
from tfrkit.outputs.shard import Tally
from tfrkit.passes.frame_sources import FrameSources, UInt32Array
from tfrkit.progress import Progress
from tfrkit.storage.base import ByteSource

_CHUNK_NBYTES = 4 << 20
_POSITIONS_AT_ONCE = 4096
# Linux allows 65,530 maps per process by default.
_MAX_MAPPED = 4096


class Picked(NamedTuple):
    """A run of frames, the number of picked records, and the tally of the frames."""

    frames: Any
    num_picks: int
    tally: Tally


class DirectPicks:
    """Random access to the frames of uncompressed files; every checksum is verified.

    Touched pages of mapped files count as memory of this process; they are released after every `held_nbytes`.
    """

    def __init__(self, sources: FrameSources, *, held_nbytes: int) -> None:
        self._held_nbytes = held_nbytes
        self._names = sources.paths
        self._readers = [shard.reader for shard in sources.shards]
        self._offsets: list[UInt64Array] = []
        self._stops: list[int] = []
        self._mapped: OrderedDict[int, tuple[_native.FrameTable, ByteSource]] = OrderedDict()
        self._unreleased = 0
        for shard in sources.shards:
            index = load_frames(shard, Policy()) or scan_frames(shard, Policy())
            # An index file stays mapped: a copy would be 8 bytes per record of all files.
            self._offsets.append(index.offsets if len(sources.shards) <= _MAX_MAPPED else index.offsets.copy())
            self._stops.append(index.inflated_size)

    def gather(self, shards: UInt32Array, records: UInt64Array) -> Iterator[Picked]:
        """Yield the frames `records[i]` of shard `shards[i]`, in that order, a few megabytes at a time."""
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
            is_last = wanted + np.uint64(1) == len(offsets)
            after = offsets[np.where(is_last, wanted, wanted + np.uint64(1))]
            sizes[mine] = np.where(is_last, np.uint64(self._stops[shard]), after) - offsets[wanted]
        return sizes

    def _gather_run(self, shards: UInt32Array, records: UInt64Array) -> Picked:
        distinct, places = np.unique(shards, return_inverse=True)
        tables = [self._open(shard) for shard in distinct.tolist()]
        frames, digest, num_frames, fault = _native.gather_picks(
            tables, places.astype(np.uint32), np.ascontiguousarray(records), "all"
        )
        if fault is not None:
            shard, record = int(shards[num_frames]), int(records[num_frames])
            offset = int(self._offsets[shard][record])
            raise fault_to_error(fault, shard=self._names[shard], record=record, offset=offset)
        self._unreleased += len(frames)
        if self._unreleased >= self._held_nbytes:
            self._unreleased = 0
            for _, span in self._mapped.values():
                if isinstance(span, _native.FileMap):
                    span.release(0, len(span))
        return Picked(frames, len(records), Tally(num_frames, len(frames), digest))

    def _open(self, shard: int) -> _native.FrameTable:
        opened = self._mapped.get(shard)
        if opened is None:
            reader = self._readers[shard]
            span = reader.span()
            assert span is not None
            reader.park()  # the map needs no descriptor
            opened = self._mapped[shard] = _native.FrameTable(span, self._offsets[shard], "all"), span
            if len(self._mapped) > _MAX_MAPPED:
                self._mapped.popitem(last=False)
        else:
            self._mapped.move_to_end(shard)
        return opened[0]


def gather_shard(
    plan: ShufflePlan, number: int, picks: DirectPicks, put: Callable[[Any], None], progress: Progress
) -> Tally:
    """Put the frames of an output shard in the order of a plan; return their tally."""
    first, last = plan.shard_starts[number : number + 2]
    total = Tally()
    for start in range(first, last, _POSITIONS_AT_ONCE):
        at = plan.find_group(start)
        items = plan.permute(at, start, min(last, start + _POSITIONS_AT_ONCE))
        for picked in picks.gather(*plan.locate(at, items)):
            put(picked.frames)
            progress.advance(picked.num_picks, picked.tally.nbytes, 0)
            total += picked.tally
    return total
