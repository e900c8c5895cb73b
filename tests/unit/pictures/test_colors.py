"""Colours of classes."""

from __future__ import annotations

import numpy as np

from tfrkit.pictures.colors import class_color, voc_colors, voc_palette


def test_colours_of_neighbouring_classes_are_far_apart() -> None:
    colors = np.array([class_color(number) for number in range(90)], int)
    assert np.abs(np.diff(colors, axis=0)).sum(axis=1).min() > 100
    assert len({tuple(color) for color in colors[:60]}) == 60


def test_colours_of_voc_are_those_of_its_palette() -> None:
    colors = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (128, 0, 128), (0, 128, 128)]
    assert [voc_colors()[color] for color in colors] == list(range(7))
    assert voc_palette()[:7].tolist() == [list(color) for color in colors] and voc_palette().shape == (256, 3)
