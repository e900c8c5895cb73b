"""Frames of shards in file order, inflated and checked ahead on threads."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from tfrkit import _native
from tfrkit._limits import DEFAULT_AHEAD_NBYTES, LIMITS
from tfrkit._threads import Run, RunsAhead, choose_threads, map_ahead
from tfrkit._types import Verify
from tfrkit.container.locate import Count, count_frames
from tfrkit.container.records import NO_LIMIT, Finding, FrameStream, Policy, Stretch
from tfrkit.container.segments import Segment, Segments
from tfrkit.container.shard_list import ShardList
from tfrkit.container.shards import Shard, lead_shards
from tfrkit.errors import TfrkitError

# Stored bytes of a compressed shard are about this many times as many inflated ones.
_USUAL_RATIO = 4
# With more shards than this per thread, all threads are busy without the indexes of the shards.
_SHARDS_PER_THREAD = 4


class _Damage(NamedTuple):
    """Damage that a thread skipped. It is passed to the policy when the frames before it are taken."""

    finding: Finding
    error: TfrkitError
    nbytes: int = 0


class _LatePolicy(Policy):
    """Decides as another policy does, but keeps the damage that is skipped."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.verify, policy.on_error, search_nbytes=policy.search_nbytes)
        self.kept: list[_Damage] = []

    def take(self, finding: Finding, error: TfrkitError) -> None:
        if self.on_error == "raise":
            raise error
        self.kept.append(_Damage(finding, error))

    def take_kept(self) -> list[_Damage]:
        kept, self.kept = self.kept, []
        return kept


class _ReadSegment(NamedTuple):
    """A segment of a shard; without a stretch if it is damaged."""

    segments: Segments
    segment: Segment
    stretch: Stretch | None

    @property
    def nbytes(self) -> int:
        return 0 if self.stretch is None else self.stretch.nbytes


Item = Stretch | _Damage | _ReadSegment


class FramesAhead:
    """Stretches of frames in file order; threads inflate shards, and check the frames as `verify` says.

    Several shards are inflated at a time. If there are few, a shard whose index has checkpoints is inflated at several
    places at a time.
    Damage is raised, or skipped and recorded by the policy, when the frames before it were taken. Iterate once, and
    close it.
    """

    def __init__(
        self, shards: Sequence[Shard], policy: Policy, *, threads: int, max_nbytes: int, verify: Verify
    ) -> None:
        self._policy = policy
        self._verify: Verify = verify
        runs: list[Run[Item]] = []
        for shard in shards:
            segments = Segments.find(shard) if len(shards) < _SHARDS_PER_THREAD * threads else None
            if segments is None:
                runs.append(Run(partial(_read_shard, shard, policy, verify), _guess_nbytes(shard)))
                continue
            for segment in segments.listed:
                runs.append(Run(partial(_read_segment, segments, segment, verify), LIMITS.segment_nbytes))
        self._ahead: RunsAhead[Item] = RunsAhead(
            runs,
            threads=threads,
            max_nbytes=max_nbytes,
            step_nbytes=LIMITS.ahead_step_nbytes,
            size_of=lambda item: item.nbytes,
        )

    def __iter__(self) -> Iterator[Stretch]:
        damaged: Segments | None = None
        for item in self._ahead:
            if isinstance(item, _Damage):
                self._policy.take(item.finding, item.error)
            elif isinstance(item, Stretch):
                yield item
            elif item.segments is not damaged:
                segments, segment, stretch = item
                if stretch is not None:
                    segments.add(stretch)
                    yield stretch._replace(taken=None)
                is_last = segment is segments.listed[-1]
                if stretch is None or (is_last and not segments.is_sound()):
                    damaged = segments
                    yield from self._read_again(segments, segment.start if stretch is None else segment.stop)

    def _read_again(self, segments: Segments, record: int) -> Iterator[Stretch]:
        """Read a shard again on this thread, to report its damage in order; skip the frames already taken."""
        known = segments.offset_of(record)
        for item in _read_shard(segments.shard, self._policy, self._verify):
            if isinstance(item, _Damage):
                self._policy.take(item.finding, item.error)
            elif isinstance(item, Stretch) and item.offset + item.nbytes > known:
                lost = max(0, record - item.record)
                start = item.start + max(0, known - item.offset)
                yield item._replace(
                    start=start,
                    record=item.record + lost,
                    offset=max(known, item.offset),
                    num_frames=item.num_frames - lost,
                )

    def has_next(self) -> bool:
        """Whether the next stretch can be taken without waiting."""
        return self._ahead.has_next()

    def close(self) -> None:
        """Stop the threads and wait for them."""
        self._ahead.close()


def _read_segment(segments: Segments, segment: Segment, verify: Verify) -> Iterator[Item]:
    yield _ReadSegment(segments, segment, segments.read(segment, verify))


