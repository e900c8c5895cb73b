"""`tfr reshard`: other files, the same records."""

from __future__ import annotations

from pathlib import Path


def test_reshard_by_number_and_by_size(tfr, shards: Path) -> None:
    done = tfr("reshard", "data", "-o", "out", "--shards", 2)
    assert done.lines[0] == "train: 10 records in 2 files"
    assert tfr("cat", "out", "--format", "jsonl").out == tfr("cat", "data", "--format", "jsonl").out
    result = tfr("reshard", "out", "-o", "small", "--shard-size", "500B", "--format", "json").json
    assert len(result["files"]) > 2
    assert result["splits"] == {"train": 10}
    assert result["files"][0]["path"].startswith("small/out-train.tfrecord-00000-of-")


def test_reshard_says_where_there_are_fewer_records_than_shards(tfr, sample: Path) -> None:
    done = tfr("reshard", "sample.tfrecord", "-o", "out", "--shards", 50)
    assert done.err == "10 shards instead of 50, only 10 records\n"
    done = tfr("reshard", "sample.tfrecord", "-o", "more", "--shards", 50, "--format", "json")
    assert done.json["notes"] == ["10 shards instead of 50, only 10 records"]
    assert done.err == ""


def test_reshard_requires_shards_or_size(tfr, sample: Path) -> None:
    assert "--shards 8 or --shard-size 200MB" in tfr("reshard", "sample.tfrecord", "-o", "out", code=2).err


def test_reshard_empty_glob_exits_3(tfr) -> None:
    assert "no file matches" in tfr("reshard", "nothing-*", "-o", "out", "--shards", 2, code=3).err
