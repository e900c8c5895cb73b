"""Colours of classes."""

from __future__ import annotations

import numpy as np

from tfrkit.pictures.colors import class_color


def test_colours_of_neighbouring_classes_are_far_apart() -> None:
    colors = np.array([class_color(number) for number in range(90)], int)
    assert np.abs(np.diff(colors, axis=0)).sum(axis=1).min() > 100
    assert len({tuple(color) for color in colors[:60]}) == 60
