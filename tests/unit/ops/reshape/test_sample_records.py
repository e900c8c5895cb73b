from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import tfrkit
from tfrkit.errors import CorruptRecordError
from tfrkit.ops.reshape.sample_records import choose_numbers, sample, sample_rows
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames

RECORDS = [encode_example({b"x": ("int64", [number])}) for number in range(1000)]


@pytest.fixture(params=["none", "gzip"])
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, start in (("a", 0), ("b", 400)):
        data = write_frames(RECORDS[start : 400 if name == "a" else 1000])
        (folder / f"{name}.tfrecord").write_bytes(gzip.compress(data) if request.param == "gzip" else data)
    return folder


def test_requested_number_of_records_in_file_order(source: Path, tmp_path: Path) -> None:
    made = sample(source, tmp_path / "some.tfrecord", 300, seed=4)
    numbers = [row["x"] for row in tfrkit.open(tmp_path / "some.tfrecord")]
    shuffled = tfrkit.open(source).shuffle(4)._get_order().at(np.arange(300, dtype=np.uint64))
    assert numbers == sorted(shuffled.tolist())
    assert (made.records, made.seed, len(set(numbers))) == (300, 4, 300)
    assert list(tfrkit.open(tmp_path / "some.tfrecord").records()) == [RECORDS[number] for number in numbers]


def test_rows_are_those_of_the_file(source: Path, tmp_path: Path) -> None:
    sample(source, tmp_path / "some.tfrecord", 7, seed=1)
    rows = list(sample_rows(source, 7, seed=1))
    assert [row for _, row in rows] == list(tfrkit.open(tmp_path / "some.tfrecord"))
    assert [number for number, row in rows] == [row["x"] for _, row in rows]


def test_more_than_there_are_gives_all_with_a_note(source: Path, tmp_path: Path) -> None:
    made = sample(source, tmp_path / "all.tfrecord", 5000)
    assert list(tfrkit.open(tmp_path / "all.tfrecord").records()) == RECORDS
    assert made.notes == ["there are only 1000 records"]
    assert sample(source, tmp_path / "none.tfrecord", 0).records == 0


def test_numbers_are_pinned() -> None:
    assert choose_numbers(1000, 5, 0).tolist() == [321, 526, 629, 817, 892]
    assert choose_numbers(0, 5, 0).tolist() == []
    with pytest.raises(ValueError, match="expected 0 or more records, got -1"):
        choose_numbers(10, -1, 0)


def test_every_record_is_as_likely(tmp_path: Path) -> None:
    counts = np.zeros(20, np.int64)
    for seed in range(2000):
        counts[choose_numbers(20, 5, seed)] += 1
    # 500 expected, standard deviation about 19.
    assert counts.min() > 400
    assert counts.max() < 600


def test_damage_in_a_chosen_record_is_reported(tmp_path: Path) -> None:
    data = write_frames(RECORDS)
    number = int(choose_numbers(1000, 10, 0)[3])
    (tmp_path / "in.tfrecord").write_bytes(flip(data, frame_offsets(data)[number] + 13))
    with pytest.raises(CorruptRecordError, match=rf"record {number}, byte .*\n.*tfr repair"):
        sample(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", 10)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tfrecord"]


def test_damage_elsewhere_does_not_matter(tmp_path: Path) -> None:
    data = write_frames(RECORDS)
    chosen = set(choose_numbers(1000, 10, 0).tolist())
    number = next(number for number in range(1000) if number not in chosen)
    (tmp_path / "in.tfrecord").write_bytes(flip(data, frame_offsets(data)[number] + 13))
    assert sample(tmp_path / "in.tfrecord", tmp_path / "out.tfrecord", 10).records == 10
