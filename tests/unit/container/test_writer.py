from __future__ import annotations

import contextlib
import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit.container.index import load_index
from tfrkit.container.locate import scan_frames
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.container.writer import ShardWriter
from tfrkit.storage.memory import MemoryReader, MemoryWriter
from tfrkit.storage.resolve import open_writer
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


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_saved_index_is_that_of_a_scan(tmp_path: Path, compression: Any) -> None:
    path = str(tmp_path / "x.tfrecord")
    with ShardWriter(open_writer(path), compression=compression, index=True) as writer:
        writer.write(FRAMES)
        writer.write(FRAMES, np.array([0, 19, 35], np.uint64))
        writer.commit()
    writer.save_index()
    with contextlib.closing(Shard.open(path)) as shard:
        saved = load_index(shard.reader)
        assert saved is not None
        assert saved.offsets.tolist() == scan_frames(shard, Policy()).offsets.tolist()


def test_context_without_commit_discards() -> None:
    target = MemoryWriter()
    with ShardWriter(target) as writer:
        writer.write(FRAMES)
    assert target.data is None
