from __future__ import annotations

import numpy as np
import pytest

from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.pictures.colors import class_color
from tfrkit.pictures.features import find_picture_features
from tfrkit.pictures.masks import encode_indices
from tfrkit.pictures.picture import Box, PictureReader, fit_size, resize_nearest
from tfrkit.sidecars.class_names import ClassNames


def make_reader(schema: Schema, **given: str) -> PictureReader:
    return PictureReader(schema, find_picture_features(schema, **given), ClassNames.of_schema(schema, None), side=8)


def test_boxes_of_tfds_have_their_vertical_sides_first() -> None:
    names = ("a", "b", "c", "d", "e")
    schema = Schema(
        {
            "image": ("uint8", (4, 4, 3)),
            "objects/bbox": Spec("float", (None, 4), logical="boxes"),
            "objects/label": Spec("int64", (None,), logical="class_label", classes=names),
        }
    )
    reader = PictureReader(schema, find_picture_features(schema), ClassNames.of_schema(schema, None), side=128)
    corners = np.array([[0.5, 0.25, 0.75, 0.5]], np.float32)
    row = {"image": np.zeros((4, 4, 3), np.uint8), "objects/bbox": corners, "objects/label": np.array([4])}
    picture = reader.read(row)
    assert picture.boxes == [Box(0.25, 0.5, 0.5, 0.75, "e", class_color(4), 4)]
    assert (picture.label, picture.cause) == ("e", None)


@pytest.mark.parametrize(
    ("size", "fitted"),
    [
        ((375, 500), (96, 128)),
        ((28, 28), (112, 112)),
        ((128, 128), (128, 128)),
        ((1, 9999), (1, 128)),
        ((129, 1), (128, 1)),
    ],
)
def test_size_fits_the_square(size: tuple[int, int], fitted: tuple[int, int]) -> None:
    assert fit_size(*size, 128) == fitted


def test_nearest_takes_the_middle_of_each_pixel() -> None:
    numbers = np.arange(16).reshape(4, 4)
    assert resize_nearest(numbers, (2, 2)).tolist() == [[5, 7], [13, 15]]
    assert np.array_equal(resize_nearest(numbers, (8, 8))[::2, 1::2], numbers)


def test_mask_of_another_size_is_the_cause() -> None:
    schema = Schema({"image": ("uint8", (4, 4, 3)), "mask": "image"})
    reader = make_reader(schema, mask="mask")
    image = np.zeros((4, 4, 3), np.uint8)
    assert reader.read({"image": image, "mask": encode_indices(np.ones((4, 4), np.uint8))}).cause is None
    cause = reader.read({"image": image, "mask": encode_indices(np.ones((5, 4), np.uint8))}).cause
    assert cause is not None and "4x5" in cause


@pytest.mark.parametrize(
    ("words", "caption"), [([b"a", b"b"], "ab"), ([b"a"], "a"), ([b"ab"], "ab"), ([b"a", b"bc"], "a, bc")]
)
def test_labels_of_one_character_are_a_text(words: list[bytes], caption: str) -> None:
    schema = Schema({"image": ("uint8", (4, 4, 3)), "label": Spec("bytes", (None,), logical="text")})
    reader = make_reader(schema, label="label")
    assert reader.read({"image": np.zeros((4, 4, 3), np.uint8), "label": words}).label == caption


def test_classes_of_a_mask_are_named_by_their_size() -> None:
    schema = Schema({"image": ("uint8", (4, 4, 3)), "mask": "image"})
    reader = make_reader(schema, mask="mask")
    mask = np.array([[2, 2, 2, 2], [2, 9, 9, 9], [9, 1, 1, 0], [0, 0, 0, 255]], np.uint8)
    read = reader.read({"image": np.zeros((4, 4, 3), np.uint8), "mask": encode_indices(mask)})
    assert read.label == "2, 9, 1"
