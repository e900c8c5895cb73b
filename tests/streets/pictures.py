"""Small images, each with different pixels."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

ROTATED = 6  # EXIF: turn by 90 degrees clockwise to see it upright
_ORIENTATION = 0x0112


def draw(number: int, size: tuple[int, int] = (8, 6)) -> Image.Image:
    """Noise, bright in the upper left quarter: no image equals another, or a turned copy of itself."""
    width, height = size
    noise = np.random.default_rng(number).integers(0, 200, (height, width, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    image.paste((250, 250, 250), (0, 0, width // 2, height // 2))
    return image


def encode(image: Image.Image, kind: str, orientation: int | None = None) -> bytes:
    buffer = io.BytesIO()
    if orientation is None:
        image.save(buffer, kind)
    else:
        exif = Image.Exif()
        exif[_ORIENTATION] = orientation
        image.save(buffer, kind, exif=exif)
    return buffer.getvalue()


def save(path: Path, data: bytes) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return data
