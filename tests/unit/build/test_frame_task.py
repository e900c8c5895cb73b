from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.build.frame_task import FrameTask, count_parts
from tfrkit.build.journal import read_done
from tfrkit.build.task import JoinTask, ShardTask
from tfrkit.codec.column_frames import frame_columns
from tfrkit.sources.base import FrameReader, Items

NUM_ROWS = 1000


class Squares(FrameReader):
    """Frames of numbers; fails at row `bad`."""

    row_nbytes = 16.0

    def __init__(self, bad: int = -1) -> None:
        self.bad = bad

    def read_columns(self, numbers):
        return {"x": numbers, "y": numbers**2}

    def open_framer(self, keys):
        def frame(numbers):
            if self.bad in numbers:
                raise MemoryError("no room for this row")
            columns = {keys.get(name, name): values for name, values in self.read_columns(numbers).items()}
            return frame_columns(columns, floats="ask")

        return frame


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(LIMITS, "frame_rows", 7)


def take(numbers):
    return Items(NUM_ROWS).take(np.asarray(numbers))


def run(task):
    return task.run(lambda *counts: None)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_shard_bytes_do_not_depend_on_threads(tmp_path, threads):
    numbers = np.random.default_rng(1).permutation(NUM_ROWS)
    one, many = str(tmp_path / "one"), str(tmp_path / "many")
    expected = run(ShardTask(one, take(numbers), Squares()))
    result = run(FrameTask(many, take(numbers), Squares(), threads=threads))
    with open(one, "rb") as slow, open(many, "rb") as fast:
        assert fast.read() == slow.read()
    assert (result.num_records, result.nbytes, result.sha256) == (NUM_ROWS, expected.nbytes, expected.sha256)
    assert read_done(many) == result
    index_one, index_many = (tmp_path / f"_index/{name}.tfidx" for name in ("one", "many"))
    assert index_many.read_bytes() == index_one.read_bytes()


def test_features_are_renamed(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    run(FrameTask(path, take([3]), Squares(), keys={"x": "number"}))
    assert list(tfr.open(path)) == [{"number": 3, "y": 9}]


def test_shard_without_rows_is_empty(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    assert run(FrameTask(path, take(np.empty(0, np.int64)), Squares(), threads=2)).num_records == 0
    assert os.path.getsize(path) == 0


def test_progress_counts_every_row_once(tmp_path):
    ticks = []
    FrameTask(str(tmp_path / "s"), take(np.arange(NUM_ROWS)), Squares(), threads=2).run(
        lambda *counts: ticks.append(counts)
    )
    assert sum(count for count, _, _ in ticks) == NUM_ROWS
    assert {tick[1:] for tick in ticks} == {(0, 0)}


@pytest.mark.parametrize("threads", [1, 3])
def test_failure_leaves_nothing(tmp_path, threads):
    with pytest.raises(MemoryError, match="no room"):
        run(FrameTask(str(tmp_path / "s"), take(np.arange(NUM_ROWS)), Squares(bad=500), threads=threads))
    assert os.listdir(tmp_path) == []


def test_parts_join_to_the_shard(tmp_path):
    whole, path = str(tmp_path / "whole"), str(tmp_path / "s")
    expected = run(FrameTask(whole, take(np.arange(NUM_ROWS)), Squares()))
    task = FrameTask(path, take(np.arange(NUM_ROWS)), Squares(), threads=2)
    for part in range(3):
        run(task.cut(part, 3, NUM_ROWS * part // 3, NUM_ROWS * (part + 1) // 3))
        assert not os.path.exists(tmp_path / "_index" / f"s.part-{part:05d}-of-00003.tfidx")
    joined = run(JoinTask(path, 3))
    with open(path, "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == joined.sha256 == expected.sha256


def test_only_large_shards_are_cut():
    assert [count_parts(nbytes) for nbytes in (0, 1, 1 << 30, (1 << 30) + 1, 1 << 35)] == [1, 1, 1, 2, 32]
