from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tfrkit.images.decode import decode_image
from tfrkit.images.perceptual import SIDE, has_detail, hash_copies
from tfrkit.ops.duplicates import NEAR_LONG_BITS, count_bits


def photo(seed: int, size: tuple[int, int] = (240, 320)) -> Image.Image:
    """Something with the frequencies of a photo: coarse noise, smoothed."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
    return coarse.resize((size[1], size[0]), Image.Resampling.BICUBIC)


def encode(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def copies_of(*images: bytes) -> np.ndarray:
    return np.stack([decode_image(image, size=(SIDE, SIDE), channels="gray")[:, :, 0] for image in images])


def distances(one: bytes, two: bytes) -> tuple[int, int]:
    short, long = hash_copies(copies_of(one, two))
    return int(count_bits(short[:1] ^ short[1:])[0]), int(count_bits(long[0] ^ long[1]).sum())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("change", ["jpeg", "smaller", "gray", "bright"])
def test_copy_that_looks_the_same_is_near(seed: int, change: str) -> None:
    image = photo(seed)
    changed = {
        "jpeg": lambda: encode(image, "JPEG", quality=60),
        "smaller": lambda: encode(image.resize((160, 120), Image.Resampling.LANCZOS)),
        "gray": lambda: encode(image.convert("L")),
        "bright": lambda: encode(image.point(lambda level: min(255, level + 8))),
    }[change]()
    short, long = distances(encode(image), changed)
    assert short <= 3
    assert long <= NEAR_LONG_BITS


def test_other_pictures_are_far() -> None:
    short, long = hash_copies(copies_of(*(encode(photo(seed)) for seed in range(30))))
    for one in range(30):
        for two in range(one):
            assert count_bits(short[[one]] ^ short[[two]])[0] > 8
            assert count_bits(long[one] ^ long[two]).sum() > 60


def test_blank_picture_has_no_detail() -> None:
    copies = np.stack([np.full((SIDE, SIDE), 200, np.uint8), copies_of(encode(photo(0)))[0]])
    copies[0, 3, 3] = 201
    assert has_detail(copies).tolist() == [False, True]


def test_hash_of_known_pattern_is_pinned() -> None:
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    copy = ((columns * columns + 3 * rows * columns + 7 * rows) % 251).astype(np.uint8)
    short, long = hash_copies(copy[None])
    assert short[0].tobytes().hex() == "887347854ce91edb"
    assert long[0].tobytes().hex() == "800d121c018e040a04d9213e08f70b36dfff107d26ddbfff5ff707b949b16735"


def test_bits_are_those_of_imagehash() -> None:
    imagehash = pytest.importorskip("imagehash")
    copies = copies_of(*(encode(photo(seed)) for seed in range(20)))
    short, long = hash_copies(copies)
    for number, copy in enumerate(copies):
        image = Image.fromarray(copy)
        small = imagehash.phash(image, hash_size=8, highfreq_factor=8).hash
        large = imagehash.phash(image, hash_size=16, highfreq_factor=4).hash
        assert np.packbits(small).tobytes() == short[number].tobytes()
        assert np.packbits(large).tobytes() == long[number].tobytes()
