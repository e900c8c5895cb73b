"""`tf.image.convert_image_dtype`; held against TensorFlow in tests/interop/test_compat_parsing.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


@pytest.mark.parametrize(
    ("pixels", "dtype", "expected"),
    [
        (np.array([0, 51, 255], np.uint8), tf.float32, [0.0, 0.2, 1.0]),
        (np.array([0.0, 0.2, 1.0], np.float32), tf.uint8, [0, 51, 255]),
        (np.array([0, 1, 255], np.uint8), tf.uint16, [0, 256, 65280]),
        (np.array([0, 256, 65535], np.uint16), tf.uint8, [0, 1, 255]),
        (np.array([0.5], np.float64), tf.float32, [0.5]),
        (np.array([7], np.uint8), "uint8", [7]),
    ],
)
def test_pixels_are_scaled_to_the_range_of_the_type(pixels: Any, dtype: Any, expected: list[float]) -> None:
    found = tf.image.convert_image_dtype(pixels, dtype)
    assert found.dtype == tf.as_dtype(dtype).dtype
    assert np.allclose(np.asarray(found), expected)


def test_saturate_clips_what_is_out_of_range() -> None:
    found = tf.image.convert_image_dtype(np.array([-0.5, 2.0], np.float32), tf.uint8, saturate=True)
    assert np.asarray(found).tolist() == [0, 255]


def test_text_has_no_range() -> None:
    with pytest.raises(TypeError, match=r"pixels expected floats or integers, got tf.uint8 and tf.string"):
        tf.image.convert_image_dtype(np.zeros(1, np.uint8), tf.string)
