from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.errors import CodecError
from tfrkit.ops.verify.record import describe_range, iter_values, judge_corners, read_corners
from tfrkit.ops.verify.rules import ClassRange

SIZE = (100, 200)  # height, width


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ((0.0, 0.0, 1.0, 1.0), None),
        ((0.1, 0.2, 0.3, 0.4), None),
        ((-0.001, 0.0, 1.001, 1.001), None),  # less than half a pixel
        ((0.0, 0.0, 1.1, 1.0), "box 0 (0, 0, 1.1, 1) lies outside its image, expected 0 to 1"),
        ((-0.1, 0.0, 1.0, 1.0), "box 0 (-0.1, 0, 1, 1) lies outside its image, expected 0 to 1"),
        ((0.5, 0.1, 0.2, 0.4), "box 0 (0.5, 0.1, 0.2, 0.4), expected xmin < xmax and ymin < ymax"),
        ((0.5, 0.1, 0.5, 0.4), "box 0 (0.5, 0.1, 0.5, 0.4), expected xmin < xmax and ymin < ymax"),
        ((float("nan"), 0.1, 0.5, 0.4), "box 0 (nan, 0.1, 0.5, 0.4), expected numbers"),
        ((0.0, 0.1, float("inf"), 0.4), "box 0 (0, 0.1, inf, 0.4), expected numbers"),
    ],
)
def test_box_in_fractions_is_checked(box: tuple[float, ...], problem: str | None) -> None:
    assert judge_corners(np.array([box]), SIZE, is_pixels=False) == problem


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ((0.0, 0.0, 200.0, 100.0), None),
        ((0.0, 0.0, 100.0, 200.0), "box 0 (0, 0, 100, 200) lies outside its image, expected 200x100 pixels"),
    ],
)
def test_box_in_pixels_is_checked_against_the_image(box: tuple[float, ...], problem: str | None) -> None:
    assert judge_corners(np.array([box]), SIZE, is_pixels=True) == problem


def test_box_without_an_image_is_partly_checked() -> None:
    assert judge_corners(np.array([[0, 0, 1e9, 1e9]]), None, is_pixels=True) is None
    assert judge_corners(np.array([[0, 0, 1.01, 1.0]]), None, is_pixels=False) is not None


def test_several_bad_boxes_are_one_problem() -> None:
    boxes = np.array([[0.1, 0.1, 0.2, 0.2], [0.5, 0.1, 0.2, 0.4], [0.1, 0.1, 9.0, 0.2]])
    assert judge_corners(boxes, SIZE, is_pixels=False) == (
        "box 1 (0.5, 0.1, 0.2, 0.4), expected xmin < xmax and ymin < ymax, and 1 more"
    )


def test_corners_of_four_lists_and_of_fours() -> None:
    names = ("xmin", "ymin", "xmax", "ymax")
    values: dict[str, Any] = {name: np.array([number, 10 + number], np.float32) for number, name in enumerate(names)}
    assert read_corners(values, names).tolist() == [[0, 1, 2, 3], [10, 11, 12, 13]]
    fours = {"bbox": np.array([[1, 0, 3, 2]], np.float32)}
    assert read_corners(fours, ("bbox",)).tolist() == [[0, 1, 2, 3]]
    assert len(read_corners({}, names)) == 0


def test_corners_of_unequal_length_raise() -> None:
    with pytest.raises(CodecError, match="boxes expected four lists of one length, got 2, 1, 1, 1"):
        read_corners({"a": [1.0, 2.0], "b": [1.0], "c": [1.0], "d": [1.0]}, ("a", "b", "c", "d"))
    with pytest.raises(CodecError, match="boxes expected four numbers each, got 3 in all"):
        read_corners({"bbox": [1.0, 2.0, 3.0]}, ("bbox",))


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
    assert list(iter_values(value)) == values


def test_range_is_described() -> None:
    assert describe_range(ClassRange(1, 4, "classes.txt")) == "1 to 3 as classes.txt says"
    assert describe_range(ClassRange(0, 2, "the schema", also=frozenset({255, -1}))) == (
        "0 to 1 as the schema says, or -1, or 255"
    )
