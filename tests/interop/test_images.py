"""Decoded and resized pixels against TensorFlow's own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from conftest import CORPUS
from PIL import Image

from tfrkit.batches.decode import DecodeStage
from tfrkit.codec.columns import BytesColumn
from tfrkit.images.decode import decode_image
from tfrkit.images.resize import resize_into

SIZES = [
    ((1, 1), (5, 4)),
    ((7, 9), (7, 9)),
    ((8, 8), (16, 16)),
    ((16, 16), (8, 8)),
    ((37, 50), (22, 23)),
    ((60, 45), (200, 31)),
    ((375, 500), (224, 224)),
    ((500, 333), (224, 224)),
    ((1000, 1500), (97, 131)),
]


def random_pixels(size: tuple[int, int], channels: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(size[0] * 977 + size[1]).integers(0, 256, (*size, channels), np.uint8)


def photo(height: int, width: int) -> np.ndarray[Any, Any]:
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(height).normal(0, 12, (height, width, 3))
    colours = np.stack([200 * x / width, 200 * y / height, 90 + 80 * np.sin(x / 9) * np.cos(y / 7)], axis=2)
    return np.clip(colours + noise + 20, 0, 255).astype(np.uint8)


def encode(pixels: np.ndarray[Any, Any], kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.squeeze()).save(file, kind, **options)
    return file.getvalue()


def decode_with_tensorflow(data: bytes, channels: int = 3) -> np.ndarray[Any, Any]:
    return tf.io.decode_jpeg(data, channels=channels, dct_method="INTEGER_ACCURATE").numpy()


def is_tie(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.abs(value - np.floor(value) - 0.5) < 0.03


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("source", "target"), SIZES)
def test_resized_pixels_are_those_of_tensorflow(
    source: tuple[int, int], target: tuple[int, int], channels: int, antialias: bool
) -> None:
    pixels = random_pixels(source, channels)
    exact = tf.image.resize(pixels, target, method="bilinear", antialias=antialias).numpy()
    found = np.empty((*target, channels), np.uint8)
    resize_into(pixels, found, antialias=antialias)
    difference = np.abs(found - np.rint(exact))
    assert difference.max() <= 1
    # Where they differ, the exact value is half-way between two levels.
    assert is_tie(exact[difference > 0]).all()


@pytest.mark.parametrize(("source", "target"), [*SIZES, ((10, 10), (3, 3)), ((333, 7), (100, 100))])
def test_nearest_pixels_are_those_of_tensorflow(source: tuple[int, int], target: tuple[int, int]) -> None:
    pixels = random_pixels(source, 1)
    found = np.empty((*target, 1), np.uint8)
    resize_into(pixels, found, filter="nearest")
    assert np.array_equal(found, tf.image.resize(pixels, target, method="nearest").numpy())


def test_nearest_pixels_are_those_of_tensorflow_for_every_small_size() -> None:
    for source in range(1, 60):
        pixels = np.arange(source, dtype=np.uint8)[None, :, None]
        for target in range(1, 90, 3):
            found = np.empty((1, target, 1), np.uint8)
            resize_into(pixels, found, filter="nearest")
            expected = tf.image.resize(pixels, (1, target), method="nearest").numpy()
            assert np.array_equal(found, expected), (source, target)


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("quality", [50, 75, 90, 98])
@pytest.mark.parametrize("size", [(1, 1), (7, 7), (16, 24), (375, 500), (333, 500), (101, 67)])
def test_jpeg_decodes_to_the_pixels_of_tensorflow(size: tuple[int, int], quality: int, subsampling: str) -> None:
    data = encode(photo(*size), "JPEG", quality=quality, subsampling=subsampling)
    assert np.array_equal(decode_image(data), decode_with_tensorflow(data))
    assert np.array_equal(decode_image(data, channels="gray"), decode_with_tensorflow(data, 1))


@pytest.mark.parametrize("options", [{"progressive": True}, {"optimize": True}, {"restart_marker_blocks": 4}])
def test_unusual_jpeg_decodes_to_the_pixels_of_tensorflow(options: dict[str, Any]) -> None:
    data = encode(photo(120, 90), "JPEG", **options)
    assert np.array_equal(decode_image(data), decode_with_tensorflow(data))


def test_exif_orientation_is_ignored_as_tensorflow_does() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode(photo(30, 40), "JPEG", exif=exif)
    assert np.array_equal(decode_image(data), decode_with_tensorflow(data))
    assert np.array_equal(decode_image(data, exif="apply"), np.rot90(decode_with_tensorflow(data), -1))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF"])
def test_lossless_formats_decode_to_the_pixels_of_tensorflow(kind: str) -> None:
    data = encode(photo(31, 44), kind)
    expected = tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
    assert np.array_equal(decode_image(data), expected)


def test_png_alpha_and_sixteen_bits_are_reduced_as_tensorflow_does() -> None:
    alpha = encode(random_pixels((9, 8), 4), "PNG")
    assert np.array_equal(decode_image(alpha), tf.io.decode_png(alpha, channels=3).numpy())
    assert np.array_equal(decode_image(alpha, channels="rgba"), tf.io.decode_png(alpha, channels=4).numpy())
    levels = (np.arange(56).reshape(7, 8) * 1170).astype(np.uint16)
    wide = encode(levels, "PNG")
    assert np.array_equal(decode_image(wide, channels="gray"), tf.io.decode_png(wide, channels=1).numpy())
    kept = tf.io.decode_png(wide, channels=1, dtype=tf.uint16).numpy()
    assert np.array_equal(decode_image(wide, channels="keep"), kept)


def corpus_jpegs() -> list[Path]:
    return [path for path in sorted(CORPUS.rglob("*.jp*g")) if path.stat().st_size < 300_000]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_photos_of_the_corpus_decode_to_the_pixels_of_tensorflow() -> None:
    checked = 0
    for path in corpus_jpegs():
        data = path.read_bytes()
        if Image.open(io.BytesIO(data)).mode == "CMYK":
            continue
        assert np.array_equal(decode_image(data), decode_with_tensorflow(data)), path
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("antialias", [False, True])
def test_whole_step_gives_what_the_usual_tf_data_map_gives(antialias: bool) -> None:
    images = [encode(photo(300 + 7 * number, 400), "JPEG", quality=85) for number in range(8)]

    def load(data: Any) -> Any:
        pixels = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
        return tf.cast(tf.round(tf.image.resize(pixels, (224, 224), antialias=antialias)), tf.uint8)

    expected = next(iter(tf.data.Dataset.from_tensor_slices(images).map(load).batch(8))).numpy()
    stage = DecodeStage({"image": {"size": (224, 224), "antialias": antialias}})
    batch, _ = stage({"image": BytesColumn.from_values(images)})
    difference = np.abs(batch["image"].astype(int) - expected)
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.02
