from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError
from tfrkit.ops.stats.chunks import Chunk, cut_chunks
from tfrkit.storage.local import LocalReader
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import write_frames

RECORDS = [b"x" * (number * 37 % 500) for number in range(100)]


def cut(path: Path) -> tuple[Shard, list[Chunk]]:
    shard = Shard.open(str(path))
    return shard, list(cut_chunks(shard, 0, Policy(), "lengths"))


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few records, so that a small file has many."""
    monkeypatch.setattr(LIMITS, "window_nbytes", 4096)
    monkeypatch.setattr(LIMITS, "chunk_records", 30)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_chunks_hold_every_record_with_its_size(
    tmp_path: Path, small_windows: None, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(pack(write_frames(RECORDS)))
    shard, chunks = cut(path)
    assert [chunk.num_records for chunk in chunks] == [30, 30, 30, 10]
    assert [size for chunk in chunks for size in chunk.sizes.tolist()] == [len(record) for record in RECORDS]
    assert [record for chunk in chunks for record in chunk.list_records().tolist()] == list(range(100))
    shard.close()


def test_check_names_the_damaged_record(tmp_path: Path) -> None:
    data = write_frames(RECORDS)
    (tmp_path / "a.tfrecord").write_bytes(flip(data, frame_offsets(data)[42] + 14))
    shard, chunks = cut(tmp_path / "a.tfrecord")
    found = chunks[0].stretches[0].read(_native.check_frames, "all")
    assert found is not None
    with pytest.raises(CorruptRecordError, match="payload checksum mismatch.*record 42"):
        raise found[1]
    shard.close()


def test_pages_go_back_when_a_chunk_was_read_and_not_when_it_is_cut(
    tmp_path: Path, small_windows: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[tuple[int, int]] = []
    monkeypatch.setattr(LocalReader, "release", lambda self, start, stop: released.append((start, stop)))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(write_frames(RECORDS))
    shard, chunks = cut(path)
    assert released == []
    for chunk in chunks:
        for part in chunk.stretches:
            part.release()
    assert (released[0][0], released[-1][1]) == (0, path.stat().st_size)
    assert all(one[1] == other[0] for one, other in pairwise(released))
    shard.close()


def test_inflated_chunks_have_no_pages_to_give_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(write_frames(RECORDS)))
    shard, chunks = cut(path)
    monkeypatch.setattr(LocalReader, "release", lambda self, start, stop: pytest.fail("these are no offsets of it"))
    for chunk in chunks:
        for part in chunk.stretches:
            part.release()
    shard.close()
