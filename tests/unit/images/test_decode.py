from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from tfrkit import _native
from tfrkit.errors import CodecError
from tfrkit.images.decode import Scratch, decode_image, decode_into, decode_thumbnail, measure_image
from tfrkit.images.jpeg import choose_eighths
from tfrkit.images.options import DecodeOptions
from tfrkit.images.resize import resize_into

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
ORIENTATION = 0x0112


def photo(height: int = 40, width: int = 56) -> np.ndarray[Any, Any]:
    """Smooth colours with an edge, so that a lossy format stays near."""
    y, x = np.mgrid[0:height, 0:width]
    red, green, blue = 255 * x / width, 255 * y / height, np.where(x + y > (height + width) / 2, 220, 30)
    return np.stack([red, green, blue], axis=2).astype(np.uint8)


def encode(image: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, kind, **options)
    return file.getvalue()


def png(width: int, height: int, bits: int, colour_type: int, rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    middle = b"".join(chunk(*one) for one in chunks)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + middle
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


# ---- formats and channels ----


LOSSLESS = [
    (kind, mode)
    for kind in ("PNG", "BMP", "TIFF", "GIF")
    for mode in ("RGB", "L", "P", "1", "RGBA", "LA")
    if (kind, mode) != ("BMP", "LA")  # there is no such file
]


@pytest.mark.parametrize(("kind", "mode"), LOSSLESS)
@pytest.mark.parametrize("channels", ["rgb", "gray", "rgba"])
def test_every_lossless_format_and_mode_gives_the_requested_channels(kind: str, mode: str, channels: Any) -> None:
    data = encode(Image.fromarray(photo()).convert(mode), kind)
    stored = Image.open(io.BytesIO(data))
    wanted = {"rgb": "RGB", "gray": "L", "rgba": "RGBA"}[channels]
    expected = np.asarray(stored.convert(wanted))
    found = decode_image(data, channels=channels)
    assert found.dtype == np.uint8
    assert found.shape == (40, 56, {"rgb": 3, "gray": 1, "rgba": 4}[channels])
    assert np.array_equal(found.squeeze(), expected)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
@pytest.mark.parametrize(("channels", "wanted"), [("rgb", "RGB"), ("gray", "L"), ("rgba", "RGBA")])
def test_lossy_formats_stay_near_the_picture(kind: str, channels: Any, wanted: str) -> None:
    data = encode(photo(), kind, quality=95)
    found = decode_image(data, channels=channels)
    expected = np.asarray(Image.fromarray(photo()).convert(wanted))
    assert found.squeeze().shape == expected.shape
    assert np.abs(found.squeeze().astype(int) - expected).mean() < 4


def test_gray_jpeg_becomes_three_equal_channels() -> None:
    data = encode(Image.fromarray(photo()).convert("L"), "JPEG")
    found = decode_image(data)
    assert found.shape == (40, 56, 3)
    assert np.array_equal(found[:, :, 0], found[:, :, 2])
    assert decode_image(data, channels="keep").shape == (40, 56, 1)


def test_lossless_webp_is_exact_and_keeps_alpha_where_it_is_requested() -> None:
    pixels = np.dstack([photo(), np.full((40, 56), 77, np.uint8)])
    data = encode(pixels, "WEBP", lossless=True, exact=True)
    assert np.array_equal(decode_image(data, channels="rgba"), pixels)
    assert np.array_equal(decode_image(data, channels="keep"), pixels)
    assert np.array_equal(decode_image(data), pixels[:, :, :3])


def test_alpha_is_dropped_not_blended() -> None:
    pixels = np.zeros((2, 2, 4), np.uint8)
    pixels[..., 0] = 200
    assert decode_image(encode(pixels, "PNG"))[0, 0].tolist() == [200, 0, 0]


def test_palette_with_transparency_keeps_its_colours() -> None:
    image = Image.new("P", (4, 3), 1)
    image.putpalette([0, 0, 0, 250, 120, 10])
    data = encode(image, "PNG", transparency=bytes([128, 0]))
    assert decode_image(data)[0, 0].tolist() == [250, 120, 10]
    assert decode_image(data, channels="rgba")[0, 0].tolist() == [250, 120, 10, 0]
    assert decode_image(data, channels="keep")[0, 0].tolist() == [250, 120, 10, 0]
    assert decode_image(encode(image, "PNG"), channels="keep").shape == (3, 4, 3)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bit_gray_is_kept_or_its_upper_byte_is_taken(kind: str) -> None:
    levels = (np.arange(12).reshape(3, 4) * 5000).astype(np.uint16)
    data = encode(levels, kind)
    kept = decode_image(data, channels="keep")
    assert kept.dtype == np.uint16
    assert np.array_equal(kept[:, :, 0], levels)
    assert np.array_equal(decode_image(data, channels="gray")[:, :, 0], levels >> 8)
    assert np.array_equal(decode_image(data)[:, :, 1], levels >> 8)
    assert decode_image(data, channels="rgba")[0, 0].tolist() == [0, 0, 0, 255]


def test_big_endian_sixteen_bit_tiff_comes_in_native_order() -> None:
    image = Image.new("I;16B", (2, 1))
    image.putdata([1, 258])
    kept = decode_image(encode(image, "TIFF"), channels="keep")
    assert kept.dtype == np.uint16
    assert kept[:, :, 0].tolist() == [[1, 258]]


def test_sixteen_bit_colour_png_comes_as_its_upper_bytes() -> None:
    levels = (np.arange(18).reshape(2, 3, 3) * 3000).astype(">u2")
    data = png(3, 2, 16, 2, b"".join(b"\0" + row.tobytes() for row in levels))
    assert np.array_equal(decode_image(data), levels >> 8)


def test_float_tiff_is_kept_or_refused() -> None:
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    data = encode(values, "TIFF")
    assert np.array_equal(decode_image(data, channels="keep")[:, :, 0], values)
    with pytest.raises(CodecError, match="expected 8 or 16 bits per sample, got 32-bit float"):
        decode_image(data)


def test_cmyk_jpeg_written_by_adobe_rules_is_not_inverted() -> None:
    """Adobe stores CMYK inverted and marks it; Pillow writes JPEGs that way."""
    image = Image.fromarray(photo()).convert("CMYK")
    data = encode(image, "JPEG", quality=95)
    assert b"Adobe" in data
    for channels in ("rgb", "keep"):
        found = decode_image(data, channels=channels)  # type: ignore[arg-type]
        assert found.shape == (40, 56, 3)
        assert np.abs(found.astype(int) - photo()).mean() < 4
    assert decode_image(data, channels="gray").shape == (40, 56, 1)
    assert decode_image(data, size=(10, 10)).shape == (10, 10, 3)


def test_conversion_that_pillow_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("conversion not supported")

    monkeypatch.setattr(Image.Image, "convert", refuse)
    with pytest.raises(CodecError, match="image of mode L cannot become RGB"):
        decode_image(png(1, 1, 8, 0, b"\0\0"))


def test_cmyk_tiff_becomes_rgb() -> None:
    found = decode_image(encode(Image.fromarray(photo()).convert("CMYK"), "TIFF"))
    assert np.abs(found.astype(int) - photo()).max() <= 1


def test_first_frame_of_an_animation_is_decoded() -> None:
    frames = [Image.new("RGB", (6, 5), colour) for colour in ("red", "blue")]
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        data = encode(frames[0], kind, save_all=True, append_images=frames[1:])
        red, green, blue = decode_image(data)[2, 3].tolist()
        assert red > 240, kind
        assert green < 10, kind
        assert blue < 10, kind


def test_progressive_jpeg_gives_the_pixels_of_pillow() -> None:
    data = encode(photo(), "JPEG", progressive=True)
    assert np.array_equal(decode_image(data), np.asarray(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (7, 7), (7, 5), (8, 8), (17, 33), (375, 500)])
def test_jpeg_pixels_are_those_of_every_libjpeg_user(size: tuple[int, int], subsampling: str) -> None:
    data = encode(photo(*size), "JPEG", subsampling=subsampling, quality=80)
    assert np.array_equal(decode_image(data), np.asarray(Image.open(io.BytesIO(data))))


# ---- orientation ----


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied_as_viewers_do_when_requested(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    data = encode(photo(), kind, exif=exif, **({"lossless": True} if kind == "WEBP" else {}))
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    assert np.array_equal(decode_image(data, exif="apply"), expected)
    assert np.array_equal(decode_image(data, exif="apply", channels="keep"), expected)
    if kind == "JPEG":
        assert measure_image(memoryview(data), DecodeOptions(exif="apply")) == expected.shape[:2]
    small = np.empty((20, 13, 3), np.uint8)
    resize_into(np.ascontiguousarray(expected), small)
    found = decode_image(data, size=(20, 13), reduced=False, exif="apply")
    assert np.abs(found.astype(int) - small).max() <= 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_pixels_are_given_as_stored_whatever_exif_says(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    lossless = {"lossless": True} if kind == "WEBP" else {}
    plain = decode_image(encode(photo(), kind, **lossless))
    data = encode(photo(), kind, exif=exif, **lossless)
    assert np.array_equal(decode_image(data), plain)
    assert np.array_equal(decode_image(data, channels="keep"), plain)
    assert np.array_equal(
        decode_image(data, size=(20, 13)), decode_image(encode(photo(), kind, **lossless), size=(20, 13))
    )


def test_exif_orientation_out_of_range_is_upright() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 77
    for kind in ("JPEG", "PNG"):
        assert decode_image(encode(photo(), kind, exif=exif), exif="apply").shape == (40, 56, 3)


def test_damaged_exif_leaves_the_image_as_it_is_stored() -> None:
    rows = b"".join(b"\0" + bytes(12) for _ in range(3))
    whole = struct.pack("<2sHIHHHIHHI", b"II", 42, 8, 1, ORIENTATION, 3, 1, 6, 0, 0)
    assert decode_image(png(4, 3, 8, 2, rows, (b"eXIf", whole)), exif="apply").shape == (4, 3, 3)
    for exif in (b"", b"nonsense", b"II*\0\xff\xff\xff\xff", whole[:12], whole[:-10]):
        assert decode_image(png(4, 3, 8, 2, rows, (b"eXIf", exif)), exif="apply").shape == (3, 4, 3), exif


# ---- size ----


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("channels", ["rgb", "gray", "rgba", "keep"])
@pytest.mark.parametrize("fit", ["stretch", "crop", "pad"])
def test_size_is_height_and_width(kind: str, channels: Any, fit: Any) -> None:
    found = decode_image(encode(photo(), kind), size=(12, 30), channels=channels, fit=fit, fill=3)
    assert found.shape == (12, 30, {"rgb": 3, "gray": 1, "rgba": 4, "keep": 3}[channels])
    if fit == "pad":
        assert (found[:, 0] == 3).all()


def test_size_of_the_image_itself_changes_nothing() -> None:
    data = encode(photo(), "JPEG")
    assert np.array_equal(decode_image(data, size=(40, 56)), decode_image(data))


def test_sixteen_bit_images_keep_their_range_when_resized() -> None:
    levels = np.full((20, 20), 60000, np.uint16)
    found = decode_image(encode(levels, "PNG"), size=(7, 7), channels="keep")
    assert found.dtype == np.uint16
    assert (found == 60000).all()


def test_antialias_off_weighs_two_pixels_only() -> None:
    lines = np.zeros((8, 8, 3), np.uint8)
    lines[:, ::4] = 255
    data = encode(lines, "PNG")
    assert decode_image(data, size=(8, 2), antialias=False).max() == 0  # between the lines
    assert decode_image(data, size=(8, 2)).min() > 0  # nothing is left out


def test_nearest_mixes_no_pixels() -> None:
    pixels = np.zeros((9, 9, 3), np.uint8)
    pixels[::2] = 255
    found = decode_image(encode(pixels, "PNG"), size=(5, 7), filter="nearest")
    assert set(np.unique(found)) <= {0, 255}


def test_reduced_decoding_stays_near_the_full_one() -> None:
    data = encode(photo(400, 600), "JPEG", quality=90)
    reduced = decode_image(data, size=(50, 75)).astype(int)
    full = decode_image(data, size=(50, 75), reduced=False).astype(int)
    assert not np.array_equal(reduced, full)
    assert np.abs(reduced - full).mean() < 1.0


@pytest.mark.parametrize(
    "options", [{"reduced": False}, {"antialias": False}, {"filter": "nearest"}, {"size": (101, 75)}]
)
def test_reduced_decoding_is_used_only_with_antialias_and_where_enough_is_left(options: dict[str, Any]) -> None:
    data = encode(photo(400, 600), "JPEG", quality=90)
    size = options.pop("size", (50, 75))
    whole = decode_image(data)
    expected = np.empty((*size, 3), np.uint8)
    resize_into(whole, expected, filter=options.get("filter", "bilinear"), antialias=options.get("antialias", True))
    assert np.array_equal(decode_image(data, size=size, **options), expected)


def test_share_to_decode_is_the_smallest_fast_one_that_leaves_twice_the_size() -> None:
    assert choose_eighths(3000, 4000, (224, 224)) == 2
    assert choose_eighths(1792, 1792, (224, 224)) == 2
    assert choose_eighths(1791, 1792, (224, 224)) == 4
    assert choose_eighths(1792, 1791, (224, 224)) == 4
    assert choose_eighths(896, 2000, (224, 224)) == 4
    assert choose_eighths(895, 2000, (224, 224)) == 8
    assert choose_eighths(375, 500, (224, 224)) == 8
    assert choose_eighths(10, 10, (224, 224)) == 8


def test_decoding_into_a_batch_touches_only_its_part() -> None:
    batch = np.zeros((3, 40, 56, 3), np.uint8)
    options = DecodeOptions()
    scratch = Scratch()
    decode_into(memoryview(encode(photo(), "JPEG")), options, batch[1], scratch)
    assert batch[1].any()
    assert not batch[0].any()
    assert not batch[2].any()


def test_scratch_grows_and_is_reused() -> None:
    scratch = Scratch()
    first = scratch.take(100)
    assert len(first) >= 100
    assert scratch.take(50) is first
    assert len(scratch.take(1_000_000)) >= 1_000_000


@pytest.mark.parametrize("nbytes", [0, 1, 65_535, 65_536, 5_000_000])
def test_allocated_bytes_are_not_shared(nbytes: int) -> None:
    first, second = _native.allocate_bytes(nbytes), _native.allocate_bytes(nbytes)
    assert first.shape == second.shape == (nbytes,)
    assert first.dtype == np.uint8
    first[:] = 1
    second[:] = 2
    assert (first == 1).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_arrays_own_their_memory(kind: str) -> None:
    """The scratch of the next image must not show through."""
    for channels in ("rgb", "keep"):
        found = decode_image(encode(photo(), kind), channels=channels)  # type: ignore[arg-type]
        assert found.flags.owndata
        assert found.flags.writeable
        assert found.flags.c_contiguous


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_are_taken(kind: Any) -> None:
    assert decode_image(kind(encode(photo(), "JPEG"))).shape == (40, 56, 3)
    assert decode_image(kind(encode(photo(), "PNG"))).shape == (40, 56, 3)


# ---- what does not decode ----


def test_no_bytes_are_refused() -> None:
    with pytest.raises(CodecError, match=r"^expected an image, got 0 bytes$"):
        decode_image(b"")


def test_text_is_refused_with_its_first_bytes() -> None:
    with pytest.raises(CodecError, match=r"^expected an image, got 21 bytes that start with b'this is not a pi"):
        decode_image(b"this is not a picture")


def test_format_that_is_not_decoded_is_named() -> None:
    with pytest.raises(CodecError, match="expected an image of format PNG, .* got HEIF"):
        decode_image(b"\0\0\0\x18ftypheic\0\0\0\0")


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "WEBP", "JPEG"])
@pytest.mark.parametrize("progressive", [False, True])
def test_every_cut_of_every_format_is_an_error_or_the_whole_image(kind: str, progressive: bool) -> None:
    if progressive and kind != "JPEG":
        return
    pixels = np.random.default_rng(5).integers(0, 256, (13, 11, 3), np.uint8)
    data = encode(pixels, kind, **({"progressive": True} if progressive else {}))
    whole = decode_image(data)
    num_errors = 0
    for size in range(len(data)):
        try:
            found = decode_image(data[:size])
        except CodecError:
            num_errors += 1
        else:
            # What follows the pixels may be missing: the end chunk of a PNG, a trailer.
            assert np.array_equal(found, whole), f"{size} of {len(data)} bytes"
    assert num_errors > 0.8 * len(data) or kind == "TIFF"


def test_cut_jpeg_says_so() -> None:
    data = encode(photo(), "JPEG")
    with pytest.raises(CodecError, match=rf"^JPEG of 56x40 is truncated, its {len(data) - 100} bytes end before its"):
        decode_image(data[:-100])
    with pytest.raises(CodecError, match=r"^JPEG ends inside its header, after 100 bytes$"):
        decode_image(data[:100])


def test_cut_png_says_so() -> None:
    data = encode(photo(), "PNG")
    with pytest.raises(CodecError, match=r"^PNG of 150 bytes does not decode, image file is truncated"):
        decode_image(data[:150])


@pytest.mark.parametrize("nbytes", [30, 40, 60])
@pytest.mark.parametrize("form", ["PNG", "GIF", "BMP", "TIFF", "WEBP"])
def test_message_about_a_broken_picture_names_no_exception(form: str, nbytes: int) -> None:
    with pytest.raises(CodecError) as caught:
        decode_image(encode(photo(), form)[:nbytes])
    assert "Error" not in str(caught.value)


def test_extra_bytes_before_the_end_of_a_jpeg_are_harmless() -> None:
    data = encode(photo(), "JPEG")
    whole = decode_image(data)
    assert np.array_equal(decode_image(data[:-2] + b"\1\2\3\4\5\6" + data[-2:]), whole)
    assert np.array_equal(decode_image(data + b"\0" * 50), whole)


def test_jpeg_with_extra_bytes_that_is_cut_off_too_says_so() -> None:
    """The decoder reports its first warning only, and that one is harmless."""
    data = encode(photo(), "JPEG", progressive=True)
    second_scan = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    middle = data.rindex(b"\xff\xc4", 0, second_scan)
    padded = data[:middle] + b"\1\2\3\4\5\6" + data[middle:]
    assert np.array_equal(decode_image(padded), decode_image(data))
    with pytest.raises(CodecError, match="is truncated"):
        decode_image(padded[:-40])


def test_jpeg_whose_only_end_is_that_of_its_thumbnail_is_cut_off() -> None:
    """Decoders that accept the last end marker anywhere consider such a file complete."""
    exif = Image.Exif()
    exif[ORIENTATION] = 1
    data = encode(photo(), "JPEG", exif=exif.tobytes() + encode(photo(8, 8), "JPEG"))
    decode_image(data)
    with pytest.raises(CodecError, match="is truncated"):
        decode_image(data[:-60])


def test_bomb_is_refused_by_its_header() -> None:
    data = png(30000, 30000, 8, 2, b"")
    assert len(data) < 100
    with pytest.raises(CodecError, match="image expected at most 178956970 pixels, got 30000x30000\n  if the size"):
        decode_image(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP"])
def test_limit_of_pixels_holds_for_every_format(kind: str) -> None:
    data = encode(photo(), kind)
    assert decode_image(data, max_pixels=40 * 56).shape == (40, 56, 3)
    with pytest.raises(CodecError, match="image expected at most 2239 pixels, got 56x40"):
        decode_image(data, max_pixels=40 * 56 - 1)
    with pytest.raises(CodecError, match="image expected at most 2239 pixels, got 56x40"):
        decode_image(data, max_pixels=40 * 56 - 1, size=(8, 8))


def test_limit_of_pixels_holds_where_the_size_stands_at_the_end_of_the_file() -> None:
    data = encode(photo(), "TIFF", compression="tiff_lzw")
    assert int.from_bytes(data[4:8], "little") > 64  # where the directory is
    with pytest.raises(CodecError, match="image expected at most 2239 pixels, got 56x40"):
        decode_image(data, max_pixels=40 * 56 - 1)


def test_jpeg_of_thousands_of_scans_is_refused() -> None:
    data = encode(photo(), "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    scan = data[start:-2]
    with pytest.raises(CodecError, match="JPEG expected at most 500 scans, got 10"):
        decode_image(data[:-2] + scan * 1000 + data[-2:])


def test_jpeg_of_twelve_bits_is_named() -> None:
    data = bytearray(encode(photo(), "JPEG"))
    data[data.index(b"\xff\xc0") + 4] = 12
    with pytest.raises(CodecError, match="JPEG expected 8 bits per sample, got 12"):
        decode_image(data)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "WEBP", "JPEG"])
def test_flipped_bytes_raise_nothing_but_codec_errors(kind: str, recwarn: Any) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    data = encode(photo(9, 8), kind, exif=exif)
    rng = np.random.default_rng(7)
    for _ in range(150):
        changed = bytearray(data)
        for position in rng.integers(0, len(data), 2):
            changed[position] = rng.integers(0, 256)
        try:
            decode_image(changed, max_pixels=100_000, exif="apply")
        except CodecError:
            pass


# ---- options ----


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"size": 224}, TypeError, r"size expected \(height, width\), got 224"),
        ({"size": (1, 2, 3)}, TypeError, r"size expected \(height, width\)"),
        ({"size": (0, 5)}, ValueError, r"size expected a height and a width from 1 up, got \(0, 5\)"),
        ({"size": (2.5, 5)}, TypeError, "float"),
        ({"channels": "bgr"}, ValueError, "channels expected 'rgb', 'gray', 'rgba', 'keep', got 'bgr'"),
        ({"fit": "squeeze"}, ValueError, "fit expected 'stretch', 'crop', 'pad', got 'squeeze'"),
        ({"filter": "cubic"}, ValueError, "filter expected 'bilinear', 'nearest', got 'cubic'"),
        ({"antialias": 1}, TypeError, "antialias expected True or False, got 1"),
        ({"fill": 256}, ValueError, "fill expected 0 to 255, got 256"),
        ({"max_pixels": 0}, ValueError, "max_pixels expected at least 1, got 0"),
    ],
)
def test_wrong_options_raise(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DecodeOptions(**options)


# ---- real files ----


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_every_image_of_the_corpus_gives_the_pixels_of_pillow() -> None:
    paths = [path for path in CORPUS.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".bmp", ".gif")]
    checked = 0
    for path in sorted(paths):
        data = path.read_bytes()
        if len(data) > 2_000_000:
            continue
        image = Image.open(io.BytesIO(data))
        if image.mode.startswith("I") or "transparency" in image.info:
            continue
        assert np.array_equal(decode_image(data), np.asarray(image.convert("RGB"))), path
        expected = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
        assert np.array_equal(decode_image(data, exif="apply"), expected), path
        assert decode_image(data, size=(17, 19)).shape == (17, 19, 3)
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("size", [(24, 32), (94, 125), (30, 300)])
def test_thumbnail_is_close_to_the_exact_image(size: tuple[int, int]) -> None:
    rows, columns = np.mgrid[:375, :500]
    pixels = np.stack([rows % 256, columns % 256, (rows + columns) % 256], axis=2).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).resize((500, 375)).save(file, "JPEG", quality=90)
    quick, exact = decode_thumbnail(file.getvalue(), size), decode_image(file.getvalue(), size=size)
    assert quick.shape == (*size, 3)
    assert np.abs(quick.astype(int) - exact).mean() < 6


@pytest.mark.parametrize(("form", "mode"), [("PNG", "RGB"), ("PNG", "L"), ("JPEG", "CMYK")])
def test_thumbnail_of_other_formats_is_the_exact_image(form: str, mode: str) -> None:
    file = io.BytesIO()
    Image.new(mode, (50, 40), 70).save(file, form)
    quick = decode_thumbnail(file.getvalue(), (10, 20))
    assert np.array_equal(quick, decode_image(file.getvalue(), size=(10, 20)))
