"""The shards that a verb reads: counts their records, and deals their frames to parts, with every checksum verified."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.batches.ahead import count_ahead
from tfrkit.container.compression import Compression
from tfrkit.container.faults import copy_readable
from tfrkit.container.locate import load_frames, scan_frames_once
from tfrkit.container.names import note_missing_shards
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard, find_shards, lead_shards
from tfrkit.engines.base import Tick
from tfrkit.errors import (
    CompressionError,
    ContainerError,
    CorruptRecordError,
    Hint,
    StorageError,
    TruncatedShardError,
)
from tfrkit.outputs.shard import Tally
from tfrkit.passes.shard_tasks import Workers
from tfrkit.progress import Progress
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.base import ByteSource
from tfrkit.storage.resolve import Address

UInt32Array = np.ndarray[Any, np.dtype[np.uint32]]

PartsOf = Callable[[int, int, int], UInt32Array]
"""(shard, start, stop) → the part of each record from start to stop; a part past the last leaves the record out."""

Put = Callable[[int, memoryview], None]
"""Takes some frames of one part."""

# Bytes dealt per step: each is read twice, so they should fit into the CPU cache.
_PIECE_NBYTES = 4 << 20


class Counted(NamedTuple):
    """Number of records of one shard, and the size of its frames after inflating."""

    num_records: int
    nbytes: int


@dataclass
class FrameSources:
    """Shards to read from start to end."""

    paths: list[str]
    shards: list[Shard]
    notes: list[str] = field(default_factory=list)
    _counts: list[Counted] | None = field(default=None, repr=False)

    @cached_property
    def sidecars(self) -> Sidecars:
        """The sidecars of the shards."""
        return Sidecars(self.paths)

    @property
    def is_pipe(self) -> bool:
        """Whether a shard is a pipe, which can be read only once."""
        return any(shard.nbytes is None for shard in self.shards)

    @property
    def stored_nbytes(self) -> int:
        """Size of the files."""
        return sum(shard.nbytes or 0 for shard in self.shards)

    @property
    def known_nbytes(self) -> int:
        """Size of all frames after inflating; before they are counted, the size of the files."""
        return self.stored_nbytes if self._counts is None else sum(count.nbytes for count in self._counts)

    @property
    def compression(self) -> Compression:
        """The common compression of nonempty shards; "none" if they differ."""
        found = {shard.compression for shard in self.shards if shard.nbytes != 0}
        return found.pop() if len(found) == 1 else "none"

    @property
    def counts(self) -> list[Counted]:
        """Number of records and inflated size of each shard, from its index, or else from its frame headers."""
        if self._counts is None:
            self._counts = count_shards(self.shards)
        return self._counts

    def count_on(self, workers: Workers | None) -> None:
        """Let the workers of a cluster count, each a shard at a time, unless there are none."""
        if workers is not None:
            self._counts = measure_on(workers, self.paths)

    @property
    def num_records(self) -> int:
        """Number of records in all shards."""
        return sum(count.num_records for count in self.counts)

    def begin(self, progress: Progress) -> None:
        """Report the totals to `progress`; compressed files are not inflated only to count them."""
        is_quick = not self.is_pipe and all(shard.compression == "none" for shard in self.shards)
        is_counted = self._counts is not None or is_quick
        progress.begin(self.num_records if is_counted else 0, self.known_nbytes)

    def require_files(self, verb: str) -> None:
        """Raise if a verb that reads twice is given a pipe."""
        for shard in self.shards:
            if shard.nbytes is None:
                raise StorageError(
                    f"{verb} expected files, got a pipe, whose records cannot be counted before they are read",
                    shard=shard.name,
                    hint="write it first: cat > x.tfrecord",
                )

    def close(self) -> None:
        """Close open files and maps."""
        for shard in self.shards:
            shard.close()


def count_shards(shards: Sequence[Shard]) -> list[Counted]:
    """Count the records and bytes of shards."""
    return [Counted(count.num_records, count.inflated_size) for count in count_ahead(shards, Policy())]


def measure_on(workers: Workers, paths: Sequence[str]) -> list[Counted]:
    """Let the workers of a cluster count the records and bytes of shards.

    Each of several parts counts all of them: another step would mean to run the parts once more.
    """
    tasks = [MeasureTask(path) for path in paths]
    if workers.keeps_files:
        return [task.run(lambda *_: None) for task in tasks]
    return list(workers.run(tasks, lambda *_: None))


@dataclass(frozen=True)
class MeasureTask:
    """Counts the records and bytes of one shard."""

    path: str

    def run(self, tick: Tick) -> Counted:
        """Return the counts."""
        with contextlib.closing(Shard.open(self.path)) as shard:
            return count_shards([shard])[0]


@contextlib.contextmanager
def open_sources(address: Address | Iterable[Address], *, incomplete: bool = False) -> Iterator[FrameSources]:
    """Open the shards of an address; they are closed at the end of the block.

    Missing shards of a set are an error, or with `incomplete` a note.
    """
    paths = find_shards(address, incomplete="ignore" if incomplete else "refuse")
    notes = [f"the set is not complete: {missing}" for missing in note_missing_shards(paths)] if incomplete else []
    sources = FrameSources(paths, Shard.open_all(paths), notes)
    try:
        yield sources
    except (CorruptRecordError, TruncatedShardError, CompressionError) as error:
        raise _advise(error) from None
    finally:
        sources.close()


def deal_frames(sources: FrameSources, parts_of: PartsOf | None, num_parts: int, put: Put, progress: Progress) -> Tally:
    """Read every frame once and pass it on by part; return the tally.

    Without `parts_of`, the part of a record is the number of its shard, or 0 if there is only one part. Within a part,
    frames keep the order of the sources.
    """
    total = Tally()
    for number, shard in enumerate(lead_shards(sources.shards)):
        num_records = None if parts_of is None else sources.counts[number].num_records
        first_part = number if parts_of is None and num_parts > 1 else 0
        stream = FrameStream(shard, Policy())
        for dealt in _deal_stream(stream, number, parts_of, 1 if parts_of is None else num_parts, num_records):
            total += dealt.tally
            progress.advance(dealt.num_frames, dealt.nbytes, 0)
            _pass_on(dealt, first_part, put)
    return total


def _pass_on(dealt: _Dealt, first_part: int, put: Put) -> None:
    view = memoryview(dealt.frames)
    start = 0
    for part in np.flatnonzero(dealt.part_nbytes).tolist():
        nbytes = int(dealt.part_nbytes[part])
        put(first_part + part, view[start : start + nbytes])
        start += nbytes


class FrameRange(NamedTuple):
    """Records `start` to `stop` of a file that has `num_records`."""

    path: str
    start: int
    stop: int
    num_records: int


def deal_range(wanted: FrameRange, cuts: Sequence[int], put: Put, progress: Progress, *, first_part: int = 0) -> Tally:
    """Pass on the frames of a range by part, as `deal_frames` does; part `first_part` + i ends before record `cuts[i]`.

    Only these records are read, and those before them if the file is compressed.
    """
    with contextlib.closing(Shard.open(wanted.path)) as shard:
        first_byte = first = 0
        if wanted.start and shard.compression == "none":
            index = load_frames(shard, Policy()) or scan_frames_once(shard, Policy())
            if wanted.start < index.num_records:
                first, first_byte = wanted.start, int(index.offsets[wanted.start])
        bounds = np.asarray(cuts, np.int64)

        def find_parts(_: int, start: int, stop: int) -> UInt32Array:
            numbers = np.arange(start, min(stop, wanted.stop), dtype=np.int64)
            parts: Any = np.searchsorted(bounds, numbers, side="right")
            parts[numbers < wanted.start] = len(cuts)
            return parts.astype(np.uint32)  # type: ignore[no-any-return]

        total = Tally()
        stream = FrameStream(shard, Policy(), start=first_byte, record=first)
        for dealt in _deal_stream(stream, 0, find_parts, len(cuts), wanted.num_records):
            _pass_on(dealt, first_part, put)
            total += dealt.tally
            progress.advance(dealt.tally.num_records, dealt.tally.nbytes, 0)
            if wanted.stop < wanted.num_records and stream.record >= wanted.stop:
                break
        return total


class _Dealt(NamedTuple):
    frames: Any
    part_nbytes: Any
    tally: Tally
    num_frames: int
    nbytes: int  # bytes read


def _deal_stream(
    stream: FrameStream, number: int, parts_of: PartsOf | None, num_parts: int, num_records: int | None
) -> Iterator[_Dealt]:
    shard = stream.shard
    parts, first = np.zeros(LIMITS.dealt_records if parts_of is None else 0, np.uint32), 0
    taken: _Dealt | None = None

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        nonlocal parts, first, taken
        if parts_of is not None and stream.record >= first + len(parts):
            first = stream.record
            parts = parts_of(number, first, min(first + LIMITS.dealt_records, num_records or 0))
            if not len(parts):
                raise StorageError(f"the file changed, it has more than the {num_records} records", shard=shard.name)
        wanted = parts if parts_of is None else parts[stream.record - first :]
        frames, part_nbytes, digest, num_frames, after, fault = _native.deal_frames(
            data, start, stop, wanted, num_parts, _PIECE_NBYTES, "all"
        )
        kept = int((wanted[:num_frames] < num_parts).sum())
        taken = _Dealt(frames, part_nbytes, Tally(kept, len(frames), digest), num_frames, after - start)
        return num_frames, after, fault

    while stream.step(consume):
        assert taken is not None
        yield taken
        taken = None
    if num_records is not None and stream.record != num_records:
        raise StorageError(
            f"the file changed, {stream.record} records, expected {num_records} as counted before", shard=shard.name
        )


def _advise(error: ContainerError) -> ContainerError:
    return error.replace(hint=Hint("nothing was written", copy_readable(error.shard or "-")))
