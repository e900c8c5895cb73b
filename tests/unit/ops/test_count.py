from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tfrkit.container import locate
from tfrkit.container.locate import save_index
from tfrkit.errors import CorruptRecordError
from tfrkit.ops.count import count_records
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import write_frames

FRAMES = write_frames([b"abc"] * 12)


def test_each_shard_is_counted(tmp_path: Path) -> None:
    for name, data in {"a": FRAMES, "b": gzip.compress(FRAMES), "c": b""}.items():
        (tmp_path / f"{name}.tfrecord").write_bytes(data)
    counts = count_records(f"{tmp_path}/*.tfrecord")
    assert [(Path(path).name, count) for path, count in counts] == [
        ("a.tfrecord", 12),
        ("b.tfrecord", 12),
        ("c.tfrecord", 0),
    ]


def test_index_is_used_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FRAMES)
    save_index(str(path))
    monkeypatch.setattr(locate, "_scan", None)
    assert count_records(path) == [(str(path), 12)]


def test_damaged_header_raises(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(FRAMES, frame_offsets(FRAMES)[6]))
    with pytest.raises(CorruptRecordError, match="record 6"):
        count_records(path)
