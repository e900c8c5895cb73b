"""Images turned upright and encoded again."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from tfrkit.errors import SourceError
from tfrkit.images.encode import inspect_image
from tfrkit.images.orientation import find_orientation
from tfrkit.images.turn import StoredImage, turn_image

GRADIENT = np.add.outer(np.arange(24) * 5, np.arange(40) * 3).astype(np.uint8)


def encode(image: Image.Image, form: str, orientation: int = 6, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    image.save(file, form, exif=exif, **options)
    return file.getvalue()


def turn(data: bytes) -> StoredImage:
    return turn_image(data, inspect_image(data), find_orientation(memoryview(data)), 95)


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def picture(mode: str) -> Image.Image:
    if mode == "I;16":
        return Image.fromarray(GRADIENT.astype(np.uint16) * 257)
    colours = Image.fromarray(np.stack([GRADIENT, GRADIENT.max() - GRADIENT, GRADIENT // 2], 2))
    return colours.convert(mode)


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg_is_turned_as_pillow_turns_it_and_stays_close(mode: str, orientation: int) -> None:
    data = encode(picture(mode), "JPEG", orientation, quality=90)
    turned = turn(data)
    expected = ImageOps.exif_transpose(opened(data))
    image = opened(turned.data)
    assert (turned.format, turned.width, turned.height) == ("jpeg", *expected.size)
    assert (image.format, image.mode, image.size) == ("JPEG", mode, expected.size)
    assert np.abs(np.asarray(image).astype(int) - np.asarray(expected)).mean() < 2
    assert find_orientation(memoryview(turned.data)) == 1
    assert ImageOps.exif_transpose(image).size == image.size


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_png_is_turned_without_loss(mode: str, orientation: int) -> None:
    data = encode(picture(mode), "PNG", orientation)
    turned = turn(data)
    expected, image = ImageOps.exif_transpose(opened(data)), opened(turned.data)
    assert (turned.format, image.format, image.mode) == ("png", "PNG", mode)
    assert np.array_equal(np.asarray(image), np.asarray(expected))
    if mode == "P":
        assert image.getpalette() == expected.getpalette()
    assert 0x0112 not in image.getexif()


@pytest.mark.parametrize("form", ["WEBP", "TIFF"])
def test_other_formats_become_png(form: str) -> None:
    data = encode(picture("RGB"), form, 6, **({"lossless": True} if form == "WEBP" else {}))
    turned = turn(data)
    assert turned.format == "png"
    assert np.array_equal(np.asarray(opened(turned.data)), np.rot90(np.asarray(picture("RGB")), -1))


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_colour_profile_stays(form: str) -> None:
    turned = turn(encode(picture("RGB"), form, 3, icc_profile=b"a profile"))
    assert opened(turned.data).info["icc_profile"] == b"a profile"


def test_transparent_colour_of_a_palette_stays() -> None:
    turned = turn(encode(picture("P"), "PNG", 3, transparency=0))
    assert opened(turned.data).info["transparency"] == 0


def test_frames_and_bits_that_would_be_lost_are_refused() -> None:
    frames = [picture("RGB"), picture("L").convert("RGB")]
    animation = encode(frames[0], "WEBP", 6, save_all=True, append_images=frames[1:])
    with pytest.raises(SourceError, match="image with EXIF orientation 6 cannot be turned, it has 2 frames"):
        turn(animation)
    floats = encode(Image.fromarray(GRADIENT.astype(np.float32)), "TIFF")
    with pytest.raises(SourceError, match="PNG cannot store pixels of mode F\n  take it as stored"):
        turn(floats)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    tiff = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, 0x0112, 3, 1, 6, 0, 0)
    wide = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0)) + chunk(b"eXIf", tiff)
    wide += chunk(b"IDAT", zlib.compress(bytes(13))) + chunk(b"IEND", b"")
    with pytest.raises(SourceError, match="it has colours of 16 bits"):
        turn(wide)
