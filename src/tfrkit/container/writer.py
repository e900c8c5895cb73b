"""Writing one shard: frames in, optionally compressed, visible when complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.container.compression import Compression, Deflater, Level
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

    The file appears under its name, complete, on `commit`, or not at all. `digest` is updated with every byte as it is
    written, while it is in the cache and the disk is busy.
    """

    def __init__(
        self,
        target: ByteWriter,
        *,
        compression: Compression = "none",
        level: Level = "default",
        digest: Digest | None = None,
    ) -> None:
        self._target = target
        self._digest = digest
        try:
            self._deflater = None if compression == "none" else Deflater(compression, level)
        except BaseException:
            target.discard()
            raise
        self.num_bytes = 0

    def write(self, frames: bytes | memoryview) -> None:
        """Append whole frames."""
        data = frames if self._deflater is None else self._deflater.write(frames)
        if len(data):
            self._append(data)

    def commit(self) -> None:
        if self._deflater is not None:
            self._append(self._deflater.finish())
        self._target.commit()

    def _append(self, data: bytes | memoryview) -> None:
        self._target.write(data)
        self.num_bytes += len(data)
        if self._digest is not None:
            self._digest.update(data)

    def discard(self) -> None:
        self._target.discard()
