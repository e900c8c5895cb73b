"""Write one shard, optionally compressed; the file appears when it is complete."""

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
    """Encode records as concatenated frames."""
    return _native.frame_records(records)


class Digest(Protocol):
    """A running checksum such as `hashlib.sha256()`."""

    def update(self, data: bytes | memoryview, /) -> None:
        """Add the next bytes."""


class ShardWriter:
    """Writes the frames of one shard. Use it from one thread at a time.

    The complete file appears under its name on `commit`, or not at all; leaving the context without `commit` discards
    it. `digest` is updated with each piece right after it is written, while it is still in the CPU cache. With `index`
    the offsets of the frames are kept for `save_index`.
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
        # A compressed file is scanned for checkpoints by `save_index`, which also finds the offsets.
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
        """Append whole frames; `starts` has their offsets in `frames`, if known."""
        if self._offsets is not None:
            if starts is None:
                starts, _, _ = _native.index_frames(frames, 0, len(frames), 1 << 62, "none")
            self._offsets.append(starts + np.uint64(self.num_bytes))
        data = frames if self._deflater is None else self._deflater.write(frames)
        if len(data):
            self._append(data)

    def commit(self) -> None:
        """Finish the file and make it visible under its name."""
        if self._deflater is not None:
            self._append(self._deflater.finish())
        self._target.commit()

    def save_index(self) -> None:
        """Write the index of the committed file next to it.

        REQUIRES: the writer was made with `index`.
        """
        if self._offsets is not None:
            save_known_index(self._target.name, self._offsets)
        else:
            save_index(self._target.name)

    def discard(self) -> None:
        """Discard the file; no effect after `commit`."""
        self._target.discard()

    def _append(self, data: bytes | memoryview) -> None:
        self._target.write(data)
        self.num_bytes += len(data)
        if self._digest is not None:
            self._digest.update(data)
