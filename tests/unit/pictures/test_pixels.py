"""Raw pixels: their size, given or stored beside them, and their levels."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from tfrkit.errors import CodecError, SchemaError
from tfrkit.features.size_features import SizeFeatures
from tfrkit.pictures.pixels import fold_pixels, is_raw, read_raw, read_size, require_raw_shape, to_levels, to_pixels

SIDES = SizeFeatures("height", "width", "channels")
SHAPE = SizeFeatures(shape="shape")
FIXED = SizeFeatures(fixed=(2, 3))


@pytest.mark.parametrize(
    ("values", "sizes", "size"),
    [
        ({"height": 2, "width": 3, "channels": 1}, SIDES, (2, 3, 1)),
        ({"height": np.array([2]), "width": [3]}, SIDES, (2, 3)),
        ({"height": 2, "channels": 3}, SIDES, None),
        ({"height": [], "width": 3}, SIDES, None),
        ({"shape": np.array([2, 3])}, SHAPE, (2, 3)),
        ({"shape": [5, 2, 3, 1]}, SHAPE, (5, 2, 3, 1)),
        ({"shape": [6]}, SHAPE, None),
        ({}, SHAPE, None),
    ],
)
def test_size_is_read_from_features(values: dict[str, Any], sizes: SizeFeatures, size: tuple[int, ...] | None) -> None:
    assert read_size(values, sizes) == size


@pytest.mark.parametrize(
    ("num_values", "values", "sizes", "shape"),
    [
        (18, {"height": 2, "width": 3, "channels": 3}, SIDES, (2, 3, 3)),
        (18, {"height": 2, "width": 3}, SIDES, (2, 3, 3)),
        (6, {"height": 2, "width": 3}, SIDES, (2, 3, 1)),
        (18, {"shape": [2, 3]}, SHAPE, (2, 3, 3)),
        (36, {"shape": [2, 2, 3, 3]}, SHAPE, (2, 2, 3, 3)),
        (18, {}, FIXED, (2, 3, 3)),
    ],
)
def test_flat_pixels_are_folded(
    num_values: int, values: dict[str, Any], sizes: SizeFeatures, shape: tuple[int, ...]
) -> None:
    assert fold_pixels(np.zeros(num_values), values, sizes, channels=(1, 3)).shape == shape


@pytest.mark.parametrize(
    ("values", "sizes", "message"),
    [
        ({"height": 2}, SIDES, "pixels expected a height and a width, got 12 values"),
        ({"height": 2, "width": 3}, SIDES, "pixels expected 3x2, got 12 values"),
        ({"height": 2, "width": 3, "channels": 3}, SIDES, "pixels expected 3x2x3, got 12 values"),
        ({"height": 2, "width": 3, "channels": 0}, SIDES, "pixels expected 3x2x0, got 12 values"),
        ({"height": -2, "width": -6}, SIDES, "pixels expected -6x-2, got 12 values"),
        ({"height": 0, "width": 3}, SIDES, "pixels expected 3x0, got 12 values"),
        ({}, FIXED, "shape 2x3 expected 6 or 18 bytes, got 12"),
    ],
)
def test_pixels_of_another_size_are_refused(values: dict[str, Any], sizes: SizeFeatures, message: str) -> None:
    with pytest.raises(CodecError, match=message):
        fold_pixels(np.zeros(12), values, sizes, channels=(1, 3))


def test_any_channels_fit_where_none_are_named() -> None:
    assert fold_pixels(np.zeros(12), {"height": 2, "width": 3}, SIDES, channels=None).shape == (2, 3, 2)


@pytest.mark.parametrize(
    ("data", "sizes", "is_pixels"),
    [
        (bytes(6), SIDES, True),
        (bytes(6), SizeFeatures(), False),
        (b"", SIDES, False),
        (b"\x89PNG\r\n\x1a\n" + bytes(30), SIDES, False),
        (b"P6\n2 3\n255\n", SIDES, False),
        (b"P5\n2 3", FIXED, True),  # exactly as many bytes as the given shape has
    ],
)
def test_image_files_are_not_raw_pixels(data: bytes, sizes: SizeFeatures, is_pixels: bool) -> None:
    assert is_raw(data, sizes) == is_pixels


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        (np.array([0, 7, 255], np.uint8), [0, 7, 255]),
        (np.array([False, True, False]), [0, 255, 0]),
        (np.array([0, 256, 65535], np.uint16), [0, 1, 255]),
        (np.array([0, 0.5, 1], np.float32), [0, 128, 255]),
        (np.array([0, 100, 255], np.float32), [0, 100, 255]),
        (np.array([-0.5, 0, 0.5], np.float32), [0, 128, 255]),
        (np.array([0, 1, 2], np.int64), [0, 1, 2]),
        (np.array([0, 500, 1000], np.int64), [0, 128, 255]),
        (np.array([np.nan, np.inf, 1], np.float32), [0, 0, 255]),
        (np.array([-3, -3, -3], np.int64), [0, 0, 0]),
    ],
)
def test_numbers_become_levels(values: np.ndarray, levels: list[int]) -> None:
    assert to_levels(values).tolist() == levels


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (1, 4, 5), (3, 4, 5), (4, 5, 4), (7, 4, 5, 3)])
def test_arrays_become_rgb(shape: tuple[int, ...]) -> None:
    assert to_pixels(np.zeros(shape, np.uint8)).shape == (4, 5, 3)


@pytest.mark.parametrize("shape", [(5,), (5, 5, 2), (0, 5, 3), (2, 2, 4, 5, 3)])
def test_arrays_that_are_no_picture_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(CodecError, match="image expected gray or RGB pixels, got a uint8 array of shape"):
        to_pixels(np.zeros(shape, np.uint8))


LEVELS = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)


@pytest.mark.parametrize(
    "data",
    [
        LEVELS.tobytes(),
        LEVELS.astype("<i2").tobytes(),
        base64.b64encode(LEVELS.tobytes()),
        base64.urlsafe_b64encode(LEVELS.tobytes()).rstrip(b"="),
    ],
    ids=["bytes", "16 bits", "base64", "base64 for addresses"],
)
def test_raw_pixels_are_read_in_each_way_they_are_stored(data: bytes) -> None:
    read = read_raw(data, {"height": 2, "width": 3, "channels": 3}, SIDES)
    assert read.dtype == np.uint8
    np.testing.assert_array_equal(read, LEVELS)


def test_depths_of_16_bits_keep_their_range() -> None:
    depths = np.array([[0, 256], [40_000, 65_535]], "<u2")
    read = read_raw(depths.tobytes(), {"height": 2, "width": 2}, SIDES)
    assert to_levels(read)[:, :, 0].tolist() == [[0, 1], [156, 255]]


@pytest.mark.parametrize("data", [b"", b"AAAA", b"=" * 24, bytes(17), bytes(19)])
def test_raw_pixels_of_another_number_are_refused_as_they_are_stored(data: bytes) -> None:
    with pytest.raises(CodecError, match=f"pixels expected 3x2x3, got {len(data)} values"):
        read_raw(data, {"height": 2, "width": 3, "channels": 3}, SIDES)


def test_raw_pixels_need_a_known_shape() -> None:
    require_raw_shape("x", SIDES, 300, shard="s")
    require_raw_shape("x", FIXED, 6, shard="s")
    with pytest.raises(SchemaError, match=r"feature 'x' holds raw bytes, 921600 each \(640x480 RGB") as caught:
        require_raw_shape("x", SizeFeatures(), 921_600, shard="s")
    assert 'shape="480x640x3"' in str(caught.value)
    with pytest.raises(SchemaError, match="holds raw bytes, 7 each, and their height and width are unknown"):
        require_raw_shape("x", SizeFeatures(), 7, shard="s")
