from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import CodecError
from tfrkit.images.decode import decode_image
from tfrkit.images.mask import MaskOptions, decode_mask

INDICES = np.array([[0, 1, 2, 255], [3, 3, 15, 0]], np.uint8)


def encode(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def palette_image(indices: np.ndarray[Any, Any]) -> Image.Image:
    image = Image.fromarray(indices.astype(np.uint8)).convert("L")
    image.putpalette(np.random.default_rng(1).integers(0, 256, 768, np.uint8).tobytes())
    return image


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF"])
def test_palette_gives_indices_where_an_image_gives_colours(kind: str) -> None:
    data = encode(palette_image(INDICES), kind, **({"optimize": False} if kind == "GIF" else {}))
    found = decode_mask(data)
    assert found.dtype == np.uint8
    assert found.shape == (2, 4)
    assert np.array_equal(found, INDICES)
    assert decode_image(data).shape == (2, 4, 3)


def test_gray_gives_its_levels() -> None:
    assert np.array_equal(decode_mask(encode(Image.fromarray(INDICES))), INDICES)


def test_sixteen_bit_gray_gives_uint16() -> None:
    numbers = np.array([[0, 1000], [65535, 7]], np.uint16)
    found = decode_mask(encode(Image.fromarray(numbers)))
    assert found.dtype == np.uint16
    assert np.array_equal(found, numbers)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_numbers_below_eight_bits_come_as_they_are_stored(bits: int) -> None:
    numbers = np.arange(1 << bits, dtype=np.uint8)[None]
    assert np.array_equal(decode_mask(encode(palette_image(numbers), bits=bits)), numbers)
    gray = gray_png(numbers, bits)
    assert np.array_equal(decode_mask(gray), numbers)
    assert decode_image(gray, channels="gray").max() == 255


def gray_png(numbers: np.ndarray[Any, Any], bits: int) -> bytes:
    import struct
    import zlib

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    unpacked = np.unpackbits(numbers[..., None], axis=-1)[..., -bits:].reshape(len(numbers), -1)
    rows = b"".join(b"\0" + np.packbits(row).tobytes() for row in unpacked)
    header = struct.pack(">IIBBBBB", numbers.shape[1], numbers.shape[0], bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def test_resized_mask_holds_no_number_that_was_not_there() -> None:
    found = decode_mask(encode(palette_image(INDICES)), size=(5, 9))
    assert found.shape == (5, 9)
    rows = [(2 * y + 1) * 2 // 10 for y in range(5)]
    columns = [(2 * x + 1) * 4 // 18 for x in range(9)]
    assert np.array_equal(found, INDICES[np.ix_(rows, columns)])


def test_padded_mask_is_filled_with_the_given_value() -> None:
    found = decode_mask(encode(palette_image(INDICES)), size=(4, 4), fit="pad", fill=255)
    assert (found[0] == 255).all()
    assert np.array_equal(found[1:3], INDICES)


def test_exif_orientation_turns_a_mask_only_when_requested() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode(palette_image(INDICES), exif=exif)
    assert np.array_equal(decode_mask(data), INDICES)
    assert np.array_equal(decode_mask(data, exif="apply"), np.rot90(INDICES, -1))
    assert decode_mask(data, size=(8, 4)).shape == (8, 4)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA"])
def test_colours_are_refused(mode: str) -> None:
    data = encode(Image.new(mode, (3, 3)))
    with pytest.raises(CodecError, match=f"mask expected palette indices or gray levels, got {mode}\n  convert"):
        decode_mask(data)


def test_jpeg_is_refused() -> None:
    with pytest.raises(CodecError, match="got a JPEG, which changes them"):
        decode_mask(encode(Image.new("L", (8, 8)), "JPEG"))


def test_damage_and_bombs_are_refused() -> None:
    data = encode(palette_image(INDICES))
    with pytest.raises(CodecError, match="PNG of .* does not decode"):
        decode_mask(data[:-30])
    with pytest.raises(CodecError, match="expected an image, got 0 bytes"):
        decode_mask(b"")
    with pytest.raises(CodecError, match="expected at most 7 pixels, got 4x2"):
        decode_mask(data, max_pixels=7)


def test_wrong_options_raise() -> None:
    with pytest.raises(ValueError, match="fit expected 'stretch', 'crop', 'pad', got 'tile'"):
        MaskOptions(fit="tile")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"size expected \(height, width\)"):
        MaskOptions(size=7)  # type: ignore[arg-type]
