"""Columns of whole shards on several threads, cut by bytes: no header is looked at twice.

A thread takes a range of a shard and starts at the first frame it finds there. Bytes that look like a frame may
also lie within one, so what it made counts only if it started where the range before ended; else that range is read
again from there. Order and errors are those of reading from front to back.
"""

from __future__ import annotations

import itertools
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tfrkit import _native
from tfrkit._ahead import run_ahead
from tfrkit.batches.stream import SizedBatch, read_batches
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.storage.base import ByteSource

# Long enough that what a range costs in Python does not show; of small files shorter, so that all threads have some.
_MAX_RANGE_NBYTES = 16 << 20
_MIN_RANGE_NBYTES = 1 << 20
_RANGES_A_THREAD = 8
# Read at once: what a core has for itself, so that bytes are still there when they are looked at.
PIECE_NBYTES = 512 << 10
_AHEAD_NBYTES = 64 << 20
_RELEASED_NBYTES = 16 << 20
_TRUNCATED = ("truncated_header", "truncated_payload")
_NO_LIMIT = 1 << 62


class _OpenFile:
    """A descriptor of its own, or -1: that of the reader may be closed while threads are not done yet."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = os.dup(descriptor) if descriptor >= 0 and hasattr(os, "preadv") else -1

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)


@dataclass(frozen=True)
class _Range:
    shard: Shard
    data: ByteSource
    file: _OpenFile
    start: int
    stop: int


@dataclass(frozen=True)
class _Decoded:
    """Frames of a range: all that start in it, up to a fault where there is one."""

    range: _Range
    start: int
    stop: int
    batch: Batch
    num_rows: int
    fault: _native.Fault | None
    error: TfrkitError | MemoryError | None = None


def read_columns(
    shards: Sequence[Shard],
    decoder: Decoder,
    policy: Policy,
    *,
    batch_size: int,
    threads: int,
    range_nbytes: int | None = None,
    piece_nbytes: int = PIECE_NBYTES,
) -> Iterator[SizedBatch]:
    """Batches in file order, of any number of rows; `batch_size` where shards are compressed. Damage raises.

    REQUIRES: the policy raises at damage.
    """
    for is_plain, group in itertools.groupby(shards, _is_plain):
        if is_plain and threads > 1:
            plain = list(group)
            decode = _RangeDecoder(decoder, policy, piece_nbytes)
            yield from _read_plain(plain, decode, threads, range_nbytes or _choose_range(plain, threads))
        else:
            yield from read_batches(
                list(group), decoder, policy, batch_size=batch_size, drop_last=False, threads=threads
            )


def _is_plain(shard: Shard) -> bool:
    return shard.compression == "none" and shard.nbytes is not None


def _choose_range(shards: Sequence[Shard], threads: int) -> int:
    share = sum(shard.nbytes or 0 for shard in shards) // (_RANGES_A_THREAD * threads)
    return max(_MIN_RANGE_NBYTES, min(_MAX_RANGE_NBYTES, share))


def _read_plain(
    shards: Sequence[Shard], decode: _RangeDecoder, threads: int, range_nbytes: int
) -> Iterator[SizedBatch]:
    jobs: Iterator[Callable[[], _Decoded]] = (
        partial(decode, part) for shard in shards for part in _cut_ranges(shard, range_nbytes)
    )
    shard: Shard | None = None
    expected = record = released = 0
    for found in run_ahead(jobs, threads=threads, max_nbytes=_AHEAD_NBYTES, size_of=_measure):
        if found.range.shard is not shard:
            shard = found.range.shard
            expected = record = released = 0
        if found.start != expected:
            # Also where a frame that started before covers all of it: then nothing is left to read.
            found = decode.read_from(found.range, expected)
        if found.error is not None:
            raise found.error
        if found.num_rows:
            yield found.batch, found.num_rows
        record += found.num_rows
        expected = found.stop
        if found.fault is not None:
            raise fault_to_error(
                found.fault, shard=shard.name, record=record, offset=expected, columns=decode.column_names
            )
        data = found.range.data
        if expected - released >= _RELEASED_NBYTES and isinstance(data, _native.FileMap):
            data.release(released, expected)
            released = expected


@dataclass(frozen=True)
class _Worker:
    """What one thread at a time decodes with."""

    builder: _native.ColumnBuilder
    buffer: memoryview


class _RangeDecoder:
    """Decodes ranges, on any thread."""

    def __init__(self, decoder: Decoder, policy: Policy, piece_nbytes: int) -> None:
        self._decoder = decoder
        self._verify = policy.verify
        self._piece_nbytes = piece_nbytes
        self._workers: queue.SimpleQueue[_Worker] = queue.SimpleQueue()

    @property
    def column_names(self) -> Sequence[str]:
        return self._decoder.column_names

    def __call__(self, part: _Range) -> _Decoded:
        """What starts in a range, from the first thing that looks like a frame."""
        if part.start == 0:
            return self.read_from(part, 0)
        part.shard.reader.check_unchanged()
        is_found, start = _native.find_next_frame(part.data, part.start, len(part.data), True)
        return self.read_from(part, start if is_found else len(part.data))

    def read_from(self, part: _Range, start: int) -> _Decoded:
        """Frames from `start` on that begin before the end of a range."""
        part.shard.reader.check_unchanged()
        try:
            worker = self._workers.get_nowait()
        except queue.Empty:
            worker = _Worker(self._decoder.new_builder(), memoryview(bytearray(self._piece_nbytes)))
        builder = worker.builder
        try:
            after, fault = self._append_pieces(worker, part, start), None
            if after < part.stop:
                _, after, fault = builder.append_frames(part.data, after, part.stop, _NO_LIMIT, self._verify)
                if fault is not None and fault.kind in _TRUNCATED and part.stop < len(part.data):
                    # Cut off by the end of the range, not of the shard.
                    _, after, fault = builder.append_frames(part.data, after, len(part.data), 1, self._verify)
            num_rows = builder.num_rows
            batch = self._decoder.take_batch(builder)
        except TfrkitError as error:
            # Counts only if this was the place to start.
            return _Decoded(part, start, start, {}, 0, None, error)
        except MemoryError:
            located = locate_memory_error(MemoryError(), shard=part.shard.name, offset=start)
            return _Decoded(part, start, start, {}, 0, None, located)
        self._workers.put(worker)
        return _Decoded(part, start, after, batch, num_rows, fault)

    def _append_pieces(self, worker: _Worker, part: _Range, start: int) -> int:
        """Read frames into memory that stays in the cache; the offset of the first one that is left.

        Left is what ends this: a frame that does not fit, is damaged or lacks its end. The map tells which.
        """
        descriptor = part.file.descriptor
        buffer, num_kept, is_going = worker.buffer, 0, descriptor >= 0
        while is_going and start < part.stop:
            try:
                num_read = os.preadv(descriptor, [buffer[num_kept:]], start + num_kept)
            except OSError:
                return start
            stop = num_kept + num_read
            piece = buffer[:stop]
            last = part.stop - start  # where frames of other ranges begin
            _, after, fault = worker.builder.append_frames(piece, 0, min(stop, last), _NO_LIMIT, self._verify)
            if fault is not None and fault.kind in _TRUNCATED and last < stop:
                _, after, fault = worker.builder.append_frames(piece, after, stop, 1, self._verify)
            is_going = num_read > 0 and after > 0
            num_kept = stop - after
            buffer[:num_kept] = buffer[after:stop]
            start += after
        return start


def _cut_ranges(shard: Shard, range_nbytes: int) -> Iterator[_Range]:
    shard.start_reading()
    data = shard.reader.span()
    if data is None:
        return
    size, file = len(data), _OpenFile(shard.reader.descriptor())
    shard.reader.park()  # ranges keep the map and a descriptor until the last of them is read
    for start in range(0, size, range_nbytes):
        yield _Range(shard, data, file, start, min(size, start + range_nbytes))


def _measure(found: _Decoded) -> int:
    return found.stop - found.start
