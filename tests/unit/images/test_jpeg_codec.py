"""Pillow in place of simplejpeg: the same pixels, the same verdicts."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import CodecError
from tfrkit.images import jpeg_codec
from tfrkit.images.jpeg import decode_jpeg, read_jpeg_header

pytest.importorskip("simplejpeg")

WIDTH, HEIGHT = 149, 83


def make_jpeg(mode: str = "RGB", **options: object) -> bytes:
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (5, 9, 3), np.uint8)).resize((WIDTH, HEIGHT))
    file = io.BytesIO()
    small.convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def decode(data: bytes, colours: str, eighths: int, monkeypatch: pytest.MonkeyPatch, *, plain: bool):
    """Return a copy of the pixels, or the word "refused"."""
    view, buffer = memoryview(data), np.zeros(WIDTH * HEIGHT * 4, np.uint8)
    with monkeypatch.context() as patch:
        if plain:
            patch.setattr(jpeg_codec, "_find_simplejpeg", lambda: None)
        try:
            return decode_jpeg(view, read_jpeg_header(view), colours, buffer, eighths).copy()
        except CodecError:
            return "refused"


@pytest.mark.parametrize("eighths", [8, 4, 2])
@pytest.mark.parametrize("colours", ["RGB", "GRAY", "RGBA"])
@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("RGB", {"subsampling": 0}),
        ("RGB", {"subsampling": 2}),
        ("RGB", {"progressive": True, "quality": 60}),
        ("RGB", {"restart_marker_blocks": 3}),
        ("L", {}),
    ],
    ids=str,
)
def test_pixels_of_both_decoders_are_equal(mode, options, colours, eighths, monkeypatch):
    data = make_jpeg(mode, **options)
    fast = decode(data, colours, eighths, monkeypatch, plain=False)
    plain = decode(data, colours, eighths, monkeypatch, plain=True)
    assert fast.shape == plain.shape
    np.testing.assert_array_equal(fast, plain)


def test_damaged_baseline_is_refused_by_both(monkeypatch):
    data = make_jpeg(quality=90)
    start = data.index(b"\xff\xda") + 14
    rng = np.random.default_rng(1)
    verdicts = {"refused": 0, "decoded": 0}
    for _ in range(300):
        bad = bytearray(data)
        bad[rng.integers(start, len(data) - 2)] ^= 1 << rng.integers(8)
        fast = decode(bytes(bad), "RGB", 8, monkeypatch, plain=False)
        plain = decode(bytes(bad), "RGB", 8, monkeypatch, plain=True)
        if isinstance(fast, str):
            assert isinstance(plain, str)
            verdicts["refused"] += 1
        elif not isinstance(plain, str):  # libjpeg accepts some values that are no code of a real encoder
            np.testing.assert_array_equal(fast, plain)
            verdicts["decoded"] += 1
    assert min(verdicts.values()) > 10


@pytest.mark.parametrize("cut", [3, 40, 900])
@pytest.mark.parametrize("progressive", [False, True])
def test_truncated_file_is_refused_without_simplejpeg(cut, progressive, monkeypatch):
    assert decode(make_jpeg(progressive=progressive)[:-cut], "RGB", 8, monkeypatch, plain=True) == "refused"


def test_bytes_before_a_marker_are_no_damage(monkeypatch):
    data = make_jpeg()
    padded = data[:-2] + b"\x12\x34\x56" + data[-2:]
    plain = decode(padded, "RGB", 8, monkeypatch, plain=True)
    np.testing.assert_array_equal(plain, decode(data, "RGB", 8, monkeypatch, plain=False))


def test_encoder_without_simplejpeg_writes_the_size_and_nearly_the_pixels(monkeypatch):
    pixels = np.asarray(Image.open(io.BytesIO(make_jpeg())))
    monkeypatch.setattr(jpeg_codec, "_find_simplejpeg", lambda: None)
    read = np.asarray(Image.open(io.BytesIO(jpeg_codec.encode(pixels, 95))))
    assert read.shape == pixels.shape
    assert np.abs(read.astype(int) - pixels).mean() < 3
