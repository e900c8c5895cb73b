"""Image headers, from real files, from Pillow's writers and from garbage."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pytest
from PIL import Image

from tfrkit.images.sniff import ImageInfo, describe_image, sniff_image

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"


def encode(image: Image.Image, image_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("mode", "image_format", "expected"),
    [
        ("RGB", "JPEG", ImageInfo("JPEG", 7, 5, "RGB")),
        ("L", "JPEG", ImageInfo("JPEG", 7, 5, "L")),
        ("CMYK", "JPEG", ImageInfo("JPEG", 7, 5, "CMYK")),
        ("RGB", "PNG", ImageInfo("PNG", 7, 5, "RGB")),
        ("RGBA", "PNG", ImageInfo("PNG", 7, 5, "RGBA")),
        ("LA", "PNG", ImageInfo("PNG", 7, 5, "LA")),
        ("I;16", "PNG", ImageInfo("PNG", 7, 5, "L", 16)),
        ("1", "PNG", ImageInfo("PNG", 7, 5, "L", 1)),
        ("P", "GIF", ImageInfo("GIF", 7, 5, "P")),
        ("RGB", "BMP", ImageInfo("BMP", 7, 5, "RGB")),
        ("P", "BMP", ImageInfo("BMP", 7, 5, "P")),
        ("RGB", "TIFF", ImageInfo("TIFF", 7, 5, "RGB")),
        ("L", "TIFF", ImageInfo("TIFF", 7, 5, "L")),
    ],
)
def test_sniff_image_written_by_pillow_is_described(mode: str, image_format: str, expected: ImageInfo) -> None:
    assert sniff_image(encode(Image.new(mode, (7, 5)), image_format)) == expected


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 50}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_sniff_image_webp_variants_are_described(mode: str, options: dict[str, object]) -> None:
    colours = {"RGB": (200, 10, 10), "RGBA": (200, 10, 10, 90)}
    image = Image.new(mode, (300, 200), colours[mode])
    assert sniff_image(encode(image, "WEBP", **options)) == ImageInfo("WEBP", 300, 200, mode)


def test_sniff_image_palette_png_keeps_index_bits() -> None:
    image = Image.new("P", (3, 2))
    image.putpalette([0, 0, 0, 255, 0, 0])
    image.putdata([0, 1, 0, 1, 0, 1])
    info = sniff_image(encode(image, "PNG"))
    assert info == ImageInfo("PNG", 3, 2, "P", 1)
    assert str(info) == "PNG 3x2 palette"


def test_sniff_image_jpeg_size_beyond_head_is_unknown() -> None:
    data = encode(Image.new("RGB", (7, 5)), "JPEG", exif=b"Exif\0\0" + bytes(5000))
    assert sniff_image(data[:4096]) == ImageInfo("JPEG")
    assert sniff_image(data) == ImageInfo("JPEG", 7, 5, "RGB")
    assert describe_image(ImageInfo("JPEG"), len(data)) == f"JPEG, {len(data):,} bytes"


def test_sniff_image_top_down_bmp_has_positive_height() -> None:
    data = bytearray(encode(Image.new("RGB", (7, 5)), "BMP"))
    data[22:26] = (-5).to_bytes(4, "little", signed=True)
    assert sniff_image(bytes(data)) == ImageInfo("BMP", 7, 5, "RGB")


@pytest.mark.parametrize(
    "head", [b"", b"\xff", b"\xff\xd8", b"BM", b"BM is a car maker, and this is only text", b"RIFF"]
)
def test_sniff_image_other_bytes_give_none(head: bytes) -> None:
    assert sniff_image(head) is None


@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"])
def test_sniff_image_any_cut_or_flip_is_survived(image_format: str) -> None:
    data = encode(Image.new("RGB", (7, 5)), image_format)
    for stop in range(len(data)):
        sniff_image(data[:stop])
    generator = random.Random(11)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        sniff_image(bytes(damaged))


def test_sniff_image_jpeg_marker_loops_end() -> None:
    assert sniff_image(b"\xff\xd8" + b"\xff" * 4000) == ImageInfo("JPEG")
    assert sniff_image(b"\xff\xd8\xff\xe0\x00\x00" * 600) == ImageInfo("JPEG")


@pytest.mark.parametrize(
    ("info", "nbytes", "text"),
    [
        (ImageInfo("JPEG", 500, 375, "RGB"), 43112, "JPEG 500x375, 43,112 bytes"),
        (ImageInfo("PNG", 3, 2, "P"), 1, "PNG 3x2 palette, 1 byte"),
        (ImageInfo("PNG", 28, 28, "L", 16), 90, "PNG 28x28 gray 16-bit, 90 bytes"),
    ],
)
def test_describe_image_is_one_line(info: ImageInfo, nbytes: int, text: str) -> None:
    assert describe_image(info, nbytes) == text


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project")
def test_sniff_image_corpus_agrees_with_pillow() -> None:
    names = [entry["file"] for entry in json.loads((CORPUS / "MANIFEST.json").read_text()) if entry["kind"] == "image"]
    assert len(names) == 30
    for name in names:
        with Image.open(CORPUS / name) as image:
            expected = (image.format, *image.size, image.mode)
        info = sniff_image((CORPUS / name).read_bytes()[:4096])
        assert info is not None
        assert (info.format, info.width, info.height, info.mode) == expected, name
