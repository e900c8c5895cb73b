from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import CodecError
from tfrkit.images.png import decode_png, read_png

LIMIT = 10**6
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def make_png(rows: list[bytes], width: int, colour_type: int = 2, *, pieces: int = 1, extra: bytes = b"") -> bytes:
    """A PNG of rows as they are stored: a filter byte, then the filtered bytes."""
    packed = zlib.compress(b"".join(rows))
    step = -(-len(packed) // pieces)
    image = b"".join(chunk(b"IDAT", packed[start : start + step]) for start in range(0, len(packed), step))
    header = struct.pack(">IIBBBBB", width, len(rows), 8, colour_type, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + extra + image + chunk(b"IEND", b"")


def decode(data: bytes) -> np.ndarray | None:
    png = read_png(memoryview(data), LIMIT)
    return None if png is None else decode_png(png)


def pillow(data: bytes, mode: str) -> np.ndarray:
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert(mode))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("colour_type", "channels", "mode"), [(0, 1, "L"), (2, 3, "RGB"), (4, 2, "L"), (6, 4, "RGB")])
def test_every_filter_gives_the_pixels_of_pillow(seed, colour_type, channels, mode):
    rng = np.random.default_rng(seed)
    width, height = (int(side) for side in rng.integers(1, 20, 2))
    rows = [bytes([rng.integers(0, 5)]) + rng.bytes(width * channels) for _ in range(height)]
    data = make_png(rows, width, colour_type, pieces=int(rng.integers(1, 4)))
    expected = np.asarray(Image.open(io.BytesIO(data)))
    expected = expected.reshape(height, width, -1)[:, :, : 1 if mode == "L" else 3]
    np.testing.assert_array_equal(decode(data), expected)


@pytest.mark.parametrize("size", [(1, 1), (160, 60), (333, 7)])
def test_png_of_pillow_decodes_alike(size):
    picture = Image.fromarray(np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8))
    file = io.BytesIO()
    picture.save(file, "PNG")
    np.testing.assert_array_equal(decode(file.getvalue()), np.asarray(picture))


@pytest.mark.parametrize("mode", ["P", "1", "I;16"])
def test_palette_bits_and_wide_samples_are_left_to_pillow(mode):
    file = io.BytesIO()
    Image.new(mode, (9, 4)).save(file, "PNG")
    assert read_png(memoryview(file.getvalue()), LIMIT) is None


@pytest.mark.parametrize(
    "extra",
    [chunk(b"acTL", b"\0" * 8), chunk(b"PLTE", b"\0" * 3), chunk(b"ABCD", b"")],
    ids=["animation", "palette", "unknown and critical"],
)
def test_critical_chunks_are_left_to_pillow(extra):
    assert read_png(memoryview(make_png([b"\0abc"], 1, extra=extra)), LIMIT) is None


@pytest.mark.parametrize("extra", [chunk(b"tEXt", b"hello"), chunk(b"eXIf", b"MM\0*")], ids=["text", "exif"])
def test_chunks_that_leave_the_pixels_alone_are_stepped_over(extra):
    assert decode(make_png([b"\0abc"], 1, extra=extra)).tolist() == [[[97, 98, 99]]]


def test_more_rows_than_the_header_says_are_left_to_pillow():
    data = bytearray(make_png([b"\0abc", b"\0abc"], 1))
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    data[8 : 8 + 25] = chunk(b"IHDR", header)
    assert read_png(memoryview(bytes(data)), LIMIT) is None


def test_image_over_the_limit_is_not_inflated():
    assert read_png(memoryview(make_png([b"\0" + b"abc" * 10], 10)), 5) is None


def test_other_files_are_none():
    assert read_png(memoryview(b"\xff\xd8\xff"), LIMIT) is None
    assert read_png(memoryview(b""), LIMIT) is None


def test_png_cut_off_anywhere_raises():
    data = make_png([b"\0" + bytes(range(30)), b"\1" + bytes(range(30))], 10, pieces=2)
    for stop in range(8, len(data)):
        with pytest.raises(CodecError, match="truncated|does not decode"):
            decode(data[:stop])


def test_any_byte_flipped_raises_or_is_left_to_pillow():
    """Every chunk has a checksum, so all damage after the signature is found."""
    data = make_png([b"\4" + bytes(range(30))] * 3, 10)
    for place in range(8, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        try:
            assert decode(bytes(damaged)) is None
        except CodecError:
            pass


def test_unknown_filter_raises():
    with pytest.raises(CodecError, match="a row has an unknown filter"):
        decode(make_png([b"\5abc"], 1))


def test_rows_that_are_missing_raise():
    data = bytearray(make_png([b"\0abc"], 1))
    data[8 : 8 + 25] = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 2, 8, 2, 0, 0, 0))
    with pytest.raises(CodecError, match="PNG of 1x2 is truncated, 4 of 8 bytes are there"):
        decode(bytes(data))


def test_stream_that_does_not_inflate_raises():
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    with pytest.raises(CodecError, match="PNG of 1x1 does not decode"):
        decode(SIGNATURE + header + chunk(b"IDAT", b"\x78\x9c\xff\xff\xff") + chunk(b"IEND", b""))
