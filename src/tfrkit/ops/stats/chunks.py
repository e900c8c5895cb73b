"""Cut shards into chunks: runs of frames that are decoded together, the same for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Int64Array, Verify
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.records import FrameStream, Policy, Stretch
from tfrkit.container.shards import Shard

# Size of a chunk, small enough that its columns stay in the cache.
CHUNK_NBYTES = 12 << 20


@dataclass
class Chunk:
    """Frames of one shard. `number` is the number of the shard, `place` the number of the chunk in the shard."""

    shard: Shard
    number: int
    place: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    num_records: int = 0
    nbytes: int = 0

    @property
    def sizes(self) -> Int64Array:
        """The sizes of the records."""
        return np.concatenate([part.taken for part in self.stretches])

    def list_records(self) -> Int64Array:
        """List the numbers of the records in their shard."""
        return np.concatenate([part.record + np.arange(part.num_frames) for part in self.stretches])

    def list_offsets(self) -> Int64Array:
        """List the inflated offsets of the frames in their shard."""
        parts = [part.offset + np.cumsum(part.taken + FRAME_OVERHEAD) for part in self.stretches]
        return np.concatenate(parts) - self.sizes - FRAME_OVERHEAD

    def read_at(self, offset: int) -> bytes:
        """Copy the record whose frame starts at an offset of the shard."""
        part = next(part for part in reversed(self.stretches) if part.offset <= offset)
        start = part.start + offset - part.offset
        head = bytes(part.data[start : start + 8])
        return bytes(part.data[start + 12 : start + 12 + int.from_bytes(head, "little")])


def cut_chunks(shard: Shard, number: int, policy: Policy, verify: Verify) -> Iterator[Chunk]:
    """Walk the headers of a shard and yield its chunks; damage is passed to the policy."""
    chunk = Chunk(shard, number)
    # A chunk is read later than it is cut, by native calls.
    stream = FrameStream(shard, policy, releases=False, checks_arrival=True)
    while stretch := stream.take(
        _native.index_frames, LIMITS.chunk_records - chunk.num_records, CHUNK_NBYTES - chunk.nbytes, verify=verify
    ):
        sizes = np.diff(stretch.taken, append=np.uint64(stretch.stop)).view(np.int64) - FRAME_OVERHEAD
        chunk.stretches.append(stretch._replace(taken=sizes))
        chunk.num_records += stretch.num_frames
        chunk.nbytes += stretch.nbytes
        if chunk.num_records >= LIMITS.chunk_records or chunk.nbytes >= CHUNK_NBYTES:
            yield chunk
            chunk = Chunk(shard, number, chunk.place + 1)
    if chunk.num_records:
        yield chunk
