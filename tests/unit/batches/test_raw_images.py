"""`decode(image=...)` of raw pixels."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import CodecError

GRAY = np.arange(20 * 30, dtype=np.uint16).astype(np.uint8).reshape(20, 30, 1)
RGB = np.arange(20 * 30 * 3, dtype=np.uint16).astype(np.uint8).reshape(20, 30, 3)
RGBA = np.arange(20 * 30 * 4, dtype=np.uint16).astype(np.uint8).reshape(20, 30, 4)


def write(path: Path, rows: list[dict[str, Any]]) -> tfrkit.Dataset:
    with tfrkit.Writer(path / "x.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    return tfrkit.open(path / "x.tfrecord")


@pytest.mark.parametrize("pixels", [GRAY, RGB], ids=["gray", "rgb"])
def test_bytes_of_the_requested_size_are_pixels(tmp_path: Path, pixels: np.ndarray[Any, Any]) -> None:
    ds = write(tmp_path, [{"image": pixels.tobytes()}] * 3)
    kept = ds.decode(image={"size": (20, 30), "channels": "keep"})
    np.testing.assert_array_equal(kept[0]["image"], pixels)
    batch = next(iter(ds.decode(image=(20, 30)).batch(3)))["image"]
    assert (batch.shape, batch.dtype) == ((3, 20, 30, 3), np.uint8)
    expected = np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels[:, :, :3]
    np.testing.assert_array_equal(batch[1], expected)


def test_channels_are_those_of_an_encoded_image(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "PNG")
    ds = write(tmp_path, [{"image": file.getvalue()}, {"image": RGB.tobytes()}])
    for channels in ("rgb", "gray", "rgba", "keep"):
        encoded, raw = ds.decode(image={"size": (20, 30), "channels": channels})[0:2]
        np.testing.assert_array_equal(raw["image"], encoded["image"])


@pytest.mark.parametrize("pixels", [GRAY, RGB, RGBA], ids=["gray", "rgb", "rgba"])
@pytest.mark.parametrize("channels", ["rgb", "gray", "rgba", "keep"])
def test_many_at_once_are_what_they_are_one_by_one(tmp_path: Path, pixels: np.ndarray[Any, Any], channels: str) -> None:
    # A damaged row makes the stage decode every value separately.
    depth = {"channels": 4, "height": 20, "width": 30} if pixels is RGBA else {}
    ds = write(tmp_path, [{"image": np.roll(pixels, n).tobytes(), "id": n, **depth} for n in range(3)])
    once = next(iter(ds.decode(image={"size": (20, 30), "channels": channels}).batch(3)))["image"]
    write(tmp_path, [{"image": np.roll(pixels, n).tobytes() if n < 3 else b"x", "id": n, **depth} for n in range(4)])
    mixed = tfrkit.open(tmp_path / "x.tfrecord", on_error="skip")
    single = next(iter(mixed.decode(image={"size": (20, 30), "channels": channels}).batch(4)))["image"]
    np.testing.assert_array_equal(once, single)
    assert once.flags.writeable


@pytest.mark.parametrize(
    "sizes",
    [
        {"height": 20, "width": 30},
        {"height": 20, "width": 30, "channels": 3},
        {"image/rows": 20, "image/cols": 30, "image/depth": 3},
        {"shape": [20, 30, 3]},
    ],
)
def test_size_features_give_the_shape(tmp_path: Path, sizes: dict[str, Any]) -> None:
    ds = write(tmp_path, [{"image": RGB.tobytes(), **sizes}] * 2)
    np.testing.assert_array_equal(ds.decode(image=True)[0]["image"], RGB)
    np.testing.assert_array_equal(next(iter(ds.decode(image=True).batch(2)))["image"][1], RGB)
    small = ds.decode(image=(10, 15))[1]["image"]
    assert small.shape == (10, 15, 3)


def test_sizes_may_differ_from_record_to_record(tmp_path: Path) -> None:
    rows = [{"image": bytes(h * w * 3), "height": h, "width": w} for h, w in ((4, 6), (6, 4), (8, 3))]
    ds = write(tmp_path, rows)
    assert [row["image"].shape for row in ds.decode(image=True)] == [(4, 6, 3), (6, 4, 3), (8, 3, 3)]
    assert next(iter(ds.decode(image=(5, 5)).batch(3)))["image"].shape == (3, 5, 5, 3)


def test_other_lengths_name_what_would_fit(tmp_path: Path) -> None:
    ds = write(tmp_path, [{"image": bytes(range(256)) * 12}])
    with pytest.raises(CodecError) as caught:
        ds.decode(image=(224, 224))[0]
    assert "those of 224x224 are 50176 or 150528 bytes" in str(caught.value)
    assert 'of 32x32 RGB, give their shape: {"dtype": "uint8", "shape": (32, 32, 3)}' in str(caught.value)


@pytest.mark.parametrize("channels", ["rgb", "gray", "keep"])
def test_four_times_the_size_is_no_picture_unless_requested(tmp_path: Path, channels: str) -> None:
    # As long as RGBA: 40x60 gray, and float32 of 20x30.
    ds = write(tmp_path, [{"image": RGBA.tobytes(), "id": 1}] * 2)
    with pytest.raises(CodecError, match=r"of 30x20 are 600 or 1800 bytes, or 2400 in RGBA, as .*rgba"):
        ds.decode(image={"size": (20, 30), "channels": channels})[0]
    np.testing.assert_array_equal(ds.decode(image={"size": (20, 30), "channels": "rgba"})[0]["image"], RGBA)
    told = write(tmp_path, [{"image": RGBA.tobytes(), "height": 20, "width": 30}])
    with pytest.raises(CodecError, match=r'"dtype": "float32", "shape": \(20, 30\)'):
        told.decode(image=True)[0]
    four = write(tmp_path, [{"image": RGBA.tobytes(), "height": 20, "width": 30, "channels": 4}])
    np.testing.assert_array_equal(four.decode(image=True)[0]["image"], RGBA[:, :, :3])


def test_base64_of_pixels_is_named(tmp_path: Path) -> None:
    pixels = np.zeros((600, 800, 3), np.uint8)
    rows = [{"photo": base64.b64encode(pixels.tobytes()), "height": 600, "width": 800, "channels": 3}]
    ds = write(tmp_path, rows)
    for asked in ("image", (600, 800)):
        with pytest.raises(CodecError, match="base64 text of 600x800x3 pixels; .*b64decode") as caught:
            ds.decode(photo=asked)[0]
        assert "row['photo']" in str(caught.value) and "800, 800" not in str(caught.value)
    with pytest.raises(TypeError, match="feature 'photo': True .* is text; expected 'text' .*'image' or"):
        ds.decode(photo=True)


def test_base64_of_an_image_file_is_named(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "PNG")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        ds = write(tmp_path, [{"image": encode(file.getvalue() + b"\xfb\xff\xff" * 3)}])
        with pytest.raises(
            CodecError, match=rf"base64 text of a PNG file; .*base64\.{encode.__name__.replace('en', 'de')}\("
        ):
            ds.decode(image="image")[0]


def test_lengths_that_fit_no_image_name_the_option(tmp_path: Path) -> None:
    ds = write(tmp_path, [{"image": bytes(range(256)) * 4 + b"x"}])
    with pytest.raises(CodecError, match=r'"dtype": "uint8", "shape": \(height, width, channels\)'):
        ds.decode(image=True)[0]


def test_damaged_image_is_not_called_raw_pixels(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "PNG")
    whole = file.getvalue()
    ds = write(tmp_path, [{"image": whole[: len(whole) // 2], "height": 20, "width": 30}])
    with pytest.raises(CodecError, match="PNG of .* does not decode") as caught:
        ds.decode(image=(20, 30))[0]
    assert "raw" not in str(caught.value)


def test_image_file_as_long_as_the_requested_pixels_is_an_image(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (5, 7), (200, 10, 10)).save(file, "PNG")
    data = file.getvalue()
    ds = write(tmp_path, [{"image": data}])
    image = ds.decode(image=(1, len(data)))[0]["image"]
    assert image[0, 0].tolist() == [200, 10, 10]


def test_bare_mask_keeps_its_numbers(tmp_path: Path) -> None:
    numbers = np.where(GRAY[:, :, 0] % 2, 11, 255).astype(np.uint8)
    ds = write(tmp_path, [{"mask": numbers.tobytes()}])
    np.testing.assert_array_equal(ds.decode(mask={"type": "mask", "size": (20, 30)})[0]["mask"], numbers)


def test_skipped_rows_are_those_that_do_not_fit(tmp_path: Path) -> None:
    rows = [{"image": GRAY.tobytes(), "id": 0}, {"image": b"\x01" * 7, "id": 1}, {"image": GRAY.tobytes(), "id": 2}]
    write(tmp_path, rows)
    ds = tfrkit.open(tmp_path / "x.tfrecord", on_error="skip").decode(image=(20, 30))
    assert [row["id"] for row in ds] == [0, 2]
    assert len(ds.errors) == 1


def test_frames_of_the_requested_size_are_pixels(tmp_path: Path) -> None:
    frames = [[bytes([n]) * 16 for n in range(count)] for count in (2, 3)]
    rows = [{"context": {"id": n}, "feature_lists": {"frames": one}} for n, one in enumerate(frames)]
    ds = write(tmp_path, rows).decode(frames={"size": (4, 4), "channels": "gray"})
    for number, row in enumerate(ds):
        shown = np.asarray(row["feature_lists"]["frames"])
        assert shown.reshape(-1, 16).tolist() == [list(frame) for frame in frames[number]]


def test_channels_first_is_not_read_as_channels_last(tmp_path: Path) -> None:
    ds = write(tmp_path, [{"data": bytes(range(256)) * 12, "shape": [3, 32, 32]}] * 2)
    for asked in (True, (32, 32)):
        with pytest.raises(CodecError, match=r'features say 3x32x32, use it: .* "shape": \(3, 32, 32\)'):
            ds.decode(data=asked)[0]


def test_two_bytes_for_each_pixel_are_named(tmp_path: Path) -> None:
    ds = write(tmp_path, [{"image": bytes(range(250)) * 8, "height": 20, "width": 50}])
    with pytest.raises(CodecError, match=r'"dtype": "uint16", "shape": \(20, 50\)'):
        ds.decode(image=True)[0]
    assert ds.decode(image={"dtype": "uint16", "shape": (20, 50)})[0]["image"].shape == (20, 50)
