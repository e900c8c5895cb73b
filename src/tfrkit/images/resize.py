"""Resize decoded pixels: filters, cropping, padding and turning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfrkit import _native

Fit = Literal["stretch", "crop", "pad"]
# Filters of native/core/images/resize.h, by the names of FindFilter there.
Filter = Literal["bilinear", "nearest"]
# Filters with the same bits as Pillow.
PillowFilter = Literal["nearest", "bicubic", "lanczos"]
Pixels = np.ndarray[Any, np.dtype[Any]]
"""(height, width, channels)."""

# By EXIF orientation: whether rows and columns are swapped, then whether rows and columns are reversed.
_TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}
UPRIGHT = 1
_UINT8 = np.dtype(np.uint8)


@dataclass(frozen=True)
class Placement:
    """Resize an image to `whole`, then copy its part of size `extent` at `start` to `origin` of the target."""

    whole: tuple[int, int]
    start: tuple[int, int]
    origin: tuple[int, int]
    extent: tuple[int, int]


def swaps_sides(orientation: int) -> bool:
    """Whether an image with this EXIF orientation is shown with height and width swapped."""
    return _TURNS[orientation][0]


def turn_upright(pixels: Pixels, orientation: int) -> Pixels:
    """Return the pixels turned upright, as a view."""
    is_swapped, is_bottom_up, is_right_left = _TURNS[orientation]
    if is_swapped:
        pixels = pixels.swapaxes(0, 1)
    return pixels[:: -1 if is_bottom_up else 1, :: -1 if is_right_left else 1]


def place(source: tuple[int, int], target: tuple[int, int], fit: Fit) -> Placement:
    """Compute the placement of an image in a target of another size; sizes are (height, width).

    Example:
        >>> place((375, 500), (224, 224), "crop")
        Placement(whole=(224, 299), start=(0, 37), origin=(0, 0), extent=(224, 224))
    """
    if fit == "stretch" or source == target:
        return Placement(target, (0, 0), (0, 0), target)
    ratios = (target[0] / source[0], target[1] / source[1])
    if fit == "crop":
        scale = max(ratios)
        whole = (max(target[0], round(source[0] * scale)), max(target[1], round(source[1] * scale)))
        start = ((whole[0] - target[0]) // 2, (whole[1] - target[1]) // 2)
        return Placement(whole, start, (0, 0), target)
    scale = min(ratios)
    whole = (
        min(target[0], max(1, round(source[0] * scale))),
        min(target[1], max(1, round(source[1] * scale))),
    )
    origin = ((target[0] - whole[0]) // 2, (target[1] - whole[1]) // 2)
    return Placement(whole, (0, 0), origin, whole)


def resize_into(
    pixels: Pixels,
    target: Pixels,
    *,
    fit: Fit = "stretch",
    filter: Filter = "bilinear",
    antialias: bool = True,
    orientation: int = UPRIGHT,
    fill: int = 0,
) -> None:
    """Resize `pixels` into `target` like TensorFlow; both are (height, width, channels) and have the same dtype.

    uint8 is resized by the core without the interpreter lock, other dtypes by NumPy.
    """
    if orientation == UPRIGHT and fit == "stretch":
        # A fast path for the most frequent case.
        _resize_window(pixels, target, (target.shape[0], target.shape[1]), (0, 0), filter, antialias)
        return
    if filter == "nearest" and orientation != UPRIGHT:
        # On a tie the right pixel is taken, so turn first: turned later, it would be the left pixel.
        pixels, orientation = np.ascontiguousarray(turn_upright(pixels, orientation)), UPRIGHT
    is_swapped, is_bottom_up, is_right_left = _TURNS[orientation]
    height, width = pixels.shape[:2]
    shown = (width, height) if is_swapped else (height, width)
    where = place(shown, (target.shape[0], target.shape[1]), fit)
    if where.extent != target.shape[:2]:
        target[...] = fill
    (top, left), (rows, columns) = where.origin, where.extent
    window = target[top : top + rows, left : left + columns]
    if orientation == UPRIGHT:
        _resize_window(pixels, window, where.whole, where.start, filter, antialias)
        return
    # Resize first and turn the result, which usually has fewer pixels. The crop is the same either way.
    start_row, start_column = where.start
    if is_bottom_up:
        start_row = where.whole[0] - start_row - rows
    if is_right_left:
        start_column = where.whole[1] - start_column - columns
    whole, start, shape = where.whole, (start_row, start_column), (rows, columns)
    if is_swapped:
        whole, start, shape = whole[::-1], start[::-1], shape[::-1]
    stored = np.empty((*shape, pixels.shape[2]), pixels.dtype)
    _resize_window(pixels, stored, whole, start, filter, antialias)
    window[...] = turn_upright(stored, orientation)


def resize_as_pillow(pixels: Pixels, size: tuple[int, int], filter: PillowFilter, *, channels: int = 3) -> Pixels:
    """Resize pixels to (height, width) with the same bits as Pillow; "bicubic" also converts RGB to gray."""
    if filter == "bicubic":
        target = np.empty((*size, channels), np.uint8)
        _native.resize_bicubic(pixels, target)
        return target
    if pixels.shape[:2] == size:
        return pixels
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize(size[::-1], Image.Resampling[filter.upper()]))


def _resize_window(
    pixels: Pixels, window: Pixels, whole: tuple[int, int], start: tuple[int, int], filter: Filter, antialias: bool
) -> None:
    if pixels.shape[:2] == whole:
        window[...] = pixels[start[0] : start[0] + window.shape[0], start[1] : start[1] + window.shape[1]]
    elif pixels.dtype == _UINT8:
        _native.resize_image(pixels, window, whole[0], whole[1], start[0], start[1], filter, antialias)
    else:
        axes = [
            (pixels.shape[axis], whole[axis], np.arange(start[axis], start[axis] + window.shape[axis]))
            for axis in (0, 1)
        ]
        if filter == "nearest":
            rows, columns = (_find_nearest(*axis) for axis in axes)
            window[...] = pixels[rows[:, None], columns]
            return
        by_row, by_column = (_make_weights(*axis, antialias) for axis in axes)
        blended = np.einsum("ya,abc,xb->yxc", by_row, pixels, by_column, optimize=True)
        window[...] = np.rint(blended) if pixels.dtype.kind in "iu" else blended


def _find_nearest(num_source: int, num_whole: int, positions: Pixels) -> Pixels:
    # In single precision, like the core and TensorFlow.
    scale = np.float32(num_source) / np.float32(num_whole)
    nearest = np.floor((positions.astype(np.float32) + np.float32(0.5)) * scale).astype(np.intp)
    return np.asarray(np.minimum(nearest, num_source - 1))


def _make_weights(num_source: int, num_whole: int, positions: Pixels, antialias: bool) -> Pixels:
    """Return a matrix of (positions, source) with the triangle weights of each position, which sum to one."""
    scale = num_source / num_whole
    radius = max(scale, 1.0) if antialias else 1.0
    centres = (positions[:, None] + 0.5) * scale
    weights = np.maximum(0, 1 - np.abs(np.arange(num_source) + 0.5 - centres) / radius)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
