"""Writing one shard: frames in, optionally compressed, visible when complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from tfrkit import _native
from tfrkit._types import Record, UInt64Array
from tfrkit.container.compression import Compression, Deflater, Level
from tfrkit.container.locate import save_index, save_known_index
from tfrkit.storage.base import ByteWriter


def frame_records(records: Sequence[Record]) -> bytes:
    """Records as frames, one after the other."""
    return _native.frame_records(records)


class Digest(Protocol):
    """A running checksum such as `hashlib.sha256()`."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Take the next bytes."""


class ShardWriter:
    """Takes frames for one shard. One thread at a time.

    The file appears under its name, complete, on `commit`, or not at all; as a context, what was not committed is
    discarded. `digest` is updated with every byte as it is written, while it is in the cache and the disk is busy. With
    `index` the offsets of the frames are kept for `save_index`.
    """

    def __init__(
        self,
        target: ByteWriter,
        *,
        compression: Compression = "none",
        level: Level = "default",
        digest: Digest | None = None,
        index: bool = False,
    ) -> None:
        self._target = target
        self._digest = digest
        # A compressed file is scanned for its checkpoints when the index is made.
        self._offsets: list[UInt64Array] | None = [] if index and compression == "none" else None
        try:
            self._deflater = None if compression == "none" else Deflater(compression, level)
        except BaseException:
            target.discard()
            raise
        self.num_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def write(self, frames: bytes | memoryview, starts: UInt64Array | None = None) -> None:
        """Append whole frames; `starts` is where each begins, if that is known."""
        if self._offsets is not None:
            if starts is None:
                starts, _, _ = _native.index_frames(frames, 0, len(frames), 1 << 62, "none")
            self._offsets.append(starts + np.uint64(self.num_bytes))
        data = frames if self._deflater is None else self._deflater.write(frames)
        if len(data):
            self._append(data)

    def commit(self) -> None:
        """Make the file appear."""
        if self._deflater is not None:
            self._append(self._deflater.finish())
        self._target.commit()

    def save_index(self) -> None:
        """Write the index of the committed file beside it.

        REQUIRES: made with `index`.
        """
        if self._offsets is not None:
            save_known_index(self._target.name, self._offsets)
        else:
            save_index(self._target.name)

    def discard(self) -> None:
        """Discard; no effect after `commit`."""
        self._target.discard()

    def _append(self, data: bytes | memoryview) -> None:
        self._target.write(data)
        self.num_bytes += len(data)
        if self._digest is not None:
            self._digest.update(data)
