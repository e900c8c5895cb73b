"""Buckets of frames on disk: filled in any order, read one at a time."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfrkit import _native, _platform
from tfrkit._types import UInt64Array
from tfrkit.errors import StorageError
from tfrkit.outputs.write_queue import OutputFile, WriteQueue
from tfrkit.storage.base import explain_os_error

# Bytes reordered per step: the same as dealt per step, so that memory is reused.
_CHUNK_NBYTES = 4 << 20


class Buckets:
    """Unnamed temporary files of frames. A single bucket stays in memory.

    Frames are buffered up to `held_nbytes`, so that each file is written in long runs.
    """

    def __init__(self, number: int, folder: str, queue: WriteQueue, *, held_nbytes: int) -> None:
        self._queue = queue
        self._is_one = number == 1
        self._held: list[list[memoryview]] = [[] for _ in range(number)]
        self._held_nbytes = 0
        self._max_held_nbytes = held_nbytes
        self._files: list[OutputFile] = []
        try:
            for _ in range(0 if self._is_one else number):
                self._files.append(OutputFile(_open_unnamed(folder), folder, is_kept=True))
        except OSError as error:
            self._close()
            raise explain_os_error(error, folder, verb="write") from None

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def put(self, bucket: int, frames: memoryview) -> None:
        """Append frames to a bucket."""
        self._held[bucket].append(frames)
        self._held_nbytes += len(frames)
        if self._held_nbytes >= self._max_held_nbytes and not self._is_one:
            self._write_held()

    def flush(self) -> None:
        """Write the buffered frames. Call once, after the last frame."""
        if not self._is_one:
            self._write_held()
            self._queue.drain()

    def take(self, bucket: int) -> memoryview:
        """Return all frames of a bucket. Release the view before `drop`."""
        if self._is_one:
            pieces, self._held = self._held[0], []
            return memoryview(b"".join(pieces))
        file = self._files[bucket]
        if not file.nbytes:
            return memoryview(b"")
        # Mapped, not read: allocating zeroed memory for a copy would take longer than everything else.
        mapped = mmap.mmap(file.descriptor, file.nbytes, prot=mmap.PROT_READ)
        mapped.madvise(mmap.MADV_WILLNEED)
        return memoryview(mapped)

    def drop(self, bucket: int) -> None:
        """Free the space of a bucket."""
        if not self._is_one:
            os.ftruncate(self._files[bucket].descriptor, 0)

    def _write_held(self) -> None:
        for file, pieces in zip(self._files, self._held, strict=True):
            if pieces:
                self._queue.put(file, pieces)
        self._held = [[] for _ in self._files]
        self._held_nbytes = 0

    def _close(self) -> None:
        for file in self._files:
            with contextlib.suppress(OSError):  # its contents are no longer needed
                os.close(file.descriptor)
        self._files.clear()


class OpenBucket:
    """A bucket to reorder; the constructor reads every frame header."""

    def __init__(self, data: memoryview, ranks: UInt64Array) -> None:
        """`ranks[i]` is the number, in the bucket, of the frame for position i."""
        offsets, _, stop, fault = _native.sum_frames(data, 0, len(data), 1 << 62, 1 << 62, "lengths")
        if fault is not None or len(offsets) != len(ranks):
            raise StorageError(f"a temporary file is damaged, {len(offsets)} of {len(ranks)} records are there")
        self._ranks = ranks
        self._stops = np.cumsum(np.diff(np.append(offsets, np.uint64(stop)))[ranks])
        self._table = _native.FrameTable(data, offsets, "all")

    def pick_frames(self, first: int, ends: Sequence[int]) -> Iterator[tuple[Any, int, int]]:
        """Yield the frames in their new order, in runs: (frames, first position, end position).

        `first` is the position of the first frame. No run crosses one of `ends`, which are ascending.
        """
        ranks, stops = self._ranks, self._stops
        start = 0
        for end in ends:
            limit = min(end - first, len(ranks))
            while start < limit:
                # Both uint64: to compare `stops` with an int, NumPy would convert the whole array to floats.
                before = stops[start - 1] if start else np.uint64(0)
                after = int(np.searchsorted(stops, before + np.uint64(_CHUNK_NBYTES), side="right"))
                after = min(max(after, start + 1), limit)
                wanted = np.ascontiguousarray(ranks[start:after])
                frames, _, num_frames, fault = _native.gather_picks(
                    [self._table], np.zeros(len(wanted), np.uint32), wanted, "all"
                )
                if fault is not None:
                    raise StorageError(f"a temporary file is damaged, at record {num_frames} of {len(wanted)}")
                yield frames, first + start, first + after
                start = after


def _open_unnamed(folder: str) -> int:
    """Open an unnamed file in a folder, removed when it is closed."""
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | _platform.O_CLOEXEC, 0o600)
        except OSError:
            pass  # not every file system supports O_TMPFILE
    descriptor, path = tempfile.mkstemp(prefix=".bucket-", dir=folder)
    os.unlink(path)
    return descriptor
