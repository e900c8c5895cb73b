"""Tests for every storage backend.

A test inherits `StorageTests`, or `ReaderTests` or `WriterTests` alone, and defines how to store and fetch one shard.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest

from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteReader, ByteWriter

CONTENT = bytes(range(256)) * 41 + b"tail"  # longer than two pages, and not a multiple of anything


class ReaderTests(ABC):
    """Inherit and define the two methods below. `name` is any short file name."""

    @abstractmethod
    def store(self, name: str, data: bytes) -> None:
        """Store bytes without the writer under test."""

    @abstractmethod
    def open_reader(self, name: str) -> ByteReader: ...

    @pytest.fixture(autouse=True)
    def _close_readers(self) -> Iterator[None]:
        self._readers: list[ByteReader] = []
        yield
        for reader in self._readers:
            reader.close()

    def reader(self, name: str) -> ByteReader:
        """Open a reader that is closed when the test ends."""
        reader = self.open_reader(name)
        self._readers.append(reader)
        return reader

    def test_reader_size_is_number_of_bytes(self) -> None:
        self.store("shard", CONTENT)
        assert self.reader("shard").size == len(CONTENT)

    def test_reader_name_contains_given_name(self) -> None:
        self.store("shard", CONTENT)
        assert "shard" in self.reader("shard").name

    def test_reader_span_is_all_bytes_or_none(self) -> None:
        self.store("shard", CONTENT)
        span = self.reader("shard").span()
        assert span is None or bytes(span) == CONTENT

    def test_reader_empty_shard_is_no_bytes(self) -> None:
        self.store("empty", b"")
        reader = self.reader("empty")
        assert reader.size == 0
        assert bytes(reader.span() or b"") == b""
        assert reader.read(10) == b""
        assert reader.read_at(0, 10) == b""

    @pytest.mark.parametrize("nbytes", [1, 7, 4096, len(CONTENT), len(CONTENT) + 1])
    def test_reader_read_in_pieces_gives_all_bytes_then_nothing(self, nbytes: int) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        pieces = []
        while piece := reader.read(nbytes):
            assert len(piece) <= nbytes
            pieces.append(piece)
        assert b"".join(pieces) == CONTENT
        assert reader.read(nbytes) == b""

    @pytest.mark.parametrize(("offset", "nbytes"), [(0, 0), (0, 1), (4095, 3), (len(CONTENT) - 1, 1)])
    def test_reader_read_at_gives_exactly_that_range(self, offset: int, nbytes: int) -> None:
        self.store("shard", CONTENT)
        assert self.reader("shard").read_at(offset, nbytes) == CONTENT[offset : offset + nbytes]

    def test_reader_read_at_past_end_gives_what_is_there(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        assert reader.read_at(len(CONTENT) - 3, 10) == CONTENT[-3:]
        assert reader.read_at(len(CONTENT), 10) == b""
        assert reader.read_at(len(CONTENT) + 100, 10) == b""

    def test_reader_read_at_leaves_position_of_read(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        assert reader.read(5) == CONTENT[:5]
        reader.read_at(100, 50)
        assert reader.read(5) == CONTENT[5:10]

    def test_reader_read_at_from_threads_gives_right_bytes(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        wrong: list[int] = []

        def read_many(start: int) -> None:
            for offset in range(start, len(CONTENT), 997):
                if reader.read_at(offset, 64) != CONTENT[offset : offset + 64]:
                    wrong.append(offset)

        threads = [threading.Thread(target=read_many, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_reader_unchanged_shard_passes_check(self) -> None:
        self.store("shard", CONTENT)
        self.reader("shard").check_unchanged()

    def test_reader_released_bytes_can_be_read_again(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        span = reader.span()
        reader.release(0, len(CONTENT))
        reader.release(1, 2)
        assert span is None or bytes(span) == CONTENT
        assert reader.read_at(0, len(CONTENT)) == CONTENT

    def test_reader_close_twice_is_fine(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        reader.close()
        reader.close()

    def test_reader_close_with_live_view_keeps_the_view(self) -> None:
        self.store("shard", CONTENT)
        reader = self.reader("shard")
        span = reader.span()
        view = memoryview(reader.read_at(0, 10) if span is None else span)
        reader.close()
        assert bytes(view[:10]) == CONTENT[:10]

    def test_reader_missing_name_raises(self) -> None:
        with pytest.raises(StorageError, match=r"^cannot open, .* - at .*nowhere"):
            self.reader("nowhere")


class WriterTests(ABC):
    """Inherit and define the three methods below. `name` is any short file name."""

    @abstractmethod
    def store(self, name: str, data: bytes) -> None:
        """Store bytes without the writer under test."""

    @abstractmethod
    def fetch(self, name: str) -> bytes | None:
        """Return the bytes stored under a name, without the reader under test; None if missing."""

    @abstractmethod
    def open_writer(self, name: str) -> ByteWriter: ...

    def leftovers(self) -> list[str]:
        """Return all stored names, including hidden and temporary ones; [] if not applicable."""
        return []

    def test_writer_commit_makes_bytes_visible(self) -> None:
        writer = self.open_writer("new")
        writer.write(CONTENT[:100])
        writer.write(bytearray(CONTENT[100:200]))
        writer.write(memoryview(CONTENT)[200:])
        assert self.fetch("new") is None
        writer.commit()
        assert self.fetch("new") == CONTENT

    def test_writer_commit_of_nothing_is_an_empty_shard(self) -> None:
        writer = self.open_writer("new")
        writer.commit()
        assert self.fetch("new") == b""

    def test_writer_discard_leaves_nothing(self) -> None:
        before = self.leftovers()
        writer = self.open_writer("new")
        writer.write(CONTENT)
        writer.discard()
        assert self.fetch("new") is None
        assert self.leftovers() == before

    def test_writer_discard_keeps_what_was_there(self) -> None:
        self.store("old", b"before")
        writer = self.open_writer("old")
        writer.write(CONTENT)
        assert self.fetch("old") == b"before"
        writer.discard()
        assert self.fetch("old") == b"before"

    def test_writer_commit_replaces_what_was_there(self) -> None:
        self.store("old", b"before")
        writer = self.open_writer("old")
        writer.write(b"after")
        writer.commit()
        assert self.fetch("old") == b"after"

    def test_writer_discard_after_commit_keeps_the_shard(self) -> None:
        writer = self.open_writer("new")
        writer.write(b"kept")
        writer.commit()
        writer.discard()
        assert self.fetch("new") == b"kept"

    def test_writer_commit_leaves_no_temporary_name(self) -> None:
        writer = self.open_writer("new")
        writer.write(b"x")
        writer.commit()
        assert [name for name in self.leftovers() if name != "new"] == []

    def test_writer_two_at_once_last_commit_wins_whole(self) -> None:
        first, second = self.open_writer("new"), self.open_writer("new")
        first.write(b"first")
        second.write(b"second")
        second.commit()
        first.commit()
        assert self.fetch("new") == b"first"


class StorageTests(ReaderTests, WriterTests):
    """The tests of a backend that reads and writes."""
