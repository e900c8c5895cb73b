"""Find the frames of a shard, from its index or by a scan of its headers."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
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
from tfrkit.errors import StaleIndexError, StaleIndexWarning, StorageError

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


def load_frames(shard: Shard, policy: Policy) -> ShardIndex | None:
    """Load frame offsets from the index next to the shard or in the user's cache; None if there is none.

    A stale index next to the shard is not used and gives a warning. If the policy skips damage, no index is used,
    because only reading shows which frames are valid.
    """
    if policy.on_error != "raise":
        return None
    try:
        return load_index(shard.reader)
    except StaleIndexError as error:
        warn_of_stale(error)
        return load_remembered_index(shard.reader)
    finally:
        shard.reader.park()


def warn_of_stale(error: StaleIndexError) -> None:
    """Warn that a stale index is not used, with the reason."""
    hint = f"\n  {error.hint}" if error.hint else ""
    warnings.warn(StaleIndexWarning(f"{error.what}, not used - at {error.shard}{hint}"), stacklevel=3)


def count_frames(shard: Shard, policy: Policy, *, max_kept: int = KEPT_RECORDS) -> Count:
    """Count frames from the index, else by a scan that keeps at most `max_kept` offsets."""
    index = load_frames(shard, policy)
    if index is not None:
        return Count(index.num_records, index.inflated_size, index, is_scanned=False)
    return _scan_once(shard, policy, max_kept)


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


def _scan_once(shard: Shard, policy: Policy, max_kept: int | None) -> Count:
    started = time.monotonic()
    count = _scan(shard, policy, max_kept)
    took_long = time.monotonic() - started > LIMITS.slow_scan_seconds
    if count.index is not None and took_long and shard.nbytes is not None and policy.on_error == "raise":
        # A failed cache write is ignored, because the scan itself succeeded.
        with contextlib.suppress(StorageError, OSError):
            write_index(cache_path(shard.name), count.index, fingerprint_shard(shard.reader))
        shard.reader.park()
    return count


def _scan(shard: Shard, policy: Policy, max_kept: int | None) -> Count:
    verify: Verify = "lengths" if policy.on_error == "raise" and policy.verify != "none" else policy.verify
    stream = FrameStream(shard, policy)
    pieces: list[UInt64Array] = []
    num_records = 0
    is_kept = True
    while stretch := stream.take(_native.index_frames if is_kept else _native.check_frames, verify=verify):
        num_records += stretch.num_frames
        if is_kept and max_kept is not None and num_records > max_kept:
            is_kept = False
            pieces.clear()
        elif is_kept:
            base = stretch.offset - stretch.start
            pieces.append(stretch.taken + np.uint64(base) if base else stretch.taken)
    index = None
    if is_kept:
        index = ShardIndex(
            num_records=num_records,
            offsets=np.concatenate(pieces) if pieces else np.empty(0, np.uint64),
            compression=shard.compression,
            inflated_size=stream.offset,
            checkpoints=None,
            shard_nbytes=shard.nbytes or 0,
        )
    return Count(num_records, stream.offset, index)


def save_known_index(
    path: str, offsets: Sequence[UInt64Array], *, inflated_size: int | None = None, checkpoints: bytes = b""
) -> None:
    """Write the index of a new shard from the offsets of its frames, without reading it.

    REQUIRES: the shard holds these frames and nothing else; `inflated_size` is given for a compressed shard.
    """
    starts = np.concatenate(offsets) if offsets else np.empty(0, np.uint64)
    shard = Shard.open(path)
    try:
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
    finally:
        shard.close()


def save_index(path: str) -> tuple[ShardIndex, str]:
    """Scan a shard and write its index next to it; return the index and its path."""
    shard = Shard.open(path)
    try:
        if shard.nbytes is None:
            raise StorageError("expected a file, got a pipe, which has no index", shard=path)
        index = scan_frames(shard, Policy())
        if shard.compression != "none":
            inflate = SeekableInflate(shard.reader, shard.compression, inflated_size=index.inflated_size)
            index = replace(index, checkpoints=inflate.export() or None)
            inflate.close()
        target = index_path(os.fspath(path))
        write_index(target, index, fingerprint_shard(shard.reader))
        return index, target
    finally:
        shard.close()
