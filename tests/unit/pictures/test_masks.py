from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import CodecError
from tfrkit.pictures.masks import parse_color_map, read_mask

NUMBERS = np.arange(6, dtype=np.uint8).reshape(2, 3)


def encode(mode: str = "L") -> bytes:
    file = io.BytesIO()
    Image.fromarray(NUMBERS).convert(mode).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize(
    "value",
    [NUMBERS.tobytes(), encode(), NUMBERS, NUMBERS[:, :, None], NUMBERS.reshape(-1), NUMBERS.astype(np.int64)],
    ids=["bare", "png", "array", "one channel", "flat", "int64"],
)
def test_mask_is_read_from_every_form(value: Any) -> None:
    assert np.array_equal(read_mask(value, (2, 3)), NUMBERS)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"abc", "mask expected an image, got 3 bytes"),
        (encode()[:45], "mask PNG of 45 bytes does not decode"),
        (encode("RGB"), "mask expected palette indices or gray levels, got RGB"),
        (np.zeros((2, 3, 3), np.uint8), r"mask expected class numbers, got uint8 of shape \(2, 3, 3\)"),
        (np.zeros((2, 3), np.float32), r"mask expected class numbers, got float32 of shape \(2, 3\)"),
        (np.zeros((0, 3), np.uint8), r"mask expected class numbers, got uint8 of shape \(0, 3\)"),
        (np.zeros(5, np.uint8), r"mask expected class numbers, got uint8 of shape \(5,\)"),
    ],
)
def test_what_is_not_a_mask_is_refused(value: Any, message: str) -> None:
    with pytest.raises(CodecError, match=f"^{message}"):
        read_mask(value, (2, 3))


def test_size_of_the_image_is_not_required_of_an_encoded_mask() -> None:
    assert read_mask(encode(), (9, 9)).shape == (2, 3)
    assert read_mask(encode(), None).shape == (2, 3)


@pytest.mark.parametrize("line", ["a cat:1,2,3::", "a cat:1, 2, 3", "1 2 3 a cat", "a cat 1 2 3", "1,2,3,a cat"])
def test_colour_of_a_class_is_read_in_every_form(line: str) -> None:
    assert parse_color_map(f"# label:color\n{line}\n", "c.txt") == ({(1, 2, 3): 0}, ["a cat"])
