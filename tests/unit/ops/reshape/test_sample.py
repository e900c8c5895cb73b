from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tfrkit.errors import CorruptRecordError
from tfrkit.ops.reshape.sample import cat_rows, head_rows, tail_rows
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import encode_example, write_frames


def test_first_rows_are_given(tmp_path: Path) -> None:
    for name, start in (("a", 0), ("b", 3)):
        rows = [encode_example({b"x": ("int64", [start + number])}) for number in range(3)]
        (tmp_path / f"{name}.tfrecord").write_bytes(write_frames(rows))
    assert list(head_rows(tmp_path, 4)) == [{"x": 0}, {"x": 1}, {"x": 2}, {"x": 3}]
    assert len(list(head_rows(tmp_path, 100))) == 6
    assert list(head_rows(tmp_path, 0)) == []


def test_records_that_are_no_examples_are_given_as_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([b"hello", b"world"]))
    assert list(head_rows(tmp_path, 1)) == [b"hello"]


def test_empty_dataset_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    assert list(head_rows(tmp_path, 3)) == []


def write_numbers(path: Path, start: int, stop: int) -> None:
    path.write_bytes(write_frames([encode_example({b"x": ("int64", [number])}) for number in range(start, stop)]))


def test_last_rows_are_given_with_their_numbers(tmp_path: Path) -> None:
    write_numbers(tmp_path / "a.tfrecord", 0, 3)
    write_numbers(tmp_path / "b.tfrecord", 3, 5)
    assert list(tail_rows(tmp_path, 3)) == [(2, {"x": 2}), (3, {"x": 3}), (4, {"x": 4})]
    assert len(list(tail_rows(tmp_path, 100))) == 5
    assert list(tail_rows(tmp_path, 0)) == []
    with pytest.raises(ValueError, match="of 0 or more, got -1"):
        list(tail_rows(tmp_path, -1))


def test_last_rows_of_a_pipe_are_given(tmp_path: Path) -> None:
    write_numbers(tmp_path / "a.tfrecord", 0, 2000)
    os.mkfifo(tmp_path / "pipe")
    data = (tmp_path / "a.tfrecord").read_bytes()
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    thread.start()
    assert list(tail_rows(tmp_path / "pipe", 2)) == [(1998, {"x": 1998}), (1999, {"x": 1999})]
    thread.join()


def test_all_rows_have_one_form_however_late_one_differs(tmp_path: Path) -> None:
    rows = [encode_example({b"x": ("int64", [number])}) for number in range(1000)]
    rows.append(encode_example({b"x": ("int64", [1, 2]), b"late": ("bytes", [b"y"])}))
    (tmp_path / "a.tfrecord").write_bytes(write_frames(rows))
    given = list(cat_rows(tmp_path))
    assert len(given) == 1001
    assert list(given[0]["x"]) == [0]
    assert given[-1]["late"] == b"y"
    assert "late" not in given[0]


def test_rows_before_damage_are_given(tmp_path: Path) -> None:
    write_numbers(tmp_path / "a.tfrecord", 0, 10)
    data = (tmp_path / "a.tfrecord").read_bytes()
    (tmp_path / "a.tfrecord").write_bytes(flip(data, len(data) - 6))
    rows = cat_rows(tmp_path)
    assert [next(rows)["x"] for _ in range(9)] == list(range(9))
    with pytest.raises(CorruptRecordError, match="record 9"):
        next(rows)


def test_all_rows_of_a_pipe_are_given_as_they_come(tmp_path: Path) -> None:
    rows = [encode_example({b"x": ("int64", [number])}) for number in range(600)]
    rows.append(encode_example({b"x": ("int64", [1, 2]), b"late": ("bytes", [b"y"])}))
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(write_frames(rows)))
    thread.start()
    given = list(cat_rows(tmp_path / "pipe"))
    thread.join()
    assert [row["x"] for row in given[:256]] == list(range(256))
    assert given[-1]["late"] == b"y"
    assert list(given[-1]["x"]) == [1, 2]
    assert len(given) == 601


def test_all_raw_records_are_given(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([b"hello", b"world"]))
    assert list(cat_rows(tmp_path)) == [b"hello", b"world"]
    assert list(tail_rows(tmp_path, 1)) == [(1, b"world")]
