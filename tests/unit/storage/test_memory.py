from __future__ import annotations

import pytest

from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteReader, ByteWriter
from tfrkit.storage.memory import MemoryReader, MemoryWriter
from tfrkit.testing.storage_suite import StorageTests


class _PublishingWriter(MemoryWriter):
    """A MemoryWriter whose result can be found again by name."""

    def __init__(self, shards: dict[str, bytes], name: str) -> None:
        super().__init__(name=name)
        self._shards = shards

    def commit(self) -> None:
        super().commit()
        assert self.data is not None
        self._shards[self.name] = self.data


class TestMemoryStorage(StorageTests):
    @pytest.fixture(autouse=True)
    def _use_dict(self) -> None:
        self.shards: dict[str, bytes] = {}

    def store(self, name: str, data: bytes) -> None:
        self.shards[name] = data

    def fetch(self, name: str) -> bytes | None:
        return self.shards.get(name)

    def open_reader(self, name: str) -> ByteReader:
        # Memory has no names to look up; the lookup fails like an address.
        if name not in self.shards:
            raise StorageError("cannot open, no such name", shard=name)
        return MemoryReader(self.shards[name], name=name)

    def open_writer(self, name: str) -> ByteWriter:
        return _PublishingWriter(self.shards, name)


def test_writer_data_before_commit_is_none() -> None:
    writer = MemoryWriter()
    writer.write(b"x")
    assert writer.data is None


def test_writer_data_does_not_follow_a_reused_buffer() -> None:
    writer = MemoryWriter()
    buffer = bytearray(b"abc")
    writer.write(buffer)
    buffer[:] = b"xyz"
    writer.commit()
    assert writer.data == b"abc"
