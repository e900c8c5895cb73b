from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from tfrkit import _native
from tfrkit.errors import CodecError, SourceError
from tfrkit.images.encode import ImageOptions, ImageStore, image_spec, inspect_image
from tfrkit.images.orientation import find_orientation


def encode(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


def store(data: bytes, **options: object):
    return ImageStore(ImageOptions(**options)).store(data)


def raw(image) -> np.ndarray:
    return np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, image.channels)


# --- kept


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_kept_image_is_the_same_bytes_with_its_true_format_and_size(form):
    data = encode(noise(7, 5), form)
    image = store(data)
    assert image.data is data
    assert (image.format, image.width, image.height) == (form.lower(), 7, 5)


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("LA", 2), ("P", 3), ("RGB", 3), ("RGBA", 4), ("1", 1), ("I;16", 1)]
)
def test_kept_png_reports_the_decoded_channels(mode, channels):
    assert store(encode(Image.new(mode, (4, 3)))).channels == channels


def test_cmyk_jpeg_is_kept_and_counts_as_three_channels():
    assert store(encode(Image.new("CMYK", (4, 3)), "JPEG")).channels == 3


@pytest.mark.parametrize("share", [0.3, 0.5, 0.95])
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_image_that_is_cut_off_is_found_by_default(form, share):
    data = encode(noise(64, 48), form)
    with pytest.raises(SourceError, match=r"decode|truncated|ends inside|expected an image"):
        store(data[: int(len(data) * share)])


def test_header_check_takes_what_the_header_says():
    data = encode(noise(64, 48), "JPEG")
    assert store(data[: len(data) // 2], check="header").width == 64


def test_empty_file_raises():
    with pytest.raises(SourceError, match="expected an image, got 0 bytes"):
        store(b"")


def test_text_raises_with_its_first_bytes():
    with pytest.raises(SourceError, match="expected an image, got 5 bytes that start with b'hello'"):
        store(b"hello")


def test_bomb_is_refused_by_its_header():
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(SourceError, match="image expected at most 178956970 pixels, got 30000x30000"):
        store(bomb)


def test_inspecting_says_codec_error_for_what_is_no_image():
    with pytest.raises(CodecError, match="expected an image"):
        inspect_image(b"\x00" * 40)


# --- re-encoded


@pytest.mark.parametrize("size", [(16, 12), (224, 224), (7, 50)])
@pytest.mark.parametrize("gray", [False, True], ids=["colour", "gray"])
def test_resized_pixels_are_those_of_pillow(size, gray):
    picture = noise(7, 5)
    image = store(encode(picture), resize=size, gray=gray)
    expected = picture.resize(size)
    expected = np.asarray(expected.convert("L"))[..., None] if gray else np.asarray(expected)
    np.testing.assert_array_equal(raw(image), expected)
    assert image.format == "raw"
    assert (image.source_width, image.source_height) == (7, 5)


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("form", ["JPEG", "PNG"])
@pytest.mark.parametrize("encode_as", ["raw", "png"])
@pytest.mark.parametrize("size", [None, (16, 12)])
def test_gray_image_of_any_format_is_stored_as_pillow_makes_it(mode, form, encode_as, size):
    data = encode(noise(31, 20).convert(mode), form)
    image = store(data, gray=True, resize=size, encode=encode_as)
    picture = Image.open(io.BytesIO(data))
    expected = np.asarray((picture.resize(size) if size else picture).convert("L"))
    got = raw(image)[..., 0] if encode_as == "raw" else np.asarray(Image.open(io.BytesIO(image.data)))
    np.testing.assert_array_equal(got, expected)
    assert (image.format, image.channels, image.source_width) == (encode_as, 1, 31)


def test_gray_alone_becomes_png_of_the_same_size():
    picture = noise(9, 4)
    image = store(encode(picture), gray=True)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(image.data))), np.asarray(picture.convert("L")))
    assert (image.format, image.channels) == ("png", 1)


def test_raw_without_resize_keeps_the_size():
    picture = noise(9, 4)
    np.testing.assert_array_equal(raw(store(encode(picture), encode="raw")), np.asarray(picture))


def test_jpeg_is_made_with_the_stated_quality():
    sizes = [len(store(encode(noise(64, 64)), encode="jpeg", quality=quality).data) for quality in (10, 95)]
    assert sizes[0] < sizes[1]
    assert store(encode(noise(4, 4)), encode="jpeg").data[:2] == b"\xff\xd8"


def test_jpeg_input_is_decoded_as_pillow_does():
    data = encode(noise(33, 21), "JPEG", quality=90)
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    assert np.abs(raw(store(data, encode="raw")).astype(int) - expected).max() <= 1


