from __future__ import annotations

import gzip
from pathlib import Path

from tfrkit.testing.reference import encode_example, write_frames


def make(number: int, label: int | None = None) -> bytes:
    return encode_example({b"id": ("int64", [100 + number]), b"label": ("int64", [number if label is None else label])})


def test_diff_of_the_same_records_exits_0(tfr, sample: Path, shards: Path) -> None:
    done = tfr("diff", "sample.tfrecord", "data")
    assert (done.lines, done.err) == (["10 records against 10: 10 equal"], "")
    assert tfr("diff", "sample.tfrecord", "data", "--key", "label").lines == ["10 records against 10: 10 equal"]
    assert tfr("diff", "sample.tfrecord", "data", "--format", "json").json["same"] is True


def test_diff_lists_changes_and_exits_1(tfr, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([make(n) for n in range(4)]))
    (tmp_path / "b.tfrecord").write_bytes(gzip.compress(write_frames([make(0), make(1, 7), make(2)])))
    done = tfr("diff", "a.tfrecord", "b.tfrecord", code=1)
    assert done.lines == [
        "changed: record 1 (a.tfrecord, record 1)",
        "  label  1 -> 7",
        "removed: record 3 (a.tfrecord, record 3)",
        "4 records against 3: 2 equal, 1 changed, 1 removed",
        "features: label 1",
    ]
    assert "match records by a feature: --key" in done.err
    keyed = tfr("diff", "a.tfrecord", "b.tfrecord", "--key", "id", "--max", "0", code=1)
    assert keyed.lines[:2] == ["… 1 more record changed", "… 1 more record removed"]


def test_diff_prints_csv_and_jsonl_of_the_same_changes(tfr, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([make(0), make(1)]))
    (tmp_path / "b.tfrecord").write_bytes(write_frames([make(2), make(1, 5), make(0)]))
    rows = tfr("diff", "a.tfrecord", "b.tfrecord", "--key", "id", "--format", "csv", code=1).lines
    assert rows == [
        "change,number_a,number_b,key,feature,a,b,note",
        "added,,0,102,,,,",
        "changed,1,1,101,label,1,5,",
    ]
    lines = tfr("diff", "a.tfrecord", "b.tfrecord", "--key", "id", "--format", "jsonl", code=1).lines
    assert len(lines) == 2
    assert '"change": "changed"' in lines[1]


def test_diff_refuses_in_one_message(tfr, sample: Path) -> None:
    assert "no such file" in tfr("diff", "sample.tfrecord", "nope.tfrecord", code=3).err
    assert "did you mean 'label'" in tfr("diff", "sample.tfrecord", "sample.tfrecord", "--key", "lable", code=3).err
    assert "a pipe" in tfr("diff", "-", "sample.tfrecord", stdin=sample.read_bytes(), code=3).err
    tfr("diff", "sample.tfrecord", code=2)
