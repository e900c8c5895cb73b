from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

import tfrkit
from tfrkit.ops.reshape.layout import cut_evenly
from tfrkit.ops.reshape.reshard import reshard
from tfrkit.testing.reference import write_frames

RECORDS = [bytes([number]) * (number * 20) for number in range(100)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tfrecord").write_bytes(write_frames(RECORDS[:33]))
    (folder / "b.tfrecord").write_bytes(write_frames(RECORDS[33:]))
    return folder


def read(path: Path | str) -> list[bytes]:
    return list(tfrkit.open(path).records())


def test_order_stays_and_numbers_are_even(source: Path, tmp_path: Path) -> None:
    made = reshard(source, tmp_path / "out", shards=7)
    assert [record for file in made.files for record in read(file.path)] == RECORDS
    assert {file.records for file in made.files} == {14, 15}
    assert Path(made.files[2].path).name == "out.tfrecord-00002-of-00007"


def test_shards_are_even_when_a_size_is_given(source: Path, tmp_path: Path) -> None:
    total = len(write_frames(RECORDS))
    made = reshard(source, tmp_path / "out", shard_size=total // 5 + 1)
    assert [record for file in made.files for record in read(file.path)] == RECORDS
    assert len(made.files) == 5
    for file in made.files:
        assert abs(file.nbytes - total / 5) <= 2000  # one record
    assert made.files[0].records > 2 * made.files[4].records


def test_no_shard_is_left_empty_by_a_large_record(tmp_path: Path) -> None:
    records = [b"x" * 10_000, b"a", b"b", b"c"]
    (tmp_path / "in.tfrecord").write_bytes(write_frames(records))
    made = reshard(tmp_path / "in.tfrecord", tmp_path / "out", shard_size=3000)
    assert [file.records for file in made.files] == [1, 1, 1, 1]
    assert [record for file in made.files for record in read(file.path)] == records


def test_records_of_a_split_stay_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, records in {
        "test.tfrecord": RECORDS[:10],
        "train-00000-of-00002.tfrecord": RECORDS[10:50],
        "train-00001-of-00002.tfrecord": RECORDS[50:],
    }.items():
        (folder / name).write_bytes(write_frames(records))
    made = reshard(folder, tmp_path / "data", shards=4)
    assert made.splits == {"test": 10, "train": 90}
    train = [file for file in made.files if file.split == "train"]
    assert [record for file in train for record in read(file.path)] == RECORDS[10:]
    assert Path(train[0].path).name == "data-train.tfrecord-00000-of-00004"


def test_one_file_takes_everything(source: Path, tmp_path: Path) -> None:
    reshard(source, tmp_path / "out.tfrecord", shards=1)
    assert read(tmp_path / "out.tfrecord") == RECORDS
    with pytest.raises(ValueError, match="one output file is one shard, got 2"):
        reshard(source, tmp_path / "other.tfrecord", shards=2)


def test_more_shards_than_records_gives_one_each(source: Path, tmp_path: Path) -> None:
    made = reshard(source, tmp_path / "out", shards=1000)
    assert [file.records for file in made.files] == [1] * 100


def test_wrong_wishes_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected either a number of shards or their size"):
        reshard(source, tmp_path / "out")
    with pytest.raises(ValueError, match="expected either a number of shards or their size"):
        reshard(source, tmp_path / "out", shards=1, shard_size="1MB")
    with pytest.raises(ValueError, match="shards expected a number from 1 up, got 0"):
        reshard(source, tmp_path / "out", shards=0)
    with pytest.raises(ValueError, match="size expected a number of bytes"):
        reshard(source, tmp_path / "out", shard_size="many")


@pytest.mark.parametrize(("count", "shards"), [(0, 1), (1, 1), (10, 3), (7, 7), (1000, 999)])
def test_cuts_reach_from_end_to_end(count: int, shards: int) -> None:
    cuts = cut_evenly(count, shards)
    assert (cuts[0], cuts[-1], len(cuts)) == (0, count, shards + 1)
    assert max(b - a for a, b in pairwise(cuts)) <= -(-count // shards)
