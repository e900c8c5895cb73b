from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.errors import MissingFeatureError
from tfrkit.ops.reshape.split import split
from tfrkit.testing.reference import encode_example, write_frames

RECORDS = [
    encode_example(
        {
            b"label": ("int64", [number % 3]),
            b"patient": ("bytes", [b"p%d" % (number // 4)]),
            b"id": ("int64", [number]),
        }
    )
    for number in range(200)
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.tfrecord").write_bytes(write_frames(RECORDS[:90]))
    (folder / "b.tfrecord").write_bytes(gzip.compress(write_frames(RECORDS[90:])))
    return folder


def ids_of(made: Any, part: str) -> list[int]:
    return [row["id"] for file in made.files if file.split == part for row in tfrkit.open(file.path)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"seed": 7},
        {"stratify": "label"},
        {"group": "patient"},
        {"group": "patient", "stratify": "label", "seed": 3},
        {"hash_by": "id"},
    ],
)
def test_parts_are_those_of_dataset_split(source: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    parts = {"train": 0.7, "val": 0.1, "test": 0.2}
    made = split(source, tmp_path / "out", parts, shards=3, **options)
    expected = tfrkit.open(source).split(parts, **options)
    for name, part in zip(expected.names, expected, strict=True):
        numbers = part._get_order().at(np.arange(len(part), dtype=np.uint64))
        assert ids_of(made, name) == sorted(numbers.tolist())
    assert set(expected.notes) <= set(made.notes)
    assert made.records == 200


def test_counts_and_the_rest(source: Path, tmp_path: Path) -> None:
    made = split(source, tmp_path / "out", {"test": 13, "train": None})
    assert made.splits == {"test": 13, "train": 187}
    assert tfrkit.open(tmp_path / "out").splits == {"test": 13, "train": 187}
    assert made.seed == 0


def test_shards_of_each_part(source: Path, tmp_path: Path) -> None:
    made = split(source, tmp_path / "out", {"train": 0.99, "test": 0.01}, shards=5)
    names = [Path(file.path).name for file in made.files]
    assert names[0] == "out-train.tfrecord-00000-of-00005"
    assert names[5:] == ["out-test.tfrecord-00000-of-00002", "out-test.tfrecord-00001-of-00002"]
    assert [file.records for file in made.files] == [39, 40, 39, 40, 40, 1, 1]


def test_splits_that_are_there_are_put_together_with_a_note(tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / f"{name}.tfrecord").write_bytes(write_frames(RECORDS))
    made = split(f"{tmp_path}/t*.tfrecord", tmp_path / "out", {"train": 0.5, "test": 0.5})
    assert "the splits that the files name were combined: test, train" in made.notes


def test_raw_records_are_split(tmp_path: Path) -> None:
    (tmp_path / "raw.tfrecord").write_bytes(write_frames([b"line %d" % number for number in range(10)]))
    made = split(tmp_path / "raw.tfrecord", tmp_path / "out", {"a": 0.5, "b": 0.5})
    assert made.splits == {"a": 5, "b": 5}
    assert not (tmp_path / "out" / "features.json").exists()


def test_wrong_arguments_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="split expected a folder to write to, got .*x.tfrecord"):
        split(source, tmp_path / "x.tfrecord", {"a": 1.0})
    with pytest.raises(ValueError, match="split name expected letters, digits and _, got 'a/b'"):
        split(source, tmp_path / "out", {"a/b": 1.0})
    with pytest.raises(ValueError, match="ratios sum to 0.5"):
        split(source, tmp_path / "out", {"a": 0.5})
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        split(source, tmp_path / "out", {"a": 0.5, "b": 0.5}, stratify="lable")
    with pytest.raises(ValueError, match="split into xz expected at most 512 shards, got 800"):
        big = tmp_path / "big.tfrecord"
        big.write_bytes(write_frames([b"x"] * 2000))
        split(big, tmp_path / "out", {"a": 0.5, "b": 0.5}, shards=400, compression="xz")
    assert not (tmp_path / "out").exists()
