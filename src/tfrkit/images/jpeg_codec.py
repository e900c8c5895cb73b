"""libjpeg-turbo through simplejpeg where it is installed, through Pillow otherwise: the same pixels, more slowly.

Pillow does not report the warnings of libjpeg, and damage inside an image is no more than a warning. So the codes of
baseline JPEGs are checked by us. Of progressive ones only truncation is found without simplejpeg.
"""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.images.resize import Pixels

CUT_OFF = "Premature end of JPEG file"
_MODES = {"RGB": "RGB", "GRAY": "L", "RGBA": "RGBA"}


def decode(
    data: memoryview, colours: str, size: tuple[int, int], eighths: int, buffer: Pixels, *, is_strict: bool
) -> Pixels:
    """Decode an image of height and width `size` at `eighths` / 8 of it, into `buffer`.

    Raises ValueError with the text of libjpeg; for its warnings, too, if `is_strict`.
    """
    height, width = size
    decoder = _find_simplejpeg()
    if decoder is None:
        return _decode_with_pillow(data, colours, (height, width), eighths, buffer, is_strict)
    if eighths != 8:
        height, width = -(-height * eighths // 8), -(-width * eighths // 8)
    pixels: Pixels = decoder.decode_jpeg(data, colours, False, False, height, width, 1, buffer, is_strict)
    return pixels


def encode(pixels: Pixels, quality: int) -> bytes:
    """Encode RGB pixels of shape (height, width, 3), with half the resolution in colour."""
    encoder = _find_simplejpeg()
    if encoder is not None:
        data: bytes = encoder.encode_jpeg(
            pixels, quality=quality, colorspace="RGB", colorsubsampling="420", fastdct=True
        )
        return data
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality, subsampling="4:2:0")
    return file.getvalue()


@functools.cache
def _find_simplejpeg() -> Any:
    # Cached, because even a repeated import statement costs as much as all other Python code for one image.
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def _decode_with_pillow(
    data: memoryview, colours: str, size: tuple[int, int], eighths: int, buffer: Pixels, is_strict: bool
) -> Pixels:
    from PIL.JpegImagePlugin import JpegImageFile

    if is_strict and not _native.is_sound_jpeg(data):
        if not _native.walk_jpeg_scans(data)[1]:
            raise ValueError(CUT_OFF)
        if _native.is_damaged_jpeg(data):
            raise ValueError("damaged codes inside the image")
    height, width = size
    try:
        image = JpegImageFile(io.BytesIO(data))
        # Rounded down, this size selects exactly the wanted scale, which Pillow rounds up again.
        reduced = (max(1, width * eighths // 8), max(1, height * eighths // 8))
        image.draft("L" if colours == "GRAY" else "RGB", reduced)
        image.load()
    except (OSError, SyntaxError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ValueError(CUT_OFF if "truncated" in str(error) else str(error)) from None
    found = np.asarray(image if image.mode == _MODES[colours] else image.convert(_MODES[colours]))
    found = found if found.ndim == 3 else found[:, :, None]
    if found.size > buffer.size:  # an image of less than a block, which Pillow does not reduce
        return found
    pixels = buffer.reshape(-1)[: found.size].reshape(found.shape)
    pixels[:] = found
    return pixels
