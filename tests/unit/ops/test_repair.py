from __future__ import annotations

import gzip
import random
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.errors import NotATFRecordError, StorageError
from tfrkit.ops.repair import repair
from tfrkit.ops.reshape.reshard import reshard
from tfrkit.progress import Quiet
from tfrkit.testing.corruption import flip, flip_each_byte, frame_offsets, make_frame, splice
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
            continue  # no valid frame: not a TFRecord
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
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        repair(tmp_path / "a", tmp_path / "a", force=True)
    (tmp_path / "b").write_bytes(b"precious")
    with pytest.raises(StorageError, match=r"the output exists already - at .*b\n  replace it: force=True"):
        repair(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"precious"
    for folder in ("p", "q"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_bytes(FRAMES)
    with pytest.raises(StorageError, match="two files would be written under one name"):
        repair([tmp_path / "p" / "same", tmp_path / "q" / "same"], tmp_path / "out")


def test_output_that_is_another_source_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(FRAMES)
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        repair([tmp_path / "a", tmp_path / "b"], tmp_path, force=True)
    assert (tmp_path / "b").read_bytes() == FRAMES


def test_full_disk_is_reported_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(FRAMES)
    monkeypatch.setattr(LIMITS, "spare_nbytes", 1 << 62)
    with pytest.raises(StorageError, match="too little space"):
        repair(tmp_path / "a", tmp_path / "out" / "b")
    assert not (tmp_path / "out").exists()


def test_wrong_length_with_a_right_checksum_loses_one_record(tmp_path: Path) -> None:
    offsets = frame_offsets(FRAMES)
    for length in (0, 3, len(RECORDS[4]) + 30, 1 << 40):
        bad = make_frame(RECORDS[4], length=length)
        (tmp_path / "a").write_bytes(splice(FRAMES, offsets[4], offsets[5], bad))
        result = repair(tmp_path / "a", tmp_path / "b", force=True)
        assert read(tmp_path / "b") == RECORDS[:4] + RECORDS[5:]
        (loss,) = result.findings
        assert (loss.record, loss.offset, loss.stop) == (4, offsets[4], offsets[4] + len(bad))


def test_lost_ranges_and_kept_frames_cover_the_file(tmp_path: Path) -> None:
    rng = random.Random(3)
    records = [rng.randbytes(rng.randrange(40)) for _ in range(30)]
    whole = write_frames(records)
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 5)):
            start = rng.randrange(len(data))
            data[start : start + rng.randrange(30)] = rng.randbytes(rng.randrange(30))
        if not any(record in bytes(data) for record in [write_frames([record]) for record in records]):
            continue
        (tmp_path / "a").write_bytes(bytes(data))
        result = repair(tmp_path / "a", tmp_path / "b", force=True)
        kept = read(tmp_path / "b")
        assert tfrkit.verify(tmp_path / "b", parse=False).ok
        assert sum(len(record) + 16 for record in kept) + result.lost_nbytes == len(data)
        ranges = [(loss.offset, loss.stop) for loss in result.findings]
        assert ranges == sorted(ranges)
        assert all(stop <= start for (_, stop), (start, _) in pairwise(ranges))


def test_repaired_file_is_repaired_to_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(flip(FRAMES, 40)[:-3])
    repair(tmp_path / "a", tmp_path / "b")
    result = repair(tmp_path / "b", tmp_path / "c")
    assert result.findings == []
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_members_after_a_torn_one_are_kept(tmp_path: Path) -> None:
    records = [random.Random(number).randbytes(200) for number in range(90)]
    members = [gzip.compress(write_frames(records[start : start + 30])) for start in (0, 30, 60)]
    middle = len(members[0]) + len(members[1]) // 2
    (tmp_path / "a.gz").write_bytes(splice(b"".join(members), middle, middle + 50, bytes(50)))
    result = repair(tmp_path / "a.gz", tmp_path / "b.gz")
    kept = read(tmp_path / "b.gz")
    assert kept[:30] == records[:30]
    assert kept[-30:] == records[60:]
    assert len(kept) > 60
    assert set(kept) <= set(records)
    (lost,) = [loss for loss in result.to_json()["lost"] if loss["stored_stop"] is not None]
    assert lost["stored_stop"] == len(members[0]) + len(members[1])
    assert lost["stored_offset"] > middle - 1000
    assert result.lost_nbytes == sum(loss.stop - loss.offset for loss in result.findings)
    assert result.lost_stored_nbytes == lost["stored_stop"] - lost["stored_offset"]


