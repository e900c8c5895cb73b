"""Shards are read on their own, with the columns of the whole dataset."""

from __future__ import annotations

import copy

import pytest

import tfrkit as tfr
from tfrkit.exchange.shard_reads import ShardReads

arrow = pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        with tfr.Writer(tmp_path / f"x-{number:05d}-of-00003.tfrecord") as writer:
            for index in range(4):
                writer.write({"x": 10 * number + index, **({"rare": index} if number == 2 else {})})
    return tmp_path


def test_every_shard_has_the_columns_of_all_records(folder):
    reads = ShardReads.of(folder)
    tables = [arrow.Table.from_batches(list(copy.deepcopy(reads).read([path]))) for path in reads.paths]
    assert [table.column_names for table in tables] == [["rare", "x"]] * 3
    assert tables[0]["rare"].to_pylist() == [None] * 4
    assert tables[2]["x"].to_pylist() == [20, 21, 22, 23]
    assert reads.describe().names == ["rare", "x"]


def test_only_the_chosen_features_are_read(folder):
    reads = ShardReads.of(folder, features=["x"])
    assert reads.describe().names == ["x"]
    (batch,) = reads.read(reads.paths[:1])
    assert batch.schema.names == ["x"]


def test_dataset_of_one_shard_has_columns_and_sizes(tmp_path):
    with tfr.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write({"x": 1})
    reads = ShardReads.of(tmp_path)
    assert reads.describe().names == ["x"]
    (tmp_path / "y.tfrecord").touch()
    assert ShardReads.of(tmp_path).nbytes == ((tmp_path / "x.tfrecord").stat().st_size, 0)
