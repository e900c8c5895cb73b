from __future__ import annotations

import numpy as np
import pytest

from tfrkit.ops.verify.record import describe_range, judge_corners
from tfrkit.ops.verify.rules import ClassRange

SIZE = (100, 200)  # height, width


@pytest.mark.parametrize(
    ("box", "problem"),
    [
        ((0.0, 0.0, 1.0, 1.0), None),
        ((0.1, 0.2, 0.3, 0.4), None),
        ((-0.001, 0.0, 1.001, 1.001), None),  # less than half a pixel
        ((0.0, 0.0, 1.1, 1.0), "box 0 (0, 0, 1.1, 1) is outside its image, expected 0 to 1"),
        ((-0.1, 0.0, 1.0, 1.0), "box 0 (-0.1, 0, 1, 1) is outside its image, expected 0 to 1"),
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
        ((0.0, 0.0, 100.0, 200.0), "box 0 (0, 0, 100, 200) is outside its image, expected 200x100 pixels"),
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


def test_range_is_described() -> None:
    assert describe_range(ClassRange(1, 4, "classes.txt")) == "1 to 3 as classes.txt says"
    assert describe_range(ClassRange(0, 2, "the schema", also=frozenset({255, -1}))) == (
        "0 to 1 as the schema says, or -1, or 255"
    )
