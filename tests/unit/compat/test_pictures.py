"""Pictures with TensorFlow's rules."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.compat import tensorflow as tf

COLOUR = Image.fromarray(np.add.outer(np.arange(6) * 30, np.arange(4) * 20)[:, :, None].repeat(3, 2).astype(np.uint8))


def encode(picture: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("mode", "form", "channels", "num"),
    [
        ("RGB", "PNG", 0, 3),
        ("RGB", "PNG", 1, 1),
        ("RGB", "PNG", 4, 4),
        ("L", "PNG", 0, 1),
        ("L", "PNG", 3, 3),
        ("P", "PNG", 0, 3),
        ("RGBA", "PNG", 0, 4),
        ("LA", "PNG", 0, 2),
        ("1", "PNG", 0, 1),
        ("RGB", "JPEG", 0, 3),
        ("L", "JPEG", 0, 1),
        ("CMYK", "JPEG", 0, 3),
        ("RGB", "BMP", 0, 3),
    ],
)
def test_channels_are_those_of_the_file_or_requested(mode: str, form: str, channels: int, num: int) -> None:
    data = encode(COLOUR.convert(mode), form)
    decoded = tf.io.decode_image(data, channels=channels)
    assert (decoded.shape, decoded.dtype) == ((6, 4, num), tf.uint8)
    if (mode, form) == ("RGB", "PNG") and channels == 0:
        assert np.array_equal(decoded, np.asarray(COLOUR))


def test_exif_does_not_turn_a_picture() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    assert tf.image.decode_jpeg(encode(COLOUR, "JPEG", exif=exif)).shape == (6, 4, 3)


def test_palette_becomes_colours_and_the_docstring_warns() -> None:
    mask = Image.fromarray(np.array([[0, 1], [2, 255]], np.uint8), "P")
    mask.putpalette([7] * 3 + [11] * 3 + [13] * 3)
    assert tf.image.decode_png(encode(mask, "PNG"))[0, :, 0].tolist() == [7, 11]
    assert "masks with Pillow" in (tf.image.decode_png.__doc__ or "")


def test_gif_has_a_dimension_of_frames_where_tensorflow_has_one() -> None:
    data = encode(COLOUR.convert("P"), "GIF")
    assert tf.io.decode_image(data).shape == (1, 6, 4, 3)
    assert tf.io.decode_image(data, expand_animations=False).shape == (6, 4, 3)
    two = encode(COLOUR.convert("P"), "GIF", save_all=True, append_images=[COLOUR.convert("P").rotate(180)])
    assert tf.io.decode_image(two).shape == tf.io.decode_gif(two).shape == (2, 6, 4, 3)
    assert tf.io.decode_image(two, expand_animations=False).shape == (6, 4, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a picture of one frame, got 2"):
        tf.io.decode_png(two)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a BMP, got a GIF"):
        tf.io.decode_bmp(two)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not decode"):
        tf.io.decode_gif(two[:-30])
    assert tf.io.decode_bmp(encode(COLOUR, "BMP")).shape == (6, 4, 3)


def test_deep_gray_is_cut_or_kept_by_dtype() -> None:
    deep = np.arange(24, dtype=np.uint16).reshape(6, 4) * 2000
    data = encode(Image.fromarray(deep), "PNG")
    assert np.array_equal(tf.io.decode_png(data)[:, :, 0], deep >> 8)
    assert np.array_equal(tf.io.decode_png(data, dtype=tf.uint16)[:, :, 0], deep)
    assert tf.io.decode_image(data, dtype=tf.float32).dtype == tf.float32
    assert tf.io.decode_png(encode(COLOUR, "PNG"), dtype=tf.uint16)[1, 1, 0] == 50 * 257
    with pytest.raises(tf.errors.UnimplementedError, match="got int32"):
        tf.io.decode_image(data, dtype=tf.int32)


@pytest.mark.parametrize(
    ("data", "channels", "match"),
    [
        (b"nothing", 0, "expected a PNG, JPEG, GIF, BMP or WebP, got something else"),
        (encode(COLOUR, "JPEG")[:200], 0, "JPEG of 4x6 (does not decode|is truncated), "),
        (encode(COLOUR, "TIFF"), 0, "got TIFF 4x6"),
        (encode(COLOUR, "JPEG"), 4, r"channels of a JPEG expected one of \(0, 1, 3\), got 4"),
        (b"GIF89a\3\0\2\0", 0, "does not decode"),
    ],
)
def test_what_is_no_picture_is_invalid(data: bytes, channels: int, match: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        tf.io.decode_image(data, channels=channels)


def test_smaller_jpegs_are_not_offered() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="ratio=1 only, got 2"):
        tf.io.decode_jpeg(encode(COLOUR, "JPEG"), ratio=2)


def test_pixels_are_encoded_and_decoded_again() -> None:
    pixels = np.add.outer(np.arange(9), np.arange(12))[:, :, None].repeat(3, 2).astype(np.uint8) * 9
    assert np.array_equal(tf.image.decode_png(tf.image.encode_png(pixels)), pixels)
    assert np.array_equal(tf.image.decode_png(tf.io.encode_png(pixels[:, :, :1])), pixels[:, :, :1])
    assert (
        np.abs(tf.image.decode_jpeg(tf.image.encode_jpeg(pixels, format="rgb", quality=100)).astype(int) - pixels).max()
        < 4
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="pixels expected uint8, got float32"):
        tf.image.encode_jpeg(pixels.astype(np.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"pixels expected shape .*, got \(9, 12\)"):
        tf.image.encode_png(pixels[:, :, 0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="format expected '', 'grayscale' or 'rgb', got 'bgr'"):
        tf.image.encode_jpeg(pixels, format="bgr")


def test_png_becomes_a_jpeg_in_a_session_as_converters_of_folders_do() -> None:
    png = tf.placeholder(dtype=tf.string)
    jpeg = tf.image.encode_jpeg(tf.image.decode_png(png, channels=3), format="rgb", quality=100)
    given = tf.image.encode_png(np.full((4, 6, 3), 50, np.uint8)).numpy()
    with tf.Session() as session:
        made = session.run(jpeg, feed_dict={png: given})
    assert made[:2] == b"\xff\xd8"
    assert tf.image.decode_jpeg(made).shape == (4, 6, 3)
