"""Colours of classes, boxes, masks and sheets."""

from __future__ import annotations

import colorsys
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit._types import UInt8Array

Color = tuple[int, int, int]

PAGE: Color = (250, 250, 250)
MAT: Color = (229, 231, 235)  # around a picture that does not fill its square
INK: Color = (31, 41, 55)
FAINT: Color = (130, 136, 146)
FAULT: Color = (200, 30, 45)
FAULT_MAT: Color = (253, 236, 236)
# Opacity of a mask over the image.
MASK_SHARE = 0.55

_GOLDEN = (math.sqrt(5) - 1) / 2


def class_color(number: int) -> Color:
    """Return a bright colour for a class number; it is stable and differs strongly from those of nearby numbers."""
    # Hues are similar again after eight numbers, so the saturation alternates every eight.
    red, green, blue = colorsys.hsv_to_rgb(number * _GOLDEN % 1, 0.55 if number // 8 % 2 else 0.9, 1.0)
    return round(red * 255), round(green * 255), round(blue * 255)


@functools.cache
def voc_colors() -> Mapping[Color, int]:
    """Return the Pascal VOC colours of class numbers 0 to 255, made by spreading their bits over three channels.

    Example:
        >>> voc_colors()[128, 0, 0], voc_colors()[224, 224, 192]
        (1, 255)
    """
    colors = {}
    for index in range(256):
        channels = [0, 0, 0]
        for bit in range(8):
            # The bits of the number set bits of red, green and blue in turn, starting at the highest bit of each.
            channels[bit % 3] |= (index >> bit & 1) << (7 - bit // 3)
        colors[channels[0], channels[1], channels[2]] = index
    return colors


@functools.cache
def voc_palette() -> UInt8Array:
    """Return the Pascal VOC colours by class number, as an array of (256, 3)."""
    return np.array(sorted(voc_colors(), key=voc_colors().__getitem__), np.uint8)


def to_hex(color: Any) -> str:
    """Return a colour as #rrggbb."""
    red, green, blue = color
    return f"#{red:02x}{green:02x}{blue:02x}"
