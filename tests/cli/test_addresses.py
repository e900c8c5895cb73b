"""Addresses of stores: one message, exit code 2, no output."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

ADDRESS = "s3://bucket/x"
READING = ["info", "count", "head", "tail", "cat", "schema", "verify", "index", "stats"]
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
    assert first.startswith("tfr: expected a local path, got a remote address (s3://) - at s3:")
    assert "aws s3 cp" in second
    assert not (folder / "s3:").exists()


@pytest.mark.skipif(find_spec("obstore") is not None, reason="obstore is installed")
@pytest.mark.parametrize("command", READING)
def test_reading_from_a_store_without_the_client_prints_the_command_that_installs_it(
    tfr, tmp_path: Path, command: str
) -> None:
    ran = tfr(command, ADDRESS, code=2)
    [first, second] = ran.err.splitlines()
    assert first == f"tfr: s3:// needs obstore, which is not installed - at {ADDRESS}"
    assert "pip install 'tfrkit[remote]'" in second
    assert not (tmp_path / "s3:").exists()


def test_local_verb_refuses_a_store(tfr, tmp_path: Path) -> None:
    check(tfr("bench", ADDRESS, code=2), tmp_path)


def test_change_in_place_of_a_store_is_refused(tfr, tmp_path: Path) -> None:
    ran = tfr("edit", ADDRESS, "--where", "label = 1", "--drop", "--in-place", code=2)
    [first, second] = ran.err.splitlines()
    assert first == f"tfr: in place expected a local path, got a remote address (s3://) - at {ADDRESS}"
    assert "write a copy to another address: -o" in second


@pytest.mark.skipif(find_spec("obstore") is not None, reason="obstore is installed")
@pytest.mark.parametrize("command", list(WRITING))
def test_writing_to_a_store_without_the_client_prints_the_command_that_installs_it(
    tfr, tmp_path: Path, sample: Path, command: str
) -> None:
    out = "s3://bucket/out/" if command in ("reshard", "split") else f"{ADDRESS}.tfrecord"
    ran = tfr(*command.split(), sample, "-o", out, *WRITING[command], code=2)
    [first, second] = ran.err.splitlines()
    assert first.startswith("tfr: s3:// needs obstore, which is not installed - at s3:")
    assert "pip install 'tfrkit[remote]'" in second
    assert not (tmp_path / "s3:").exists()


@pytest.mark.parametrize("source", ["arrays", "webdataset", "tfrecord"])
def test_building_from_a_store_is_refused(tfr, tmp_path: Path, source: str) -> None:
    check(tfr("build", source, ADDRESS, "-o", "out", code=2), tmp_path)


@pytest.mark.skipif(find_spec("obstore") is not None, reason="obstore is installed")
@pytest.mark.parametrize("source", ["class-folders", "table", "coco", "csv-boxes", "yolo"])
def test_building_from_a_store_without_the_client_prints_the_command_that_installs_it(
    tfr, tmp_path: Path, source: str
) -> None:
    ran = tfr("build", source, ADDRESS, "-o", "out", code=2)
    assert ran.err.startswith("tfr: s3:// needs obstore, which is not installed - at s3:")
    assert "pip install 'tfrkit[remote]'" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(find_spec("obstore") is not None, reason="obstore is installed")
def test_building_into_a_store_without_the_client_prints_the_command_that_installs_it(tfr, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    ran = tfr("build", "table", "t.csv", "-o", ADDRESS, code=2)
    assert ran.err.startswith("tfr: s3:// needs obstore, which is not installed - at s3:")
    assert "pip install 'tfrkit[remote]'" in ran.err
    assert not (tmp_path / "s3:").exists()


@pytest.mark.skipif(find_spec("obstore") is not None, reason="obstore is installed")
def test_query_of_a_store_is_refused(tfr, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    ran = tfr("sql", f"select * from '{ADDRESS}'", code=2)
    assert "needs obstore" in ran.err
