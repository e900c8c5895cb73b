"""`tfr dedupe`: duplicate records."""

from __future__ import annotations

from pathlib import Path

from tfrkit.testing.reference import encode_example, write_frames


def write(path: Path, numbers: list[int]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(write_frames([encode_example({b"a": ("int64", [number])}) for number in numbers]))


def test_dedupe_names_leaks_and_counts_splits(tfr, tmp_path: Path) -> None:
    write(tmp_path / "d" / "test.tfrecord", [1, 2, 3, 3])
    write(tmp_path / "d" / "train.tfrecord", [4, 2, 5, 5])
    done = tfr("dedupe", "d", "--dry-run", code=1)
    assert done.lines == [
        "d/test.tfrecord: 1 record dropped, 3 left",
        "d/train.tfrecord: 2 records dropped, 2 left",
        "test: 1 record dropped, 3 left",
        "train: 2 records dropped, 2 left",
        "leak: record 1 of d/train.tfrecord (train) equals record 1 of d/test.tfrecord (test)",
        "d: 3 records dropped, 5 left in 2 of 2 files, nothing was written",
    ]
    result = tfr("dedupe", "d", "-o", "out", "--per-split", "--format", "json").json
    assert (result["written"], result["dropped"], result["num_leaks"], len(result["leaks"])) == (True, 2, 1, 1)
    tfr("dedupe", "d", "--in-place")
    assert tfr("dedupe", "d", "--in-place").out == "d: no duplicates among 5 records, nothing was written\n"
    assert tfr("dedupe", "d", "--dry-run").code == 0


def test_feature_that_is_not_there(tfr, tmp_path: Path) -> None:
    write(tmp_path / "x.tfrecord", [1, 2, 1])
    assert "no feature 'b'" in tfr("dedupe", "x.tfrecord", "--by", "b", "--dry-run", code=3).err
    assert tfr("dedupe", "x.tfrecord", "--by", "a", "-o", "y.tfrecord").out == (
        "y.tfrecord: 1 record dropped, 2 left\n"
    )
