"""The quick JPEG check: what it reports as sound, a strict decoder decodes without warnings."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tfrkit import _native
from tfrkit.errors import CodecError
from tfrkit.images.jpeg import decode_jpeg, read_jpeg_header


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    rng = np.random.default_rng(seed)
    smooth = Image.fromarray(rng.integers(0, 256, (3, 4, 3), np.uint8)).resize((width, height))
    noise = np.asarray(smooth).astype(int) + rng.normal(0, 9, (height, width, 1)).astype(int)
    return Image.fromarray(noise.clip(0, 255).astype(np.uint8))


def encode(image: Image.Image, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def decodes(data: bytes) -> bool:
    """Whether our decoder accepts it; it is strict except for header warnings that affect no pixel."""
    view = memoryview(data)
    try:
        header = read_jpeg_header(view)
        decode_jpeg(view, header, "RGB", np.empty(header.height * header.width * 3, np.uint8))
    except CodecError:
        return False
    return True


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (9, 7), (16, 16), (17, 33), (160, 60), (321, 243)])
@pytest.mark.parametrize("subsampling", [0, 1, 2], ids=["444", "422", "420"])
@pytest.mark.parametrize("quality", [1, 50, 100])
def test_baseline_of_any_size_and_sampling_is_sound(size, subsampling, quality):
    assert _native.is_sound_jpeg(encode(picture(*size), quality=quality, subsampling=subsampling))


@pytest.mark.parametrize(
    "options", [{"optimize": True}, {"restart_marker_blocks": 3}, {"restart_marker_rows": 1}], ids=str
)
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_own_tables_and_restart_markers_are_sound(options, mode):
    assert _native.is_sound_jpeg(encode(picture(99, 50).convert(mode), **options))


def test_leading_metadata_and_trailing_bytes_are_ignored():
    data = encode(picture(20, 20), exif=b"Exif\0\0" + b"x" * 5000, comment=b"hello")
    assert _native.is_sound_jpeg(data)
    assert _native.is_sound_jpeg(data + b"\0" * 100)


@pytest.mark.parametrize(
    "data",
    [
        encode(picture(20, 20), progressive=True),
        encode(picture(20, 20).convert("CMYK")),
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff\xd9",
        b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    ],
    ids=["progressive", "CMYK", "nothing", "start", "start and end", "PNG"],
)
def test_other_formats_are_not_reported_as_sound(data):
    assert not _native.is_sound_jpeg(data)


@pytest.mark.parametrize("options", [{}, {"restart_marker_blocks": 2}, {"optimize": True}], ids=str)
def test_jpeg_cut_off_anywhere_is_not_sound(options):
    data = encode(picture(40, 30), **options)
    assert not any(_native.is_sound_jpeg(data[:stop]) for stop in range(len(data)))


@pytest.mark.parametrize("options", [{}, {"restart_marker_blocks": 2}, {"optimize": True, "subsampling": 0}], ids=str)
def test_damage_found_by_a_strict_decoder_is_not_sound(options):
    """Every bit flipped once, also after the header: what is reported as sound must decode without warnings."""
    data = encode(picture(40, 30), quality=60, **options)
    found = 0
    for place in range(2, len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            if _native.is_sound_jpeg(bytes(damaged)):
                assert decodes(bytes(damaged)), f"bit {bit} of byte {place}"
            else:
                found += 1
    assert found > len(data)


@pytest.mark.parametrize("seed", range(5))
def test_zeros_or_noise_in_the_middle_are_not_sound_unless_they_decode(seed):
    rng = np.random.default_rng(seed)
    data = encode(picture(200, 150, seed), quality=90)
    for _ in range(40):
        start = int(rng.integers(len(data) // 4, len(data) - 600))
        for patch in (b"\0" * 512, rng.bytes(512)):
            damaged = data[:start] + patch + data[start + 512 :]
            if _native.is_sound_jpeg(damaged):
                assert decodes(damaged)


def check_with_new_tables(data: bytes) -> bool:
    """The result in a new thread, which has to build its tables."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_native.is_sound_jpeg, data).result()


@pytest.mark.parametrize("quality", [30, 90])
@pytest.mark.parametrize("seed", range(40))
def test_verdict_does_not_depend_on_images_before(seed, quality):
    """Tables are kept from one image to the next."""
    sound = encode(picture(64, 48, seed), quality=quality)
    rng = np.random.default_rng(seed)
    damaged = bytearray(sound)
    for place in rng.integers(sound.index(b"\xff\xda") + 14, len(sound) - 2, 1 + seed % 3):
        damaged[place] ^= 1 << int(rng.integers(8))
    for data in (sound, bytes(damaged), sound[: len(sound) * 2 // 3] + b"\xff\xd9"):
        expected = check_with_new_tables(data)
        assert [_native.is_sound_jpeg(data) for _ in range(3)] == [expected] * 3


def test_tables_of_the_image_before_do_not_stand_in_for_missing_ones():
    data = encode(picture(20, 20))
    assert _native.is_sound_jpeg(data)
    start = data.index(b"\xff\xc4")
    stop = data.index(b"\xff\xda")
    assert not _native.is_sound_jpeg(data[:start] + data[stop:])
