"""Batches in file order, on one thread or several."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from tfrkit import _native
from tfrkit._threads import submit
from tfrkit.batches.ahead import open_streams
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.records import MAX_AGAIN, Policy, Stretch
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.storage.base import ByteSource

if TYPE_CHECKING:
    from concurrent.futures import Future

# Bytes per task of a thread: about the size of a core's cache.
_JOB_NBYTES = 1 << 20

SizedBatch = tuple[Batch, int]
"""A batch and its number of rows, which is unknown from a batch without features."""

_Numbered = tuple[int, "SizedBatch | TfrkitError"]
"""A batch with its number, or the error in its place."""


def read_batches(
    shards: Sequence[Shard],
    decoder: Decoder,
    policy: Policy,
    *,
    batch_size: int,
    drop_last: bool,
    threads: int,
    inflaters: int | None = None,
    skip: int = 0,
    lost: list[int] | None = None,
) -> Iterator[SizedBatch]:
    """Yield batches of `batch_size` rows in file order. A batch may continue into the next shard.

    `inflaters` is the number of threads that inflate compressed shards ahead, by default that of `threads`.
    The first `skip` rows are read and dropped. For each record that is skipped although its frame is sound, or in a
    pipe for any skipped record, the number of rows before it is appended to `lost`. With `on_error="skip"` one thread
    is used: the frames of a batch are known only after decoding.
    """
    if threads == 1 or skip or policy.on_error == "skip":
        batches = _read_serial(shards, decoder, policy, batch_size, skip, inflaters or threads, lost)
    else:
        batches = _read_threaded(shards, decoder, policy, batch_size, threads)
    for batch, num_rows in batches:
        if num_rows == batch_size or not drop_last:
            yield batch, num_rows


def _read_serial(
    shards: Sequence[Shard],
    decoder: Decoder,
    policy: Policy,
    batch_size: int,
    skip: int,
    inflaters: int,
    lost: list[int] | None,
) -> Iterator[SizedBatch]:
    builder = decoder.new_builder()
    num_read = 0  # rows, those of `skip` counted
    # Skipped rows form their own batches. The last of them ends at the start of the first returned batch.
    wanted = min(batch_size, skip) or batch_size

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        return builder.append_frames(data, start, stop, wanted - builder.num_rows, stream.verify)

    with closing(open_streams(shards, policy, threads=inflaters, columns=decoder.column_names)) as streams:
        for stream in streams:
            while True:
                record, num_unusable = stream.record, stream.num_unusable
                num_frames = stream.step(consume)
                if lost is not None and stream.record != record + num_frames:
                    is_pipe = stream.shard.nbytes is None
                    num_lost = stream.record - record - num_frames if is_pipe else stream.num_unusable - num_unusable
                    lost += [num_read] * num_lost
                num_read += num_frames
                if not num_frames:
                    break
                if builder.num_rows < wanted:
                    continue
                batch = decoder.take_batch(builder)
                if skip:
                    skip -= wanted
                    wanted = min(batch_size, skip) or batch_size
                else:
                    yield batch, batch_size
    if builder.num_rows and not skip:
        num_rows = builder.num_rows
        yield decoder.take_batch(builder), num_rows


def _cut_batches(
    shards: Sequence[Shard], policy: Policy, batch_size: int, threads: int
) -> Generator[list[Stretch], None, None]:
    """Walk the headers only and yield the frames of each batch."""
    batch: list[Stretch] = []
    missing = batch_size

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        verify = "none" if policy.verify == "none" else "lengths"
        num_frames, next_start, fault = _native.check_frames(data, start, stop, missing, verify)
        if num_frames:
            batch.append(Stretch(stream.shard, data, start, next_start, stream.record, stream.offset, num_frames))
        return num_frames, next_start, fault

    with closing(open_streams(shards, policy, threads=threads, leaves_payloads=True)) as streams:
        for stream in streams:
            while stream.step(consume):
                missing -= batch[-1].num_frames
                if missing == 0:
                    yield batch
                    batch, missing = [], batch_size
    if batch:
        yield batch


def _append(builder: _native.ColumnBuilder, part: Stretch, decoder: Decoder, policy: Policy) -> None:
    """Decode the frames of a stretch; remote bytes that fail a checksum are requested again."""
    num_again = 0
    while True:
        try:
            num_rows, after, fault = builder.append_frames(
                part.data, part.start, part.stop, part.num_frames, policy.verify
            )
        except MemoryError as error:
            raise locate_memory_error(
                error, shard=part.shard.name, record=part.record, offset=part.offset, start=part.start
            ) from None
        if fault is None:
            return
        num_again = num_again + 1 if num_rows == 0 else 1
        again = None if num_again > MAX_AGAIN else part.fetch_again(fault, num_rows, after)
        if again is None:
            raise fault_to_error(
                fault,
                shard=part.shard.name,
                record=part.record + num_rows,
                offset=part.offset + after - part.start,
                columns=decoder.column_names,
            )
        part = again


def _read_threaded(
    shards: Sequence[Shard], decoder: Decoder, policy: Policy, batch_size: int, threads: int
) -> Iterator[SizedBatch]:
    from concurrent.futures import ThreadPoolExecutor  # imported only by threaded readers

    builders: queue.SimpleQueue[_native.ColumnBuilder] = queue.SimpleQueue()
    for _ in range(threads + 1):
        builders.put(decoder.new_builder())

    def decode(stretches: list[Stretch]) -> SizedBatch:
        builder = builders.get()
        try:
            for part in stretches:
                part.shard.reader.check_unchanged()
                _append(builder, part, decoder, policy)
            num_rows = builder.num_rows
            return decoder.take_batch(builder), num_rows
        except BaseException:
            builder.finish()
            raise
        finally:
            builders.put(builder)

    cut = _cut_batches(shards, policy, batch_size, threads)
    cutting = threading.Lock()
    num_cut = 0

    def cut_and_decode() -> list[_Numbered]:
        """Decode the next batches and return them with their numbers; empty at the end.

        The thread that walks the headers of a batch also decodes it, while its bytes are in the cache. It takes several
        small batches at a time, because passing a task to a thread costs as much as decoding a hundred rows.
        """
        nonlocal num_cut
        taken: list[tuple[int, list[Stretch]]] = []
        results: list[_Numbered] = []
        nbytes = 0
        with cutting:
            try:
                while nbytes < _JOB_NBYTES and (stretches := next(cut, None)) is not None:
                    nbytes += sum(part.nbytes for part in stretches)
                    taken.append((num_cut, stretches))
                    num_cut += 1
            except TfrkitError as error:
                results.append((num_cut, error))
                num_cut += 1
        for number, stretches in taken:
            try:
                results.append((number, decode(stretches)))
            except TfrkitError as error:
                results.append((number, error))
        return results

    pending: deque[Future[list[_Numbered]]] = deque()
    done: dict[int, SizedBatch | TfrkitError] = {}
    executor = ThreadPoolExecutor(threads, thread_name_prefix="tfrkit-batch")
    try:
        pending.extend(submit(executor, cut_and_decode) for _ in range(2 * threads))
        wanted = 0
        while pending or wanted in done:
            if wanted not in done:
                results = pending.popleft().result()
                if results:
                    done.update(results)
                    pending.append(submit(executor, cut_and_decode))
                continue
            # Batches are yielded in order, so rows before damage are yielded before it is raised.
            batch = done.pop(wanted)
            if isinstance(batch, TfrkitError):
                raise batch
            yield batch
            wanted += 1
    finally:
        # No thread may keep running, even if the consumer stops early.
        for future in pending:
            future.cancel()
        executor.shutdown(wait=True)
        cut.close()
