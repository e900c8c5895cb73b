"""Geometry and turning; the arithmetic itself has its own tests in native/tests/resize_test.cc."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.images.options import Filter
from tfrkit.images.resize import Placement, place, resize_into, swaps_sides, turn_upright

SIZES = [
    ((1, 1), (1, 1)),
    ((1, 1), (4, 3)),
    ((5, 7), (1, 1)),
    ((3, 3), (7, 5)),
    ((16, 16), (8, 8)),
    ((37, 50), (22, 23)),
    ((61, 45), (20, 90)),
    ((375, 500), (224, 224)),
]


def reference_weights(num_source: int, num_target: int, antialias: bool) -> np.ndarray[Any, Any]:
    scale = num_source / num_target
    radius = max(scale, 1.0) if antialias else 1.0
    rows = []
    for position in range(num_target):
        centre = (position + 0.5) * scale
        row = [max(0.0, 1 - abs(source + 0.5 - centre) / radius) for source in range(num_source)]
        rows.append([weight / sum(row) for weight in row])
    return np.array(rows)


def reference_resize(pixels: np.ndarray[Any, Any], size: tuple[int, int], antialias: bool) -> np.ndarray[Any, Any]:
    by_row = reference_weights(pixels.shape[0], size[0], antialias)
    by_column = reference_weights(pixels.shape[1], size[1], antialias)
    blended = np.tensordot(by_row, pixels.astype(float), (1, 0))
    return np.tensordot(by_column, blended, (1, 1)).swapaxes(0, 1)


def random_pixels(size: tuple[int, int], channels: int = 3, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
    return np.random.default_rng(size[0] * 1000 + size[1]).integers(0, 256, (*size, channels)).astype(dtype)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize(("source", "target"), SIZES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_bilinear_is_within_one_level_of_the_definition(
    source: tuple[int, int], target: tuple[int, int], channels: int, antialias: bool
) -> None:
    pixels = random_pixels(source, channels)
    found = np.empty((*target, channels), np.uint8)
    resize_into(pixels, found, antialias=antialias)
    expected = reference_resize(pixels, target, antialias)
    assert np.abs(found - expected).max() < 0.55


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32])
def test_other_dtypes_are_resized_by_the_same_definition(dtype: Any, antialias: bool) -> None:
    pixels = random_pixels((19, 31), 1, dtype) * 50
    found = np.empty((12, 40, 1), dtype)
    resize_into(pixels, found, antialias=antialias)
    expected = reference_resize(pixels, (12, 40), antialias)
    assert found.dtype == dtype
    assert np.abs(found - expected).max() < 0.51


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(("source", "target"), SIZES)
def test_nearest_takes_the_pixel_under_the_centre(source: tuple[int, int], target: tuple[int, int], dtype: Any) -> None:
    pixels = random_pixels(source, 1, dtype)
    found = np.empty((*target, 1), dtype)
    resize_into(pixels, found, filter="nearest")
    rows = [(2 * y + 1) * source[0] // (2 * target[0]) for y in range(target[0])]
    columns = [(2 * x + 1) * source[1] // (2 * target[1]) for x in range(target[1])]
    assert np.array_equal(found, pixels[np.ix_(rows, columns)])


def test_crop_keeps_proportions_and_the_middle() -> None:
    assert place((375, 500), (224, 224), "crop") == Placement((224, 299), (0, 37), (0, 0), (224, 224))
    assert place((500, 375), (224, 224), "crop") == Placement((299, 224), (37, 0), (0, 0), (224, 224))
    assert place((10, 10), (20, 5), "crop") == Placement((20, 20), (0, 7), (0, 0), (20, 5))


def test_pad_keeps_proportions_and_all_of_the_image() -> None:
    assert place((375, 500), (224, 224), "pad") == Placement((168, 224), (0, 0), (28, 0), (168, 224))
    assert place((1, 1000), (10, 10), "pad") == Placement((1, 10), (0, 0), (4, 0), (1, 10))


@pytest.mark.parametrize("filter", ["bilinear", "nearest"])
def test_cropped_image_is_the_middle_of_the_resized_one(filter: Filter) -> None:
    pixels = random_pixels((40, 90))
    whole = np.empty((20, 45, 3), np.uint8)
    resize_into(pixels, whole, filter=filter)
    found = np.empty((20, 20, 3), np.uint8)
    resize_into(pixels, found, fit="crop", filter=filter)
    assert np.array_equal(found, whole[:, 12:32])


def test_padded_image_is_filled_up_on_both_sides() -> None:
    pixels = random_pixels((40, 80))
    inner = np.empty((16, 32, 3), np.uint8)
    resize_into(pixels, inner)
    found = np.empty((32, 32, 3), np.uint8)
    resize_into(pixels, found, fit="pad", fill=9)
    assert np.array_equal(found[8:24], inner)
    assert (found[:8] == 9).all()
    assert (found[24:] == 9).all()


@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("filter", ["bilinear", "nearest"])
def test_turning_after_resizing_gives_what_turning_before_gives(orientation: int, fit: Any, filter: Filter) -> None:
    pixels = random_pixels((31, 52))
    expected = np.empty((21, 18, 3), np.uint8)
    resize_into(np.ascontiguousarray(turn_upright(pixels, orientation)), expected, fit=fit, filter=filter)
    found = np.empty_like(expected)
    resize_into(pixels, found, fit=fit, filter=filter, orientation=orientation)
    # Blending rows before columns, or the other way round, may round differently.
    assert np.abs(found.astype(int) - expected).max() <= (0 if filter == "nearest" else 1)


def test_every_orientation_turns_as_exif_defines_it() -> None:
    """Row 0 and column 0 of the stored image are shown at the sides that the Exif standard names."""
    stored = np.array([[1, 2, 3], [4, 5, 6]])[:, :, None]
    shown = {
        1: [[1, 2, 3], [4, 5, 6]],
        2: [[3, 2, 1], [6, 5, 4]],
        3: [[6, 5, 4], [3, 2, 1]],
        4: [[4, 5, 6], [1, 2, 3]],
        5: [[1, 4], [2, 5], [3, 6]],
        6: [[4, 1], [5, 2], [6, 3]],
        7: [[6, 3], [5, 2], [4, 1]],
        8: [[3, 6], [2, 5], [1, 4]],
    }
    for orientation, expected in shown.items():
        assert turn_upright(stored, orientation)[:, :, 0].tolist() == expected
        assert swaps_sides(orientation) == (len(expected) == 3)


def test_target_may_be_a_part_of_a_larger_array() -> None:
    pixels = random_pixels((30, 30))
    expected = np.empty((10, 12, 3), np.uint8)
    resize_into(pixels, expected)
    batch = np.zeros((3, 20, 20, 3), np.uint8)
    resize_into(pixels, batch[1, 5:15, 4:16])
    assert np.array_equal(batch[1, 5:15, 4:16], expected)
    assert batch.sum() == expected.sum(dtype=np.uint64)


def test_native_resize_refuses_arrays_it_cannot_walk() -> None:
    pixels = random_pixels((8, 8))
    target = np.empty((4, 4, 3), np.uint8)
    with pytest.raises(ValueError, match=r"expected bytes of shape \(height, width, channels\)"):
        _native.resize_image(pixels[:, :, 0], target, 4, 4, 0, 0, "bilinear", True)
    with pytest.raises(ValueError, match=r"expected bytes of shape"):
        _native.resize_image(pixels.astype(np.uint16), target, 4, 4, 0, 0, "bilinear", True)
    with pytest.raises(ValueError, match="without gaps"):
        _native.resize_image(pixels[:, ::2], target, 4, 4, 0, 0, "bilinear", True)
    with pytest.raises(ValueError, match="without gaps"):
        _native.resize_image(pixels[::-1], target, 4, 4, 0, 0, "bilinear", True)
    with pytest.raises(ValueError, match="do not match"):
        _native.resize_image(pixels, target, 3, 4, 0, 0, "bilinear", True)
    with pytest.raises(ValueError, match="filter expected 'bilinear' or 'nearest'"):
        _native.resize_image(pixels, target, 4, 4, 0, 0, "cubic", True)
    target.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="read-only|not writable"):
        _native.resize_image(pixels, target, 4, 4, 0, 0, "bilinear", True)
