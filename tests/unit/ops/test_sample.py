from __future__ import annotations

from pathlib import Path

from tfrkit.ops.sample import head_rows
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
