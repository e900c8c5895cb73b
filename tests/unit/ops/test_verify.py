from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.ops.verify import verify
from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, write_frames

FRAMES = write_frames([encode_example({b"x": ("int64", [number])}) for number in range(10)])
OFFSETS = frame_offsets(FRAMES)


def test_sound_files_are_ok(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(FRAMES)
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(FRAMES))
    (tmp_path / "c.tfrecord").write_bytes(b"")
    result = verify(tmp_path)
    assert result.ok
    assert result.to_json() == {"ok": True, "records": 20, "findings": []}
    assert tfrkit.verify is verify


def test_each_fault_has_shard_record_byte_and_cause(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(flip(FRAMES, OFFSETS[4] + 12))
    result = verify(path)
    assert not result.ok
    assert result.records == 9
    (finding,) = result.to_json()["findings"]
    assert finding["cause"].startswith("payload checksum mismatch, stored 0x")
    assert finding == {"shard": str(path), "record": 4, "offset": OFFSETS[4], "cause": finding["cause"]}


def test_file_that_is_no_tfrecord_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"<!DOCTYPE html><html></html>")
    (tmp_path / "b.tfrecord").write_bytes(truncate(FRAMES, -1))
    result = verify(tmp_path)
    assert result.records == 9
    assert [Path(finding.shard).name for finding in result.findings] == ["a.tfrecord", "b.tfrecord"]
    assert "HTML" in result.findings[0].cause


def test_torn_gzip_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(truncate(gzip.compress(FRAMES), -10))
    result = verify(path)
    assert len(result.findings) == 1
    assert "ends early" in result.findings[0].cause


def test_records_are_not_parsed_where_that_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(FRAMES + write_frames([b"hello"]))
    assert verify(path).records == 10
    assert verify(path, parse=False).ok


def test_address_of_nothing_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no file matches"):
        verify(f"{tmp_path}/*.tfrecord")


def test_unreadable_file_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").symlink_to(tmp_path / "gone")
    (tmp_path / "b.tfrecord").write_bytes(FRAMES)
    result = verify([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])
    assert result.records == 10
    assert "no such file" in result.findings[0].cause
