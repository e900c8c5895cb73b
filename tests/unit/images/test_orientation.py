"""The EXIF orientation, found in the bytes of each format."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from tfrkit.images.orientation import find_orientation

TAG = 0x0112


def encode(form: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[TAG] = orientation
    file = io.BytesIO()
    Image.new("RGB", (8, 4)).save(file, form, exif=exif)
    return file.getvalue()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_found_in_every_format_that_has_one(form: str, orientation: int) -> None:
    assert find_orientation(memoryview(encode(form, orientation))) == orientation


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"])
def test_image_without_exif_is_upright(form: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (8, 4)).save(file, form)
    assert find_orientation(memoryview(file.getvalue())) == 1


def test_bytes_that_are_no_image_are_upright() -> None:
    for data in (b"", b"x", b"RIFF", b"\x89PNG\r\n\x1a\n", b"II*\0", b"\xff\xd8\xff"):
        assert find_orientation(memoryview(data)) == 1


def test_png_chunk_after_the_pixels_counts() -> None:
    data = encode("PNG", 6)
    start = data.index(b"eXIf") - 4
    stop = start + 12 + int.from_bytes(data[start : start + 4], "big")
    end = data.index(b"IEND") - 4
    moved = data[:start] + data[stop:end] + data[start:stop] + data[end:]
    assert find_orientation(memoryview(moved)) == 6
    after_end = data[:start] + data[stop:] + data[start:stop]
    assert find_orientation(memoryview(after_end)) == 1


def test_name_of_the_jpeg_segment_before_the_exif_data_is_stepped_over() -> None:
    tiff = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, TAG, 3, 1, 6, 0, 0)
    content = b"Exif\0\0" + tiff
    data = b"RIFF\0\0\0\0WEBP" + struct.pack("<4sI", b"EXIF", len(content)) + content
    assert find_orientation(memoryview(data)) == 6


@pytest.mark.parametrize(("kind", "value"), [(3, 0), (3, 9), (4, 6), (1, 6)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation_of_another_type_or_out_of_range_is_upright(kind: int, value: int, order: str) -> None:
    start = b"II" if order == "<" else b"MM"
    tiff = struct.pack(f"{order}2sHIHHHIHHI", start, 42, 8, 1, TAG, kind, 1, value, 0, 0)
    assert find_orientation(memoryview(tiff)) == 1
    sound = struct.pack(f"{order}2sHIHHHIHHI", start, 42, 8, 1, TAG, 3, 1, 6, 0, 0)
    assert find_orientation(memoryview(sound)) == 6


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_damaged_bytes_give_an_orientation_and_never_an_error(form: str) -> None:
    data = encode(form, 6)
    for stop in range(len(data)):
        assert 1 <= find_orientation(memoryview(data[:stop])) <= 8
    rng = np.random.default_rng(1)
    for _ in range(500):
        changed = bytearray(data)
        for position in rng.integers(0, len(data), 2):
            changed[position] = rng.integers(0, 256)
        assert 1 <= find_orientation(memoryview(changed)) <= 8