def test_palette_becomes_its_colours():
    picture = Image.new("P", (2, 1))
    picture.putpalette([10, 20, 30, 200, 100, 50])
    picture.putdata([0, 1])
    assert raw(store(encode(picture), encode="raw")).tolist() == [[[10, 20, 30], [200, 100, 50]]]


def test_sixteen_bits_become_the_upper_eight():
    picture = Image.fromarray(np.array([[0, 255, 256, 65535]], np.uint16))
    assert raw(store(encode(picture), encode="raw", gray=True))[..., 0].tolist() == [[0, 0, 1, 255]]


def test_alpha_is_dropped():
    picture = Image.new("RGBA", (1, 1), (1, 2, 3, 0))
    assert raw(store(encode(picture), encode="raw")).tolist() == [[[1, 2, 3]]]


def turned_jpeg() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encode(noise(8, 4), "JPEG", exif=exif)


def test_pixels_are_turned_by_exif_only_when_requested():
    assert store(turned_jpeg(), encode="raw")[2:4] == (8, 4)
    turned = store(turned_jpeg(), encode="raw", exif="apply")
    assert turned[2:4] == (4, 8)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(turned_jpeg())))
    assert np.array_equal(raw(turned), np.asarray(expected))


def test_kept_image_is_not_touched_whatever_exif_says():
    stored = store(turned_jpeg())
    assert stored.data == turned_jpeg()
    assert (stored.width, stored.height) == (8, 4)


def test_exif_apply_encodes_again_only_what_is_not_upright():
    upright = encode(noise(8, 4), "JPEG")
    assert store(upright, exif="apply").data == upright
    turned = store(turned_jpeg(), exif="apply")
    assert turned[1:] == ("jpeg", 4, 8, 3, 4, 8)
    assert find_orientation(memoryview(turned.data)) == 1


def test_pixels_are_turned_before_they_are_resized():
    turned = store(turned_jpeg(), exif="apply", resize=(2, 4), encode="png")
    upright = store(encode(ImageOps.exif_transpose(Image.open(io.BytesIO(turned_jpeg())))), resize=(2, 4), encode="png")
    assert turned == upright


@pytest.mark.parametrize("encode_as", ["keep", "png", "raw"])
def test_exif_fail_refuses_what_is_not_upright(encode_as):
    store(encode(noise(8, 4), "JPEG"), encode=encode_as, exif="fail")
    with pytest.raises(SourceError, match='image expected upright, got EXIF orientation 6\n  turn it: exif="apply"'):
        store(turned_jpeg(), encode=encode_as, exif="fail")


def test_images_with_an_orientation_are_counted():
    upright = encode(noise(8, 4), "JPEG")
    for exif, expected in (
        (
            "keep",
            ['images with an EXIF orientation, pixels taken as stored: 2 of 3; to store them upright use exif="apply"'],
        ),
        ("apply", ["images turned by their EXIF orientation: 2 of 3"]),
    ):
        made = ImageStore(ImageOptions(exif=exif))
        for data in (upright, turned_jpeg(), turned_jpeg()):
            made.store(data)
        assert ImageOptions(exif=exif).describe_seen({"image": made.take_facts()}) == expected
    assert ImageOptions().describe_seen({}) == []


# --- options


def test_auto_keeps_what_needs_no_change():
    assert ImageOptions().stored_as == "keep"
    assert ImageOptions(resize=(2, 2)).stored_as == "raw"
    assert ImageOptions(gray=True).stored_as == "png"
    assert ImageOptions(resize=(2, 2), encode="jpeg").stored_as == "jpeg"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encode": "gif"}, "encode expected one of auto, keep, raw, png, jpeg, got 'gif'"),
        ({"quality": 0}, "quality expected from 1 to 100, got 0"),
        ({"resize": (0, 5)}, "resize expected a width and a height from 1 up, got 0x5"),
        ({"encode": "keep", "gray": True}, "images that are resized or made gray cannot be kept"),
        ({"check": "x"}, "check expected one of"),
        ({"exif": "x"}, "exif expected one of"),
    ],
)
def test_options_that_mean_nothing_raise(options, message):
    with pytest.raises(ValueError, match=message):
        ImageOptions(**options)


def test_policy_is_described():
    assert "encoded bytes kept unchanged" in ImageOptions().describe()[0]
    assert "JPEG of quality 80, gray" in ImageOptions(gray=True, encode="jpeg", quality=80).describe()[0]


# --- what images have in common


def facts_of(*pictures: bytes):
    images = ImageStore(ImageOptions())
    for picture in pictures:
        images.store(picture)
    return images.take_facts()


