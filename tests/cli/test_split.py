"""`tfr split`: parts as files, the seed printed, wrong sizes refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit


def test_split_writes_parts_and_prints_the_seed(tfr, sample: Path) -> None:
    done = tfr("split", "sample.tfrecord", "-o", "out/", "--split", "train=.8,test=.2", "--seed", 4)
    assert done.lines[:2] == ["train: 8 records in 1 file", "test: 2 records in 1 file"]
    assert done.lines[2].startswith("out/: 10 records in 2 files, 1.9 kB, seed 4")
    assert tfr("count", "out", "--format", "json").json["records"] == 10
    assert tfr("verify", "out").lines == ["ok, 10 records"]


def test_split_json_and_rest_and_percent(tfr, sample: Path) -> None:
    result = tfr("split", "sample.tfrecord", "-o", "out", "--split", "test=30%,train=rest", "--format", "json").json
    assert set(result) == {"output", "records", "nbytes", "compression", "seed", "splits", "files", "notes"}
    assert result["splits"] == {"test": 3, "train": 7}
    assert result["seed"] == 0
    rows = tfr("split", "sample.tfrecord", "-o", "other", "--split", "a=.5,b=.5", "--format", "csv").lines
    assert rows[0] == "path,split,records,nbytes"
    assert rows[1].startswith("other/other-a.tfrecord-00000-of-00001,a,5,")


def test_split_groups_stay_together_and_are_reported(tfr, sample: Path) -> None:
    done = tfr("split", "sample.tfrecord", "-o", "out", "--split", "a=.5,b=.5", "--group", "label")
    assert "no label is in two parts" in done.err


def test_split_wrong_usage_exits_2(tfr, sample: Path) -> None:
    assert "ratios sum to 0.5" in tfr("split", "sample.tfrecord", "-o", "out", "--split", "a=.5", code=2).err
    assert "--split" in tfr("split", "sample.tfrecord", "-o", "out", code=2).err
    assert "got 'x.txt'" in tfr("split", "sample.tfrecord", "-o", "out", "--split", "a=x.txt", code=2).err


def test_split_existing_folder_exits_3(tfr, sample: Path) -> None:
    tfr("split", "sample.tfrecord", "-o", "out", "--split", "a=.5,b=.5")
    again = ("split", "sample.tfrecord", "-o", "out", "--split", "a=.5,b=.5")
    assert "replace it: --force" in tfr(*again, code=3).err
    tfr(*again, "--force")


def test_split_unknown_feature_suggests_the_nearest(tfr, sample: Path) -> None:
    done = tfr("split", "sample.tfrecord", "-o", "out", "--split", "a=.5,b=.5", "--stratify", "lable", code=3)
    assert "did you mean 'label' - at sample.tfrecord\n  see what is there: tfr info sample.tfrecord" in done.err


@pytest.mark.parametrize("option", ["--stratify", "--group", "--hash-by"])
def test_split_by_a_float_exits_3_with_a_hint(tfr, tmp_path: Path, option: str) -> None:
    with tfrkit.Writer(tmp_path / "f.tfrecord") as writer:
        for number in range(4):
            writer.write({"weight": number / 2})
    done = tfr("split", "f.tfrecord", "-o", "out", "--split", "a=.5,b=.5", option, "weight", code=3)
    assert done.err.splitlines() == [
        "tfr: feature 'weight' expected integers or bytes, got floats - at f.tfrecord",
        "  see what is there: tfr info f.tfrecord",
    ]
    assert not (tmp_path / "out").exists()
