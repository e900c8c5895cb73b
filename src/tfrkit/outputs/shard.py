"""Shards written by a verb: takes frames, and gives size, digest and an index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import count_cores
from tfrkit._types import UInt64Array
from tfrkit.container.block_deflate import BlockDeflater
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import Compression, Deflater, Level
from tfrkit.container.index import index_path
from tfrkit.container.locate import save_known_index
from tfrkit.errors import CorruptRecordError, StorageError
from tfrkit.outputs.write_queue import NewFile, OutputFile, WriteQueue
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.temporaries import link_file, move_file

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Smaller pieces are copied and joined: a view of one would keep its whole buffer in memory.
_SMALL_NBYTES = 256 << 10
# Limit of pieces waiting to be joined, over all shards; each shard gets its share, but at least some pages.
_ALL_SMALL_NBYTES = 64 << 20
_LEAST_SMALL_NBYTES = 16 << 10
_INTERRUPTIBLE_NBYTES = 256 << 10
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Tally:
    """Count, size and sum of digests of frames: equal for the same frames in any order."""

    num_records: int = 0
    nbytes: int = 0
    digest: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.num_records + other.num_records,
            self.nbytes + other.nbytes,
            (self.digest + other.digest) & _MASK,
        )


@dataclass(frozen=True)
class Written:
    """A finished shard: stored size and tally."""

    path: str
    nbytes: int
    tally: Tally


class OutputThreads:
    """The threads shared by all shards of one command: one that writes, and several that compress."""

    def __init__(self, jobs: int | None = None, *, queue_nbytes: int | None = None) -> None:
        self.jobs = jobs or count_cores()
        self.queue = WriteQueue(queue_nbytes or LIMITS.queue_nbytes)
        self.num_shards = 0  # being written

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads that compress."""
        from concurrent.futures import ThreadPoolExecutor  # takes 20 ms, and most outputs are not compressed

        return ThreadPoolExecutor(self.jobs, thread_name_prefix="tfrkit-deflate")

    def close(self) -> None:
        """End the threads; queued work is dropped."""
        if "pool" in vars(self):
            self.pool.shutdown(wait=True, cancel_futures=True)
        self.queue.close()


class ShardOutput:
    """One shard being written. Not thread-safe.

    Takes whole frames. The tally is computed from the frames passed to `write`. `then` is called with the path of the
    finished shard, on the writer thread. Messages use `name` instead of the path.
    """

    def __init__(
        self,
        path: str,
        threads: OutputThreads,
        *,
        compression: Compression = "none",
        level: Level = "default",
        name: str | None = None,
        descriptor: int | None = None,
        then: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self._name = name or path
        self._then = then
        self.tally = Tally()
        self.written: Written | None = None
        self._threads = threads
        self._deflater: BlockDeflater | Deflater | None = None
        if FORMATS[compression].is_deflate:
            self._deflater = BlockDeflater(compression, level, pool=threads.pool, ahead=2 * threads.jobs)
        elif compression != "none":
            self._deflater = Deflater(compression, level)
        self._is_ours = descriptor is None
        self._file: OutputFile | None = NewFile(path, name) if descriptor is None else OutputFile(descriptor, path)
        threads.num_shards += 1
        # Kept while frames are written, so that the index needs no scan.
        self._small = bytearray()
        self._offsets: list[UInt64Array] = []

    def write(self, frames: Any) -> None:
        """Append whole frames. The buffer must not change until the shard is finished."""
        nbytes = memoryview(frames).nbytes
        if not nbytes:
            return
        offsets, digest, stop, fault = _native.sum_frames(frames, 0, nbytes, 1 << 62, 1 << 62, "lengths")
        if fault is not None or stop != nbytes:
            raise CorruptRecordError("frames to write are incomplete", shard=self._name, offset=stop)
        if self._is_ours:
            self._offsets.append(offsets + np.uint64(self.tally.nbytes))
        self.tally += Tally(len(offsets), nbytes, digest)
        if nbytes < _SMALL_NBYTES:
            self._small += memoryview(frames).cast("B")
            share = max(_LEAST_SMALL_NBYTES, _ALL_SMALL_NBYTES // self._threads.num_shards)
            if len(self._small) >= min(_SMALL_NBYTES, share):
                self._flush_small()
            return
        self._flush_small()
        self._pass_on(frames)

    def finish(self) -> None:
        """Finish the shard after its last frames, on the writer thread; `written` is set once the queue is drained."""
        assert self._file is not None
        self._flush_small()
        self._threads.num_shards -= 1
        tail = [] if self._deflater is None else [self._deflater.finish()]
        self._threads.queue.put(self._file, tail, then=self._conclude)

    def _conclude(self) -> None:
        file = self._file
        assert file is not None
        if self._is_ours:
            try:
                os.fsync(file.descriptor)
            except OSError as error:
                raise explain_os_error(error, self._name, verb="write") from None
        self._close()
        if self._is_ours:
            checkpoints = self._deflater.checkpoints() if isinstance(self._deflater, BlockDeflater) else b""
            save_known_index(self.path, self._offsets, inflated_size=self.tally.nbytes, checkpoints=checkpoints)
        self._offsets.clear()
        self.written = Written(self.path, file.nbytes, self.tally)
        if self._then is not None:
            self._then(self.path)

    def discard(self) -> None:
        """Close the incomplete file."""
        self._close()

    def _flush_small(self) -> None:
        if self._small:
            small, self._small = self._small, bytearray()
            self._pass_on(small)

    def _pass_on(self, data: Any) -> None:
        assert self._file is not None
        if isinstance(self._deflater, BlockDeflater):
            data = self._deflater.write(memoryview(data).cast("B"))
        elif self._deflater is not None:
            # xz compresses about 2 MB a second; Ctrl-C takes effect between pieces.
            view = memoryview(data).cast("B")
            pieces = range(0, len(view), _INTERRUPTIBLE_NBYTES)
            data = b"".join([self._deflater.write(view[start : start + _INTERRUPTIBLE_NBYTES]) for start in pieces])
        if len(data):
            self._threads.queue.put(self._file, [data])

    def _close(self) -> None:
        file, self._file = self._file, None
        if isinstance(file, NewFile):
            with contextlib.suppress(OSError):  # it is synced already, or discarded
                file.close()


def add_tallies(tallies: Sequence[Tally]) -> Tally:
    """Return the sum of tallies."""
    total = Tally()
    for tally in tallies:
        total += tally
    return total


def take_worker_shard(path: str, place: str, *, keep: bool = False) -> None:
    """Move a shard that a worker wrote, and its index, to `place`; or link or copy it, to `keep` the file."""
    take = link_file if keep else move_file
    try:
        os.makedirs(os.path.dirname(index_path(place)), exist_ok=True)
        take(index_path(path), index_path(place))
        take(path, place)
    except FileNotFoundError:
        raise StorageError(
            "a worker wrote a shard that this machine does not see",
            shard=path,
            hint="mount the same disk at the same path on every node",
        ) from None
    except OSError as error:
        raise explain_os_error(error, place, verb="put the output in place") from None
