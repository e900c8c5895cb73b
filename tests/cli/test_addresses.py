"""Addresses of stores: one message, exit code 2, no output."""

from __future__ import annotations

from pathlib import Path

import pytest

ADDRESS = "s3://bucket/x"
READING = ["info", "count", "head", "tail", "cat", "schema", "verify", "index", "stats", "bench"]
WRITING = {
    "merge": [],
    "shuffle": [],
    "reshard": ["--shards", "2"],
    "split": ["--split", "a=.5,b=.5"],
    "convert": [],
    "repair": [],
    "sample": ["-n", "2"],
    "edit": ["--where", "label = 1", "--drop"],
    "dedupe": [],
    "export images": [],
    "export jsonl": [],
}


def check(ran, folder: Path) -> None:
    assert ran.out == ""
    [first, second] = ran.err.splitlines()
    assert first.startswith("tfr: expected a path of this machine, got an address (s3://) - at s3:")
    assert "aws s3 cp" in second
    assert not (folder / "s3:").exists()


@pytest.mark.parametrize("command", READING)
def test_reading_from_a_store_is_refused(tfr, tmp_path: Path, command: str) -> None:
    check(tfr(command, ADDRESS, code=2), tmp_path)


@pytest.mark.parametrize("command", WRITING)
def test_writing_to_a_store_is_refused(tfr, tmp_path: Path, sample: Path, command: str) -> None:
    ran = tfr(*command.split(), sample, "-o", f"{ADDRESS}.tfrecord", *WRITING[command], code=2)
    check(ran, tmp_path)


@pytest.mark.parametrize(
    "source", ["class-folders", "table", "arrays", "coco", "csv-boxes", "yolo", "webdataset", "tfrecord"]
)
def test_building_from_a_store_is_refused(tfr, tmp_path: Path, source: str) -> None:
    check(tfr("build", source, ADDRESS, "-o", "out", code=2), tmp_path)


def test_building_into_a_store_is_refused(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    check(tfr("build", "table", "t.csv", "-o", ADDRESS, code=2), tmp_path)


def test_query_of_a_store_is_refused(tfr, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    ran = tfr("sql", f"select * from '{ADDRESS}'", code=2)
    assert "got an address (s3://)" in ran.err
