"""Convert outlines of COCO objects to masks: polygons, and run lengths as lists or packed into text.

Run lengths are in column-major order: pixel (row, column) is number `column * height + row`. A polygon covers the same
pixels as in the reference tools of COCO: its edges are traced on a grid five times as fine, and each step across the
centre line of a pixel column flips all pixels below it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._types import Int64Array, UInt8Array

# The grid on which edges are traced is this many times finer than the pixels.
_SCALE = 5
# Corners further out than this and longer outlines are rejected, because tracing them would take too long.
_MAX_OVERHANG = 1 << 16
_MAX_POINTS = 1 << 24


def rasterize_segmentation(segmentation: object, *, width: int, height: int) -> UInt8Array:
    """Convert the outline of an annotation to a mask (height, width) of 0 and 1; raises ValueError if it is invalid.

    `segmentation` is a list of polygons [x0, y0, x1, y1, ...], or {"size": [height, width], "counts": ...} with
    counts as a list of numbers or as text.
    """
    if isinstance(segmentation, Mapping):
        return decode_run_lengths(segmentation, width=width, height=height)
    if not isinstance(segmentation, list):
        raise ValueError(f"segmentation expected polygons or run lengths, got {type(segmentation).__name__}")
    if not segmentation:
        raise ValueError("segmentation expected at least one polygon, got none")
    mask = np.zeros(width * height, np.uint8)
    for polygon in segmentation:
        mask |= _fill_polygon(_read_polygon(polygon), width, height)
    return np.ascontiguousarray(mask.reshape(width, height).T)


def decode_run_lengths(coded: Mapping[str, Any], *, width: int, height: int) -> UInt8Array:
    """Decode run lengths to a mask (height, width); raises ValueError if they do not fit the image.

    Example:
        >>> decode_run_lengths({"size": [2, 2], "counts": [1, 2, 1]}, width=2, height=2).tolist()
        [[0, 1], [1, 0]]
    """
    size = coded.get("size")
    if size != [height, width]:
        raise ValueError(f"run lengths expected the size of the image, [{height}, {width}], got {size!r:.64}")
    counts = coded.get("counts")
    if isinstance(counts, (str, bytes)):
        runs = unpack_counts(counts)
    elif isinstance(counts, list) and all(isinstance(run, int) for run in counts):
        runs = counts
    else:
        raise ValueError(f"counts expected a list of numbers or text, got {type(counts).__name__}")
    if any(run < 0 for run in runs) or sum(runs) != width * height:
        raise ValueError(f"counts expected to add up to {width * height} pixels, got {sum(runs)}")
    values = np.arange(len(runs), dtype=np.uint8) & 1
    mask = np.repeat(values, np.array(runs, np.int64))
    return np.ascontiguousarray(mask.reshape(width, height).T)


def unpack_counts(text: str | bytes) -> list[int]:
    """Decode run lengths from text: five bits per character, from the fourth run on the difference to two runs before.

    Example:
        >>> unpack_counts("06")
        [0, 6]
    """
    codes = text.encode("latin-1", "replace") if isinstance(text, str) else text
    runs: list[int] = []
    value = shift = 0
    for code in codes:
        bits = code - 48
        if not 0 <= bits < 64:
            raise ValueError(f"counts of a mask expected characters '0' to 'o', got {chr(code)!r}")
        value |= (bits & 0x1F) << shift
        shift += 5
        if shift > 60:
            raise ValueError("counts expected numbers of at most 60 bits, got a longer one")
        if bits & 0x20:
            continue
        if bits & 0x10:
            value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = shift = 0
    if shift:
        raise ValueError("counts end inside a number")
    return runs


def _read_polygon(polygon: object) -> list[tuple[float, float]]:
    if not isinstance(polygon, Sequence) or isinstance(polygon, (str, bytes)):
        raise ValueError(f"polygon expected a list of numbers, got {type(polygon).__name__}")
    if len(polygon) < 6 or len(polygon) % 2:
        raise ValueError(f"polygon expected x, y pairs for at least 3 corners, got {len(polygon)} numbers")
    for value in polygon:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"polygon expected numbers, got {value!r:.64}")
        if abs(value) > _MAX_OVERHANG:
            raise ValueError(f"polygon expected corners near the image, got {value!r:.64}")
    return list(zip(polygon[::2], polygon[1::2], strict=True))


def _fill_polygon(corners: list[tuple[float, float]], width: int, height: int) -> UInt8Array:
    """Return the mask of one polygon as 0 and 1 in column-major order."""
    x, y = _walk_edges(np.trunc(np.array(corners, np.float64).T * _SCALE + 0.5).astype(np.int64))
    steps = np.flatnonzero(np.diff(x))
    # A step between two fine columns counts if the centre line of a pixel column is between them.
    column = (np.minimum(x[steps], x[steps + 1]) + 0.5) / _SCALE - 0.5
    is_centre = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    row = (np.minimum(y[steps], y[steps + 1]) + 0.5) / _SCALE - 0.5
    row = np.ceil(np.clip(row, 0, height))
    flips = column[is_centre].astype(np.int64) * height + row[is_centre].astype(np.int64)
    # A flip at the bottom of a column is a flip at the top of the next one; after the last column it is ignored.
    counts = np.bincount(flips, minlength=width * height)[: width * height]
    return (np.cumsum(counts) & 1).astype(np.uint8)


def _walk_edges(corners: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the points (x, y) of the closed polygon, one for each step along the longer side of an edge."""
    start, stop = corners, np.roll(corners, -1, axis=1)
    dx, dy = np.abs(stop - start)
    is_flat = dx >= dy
    length = np.maximum(dx, dy)
    num_points = int(length.sum()) + len(length)
    if num_points > _MAX_POINTS:
        raise ValueError(f"polygon expected at most {_MAX_POINTS:,} points on its edges, got {num_points:,}")
    # Every edge is traced in increasing direction, so that an edge that two objects share is rounded alike for both.
    is_flipped = np.where(is_flat, start[0] > stop[0], start[1] > stop[1])
    low, high = np.where(is_flipped, stop, start), np.where(is_flipped, start, stop)
    rise = np.where(is_flat, high[1] - low[1], high[0] - low[0])
    slope = rise / np.maximum(length, 1)
    edge = np.repeat(np.arange(len(length)), length + 1)
    step = np.arange(num_points) - np.repeat(np.cumsum(length + 1) - (length + 1), length + 1)
    step = np.where(is_flipped[edge], length[edge] - step, step)
    x_low, y_low = low[0][edge], low[1][edge]
    slanted = slope[edge] * step
    x = np.where(is_flat[edge], x_low + step, np.trunc(x_low + slanted + 0.5).astype(np.int64))
    y = np.where(is_flat[edge], np.trunc(y_low + slanted + 0.5).astype(np.int64), y_low + step)
    return x, y