def test_spec_of_images_alike_has_format_size_and_channels():
    spec = image_spec(ImageOptions(), facts_of(encode(noise(7, 5)), encode(noise(7, 5, 1))))
    assert (spec["format"], spec["decoded_shape"]) == ("png", (5, 7, 3))


def test_spec_of_different_images_leaves_open_what_differs():
    spec = image_spec(ImageOptions(), facts_of(encode(noise(7, 5)), encode(noise(8, 5), "JPEG")))
    assert "format" not in spec
    assert spec["decoded_shape"] == (None, None, 3)


def test_spec_of_sixteen_bit_pngs_says_so():
    spec = image_spec(ImageOptions(), facts_of(encode(Image.new("I;16", (3, 2)))))
    assert (spec["dtype"], spec["decoded_shape"]) == ("uint16", (2, 3, 1))


def test_sixteen_bit_png_that_is_encoded_again_has_eight():
    images = ImageStore(ImageOptions(encode="png"))
    images.store(encode(Image.new("I;16", (3, 2))))
    assert [fact.bits for fact in images.take_facts()] == [8]


def test_spec_of_resized_raw_pixels_is_known_before_reading():
    spec = image_spec(ImageOptions(resize=(20, 10), gray=True))
    assert (spec["encoding"], spec["shape"], spec["dtype"]) == ("raw", (10, 20, 1), "uint8")


def test_many_sizes_are_counted_together():
    facts = facts_of(*(encode(Image.new("L", (1 + i, 1))) for i in range(40)))
    assert len(facts) <= 17
    assert sum(facts.values()) == 40


# --- the native resize


def reference_bicubic(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    """The slow twin: columns first, rows after, each rounded and clipped to 8 bits."""

    def weigh(num_source: int, num_target: int) -> np.ndarray:
        scale = num_source / num_target
        wide = max(scale, 1.0)
        weights = np.zeros((num_target, num_source))
        for position in range(num_target):
            centre = (position + 0.5) * scale
            first = max(0, int(centre - 2 * wide + 0.5))
            stop = min(num_source, int(centre + 2 * wide + 0.5))
            x = np.abs((np.arange(first, stop) - centre + 0.5) / wide)
            near = (1.5 * x - 2.5) * x * x + 1
            far = (((x - 5) * x + 8) * x - 4) * -0.5
            values = np.where(x < 1, near, np.where(x < 2, far, 0))
            weights[position, first:stop] = values / values.sum()
        return np.trunc(weights * (1 << 22) + np.copysign(0.5, weights)).astype(np.int64)

    def blend(weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return np.clip((np.tensordot(weights, levels, 1) + (1 << 21)) >> 22, 0, 255)

    levels = pixels.astype(np.int64)
    if width != pixels.shape[1]:
        levels = blend(weigh(pixels.shape[1], width), levels.transpose(1, 0, 2)).transpose(1, 0, 2)
    if height != pixels.shape[0]:
        levels = blend(weigh(pixels.shape[0], height), levels)
    return levels.astype(np.uint8)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("channels", [1, 3])
def test_bicubic_agrees_with_its_slow_twin(seed, channels):
    rng = np.random.default_rng(seed)
    height, width, new_height, new_width = (int(side) for side in rng.integers(1, 70, 4))
    pixels = rng.choice([0, 255, 17], (height, width, channels)).astype(np.uint8)
    out = np.empty((new_height, new_width, channels), np.uint8)
    _native.resize_bicubic(pixels, out)
    np.testing.assert_array_equal(out, reference_bicubic(pixels, new_width, new_height))


@pytest.mark.parametrize(("width", "new_width"), [(160, 224), (1, 7), (3, 301), (500, 3), (64, 65), (33, 32)])
@pytest.mark.parametrize("channels", [1, 3])
def test_bicubic_agrees_with_its_slow_twin_at_every_number_of_taps(width, new_width, channels):
    pixels = np.random.default_rng(7).integers(0, 256, (5, width, channels)).astype(np.uint8)
    out = np.empty((9, new_width, channels), np.uint8)
    _native.resize_bicubic(pixels, out)
    np.testing.assert_array_equal(out, reference_bicubic(pixels, new_width, 9))


@pytest.mark.parametrize("shape", [(4, 4, 2), (4, 4, 4), (0, 4, 3)])
def test_bicubic_refuses_sizes_that_do_not_hold_together(shape):
    with pytest.raises(ValueError, match="do not match"):
        _native.resize_bicubic(np.zeros(shape, np.uint8), np.zeros((2, 2, 3), np.uint8))


def test_bicubic_makes_no_colour_out_of_gray():
    with pytest.raises(ValueError, match="do not match"):
        _native.resize_bicubic(np.zeros((4, 4, 1), np.uint8), np.zeros((2, 2, 3), np.uint8))
