"""Rows through `map`: results of the function, never stacked; batches as without `map`."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit._types import Row
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.errors import MissingFeatureError, ShapeError


def same(row: Row) -> Row:
    return row


def write(path: Path, rows: list[Row]) -> tfrkit.Dataset:
    with tfrkit.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return tfrkit.open(path)


def picture(height: int, width: int) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), (7, 7, 7)).save(made, "PNG")
    return made.getvalue()


ROWS: dict[str, list[Row]] = {
    "absent number": [{"a": 1}, {"a": 2, "opt": 5}, {"a": 3}],
    "absent bytes": [{"a": 1, "b": b"x"}, {"a": 2}],
    "absent list": [{"a": 1, "v": [1, 2]}, {"a": 2}, {"a": 3, "v": [3]}],
    "no kind set": [{"a": 1, "v": None}, {"a": 2, "v": 3}],
    "empty list": [{"a": 1, "v": np.array([], np.int64)}, {"a": 2, "v": 3}],
    "arrays of two shapes": [{"m": np.zeros((2, 3), np.uint8)}, {"m": np.ones((4, 1), np.uint8)}],
    "arrays of two lengths": [{"m": np.zeros(2, np.uint8)}, {"m": np.ones(4, np.uint8)}],
    "arrays of two dtypes": [{"m": np.zeros(2, np.uint8)}, {"m": np.ones(2, np.float64)}],
    "absent arrays": [{"a": 1, "m": np.zeros((2, 3), np.uint8)}, {"a": 2}],
    "lists of bytes": [{"b": [b"x", b"yy"]}, {"b": []}],
    "frames": [
        {"context": {"id": 1}, "feature_lists": {"f": [[1, 2], [3]], "t": [b"x"], "n": [[1.5, 2], [3, 4]]}},
        {"context": {"id": 2, "c": 1}, "feature_lists": {"f": [[4]], "t": [b"y", b"z"], "n": []}},
        {"context": {"id": 3}, "feature_lists": {"f": [], "n": [[1, 0]]}},
    ],
    "frames of several bytes": [
        {"context": {"id": 1}, "feature_lists": {"t": [[b"x", b"y"], []]}},
        {"context": {"id": 2}, "feature_lists": {"t": []}},
    ],
}


def plain(column: Any) -> Any:
    """A column as Python lists with its presence, to compare it."""
    if isinstance(column, dict):
        return {name: plain(value) for name, value in column.items()}
    if isinstance(column, Ragged):
        rows = [plain(row) for row in column]
        states = None if column.presence is None else column.presence.tolist()
        return rows if states is None or set(states) == {2} else (rows, states)
    if isinstance(column, (BytesColumn, list)):
        return [plain(value) for value in column]
    return column.tolist() if isinstance(column, np.ndarray) else column


def dtypes(column: Any) -> Any:
    if isinstance(column, (Ragged, BytesColumn)):
        return dtypes(column.values) if isinstance(column, Ragged) else "bytes"
    return [value.dtype.name for value in column] if isinstance(column, list) else column.dtype.name


@pytest.mark.parametrize("name", ROWS)
def test_rows_through_map_are_those_without_it(name: str, tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", ROWS[name])
    mapped = ds.map(same)
    wanted = list(map(plain, ds))
    assert list(map(plain, mapped)) == wanted
    assert list(map(plain, mapped.map(same))) == wanted
    assert list(map(plain, mapped[:])) == wanted
    assert [plain(mapped[number]) for number in range(len(ds))] == wanted


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_batches_through_map_hold_what_they_hold_without_it(name: str, size: int, tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", ROWS[name])
    for batch, wanted in zip(ds.map(same).batch(size), ds.batch(size), strict=True):
        assert list(batch) == list(wanted)
        assert flatten(plain(batch)) == flatten(plain(wanted))


def flatten(values: Any) -> Any:
    """Rows of one value as that value: an array where all rows have one, `Ragged` of ones without map."""
    if isinstance(values, dict):
        return {name: flatten(value) for name, value in values.items()}
    if isinstance(values, list):
        return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in values]
    return values


def test_a_feature_that_some_rows_of_a_batch_lack_keeps_its_presence(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1}, {"a": 2, "opt": 5}, {"a": 3, "opt": None}])
    column = next(iter(ds.map(same).batch(3)))["opt"]
    assert isinstance(column, Ragged)
    assert column.values.tolist() == [5]
    assert column.presence is not None
    assert column.presence.tolist() == [0, 2, 1]


def test_a_feature_that_map_fills_in_is_an_array(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1}, {"a": 2, "opt": 5}])
    batch = next(iter(ds.map(lambda row: {"opt": row.get("opt", 0)}).batch(2)))
    assert {name: column.tolist() for name, column in batch.items()} == {"opt": [0, 5]}


def test_a_feature_that_map_leaves_out_stays_out(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 3, "opt": 5}])
    assert [list(batch) for batch in ds.map(lambda row: {"a": row["a"]}).batch(1)] == [["a"]] * 3


def test_feature_that_map_returns_for_some_rows_only_is_reported(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1}, {"a": 2}])
    mapped = ds.map(lambda row: row if row["a"] == 1 else {**row, "new": 1})
    assert list(mapped) == [{"a": 1}, {"a": 2, "new": 1}]
    with pytest.raises(MissingFeatureError, match="feature 'new' is in row 1 of the batch but not in row 0"):
        next(iter(mapped.batch(2)))


def test_pictures_of_two_sizes_pass_through_map(tmp_path: Path) -> None:
    sizes = [(4, 6), (5, 3), (5, 3)]
    ds = write(tmp_path / "a.tfrecord", [{"image": picture(*size), "n": n} for n, size in enumerate(sizes)])
    shapes = [(*size, 3) for size in sizes]
    for mapped in (ds.decode(image="image").map(same), ds.map(same).decode(image="image")):
        assert [row["image"].shape for row in mapped] == shapes
        assert [image.shape for image in next(iter(mapped.batch(3)))["image"]] == shapes
        assert next(iter(mapped.skip(1).batch(2)))["image"].shape == (2, 5, 3, 3)


def test_decoding_after_map_leaves_what_map_returned(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"image": picture(2, 2), "n": 1}, {"n": 2}])
    marks = [object(), object()]
    mapped = ds.map(lambda row: {**row, "mark": marks[row["n"] - 1]}).decode(image="image")
    rows = list(mapped)
    assert [row["mark"] for row in rows] == marks
    assert [sorted(row) for row in rows] == [["image", "mark", "n"], ["mark", "n"]]


@pytest.mark.parametrize("how", [lambda ds: ds, lambda ds: ds.map(same)])
def test_absent_pictures_and_texts_decode(how: Callable[[tfrkit.Dataset], tfrkit.Dataset], tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1, "image": picture(2, 3), "text": "ä"}, {"a": 2}])
    first, second = how(ds).decode(image="image", text="text")
    assert (first["image"].shape, first["text"], second) == ((2, 3, 3), "ä", {"a": 2})


def test_a_picture_that_does_not_decode_after_map_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write(path, [{"image": picture(2, 2), "n": 0}, {"image": b"\x89PNG\r\n\x1a\n", "n": 1}])
    ds = tfrkit.open(path, on_error="skip").map(same).decode(image="image")
    assert [row["n"] for row in ds] == [0]
    assert [error.record for error in ds.errors] == [1]


def test_values_that_do_not_stack_are_reported_only_for_a_batch(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1}, {"a": 2}])
    mapped = ds.map(lambda row: {"m": np.zeros((2, row["a"]))})
    assert [row["m"].shape for row in mapped] == [(2, 1), (2, 2)]
    with pytest.raises(ShapeError, match=r"'m' cannot be stacked, shape \(2, 1\) in row 0 of the batch, \(2, 2\)"):
        next(iter(mapped.batch(2)))


def test_padding_takes_optional_numbers_with_and_without_map(tmp_path: Path) -> None:
    ds = write(tmp_path / "a.tfrecord", [{"a": 1, "opt": 4}, {"a": 2, "opt": 5}, {"a": 3}])
    for how in (ds, ds.map(same)):
        padded = [batch["opt"].tolist() for batch in how.batch(2, pad={"opt": (0, 1)})]
        assert padded == [[[4], [5]], [[0]]]
