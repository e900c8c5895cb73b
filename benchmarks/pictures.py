"""Pictures that behave like real ones: photos for JPEG decoders, captchas for the build.

A JPEG decoder's work depends on how much detail there is at which scale. Photos have a spectrum that falls with the
frequency, and edges; so do these: three channels of such noise, cut out of a few large scenes, with shapes drawn on
them. Each picture follows from the seed and its number alone, whichever process makes it.
"""

from __future__ import annotations

import io
import multiprocessing
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

PHOTO_SIZE = (500, 375)  # width, height
CAPTCHA_SIZE = (160, 60)
CAPTCHA_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CAPTCHA_LENGTH = 5

SCENE_SIZE = (960, 720)
# Chosen so that JPEGs of quality 75 to 92 are 40 KB on average, as photos of this size are.
FALL = 1.36
CONTRAST = 45
COLOUR = 0.35
QUALITIES = (75, 93)
PROCESSES = 2


def make_photos(count: int, seed: int) -> Iterator[bytes]:
    """Yield JPEGs of 500x375 pixels, 4:2:0, quality 75 to 92."""
    num_scenes = min(12, max(2, count // 200))
    make = partial(make_photo, seed=seed, num_scenes=num_scenes)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        yield from pool.imap(make, range(count), chunksize=25)


@cache
def make_scene(number: int, seed: int) -> Image.Image:
    """Return a large picture of noise that falls with the frequency, more of it in brightness than in colour."""
    rng = np.random.default_rng([seed, 7, number])
    width, height = SCENE_SIZE
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequency[0, 0] = np.inf
    planes = []
    for _ in range(3):
        spectrum = frequency**-FALL * np.exp(2j * np.pi * rng.random(frequency.shape))
        plane = np.fft.irfft2(spectrum, s=(height, width))
        planes.append(plane / plane.std())
    light, first, second = planes[0], planes[1] * COLOUR, planes[2] * COLOUR
    channels = np.stack([light + first, light - (first - second) / 2, light - second], axis=-1)
    return Image.fromarray(np.clip(channels * CONTRAST + rng.uniform(70, 180, 3), 0, 255).astype(np.uint8))


def make_photo(number: int, *, seed: int, num_scenes: int) -> bytes:
    """Return one JPEG."""
    rng = np.random.default_rng([seed, 8, number])
    scene = make_scene(int(rng.integers(num_scenes)), seed)
    width, height = PHOTO_SIZE
    share = rng.uniform(0.6, 1)
    left, top = (1 - share) * rng.random(2) * SCENE_SIZE
    box = (left, top, left + share * SCENE_SIZE[0], top + share * SCENE_SIZE[1])
    image = scene.resize(PHOTO_SIZE, Image.Resampling.BILINEAR, box=box)
    draw = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(3, 9))):
        colour = tuple(rng.integers(0, 256, 3).tolist())
        centre, radius = rng.random(2) * (width, height), rng.uniform(8, 90, 2)
        if rng.random() < 0.5:
            draw.ellipse([*(centre - radius), *(centre + radius)], fill=colour)
        else:
            draw.polygon([tuple(centre + rng.uniform(-1, 1, 2) * radius) for _ in range(4)], fill=colour)
    return encode(image, "JPEG", quality=int(rng.integers(*QUALITIES)), subsampling="4:2:0")


def make_captchas(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield file names that begin with the text, and RGB PNGs of 160x60 pixels."""
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        yield from pool.imap(partial(make_captcha, seed=seed), range(count), chunksize=25)


def make_captcha(number: int, *, seed: int) -> tuple[str, bytes]:
    """Return one file name and PNG."""
    rng = np.random.default_rng([seed, 9, number])
    width, height = CAPTCHA_SIZE
    text = "".join(rng.choice(list(CAPTCHA_LETTERS), CAPTCHA_LENGTH))
    image = Image.new("RGB", CAPTCHA_SIZE, tuple(rng.integers(200, 256, 3).tolist()))
    draw = ImageDraw.Draw(image)
    for place, letter in enumerate(text):
        corner = (6 + 30 * place + int(rng.integers(6)), int(rng.integers(4, 22)))
        draw.text(corner, letter, font=captcha_font(), fill=tuple(rng.integers(0, 160, 3).tolist()))
    for _ in range(4):
        ends = (rng.random((2, 2)) * (width, height)).reshape(-1).tolist()
        draw.line(ends, fill=tuple(rng.integers(0, 200, 3).tolist()))
    dots = (rng.random((300, 2)) * (width, height)).reshape(-1).tolist()
    draw.point(dots, fill=tuple(rng.integers(0, 256, 3).tolist()))
    return f"{text}_{number:05d}.png", encode(image, "PNG")


@cache
def captcha_font() -> Any:
    """Return the font that comes with Pillow."""
    return ImageFont.load_default(32)


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Return a picture as the bytes of a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
