from __future__ import annotations

from typing import Any

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.pictures.guesses import NAMES, PictureGuesses, read_given

RAW = Schema({"data": Spec("bytes", logical="bytes")})
ROWS = [{"data": bytes(224 * 224)}, {"data": bytes(224 * 224)}]


def guess(schema: Schema, rows: list[dict[str, Any]], *, guesses_shape: bool = True, **given: Any) -> PictureGuesses:
    return PictureGuesses(schema, given, lambda: rows, guesses_shape=guesses_shape)


def test_shape_of_raw_pixels_is_guessed_from_first_rows_unless_that_is_off() -> None:
    found = guess(RAW, ROWS)
    assert (found.features.image, found.features.sizes.fixed) == ("data", (224, 224, 1))
    with pytest.raises(SchemaError, match="no feature looks like an image"):
        _ = guess(RAW, ROWS, guesses_shape=False).features


def test_given_shape_replaces_the_guess_and_is_marked() -> None:
    found = guess(RAW, ROWS, shape="112x448")
    described = found.to_json(found.features)
    assert list(described) == list(NAMES)
    assert described["shape"]["value"] == "112x448"
    assert described["shape"]["is_given"] and not described["image"]["is_given"]
    assert "224x224" in described["shape"]["options"]


@pytest.mark.parametrize(("corner", "units"), [(1.4, "fraction"), (31.0, "pixels")])
def test_units_of_boxes_are_guessed_from_their_size(corner: float, units: str) -> None:
    schema = Schema({"image": "image", "objects/bbox": Spec("float", (None, 4), logical="boxes")})
    rows = [{"image": b"", "objects/bbox": [0.0, 0.0, 1.0, corner]}]
    found = guess(schema, rows).features.boxes
    assert found is not None and found.units == units
    given = guess(schema, rows, box_units="fraction").features.boxes
    assert given is not None and given.units == "fraction"


def test_wrong_choice_names_the_choices() -> None:
    with pytest.raises(ValueError, match="box_order expected xyxy, yxyx, xywh, cxcywh, got 'abcd'"):
        read_given({"box_order": "abcd"})
    assert read_given({"image": "", "label": None, "mask": "m", "other": "x"}) == {"mask": "m"}


def test_list_of_numbers_with_the_name_and_length_of_an_image_is_one() -> None:
    schema = Schema({"image_floats": Spec("float", (784,)), "embedding": Spec("float", (1024,))})
    found = guess(schema, [])
    assert (found.features.image, found.features.sizes.fixed) == ("image_floats", (28, 28, 1))
    assert found.to_json(found.features)["image"]["options"] == ["image_floats"]
    for other in ({"image_floats": Spec("float", (783,))}, {"image_height": Spec("int64", (784,))}):
        with pytest.raises(SchemaError, match="no feature looks like an image"):
            _ = guess(Schema(other), []).features


def test_alpha_is_never_guessed() -> None:
    with pytest.raises(SchemaError, match="no feature looks like an image"):
        _ = guess(RAW, [{"data": bytes(210 * 160 * 4)}]).features
