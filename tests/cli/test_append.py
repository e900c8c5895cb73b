"""`tfr append`: more records for a dataset."""

from __future__ import annotations

from pathlib import Path

from tfrkit.testing.reference import encode_example, write_frames


def test_append_renumbers_the_set(tfr, shards: Path, sample: Path) -> None:
    done = tfr("append", "data", "sample.tfrecord", "-o", "out")
    assert done.lines == [
        "out/train-00003-of-00004.tfrecord: 10 records added, 10 now",
        "out: 10 records added, 20 now in 1 of 4 files",
    ]
    tfr("append", "data", "sample.tfrecord", "--in-place")
    for folder in ("out", "data"):
        verified = tfr("verify", folder)
        assert (verified.out, verified.err) == ("ok, 20 records\n", "")
    names = [f"train-0000{number}-of-00004.tfrecord" for number in range(4)]
    assert sorted(path.name for path in shards.iterdir()) == names


def test_append_to_one_file(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "more.tfrecord").write_bytes(sample.read_bytes())
    assert tfr("append", "sample.tfrecord", "more.tfrecord", "--dry-run").out == (
        "sample.tfrecord: 10 records added, 20 now, nothing was written\n"
    )
    tfr("append", "sample.tfrecord", "more.tfrecord", "--in-place")
    assert tfr("count", "sample.tfrecord", "--format", "json").json["records"] == 20


def test_records_of_another_kind_are_refused(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "more.tfrecord").write_bytes(write_frames([encode_example({b"label": ("bytes", [b"cat"])})]))
    err = tfr("append", "sample.tfrecord", "more.tfrecord", "--in-place", code=3).err
    assert "the new records do not fit the dataset: " in err
    assert "feature 'label' expected int64, got bytes" in err
    assert "expected a place for the result" in tfr("append", "sample.tfrecord", "more.tfrecord", code=2).err
