from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.build import task
from tfrkit.build.journal import BadItem, read_done
from tfrkit.build.task import CheckTask, JoinTask, ReadTask, ShardTask, rename_row
from tfrkit.errors import SourceError
from tfrkit.sources.base import ColumnReader, Items, ItemsBuilder, RowReader


class Squares(RowReader):
    """Rows of numbers; those divisible by `bad` cannot be read."""

    def __init__(self, bad: int = 0) -> None:
        self.bad = bad

    def read(self, item):
        if self.bad and item.number % self.bad == 0:
            raise SourceError("number is bad")
        return {"x": item.number, "y": item.number**2}

    def take_facts(self):
        return {}


class SquareColumns(ColumnReader):
    def __init__(self) -> None:
        self.blocks = []

    def read_columns(self, numbers):
        self.blocks.append(len(numbers))
        return {"x": numbers, "y": numbers**2}


def make_items(size: int):
    builder = ItemsBuilder()
    for number in range(size):
        builder.add(f"{number:05d}", nbytes=10)
    return builder.build().take(np.arange(size))


def run(work, ticks=None):
    return work.run(lambda *counts: ticks.append(counts) if ticks is not None else None)


def values(path) -> list[int]:
    return [row["x"] for row in tfr.open(path)]


def test_shard_is_written_with_index_checksum_and_marker(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    ticks = []
    result = run(ShardTask(path, make_items(5), Squares()), ticks)
    assert values(path) == [0, 1, 2, 3, 4]
    assert (result.num_records, result.nbytes, result.nbytes_in) == (5, os.path.getsize(path), 50)
    assert result.sha256 == hashlib.sha256((tmp_path / "s.tfrecord").read_bytes()).hexdigest()
    assert read_done(path) == result
    assert (tmp_path / "_index/s.tfrecord.tfidx").exists()
    assert ticks == [(1, 10, 0)] * 5


def test_a_second_worker_that_ends_later_leaves_the_shard_of_the_first(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    inodes = []

    class Overtaken(Squares):
        def read(self, item):
            if not inodes:
                run(ShardTask(path, make_items(5), Squares()))
                inodes.append(os.stat(path).st_ino)
            return super().read(item)

    result = run(ShardTask(path, make_items(5), Overtaken()))
    assert (os.stat(path).st_ino, result) == (inodes[0], read_done(path))
    assert run(ShardTask(path, make_items(5), Squares())) == result  # asked for again, it is written again
    assert os.stat(path).st_ino != inodes[0]


def test_bad_inputs_are_skipped_when_requested(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    result = run(ShardTask(path, make_items(5), Squares(bad=2), on_bad="skip"))
    assert values(path) == [1, 3]
    assert result.bad == [BadItem(key, "number is bad") for key in ("00000", "00002", "00004")]


def test_bad_inputs_leave_no_shard_and_are_all_named(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    result = run(ShardTask(path, make_items(5), Squares(bad=2)))
    assert [item.key for item in result.bad] == ["00000", "00002", "00004"]
    assert os.listdir(tmp_path) == []


def test_row_that_cannot_be_written_stops_with_its_key(tmp_path):
    class Odd(Squares):
        def read(self, item):
            return {"x": item.number if item.number != 2 else "text"}

    with pytest.raises(SourceError, match=r"feature 'x' expected int64 as in rows before, got bytes - at 00002"):
        run(ShardTask(str(tmp_path / "s.tfrecord"), make_items(5), Odd()))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("num_parts", [2, 3, 5])
def test_parts_joined_are_the_shard(tmp_path, num_parts):
    whole = ShardTask(str(tmp_path / "whole"), make_items(7), Squares(bad=3), on_bad="skip")
    expected = run(whole)
    path = str(tmp_path / "s")
    cut = ShardTask(path, make_items(7), Squares(bad=3), on_bad="skip")
    for part in range(num_parts):
        run(cut.cut(part, num_parts, 7 * part // num_parts, 7 * (part + 1) // num_parts))
    result = run(JoinTask(path, num_parts))
    assert (tmp_path / "s").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (result.num_records, result.sha256, result.bad) == (expected.num_records, expected.sha256, expected.bad)
    assert sorted(os.listdir(tmp_path)) == ["_index", "s", "s.done.json", "whole", "whole.done.json"]


def test_parts_are_joined_where_the_kernel_does_not_copy(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    test_parts_joined_are_the_shard(tmp_path, 3)


def test_join_without_all_parts_raises(tmp_path):
    path = str(tmp_path / "s")
    run(ShardTask(path, make_items(4), Squares()).cut(0, 2, 0, 2))
    with pytest.raises(SourceError, match="a part of a shard is missing"):
        run(JoinTask(path, 2))


def test_columns_are_read_in_blocks_that_grow_with_small_rows(tmp_path):
    reader = SquareColumns()
    path = str(tmp_path / "s.tfrecord")
    result = run(ShardTask(path, Items(40_000).take(np.arange(40_000)), reader))
    assert result.num_records == 40_000
    assert reader.blocks[0] == 64
    assert max(reader.blocks) <= 1 << 14
    assert len(tfr.open(path)) == 40_000
    assert tfr.open(path)[39_999] == {"x": 39_999, "y": 39_999**2}


def test_blocks_of_large_rows_stay_small(tmp_path):
    class Wide(ColumnReader):
        blocks = []

        def read_columns(self, numbers):
            self.blocks.append(len(numbers))
            return {"x": np.zeros((len(numbers), 1 << 17), np.float32)}

    run(ShardTask(str(tmp_path / "s.tfrecord"), Items(100).take(np.arange(100)), Wide()))
    assert max(Wide.blocks[1:]) <= 32


def test_columns_give_the_bytes_of_rows(tmp_path):
    run(ShardTask(str(tmp_path / "rows"), make_items(300), Squares()))
    run(ShardTask(str(tmp_path / "columns"), Items(300).take(np.arange(300)), SquareColumns()))
    assert (tmp_path / "rows").read_bytes() == (tmp_path / "columns").read_bytes()


def test_read_task_names_the_bad_and_writes_nothing(tmp_path):
    ticks = []
    result = run(ReadTask("items", make_items(5), Squares(bad=3)), ticks)
    assert result.bad == [BadItem("00000", "number is bad"), BadItem("00003", "number is bad")]
    assert result.num_records == 3
    assert [bad for _, _, bad in ticks] == [1, 0, 0, 1, 0]


def test_check_task_keeps_a_sound_shard_and_drops_a_damaged_one(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    result = run(ShardTask(path, make_items(5), Squares()))
    assert run(CheckTask(path)) == result
    data = bytearray((tmp_path / "s.tfrecord").read_bytes())
    data[20] ^= 1
    (tmp_path / "s.tfrecord").write_bytes(data)
    assert run(CheckTask(path)) is None
    assert not os.path.exists(path)


def test_check_task_requires_the_index(tmp_path):
    path = str(tmp_path / "s.tfrecord")
    run(ShardTask(path, make_items(5), Squares()))
    (tmp_path / "_index/s.tfrecord.tfidx").unlink()
    assert run(CheckTask(path)) is None


def test_renaming_reaches_into_sequences():
    row = {"context": {"a": 1}, "feature_lists": {"b": [2]}}
    assert rename_row(row, {"a": "x", "b": "y"}) == {"context": {"x": 1}, "feature_lists": {"y": [2]}}
    assert rename_row({"a": 1, "c": 2}, {"a": "x"}) == {"x": 1, "c": 2}


@pytest.mark.parametrize(
    ("error", "reason", "hint"),
    [
        (SourceError("what", shard="x", hint="y"), "what", "y"),
        (PermissionError(13, "Permission denied", "x"), "cannot read, permission denied", ""),
        (OSError("odd"), "odd", ""),
    ],
)
def test_reasons_leave_out_the_place_and_keep_the_hint(error, reason, hint):
    assert task.describe_bad("x", error) == ("x", reason, hint)
