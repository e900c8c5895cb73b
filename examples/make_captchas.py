"""Captcha images to play with: five letters and digits each, turned, coloured and crossed out.

    python examples/make_captchas.py FOLDER [NUMBER]

The text is the start of the file name: `7KQ3X_0001.png`. The same seed draws the same images.
"""

from __future__ import annotations

import functools
import random
import string
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 160, 60
NUM_CHARACTERS = 5
CHARACTERS = string.digits + string.ascii_letters


def make_captchas(folder: Path, count: int, *, seed: int = 0) -> list[Path]:
    """Write `count` images into a folder, which is made; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    choose = random.Random(seed)
    paths = []
    for number in range(count):
        text = "".join(choose.choices(CHARACTERS, k=NUM_CHARACTERS))
        paths.append(folder / f"{text}_{number:04}.png")
        draw_captcha(text, choose).save(paths[-1])
    return paths


def draw_captcha(text: str, choose: random.Random) -> Image.Image:
    """One image: a rough ground, the characters, then lines and dots over them."""
    picture = draw_ground(choose)
    for place, character in enumerate(text):
        glyph = draw_character(character, choose)
        x = 6 + place * 29 + choose.randint(-3, 3)
        y = (HEIGHT - glyph.height) // 2 + choose.randint(-6, 6)
        picture.paste(glyph, (x, y), glyph)
    draw = ImageDraw.Draw(picture)
    for _ in range(4):
        ends = [(choose.randint(0, WIDTH), choose.randint(0, HEIGHT)) for _ in range(2)]
        draw.line(ends, fill=pick_color(choose, 60, 190), width=choose.choice((1, 1, 2)))
    draw.point(
        [(choose.randrange(WIDTH), choose.randrange(HEIGHT)) for _ in range(120)], fill=pick_color(choose, 0, 160)
    )
    return picture


def draw_ground(choose: random.Random) -> Image.Image:
    """A light colour with some grain."""
    grain = np.random.default_rng(choose.getrandbits(32)).integers(-12, 13, (HEIGHT, WIDTH, 1))
    color = np.array(pick_color(choose, 205, 243))
    return Image.fromarray((color + grain).astype(np.uint8))


def draw_character(character: str, choose: random.Random) -> Image.Image:
    """A character on nothing, turned a little to either side."""
    glyph = Image.new("RGBA", (40, 48))
    font = load_font(choose.randint(31, 38))
    ImageDraw.Draw(glyph).text((20, 24), character, font=font, fill=(*pick_color(choose, 0, 120), 255), anchor="mm")
    return glyph.rotate(choose.uniform(-28, 28), resample=Image.Resampling.BICUBIC)


@functools.cache
def load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def pick_color(choose: random.Random, low: int, high: int) -> tuple[int, int, int]:
    return choose.randint(low, high), choose.randint(low, high), choose.randint(low, high)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    made = make_captchas(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 300)
    print(f"{len(made)} images in {sys.argv[1]}")
