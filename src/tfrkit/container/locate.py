"""Find the frames of a shard, from its index or by a scan of its headers."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import choose_threads, map_ahead
from tfrkit._types import UInt64Array, Verify
from tfrkit.container.index import (
    ShardIndex,
    cache_path,
    fingerprint_shard,
    index_path,
    load_index,
    load_remembered_index,
    write_index,
)
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.seekable import SeekableInflate
from tfrkit.container.shards import Shard
from tfrkit.errors import StaleIndexError, StaleIndexWarning, StorageError, warn_caller
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import ByteSource

# `count_frames` keeps the offsets of at most this many frames (32 MiB) for the cache: a few megabytes of gzip may hold
# hundreds of millions of frames.
KEPT_RECORDS = 1 << 22


@dataclass(frozen=True)
class Count:
    """Number of frames of a shard and their inflated size, with their offsets unless there are too many."""

    num_records: int
    inflated_size: int
    index: ShardIndex | None
    is_scanned: bool = True


def load_frames(shard: Shard, policy: Policy, *, is_lazy: bool = False) -> ShardIndex | None:
    """Load frame offsets from the index next to the shard or in the user's cache; None if there is none.

    With `is_lazy` offsets are checked by `ShardIndex.require` before they are used.

    A stale index next to the shard is not used and gives a warning. If the policy skips damage, no index is used,
    because only reading shows which frames are valid.
    """
    if policy.on_error != "raise":
        return None
    try:
        return load_index(shard.reader, is_lazy=is_lazy)
    except StaleIndexError as error:
        warn_of_stale(error)
        return load_remembered_index(shard.reader, is_lazy=is_lazy)
    finally:
        shard.reader.park()


def warn_of_stale(error: StaleIndexError) -> None:
    """Warn that a stale index is not used, with the reason."""
    hint = f"\n  {error.hint}" if error.hint else ""
    warn_caller(StaleIndexWarning(f"{error.what}, not used - at {error.shard}{hint}"))


def count_frames(
    shard: Shard, policy: Policy, *, max_kept: int = KEPT_RECORDS, stop: threading.Event | None = None
) -> Count:
    """Count frames from the index, else by a scan that keeps at most `max_kept` offsets.

    If `stop` is set meanwhile, the scan ends early and InterruptedError is raised.
    """
    index = load_frames(shard, policy, is_lazy=True)
    if index is not None:
        return Count(index.num_records, index.inflated_size, index, is_scanned=False)
    return _scan_once(shard, policy, max_kept, stop)


def scan_frames(shard: Shard, policy: Policy) -> ShardIndex:
    """Find every frame by its header.

    Only the headers of an uncompressed shard are read; a compressed one is inflated once. Damage is handled by the
    policy: if it is skipped, payloads are also checked, so that only valid frames are listed.
    """
    index = _scan(shard, policy, None).index
    assert index is not None
    return index


def scan_frames_once(shard: Shard, policy: Policy) -> ShardIndex:
    """Scan the frames; if the scan was slow, save the index in the user's cache."""
    index = _scan_once(shard, policy, None).index
    assert index is not None
    return index


def _scan_once(shard: Shard, policy: Policy, max_kept: int | None, stop: threading.Event | None = None) -> Count:
    started = time.monotonic()
    count = _scan(shard, policy, max_kept, stop)
    took_long = time.monotonic() - started > LIMITS.slow_scan_seconds
    if count.index is not None and took_long and shard.nbytes is not None and policy.on_error == "raise":
        # A failed cache write is ignored, because the scan itself succeeded.
        with contextlib.suppress(StorageError, OSError):
            write_index(cache_path(shard.name), count.index, fingerprint_shard(shard.reader))
            # Mapped offsets instead of those in memory: 8 bytes a record.
            count = replace(count, index=load_remembered_index(shard.reader) or count.index)
        shard.reader.park()
    return count


def _scan(shard: Shard, policy: Policy, max_kept: int | None, stop: threading.Event | None = None) -> Count:
    verify: Verify = "lengths" if policy.on_error == "raise" and policy.verify != "none" else policy.verify
    found = _scan_parts(shard, verify, max_kept, stop) if policy.on_error == "raise" else None
    if found is not None:
        return found
    stream = FrameStream(shard, policy)
    pieces: list[UInt64Array] = []
    skipped: list[int] = []
    num_records = 0
    is_kept = True
    while stretch := stream.take(_native.index_frames if is_kept else _native.check_frames, verify=verify):
        skipped += [num_records] * (stretch.record - num_records - len(skipped))
        num_records += stretch.num_frames
        _check_stop(stop)
        if is_kept and max_kept is not None and num_records > max_kept:
            is_kept = False
            pieces.clear()
        elif is_kept:
            base = stretch.offset - stretch.start
            pieces.append(stretch.taken + np.uint64(base) if base else stretch.taken)
    return _make_count(shard, num_records, pieces if is_kept else None, stream.offset, skipped)


def _make_count(
    shard: Shard, num_records: int, pieces: list[UInt64Array] | None, size: int, skipped: Sequence[int] = ()
) -> Count:
    """Join the offsets, and drop each piece once it is copied, so that only one copy of all is in memory."""
    if pieces is None:
        return Count(num_records, size, None)
    offsets = np.empty(num_records, np.uint64)
    stop = num_records
    while pieces:
        piece = pieces.pop()
        offsets[stop - len(piece) : stop] = piece
        stop -= len(piece)
    index = ShardIndex(
        num_records=num_records,
        offsets=offsets,
        compression=shard.compression,
        inflated_size=size,
        checkpoints=None,
        shard_nbytes=shard.nbytes or 0,
        skipped=tuple(skipped),
    )
    return Count(num_records, size, index)


