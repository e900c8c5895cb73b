from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.errors import CodecError
from tfrkit.features.schema import Schema
from tfrkit.pictures.features import BoxFeatures, BoxOrder
from tfrkit.pictures.values import flatten_row, list_values, read_corners


def test_row_is_flattened_by_the_kind_of_its_schema() -> None:
    row = {"context": {"a": 1}, "feature_lists": {"b": [2]}}
    assert flatten_row(row, Schema({"a": "int64"}, feature_lists={"b": "int64"})) == {"a": 1, "b": [2]}
    assert flatten_row(row, Schema({"context": "int64", "feature_lists": "int64"})) == row


def test_corners_of_four_lists_and_of_fours() -> None:
    names = ("xmin", "ymin", "xmax", "ymax")
    values: dict[str, Any] = {name: np.array([number, 10 + number], np.float32) for number, name in enumerate(names)}
    assert read_corners(values, BoxFeatures(names)).tolist() == [[0, 1, 2, 3], [10, 11, 12, 13]]
    fours = {"bbox": np.array([[1, 0, 3, 2]], np.float32)}
    assert read_corners(fours, BoxFeatures(("bbox",))).tolist() == [[0, 1, 2, 3]]
    assert len(read_corners({}, BoxFeatures(names))) == 0


def test_corners_that_do_not_belong_together_raise() -> None:
    with pytest.raises(CodecError, match="boxes expected four lists of equal length, got 2, 1, 1, 1"):
        read_corners({"a": [1.0, 2.0], "b": [1.0], "c": [1.0], "d": [1.0]}, BoxFeatures(("a", "b", "c", "d")))
    with pytest.raises(CodecError, match="boxes expected four numbers each, got 3 in all"):
        read_corners({"bbox": [1.0, 2.0, 3.0]}, BoxFeatures(("bbox",)))


@pytest.mark.parametrize(
    ("value", "values"),
    [
        (None, []),
        (b"a", [b"a"]),
        (3, [3]),
        ([b"a", b"b"], [b"a", b"b"]),
        (np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
        ([np.array([1]), None, [b"x", [2]]], [1, b"x", 2]),
    ],
)
def test_values_are_found_at_any_depth(value: Any, values: list[Any]) -> None:
    assert list_values(value) == values


@pytest.mark.parametrize(
    ("order", "numbers"),
    [
        ("xyxy", [1.0, 2.0, 5.0, 8.0]),
        ("yxyx", [2.0, 1.0, 8.0, 5.0]),
        ("xywh", [1.0, 2.0, 4.0, 6.0]),
        ("cxcywh", [3.0, 5.0, 4.0, 6.0]),
    ],
)
def test_every_order_of_one_list_gives_the_same_corners(order: BoxOrder, numbers: list[float]) -> None:
    assert read_corners({"b": numbers}, BoxFeatures(("b",), order=order)).tolist() == [[1, 2, 5, 8]]