def _guess_nbytes(shard: Shard) -> int:
    return (shard.nbytes or 0) * (1 if shard.compression == "none" else _USUAL_RATIO)


def _read_shard(shard: Shard, policy: Policy, verify: Verify) -> Iterator[Item]:
    """Yield the frames of a shard in stretches, and the damage between them."""
    late = _LatePolicy(policy)
    # A compressed shard comes in windows of 1 MiB.
    max_nbytes = LIMITS.ahead_step_nbytes if shard.compression == "none" else NO_LIMIT
    try:
        stream = FrameStream(shard, late, releases=False)
        while stretch := stream.take(_native.check_frames, max_nbytes=max_nbytes, verify=verify):
            yield from late.take_kept()
            if shard.compression == "none" and verify != "all":
                _native.touch_pages(stretch.data, stretch.start, stretch.stop)
            yield stretch
    except TfrkitError:
        yield from late.take_kept()
        raise
    yield from late.take_kept()


def open_streams(
    shards: Sequence[Shard],
    policy: Policy,
    *,
    threads: int | None = None,
    leaves_payloads: bool = False,
    shares_plain: bool = False,
    columns: Sequence[str] = (),
) -> Generator[FrameStream, None, None]:
    """Yield streams that together have all frames in file order. Read each to its end before the next one.

    With several threads, compressed shards are inflated ahead; by default there is one thread per core, at most
    `LIMITS.max_inflaters`, and fewer for small files. They also check the frames, or with `leaves_payloads` only their
    headers. With `shares_plain` and an explicit `threads`, the threads also map and check uncompressed files.
    """
    if shares_plain and threads is not None and all(_is_plain(shard) for shard in shards):
        threads, max_nbytes = min(threads, LIMITS.max_inflaters), 2 * LIMITS.window_nbytes
    else:
        threads, max_nbytes = choose_inflaters(shards, threads), DEFAULT_AHEAD_NBYTES
    if threads <= 1:
        for shard in lead_shards(shards):
            yield FrameStream(shard, policy, columns=columns)
        return
    now: Verify = policy.verify
    later: Verify = "none"
    if leaves_payloads and policy.verify == "all":
        now, later = "lengths", "all"
    with closing(FramesAhead(shards, policy, threads=threads, max_nbytes=max_nbytes, verify=now)) as ahead:
        read: Stretch | None = None  # mapped frames whose pages are not released
        for stretch in ahead:
            yield FrameStream(stretch.shard, policy, within=stretch, columns=columns, verify=later)
            is_next = read is not None and read.data is stretch.data and read.stop == stretch.start
            read = read._replace(stop=stretch.stop) if read is not None and is_next else stretch
            if read.nbytes >= LIMITS.window_nbytes and isinstance(read.data, _native.FileMap):
                read.data.release(read.start, read.stop)
                read = None


def _is_plain(shard: Shard) -> bool:
    return shard.compression == "none" and shard.nbytes is not None and not shard.reader.is_remote


def count_ahead(
    shards: Sequence[Shard], policy: Policy, *, threads: int | None = None, stop: threading.Event | None = None
) -> Iterator[Count]:
    """Count the frames of each shard; several compressed or medium-sized shards are counted at a time.

    If `stop` is set meanwhile, InterruptedError is raised.
    """
    threads = max(1, _limit_to_work(shards, threads))
    sizes = [shard.nbytes or 0 for shard in shards]
    # Large shards are scanned one after the other, each with all cores.
    is_shared = len(sizes) > 1 and max(sizes) < 2 * LIMITS.scan_nbytes
    if is_shared and sum(sizes) > len(sizes) * LIMITS.shared_scan_nbytes:
        threads = max(threads, choose_threads(None))
    if policy.on_error == "skip":
        threads = 1  # findings are recorded in file order
    stop = stop or threading.Event()
    max_kept = LIMITS.max_kept_offsets // threads
    return map_ahead(
        lambda shard: count_frames(shard, policy, max_kept=max_kept, stop=stop), shards, threads=threads, stop=stop
    )


def choose_inflaters(shards: Sequence[Shard], threads: int | None) -> int:
    """Choose the number of threads that inflate ahead; 1 if it is not worth it, or if a shard is a pipe."""
    return min(_limit_to_work(shards, threads), LIMITS.max_inflaters)


def _limit_to_work(shards: Sequence[Shard], threads: int | None) -> int:
    listed = ShardList.of(shards)
    if listed.has_pipe or listed.compressions <= {"none"}:
        return 1
    nbytes = sum(shard.nbytes or 0 for shard in shards if shard.compression != "none")
    if threads is None:
        threads = min(choose_threads(None), nbytes // LIMITS.inflater_nbytes)
    return threads if nbytes else 1
