"""Batches of any size in file order, cut by bytes and decoded on several threads: no header is read twice.

A thread starts at the first frame in its range. Bytes that look like a frame may also lie within one, so its rows count
only if it started where the range before ended; otherwise the range is decoded again from there. Order and errors are
those of reading from the first byte to the last.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import run_ahead
from tfrkit.batches.stream import SizedBatch
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.storage.base import ByteSource

_RANGE_NBYTES = 8 << 20
_AHEAD_NBYTES = 64 << 20
_ALL = 1 << 62


class _Range(NamedTuple):
    shard: Shard
    data: ByteSource
    start: int
    stop: int


class _Decoded(NamedTuple):
    """The rows of the frames that start in a range, from `start` on; the last one ends at `stop`, or at a fault."""

    part: _Range
    start: int
    stop: int
    batch: Batch
    num_rows: int
    fault: _native.Fault | None = None
    error: Exception | None = None


def read_ranges(
    shards: Sequence[Shard], decoder: Decoder, *, threads: int, range_nbytes: int = _RANGE_NBYTES
) -> Iterator[SizedBatch]:
    """Yield the rows of uncompressed local shards; both checksums of each frame are compared, damage raises."""
    decode = _RangeDecoder(decoder, threads)
    jobs = (partial(decode.find, part) for shard in shards for part in _cut(shard, range_nbytes))
    shard: Shard | None = None
    expected = record = released = 0
    with closing(
        run_ahead(jobs, threads=threads, max_nbytes=_AHEAD_NBYTES, size_of=lambda found: found.stop - found.start)
    ) as results:
        for found in results:
            if found.part.shard is not shard:
                if shard is not None:
                    shard.reader.park()
                shard = found.part.shard
                expected = record = released = 0
            if expected >= found.part.stop:
                continue  # a frame that started before covers all of it
            if found.start != expected:
                found = decode(found.part, expected)
            if isinstance(found.error, MemoryError):
                raise locate_memory_error(
                    found.error, shard=shard.name, record=record, offset=expected, start=expected
                ) from None
            if found.error is not None:
                raise found.error
            if found.num_rows:
                yield found.batch, found.num_rows
            record += found.num_rows
            expected = found.stop
            if found.fault is not None:
                raise fault_to_error(
                    found.fault, shard=shard.name, record=record, offset=expected, columns=decoder.column_names
                )
            if expected - released >= LIMITS.window_nbytes:
                shard.reader.release(released, expected)
                released = expected
    if shard is not None:
        shard.reader.park()


def _cut(shard: Shard, range_nbytes: int) -> Iterator[_Range]:
    shard.start_reading()
    data = shard.reader.span()
    size = 0 if data is None else len(data)
    for start in range(0, size, range_nbytes):
        assert data is not None
        yield _Range(shard, data, start, min(size, start + range_nbytes))


class _RangeDecoder:
    """Decodes ranges, on any thread."""

    def __init__(self, decoder: Decoder, threads: int) -> None:
        self._decoder = decoder
        self._builders: queue.SimpleQueue[_native.ColumnBuilder] = queue.SimpleQueue()
        for _ in range(threads + 1):  # the consumer decodes, too
            self._builders.put(decoder.new_builder())

    def find(self, part: _Range) -> _Decoded:
        """Decode from the first frame in a range."""
        if part.start == 0:
            return self(part, 0)
        is_found, start = _native.find_next_frame(part.data, part.start, part.stop, True)
        return self(part, start) if is_found else _Decoded(part, part.stop, part.stop, {}, 0)

    def __call__(self, part: _Range, start: int) -> _Decoded:
        """Decode the frames from `start` on that begin before the end of a range."""
        builder = self._builders.get()
        try:
            _, stop, fault = builder.append_frames(part.data, start, part.stop, _ALL, "all")
            if fault is not None and part.stop < len(part.data):
                # A frame that begins in this range may end in the next one.
                _, stop, fault = builder.append_frames(part.data, stop, len(part.data), 1, "all")
            num_rows = builder.num_rows
            return _Decoded(part, start, stop, self._decoder.take_batch(builder), num_rows, fault)
        except (TfrkitError, OSError, MemoryError) as error:
            builder.finish()
            return _Decoded(part, start, start, {}, 0, error=error)
        finally:
            self._builders.put(builder)
