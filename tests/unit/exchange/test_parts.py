"""Shards written by tasks of another program appear together, or not at all."""

from __future__ import annotations

import json

import pytest

import tfrkit as tfr
from tfrkit.errors import StorageError
from tfrkit.exchange.parts import PartsOutput

arrow = pytest.importorskip("pyarrow")


def begin(path, **options):
    return PartsOutput.begin(str(path), **{"compression": "none", "floats": "ask", "force": False, **options})


def make_tables(*numbers):
    return [arrow.table({"x": [number], "name": [f"n{number}"]}) for number in numbers]


def test_parts_become_shards_in_the_order_of_their_numbers(tmp_path):
    output = begin(tmp_path / "out")
    parts = [output.write(number, make_tables(number, number + 10)) for number in (2, 0, 1)]
    output.commit(parts, "test")
    assert [row["x"] for row in tfr.open(tmp_path / "out")] == [0, 10, 1, 11, 2, 12]
    assert tfr.tools.verify(tmp_path / "out").ok
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    manifest = json.loads((tmp_path / "out" / "tfrkit.json").read_text())
    assert [shard["records"] for shard in manifest["shards"]] == [2, 2, 2]


def test_a_task_that_ran_twice_counts_once(tmp_path):
    output = begin(tmp_path / "out", compression="gzip")
    output.write(0, make_tables(1))
    output.commit([output.write(0, make_tables(1))], "test")
    assert [row["x"] for row in tfr.open(tmp_path / "out")] == [1]


def test_task_without_rows_writes_no_shard(tmp_path):
    output = begin(tmp_path / "out")
    assert output.write(0, []) is None
    output.commit([], "test")
    assert len(tfr.open(tmp_path / "out")) == 0


def test_abort_leaves_nothing(tmp_path):
    output = begin(tmp_path / "out")
    output.write(0, make_tables(1))
    output.abort()
    assert list(tmp_path.iterdir()) == []


def test_existing_output_is_refused_and_replaced_by_force(tmp_path):
    tfr.build([{"y": 1}], tmp_path / "out", jobs=1)
    with pytest.raises(StorageError, match="the output exists already"):
        begin(tmp_path / "out")
    output = begin(tmp_path / "out", force=True)
    output.commit([output.write(0, make_tables(5))], "test")
    assert [row["x"] for row in tfr.open(tmp_path / "out")] == [5]


def test_remote_address_and_file_name_are_refused(tmp_path):
    with pytest.raises(StorageError, match="expected a folder that all workers see, got a remote address"):
        begin("s3://bucket/out")
    with pytest.raises(StorageError, match="expected a folder to write, got the name of a file"):
        begin(tmp_path / "out.tfrecord")


def test_shard_that_this_machine_does_not_see_is_reported(tmp_path):
    output = begin(tmp_path / "out")
    part = output.write(0, make_tables(1))._replace(path=str(tmp_path / "elsewhere.tfrecord"))
    with pytest.raises(StorageError, match="a worker wrote a shard that this machine does not see"):
        output.commit([part], "test")
    assert not (tmp_path / "out").exists()
