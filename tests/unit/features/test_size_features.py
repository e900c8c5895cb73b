"""Features that hold the size of an image."""

from __future__ import annotations

from typing import Any

import pytest

from tfrkit.features.size_features import SizeFeatures, find_sizes
from tfrkit.features.spec import Spec


@pytest.mark.parametrize(("shape", "found"), [((2,), "s/shape"), ((3,), "s/shape"), ((None,), "s/shape"), ((4,), None)])
def test_shape_of_two_or_three_numbers_is_found(shape: Any, found: str | None) -> None:
    assert find_sizes({"s/shape": Spec("int64", shape)}, "image") == SizeFeatures(shape=found)


def test_size_with_the_most_similar_name_is_found() -> None:
    names = ["image/height", "image/width", "mask/height", "mask/width"]
    found = find_sizes({name: Spec("int64") for name in names}, "mask/png")
    assert found == SizeFeatures("mask/height", "mask/width")
