"""Arithmetic by name under real TensorFlow and under tfrkit.compat: equal values, equal types, both refuse the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as real

from tfrkit.compat import tensorflow as ours
from tfrkit.compat.elementwise import ELEMENTWISE

INPUTS: list[Any] = [
    (1, 2),
    (7, 2.5),
    (7.5, 2),
    (np.float32([1, -2, 3]), 2),
    (np.float32([1, -2, 3]), 0.5),
    (np.float64([4, 0]), 2.0),
    (np.uint8([1, 200]), 100),
    (np.int64([7, -7]), np.int64([2, 2])),
    (np.int32([7]), 1.5),
    (np.int32([7]), np.int64([1])),
    (np.float32([[1], [2]]), np.float32([3, 4])),
    (np.float32([1, 2]), np.float32([1, 2, 3])),
    ([1, 2], [3, 4]),
    (np.int16([5]), 2),
]


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
@pytest.mark.parametrize("number", range(len(INPUTS)))
def test_result_is_tensorflows(name: str, number: int) -> None:
    def attempt(tf: Any) -> Any:
        left, right = (tf.constant(value) if hasattr(value, "dtype") else value for value in INPUTS[number])
        function = getattr(tf.compat.v1 if name == "div" else tf.math, name)
        try:
            value = np.asarray(function(left, right).numpy())
        except Exception:  # noqa: BLE001 - that there is one is compared
            return "refused"
        return value.dtype.name, value.shape, value.tobytes()

    assert attempt(ours) == attempt(real)
