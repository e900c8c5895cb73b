from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from tfrkit.container.shards import Shard
from tfrkit.container.writer import ShardWriter
from tfrkit.storage.memory import MemoryReader, MemoryWriter
from tfrkit.testing.reference import write_frames

FRAMES = write_frames([b"abc", b"", b"x" * 1000])


def write(compression: Any, *pieces: bytes) -> bytes:
    target = MemoryWriter()
    writer = ShardWriter(target, compression=compression)
    for piece in pieces:
        writer.write(piece)
    writer.commit()
    assert target.data is not None
    assert writer.num_bytes == len(target.data)
    return target.data


def test_frames_are_written_as_they_are() -> None:
    assert write("none", FRAMES[:10], b"", memoryview(FRAMES)[10:]) == FRAMES


def test_nothing_written_is_an_empty_shard() -> None:
    assert write("none") == b""


@pytest.mark.parametrize("compression", ["gzip", "zlib", "xz", "zstd"])
@pytest.mark.parametrize("frames", [b"", FRAMES])
def test_compressed_shard_is_found_to_be_one(compression: str, frames: bytes) -> None:
    shard = Shard(MemoryReader(write(compression, frames)))
    assert shard.compression == compression


def test_gzip_and_zlib_are_what_the_standard_library_reads() -> None:
    assert gzip.decompress(write("gzip", FRAMES[:20], FRAMES[20:])) == FRAMES
    assert zlib.decompress(write("zlib", FRAMES[:20], FRAMES[20:])) == FRAMES


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib", "xz", "zstd"])
def test_equal_frames_give_equal_bytes(compression: str) -> None:
    assert write(compression, FRAMES) == write(compression, FRAMES)


def test_discarded_shard_does_not_appear() -> None:
    target = MemoryWriter()
    writer = ShardWriter(target)
    writer.write(FRAMES)
    writer.discard()
    assert target.data is None


def test_wrong_level_discards_the_target() -> None:
    class Target(MemoryWriter):
        is_discarded = False

        def discard(self) -> None:
            self.is_discarded = True

    target = Target()
    with pytest.raises(ValueError, match="level of gzip must be .*, got 'huge'"):
        ShardWriter(target, compression="gzip", level="huge")  # type: ignore[arg-type]
    assert target.is_discarded


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_target_that_fails_makes_commit_fail(compression: Any) -> None:
    class Full(MemoryWriter):
        def write(self, data: bytes | bytearray | memoryview) -> None:
            raise OSError("full")

    writer = ShardWriter(Full(), compression=compression)
    with pytest.raises(OSError, match="full"):
        writer.write(FRAMES * 1000)
        writer.commit()
