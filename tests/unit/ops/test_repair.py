from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.ops.repair import repair
from tfrkit.testing.corruption import flip, flip_each_byte, frame_offsets
from tfrkit.testing.reference import write_frames

RECORDS = [bytes([number]) * (number + 5) for number in range(8)]
FRAMES = write_frames(RECORDS)


def read(path: Path) -> list[bytes]:
    return list(tfrkit.open(path).records())


def test_sound_file_is_copied_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(FRAMES)
    result = repair(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == FRAMES
    assert (result.records, result.findings, result.lost_nbytes) == (8, [], 0)


def test_each_flipped_byte_loses_one_record_at_most(tmp_path: Path) -> None:
    for offset, damaged in flip_each_byte(FRAMES):
        (tmp_path / "a").write_bytes(damaged)
        result = repair(tmp_path / "a", tmp_path / "b", force=True)
        kept = read(tmp_path / "b")
        lost = [number for number, start in enumerate(frame_offsets(FRAMES)) if start <= offset][-1]
        assert kept == RECORDS[:lost] + RECORDS[lost + 1 :]
        assert result.records == 7
        assert tfrkit.verify(tmp_path / "b", parse=False).ok
        assert [finding.offset for finding in result.findings] == [frame_offsets(FRAMES)[lost]]
        assert result.lost_nbytes == len(RECORDS[lost]) + 16


def test_truncated_file_keeps_what_is_whole(tmp_path: Path) -> None:
    ends = [*frame_offsets(FRAMES)[1:], len(FRAMES)]
    for nbytes in range(len(FRAMES)):
        (tmp_path / "a").write_bytes(FRAMES[:nbytes])
        if nbytes and nbytes < ends[0]:
            continue  # not one frame: not a TFRecord at all
        repair(tmp_path / "a", tmp_path / "b", force=True)
        assert read(tmp_path / "b") == RECORDS[: sum(end <= nbytes for end in ends)]


def test_torn_gzip_keeps_what_inflates_before_the_tear(tmp_path: Path) -> None:
    records = [b"%d" % number * 50 for number in range(5000)]
    packed = gzip.compress(write_frames(records))
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) * 2 // 3])
    result = repair(tmp_path / "a.gz", tmp_path / "b.gz")
    kept = read(tmp_path / "b.gz")
    assert 1000 < len(kept) < 5000
    assert kept == records[: len(kept)]
    assert (tmp_path / "b.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert len(result.findings) == 1
    plain = repair(tmp_path / "a.gz", tmp_path / "c", compression="none")
    assert plain.records == len(kept)
    assert read(tmp_path / "c") == kept


def test_several_files_go_into_a_folder_under_their_names(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("x-00000-of-00002", "x-00001-of-00002"):
        (tmp_path / "in" / name).write_bytes(flip(FRAMES, 20))
    result = repair(tmp_path / "in", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["x-00000-of-00002", "x-00001-of-00002"]
    assert result.records == 14
    assert result.to_json()["files"][0]["records"] == 7


def test_nothing_is_overwritten_by_accident(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(FRAMES)
    with pytest.raises(StorageError, match="the output is the file to repair"):
        repair(tmp_path / "a", tmp_path / "a", force=True)
    (tmp_path / "b").write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"the output is there already - at .*b\n  replace it: --force"):
        repair(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"precious"
    for folder in ("p", "q"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_bytes(FRAMES)
    with pytest.raises(StorageError, match="two files would be written under one name"):
        repair([tmp_path / "p" / "same", tmp_path / "q" / "same"], tmp_path / "out")
