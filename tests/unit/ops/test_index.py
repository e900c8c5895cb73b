from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import ContainerError, CorruptRecordError
from tfrkit.ops.index import make_index
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import write_frames

FRAMES = write_frames([b"abc"] * 4)


def test_index_is_written_next_to_each_shard(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(FRAMES)
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(FRAMES))
    made = make_index(tmp_path)
    assert [(Path(path).name, count, Path(target).name) for path, count, target in made] == [
        ("a.tfrecord", 4, "a.tfrecord.tfidx"),
        ("b.tfrecord", 4, "b.tfrecord.tfidx"),
    ]
    with tfrkit.open(tmp_path) as ds:
        assert len(ds) == 8


def test_index_of_a_changed_shard_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FRAMES)
    make_index(path)
    path.write_bytes(FRAMES + FRAMES)
    assert make_index(path)[0][1] == 8
    with tfrkit.open(path) as ds:
        assert len(ds) == 8


def test_dali_index_is_written_instead(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FRAMES)
    assert make_index(path, dali=True) == [(str(path), 4, f"{path}.idx")]
    assert (tmp_path / "a.tfrecord.idx").read_text() == "0 19\n19 19\n38 19\n57 19\n"
    assert not (tmp_path / "_index").exists()


def test_dali_index_of_a_compressed_shard_is_refused_and_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(gzip.compress(FRAMES))
    with pytest.raises(ContainerError, match="DALI expected an uncompressed shard, got gzip - at .*a.tfrecord"):
        make_index(path, dali=True)
    assert [item.name for item in tmp_path.iterdir()] == ["a.tfrecord"]


def test_damaged_shard_gets_no_index(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(FRAMES, frame_offsets(FRAMES)[2]))
    with pytest.raises(CorruptRecordError, match="record 2"):
        make_index(path)
    assert not (tmp_path / "_index" / "a.tfrecord.tfidx").exists()
