"""Shards cut into chunks: runs of frames that are decoded together, the same ones on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, Verify
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.storage.base import ByteSource

# Columns that a core keeps in its cache, long enough that the Python around them does not show.
CHUNK_RECORDS = 32768
CHUNK_NBYTES = 12 << 20
FRAME_NBYTES = 8 + 4 + 4  # length, its checksum, that of the payload


class Stretch(NamedTuple):
    """A run of frames with the sizes of its records; `record` and `offset` tell where in the shard it starts."""

    data: ByteSource
    start: int
    stop: int
    sizes: Int64Array
    record: int
    offset: int

    @property
    def num_frames(self) -> int:
        return len(self.sizes)


@dataclass
class Chunk:
    """Frames of one shard, which has a number among all; `place` is that of the chunk in the shard."""

    shard: Shard
    number: int
    place: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    num_records: int = 0
    nbytes: int = 0

    @property
    def sizes(self) -> Int64Array:
        """The sizes of the records."""
        return np.concatenate([part.sizes for part in self.stretches])

    def check(self, verify: Verify) -> None:
        """Compare the checksums, and raise where one does not hold."""
        for part in self.stretches:
            num_frames, start, fault = _native.check_frames(part.data, part.start, part.stop, part.num_frames, verify)
            if fault is not None:
                raise self.explain(part, fault, num_frames, start)

    def release(self) -> None:
        """Give the pages of a mapped file back to the system, once it was read."""
        for part in self.stretches if self.shard.compression == "none" else ():
            self.shard.reader.release(part.start, part.stop)

    def explain(self, part: Stretch, fault: _native.Fault, num_frames: int, start: int) -> TfrkitError:
        """The error for a fault at byte `start` of a stretch, after some of its frames."""
        record, offset = part.record + num_frames, part.offset + start - part.start
        return fault_to_error(fault, shard=self.shard.name, record=record, offset=offset)

    def locate(self, part: Stretch, error: MemoryError) -> MemoryError:
        """Where in a stretch memory ran out."""
        return locate_memory_error(
            error, shard=self.shard.name, record=part.record, offset=part.offset, start=part.start
        )

    def list_records(self) -> Int64Array:
        """The ordinals of the records in their shard."""
        return np.concatenate([part.record + np.arange(part.num_frames) for part in self.stretches])


def cut_chunks(shard: Shard, number: int, policy: Policy, verify: Verify) -> Iterator[Chunk]:
    """Walk the headers of a shard and say which frames are decoded together; damage goes to the policy."""
    chunk = Chunk(shard, number)
    stream = FrameStream(shard, policy, releases=False)  # a chunk is read later than it is cut

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        most = CHUNK_RECORDS - chunk.num_records
        near = min(stop, start + CHUNK_NBYTES - chunk.nbytes)
        offsets, next_start, fault = _native.index_frames(data, start, near, most, verify)
        if len(offsets) == 0 and near < stop:  # a record that is larger than what is left of the chunk
            offsets, next_start, fault = _native.index_frames(data, start, stop, 1, verify)
        if len(offsets):
            ends = np.empty(len(offsets), np.uint64)
            ends[:-1], ends[-1] = offsets[1:], next_start
            sizes = (ends - offsets).view(np.int64) - FRAME_NBYTES
            chunk.stretches.append(Stretch(data, start, next_start, sizes, stream.record, stream.offset))
            chunk.num_records += len(offsets)
            chunk.nbytes += next_start - start
        return len(offsets), next_start, fault

    while stream.step(consume):
        if chunk.num_records >= CHUNK_RECORDS or chunk.nbytes >= CHUNK_NBYTES:
            yield chunk
            chunk = Chunk(shard, number, chunk.place + 1)
    if chunk.num_records:
        yield chunk