def test_torn_gzip_reports_the_lost_stored_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(write_frames(RECORDS * 50))
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    (lost,) = repair(tmp_path / "a.gz", tmp_path / "b.gz").to_json()["lost"]
    assert (lost["stored_offset"], lost["stored_stop"]) == (len(packed) // 2, len(packed) // 2)
    assert lost["offset"] <= lost["stop"]


@pytest.mark.parametrize(
    ("data", "lost"),
    [
        (flip(FRAMES, 20), 1),
        (FRAMES, 0),
        (FRAMES[:-3], None),
        (flip(FRAMES, 3), None),
        (flip(flip(FRAMES, 14), frame_offsets(FRAMES)[1] + 2), None),
        (FRAMES.replace(b"\0\0", b"\r\0") + write_frames([b"last"]), None),
    ],
    ids=["payload", "sound", "cut", "length", "payload-then-length", "converted"],
)
def test_number_of_lost_records_is_reported_when_the_file_shows_it(
    tmp_path: Path, data: bytes, lost: int | None
) -> None:
    (tmp_path / "a").write_bytes(data)
    assert repair(tmp_path / "a", tmp_path / "b").to_json()["lost_records"] == lost


def test_numbers_after_a_loss_of_unknown_number_are_uncertain(tmp_path: Path) -> None:
    starts = frame_offsets(FRAMES)
    zeros = splice(FRAMES, starts[2], starts[4], bytes(starts[4] - starts[2]))
    (tmp_path / "a").write_bytes(flip(flip(zeros, starts[0] + 13), starts[6] + 13))
    lost = repair(tmp_path / "a", tmp_path / "b").to_json()["lost"]
    assert [one["offset"] for one in lost] == [starts[0], starts[2], starts[6]]
    assert [one["record_certain"] for one in lost] == [True, True, False]


def test_number_of_lost_records_comes_from_a_manifest(tmp_path: Path) -> None:
    with tfrkit.Writer(tmp_path / "rows.tfrecord") as writer:
        for number in range(9):
            writer.write({"x": number})
    reshard(tmp_path / "rows.tfrecord", tmp_path / "out", shards=1)
    (shard,) = (tmp_path / "out").glob("*.tfrecord-*")
    shard.write_bytes(shard.read_bytes()[:40])
    result = repair(shard, tmp_path / "good")
    assert (result.records, result.lost_records) == (1, 8)


def test_output_folder_is_made_and_goes_where_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(FRAMES)
    repair(tmp_path / "a", tmp_path / "new" / "folder" / "b")
    assert read(tmp_path / "new" / "folder" / "b") == RECORDS
    (tmp_path / "page").write_bytes(b"<!DOCTYPE html><html></html>")
    with pytest.raises(NotATFRecordError, match="HTML"):
        repair(tmp_path / "page", tmp_path / "other" / "folder" / "b")
    assert not (tmp_path / "other").exists()


def test_name_of_the_output_chooses_the_compression(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(FRAMES)
    repair(tmp_path / "a", tmp_path / "b.gz")
    assert gzip.decompress((tmp_path / "b.gz").read_bytes()) == FRAMES
    repair(tmp_path / "a", tmp_path / "c.gz", compression="none")
    assert (tmp_path / "c.gz").read_bytes() == FRAMES


def test_file_that_is_no_tfrecord_does_not_keep_the_others(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.tfrecord").write_bytes(FRAMES)
    (tmp_path / "in" / "b.tfrecord").write_bytes(b"<!DOCTYPE html><html></html>")
    result = repair(tmp_path / "in", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.tfrecord"]
    (lost,) = result.to_json()["lost"]
    assert (Path(lost["shard"]).name, lost["offset"], lost["stop"]) == ("b.tfrecord", 0, 28)
    with pytest.raises(NotATFRecordError, match="HTML"):
        repair(tmp_path / "in" / "b.tfrecord", tmp_path / "x")


def test_damaged_first_record_is_the_only_one_lost(tmp_path: Path) -> None:
    for pack in (bytes, gzip.compress, zlib.compress):
        (tmp_path / "a").write_bytes(pack(flip(FRAMES, 3)))
        repair(tmp_path / "a", tmp_path / "b", force=True)
        assert read(tmp_path / "b") == RECORDS[1:]


def test_new_folder_appears_with_all_files_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.tfrecord", "b.tfrecord"):
        (tmp_path / "in" / name).write_bytes(FRAMES)
    seen = []

    class Watch(Quiet):
        def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
            seen.append((tmp_path / "out").exists())
            if len(seen) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repair(tmp_path / "in", tmp_path / "out", progress=Watch())
    assert seen == [False, False]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    made = repair(tmp_path / "in", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.tfrecord", "b.tfrecord"]
    assert [file[1] for file in made.files] == [str(tmp_path / "out" / name) for name in ("a.tfrecord", "b.tfrecord")]