class _DamagedError(Exception):
    """A header is damaged: the scan on one thread reports it."""


@dataclass
class _Walk:
    """Frames that follow one another from `start` to `stop`; `pieces` has their offsets."""

    start: int
    stop: int
    pieces: list[UInt64Array]
    num_records: int = 0


class _PartScan:
    """Finds the frames of parts of a mapped shard, on any thread."""

    def __init__(self, shard: Shard, span: ByteSource, verify: Verify, max_kept: int | None) -> None:
        self._shard = shard
        self._span = span
        self._verify: Verify = verify
        self._max_kept = max_kept
        self.is_kept = True
        self.num_records = 0  # of all walks; threads may lose a few of it, which only moves the limit

    def find(self, bounds: tuple[int, int]) -> _Walk | None:
        """Walk the frames that start in a part; None if no frame was found near its start."""
        start, stop = bounds
        if start:
            limit = min(stop, start + LIMITS.scan_search_nbytes)
            is_found, start = _native.FrameSearch(self._span).find_next(start, limit, True, len(self._span))
            if not is_found:
                return None
        return self.walk(start, stop)

    def walk(self, start: int, stop: int) -> _Walk:
        """Walk the frames that start in a range, the first at its start."""
        walk = _Walk(start, start, [])
        while walk.stop < stop:
            read = _native.index_frames if self.is_kept else _native.check_frames
            near = min(stop, walk.stop + LIMITS.window_nbytes)
            found, after, _ = read(self._span, walk.stop, near, 1 << 62, self._verify)
            if after == walk.stop:  # a frame that ends after the range or the window, or damage
                found, after, fault = read(self._span, walk.stop, len(self._span), 1, self._verify)
                if fault is not None:
                    raise _DamagedError
            self._shard.reader.release(walk.stop, after)
            walk.stop = after
            num_frames = found if isinstance(found, int) else len(found)
            walk.num_records += num_frames
            self.num_records += num_frames
            if self._max_kept is not None and self.num_records > self._max_kept:
                self.is_kept = False
            if not isinstance(found, int) and self.is_kept:
                walk.pieces.append(found)
            else:
                walk.pieces.clear()
        return walk


def _check_stop(stop: threading.Event | None) -> None:
    if stop is not None and stop.is_set():
        raise InterruptedError("the count was stopped")


def _scan_parts(
    shard: Shard, verify: Verify, max_kept: int | None, stop: threading.Event | None = None
) -> Count | None:
    """Find the frames of a large mapped shard with all cores; None if one thread must do it, also for damage.

    Each thread searches the first frame of a part and walks from there. A part counts only if the walk from the start
    of the shard arrives exactly at its first frame, so bytes in a record that look like frames are never listed.
    """
    span = shard.reader.span() if shard.compression == "none" else None
    if span is None or len(span) < 2 * LIMITS.scan_nbytes or (threads := choose_threads(None)) == 1:
        return None
    shard.start_reading()
    scan = _PartScan(shard, span, verify, max_kept)
    pieces: list[UInt64Array] = []
    position = num_records = 0

    def add(walk: _Walk) -> None:
        nonlocal position, num_records
        pieces.extend(walk.pieces)
        num_records += walk.num_records
        position = walk.stop

    bounds = [*range(0, len(span) - LIMITS.scan_nbytes, LIMITS.scan_nbytes), len(span)]
    walks = map_ahead(scan.find, pairwise(bounds), threads=threads)
    try:
        for walk in walks:
            _check_stop(stop)
            if walk is not None and position < walk.start:
                add(scan.walk(position, walk.start))
            if walk is not None and position == walk.start:
                add(walk)
        if position < len(span):
            add(scan.walk(position, len(span)))
    except _DamagedError:
        return None
    finally:
        walks.close()
    shard.reader.check_unchanged()
    shard.reader.park()
    is_kept = scan.is_kept and (max_kept is None or num_records <= max_kept)
    return _make_count(shard, num_records, pieces if is_kept else None, position)


def save_known_index(
    path: str, offsets: Sequence[UInt64Array], *, inflated_size: int | None = None, checkpoints: bytes = b""
) -> None:
    """Write the index of a new shard from the offsets of its frames, without reading it.

    REQUIRES: the shard holds these frames and nothing else; `inflated_size` is given for a compressed shard.
    """
    starts = np.concatenate(offsets) if offsets else np.empty(0, np.uint64)
    with contextlib.closing(Shard.open(path)) as shard:
        nbytes = shard.nbytes or 0
        index = ShardIndex(
            num_records=len(starts),
            offsets=starts,
            compression=shard.compression,
            inflated_size=nbytes if inflated_size is None else inflated_size,
            checkpoints=checkpoints or None,
            shard_nbytes=nbytes,
        )
        write_index(index_path(path), index, fingerprint_shard(shard.reader))


def save_index(path: str) -> tuple[ShardIndex, str]:
    """Scan a shard and write its index next to it; return the index and its path."""
    with contextlib.closing(Shard.open(path)) as shard:
        if shard.nbytes is None:
            raise StorageError("expected a file, got a pipe, which has no index", shard=path)
        index = scan_frames(shard, Policy())
        if shard.compression != "none":
            inflate = SeekableInflate(shard.reader, shard.compression, inflated_size=index.inflated_size)
            index = replace(index, checkpoints=inflate.export() or None)
            inflate.close()
        # A remote folder is only read: the index goes to the user's cache, where readers look next.
        target = cache_path(path) if has_scheme(path) else index_path(os.fspath(path))
        write_index(target, index, fingerprint_shard(shard.reader))
        return index, target
