"""Shapes of raw pixels, guessed from the number of bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

RawShape = tuple[int, int, int]
"""(height, width, channels)."""

RAW_CHANNELS: Final = {1: "gray", 3: "RGB", 4: "RGBA"}
FOUND_CHANNELS: Final = (1, 3)
"""Channels allowed for a height and a width alone."""

# Smaller ones are more likely hashes and embeddings.
_MIN_SIDE: Final = 16
# Common (height, width) that are not square: video, screens, cameras, and a few well-known datasets.
# fmt: off
_USUAL: Final = (
    (120, 160), (144, 176), (180, 320), (240, 320), (288, 352), (360, 640), (480, 640), (480, 720), (540, 960),
    (600, 800), (720, 1280), (768, 1024), (1080, 1920), (2160, 3840), (210, 160), (218, 178), (112, 92),
)
# fmt: on
_WRITTEN: Final = re.compile(r"(\d{1,7})[x×,](\d{1,7})(?:[x×,](\d{1,2}))?", re.IGNORECASE)
_MAX_NEAR: Final = 4


def parse_shape(text: str) -> tuple[int, ...]:
    """HxW or HxWxC as (height, width) or (height, width, channels); raises ValueError for anything else.

    Example:
        >>> parse_shape("224x224"), parse_shape("32x48x3")
        ((224, 224), (32, 48, 3))
    """
    match = _WRITTEN.fullmatch(text.strip().strip("()").replace(" ", ""))
    if match is None:
        raise ValueError(f"shape expected HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 224x224x3, got {text!r:.64}")
    return check_shape(tuple(int(number) for number in match.groups() if number is not None))


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """(height, width) or (height, width, channels) of raw pixels, as integers; raises ValueError otherwise."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"shape expected a height, a width and perhaps channels from 1 up, got {sizes!r:.64}")
    if len(sizes) == 3 and sizes[2] not in RAW_CHANNELS:
        raise ValueError(f"shape expected 1, 3 or 4 channels, got {sizes[2]}")
    return sizes


def fill_shape(shape: Sequence[int], nbytes: int, *, has_alpha: bool = False) -> RawShape | None:
    """The shape with its channels, if `nbytes` bytes are exactly such pixels, else None.

    Four channels are never guessed: the same bytes are gray of twice the sides, and float32 of this size. They are
    accepted if the shape has 4, or with `has_alpha`.

    Example:
        >>> fill_shape((224, 224), 150_528), fill_shape((224, 224), 1000)
        ((224, 224, 3), None)
    """
    height, width = shape[:2]
    channels = shape[2] if len(shape) == 3 else nbytes // (height * width)
    known = RAW_CHANNELS if has_alpha or len(shape) == 3 else FOUND_CHANNELS
    if channels not in known or height * width * channels != nbytes:
        return None
    return height, width, channels


def guess_shapes(nbytes: int) -> list[RawShape]:
    """Likely image shapes for this number of bytes, the likeliest first; often none.

    Squares, and common heights and widths. RGBA comes last: it is rare.

    Example:
        >>> guess_shapes(50_176), guess_shapes(230_400)[0], guess_shapes(1000)
        ([(224, 224, 1), (112, 112, 4)], (240, 320, 3), [])
    """
    found: list[RawShape] = []
    for channels in RAW_CHANNELS:
        if nbytes % channels:
            continue
        num_pixels = nbytes // channels
        found += [(height, width, channels) for height, width in _USUAL if height * width == num_pixels]
        side = math.isqrt(num_pixels)
        if side * side == num_pixels and side >= _MIN_SIDE:
            found.append((side, side, channels))
    # Three bytes for each pixel of 4:3 are also a square in gray: a common frame in colour is likelier.
    return sorted(found, key=lambda shape: (shape[2] == 4, shape[0] == shape[1], shape[:2] in _USUAL and shape[2] == 1))


def suggest_shapes(nbytes: int, near: Sequence[int] = ()) -> list[RawShape]:
    """Shapes that fit this number of bytes: those with the height or width of `near`, then the likely ones."""
    found: list[RawShape] = []
    if near:
        same = fill_shape(near[:2], nbytes, has_alpha=True)
        found += [] if same is None else [same]
        for channels in (near[2],) if len(near) == 3 else RAW_CHANNELS:
            num_pixels, rest = divmod(nbytes, channels)
            if rest == 0 and num_pixels:
                found += [(side, num_pixels // side, channels) for side in near[:1] if num_pixels % side == 0]
                found += [(num_pixels // side, side, channels) for side in near[1:2] if num_pixels % side == 0]
    # A narrow strip is not an image.
    likely = [shape for shape in found if max(shape[:2]) <= 8 * min(shape[:2])]
    likely.sort(key=lambda shape: abs(math.log(shape[0] / shape[1])))
    fitting = list(dict.fromkeys([*likely, *guess_shapes(nbytes)]))
    plain = [shape for shape in fitting if shape[2] != 4 or near[2:] == (4,)]
    asked = [shape for shape in fitting if shape[:2] == tuple(near[:2]) and shape not in plain]
    return [*plain[: _MAX_NEAR - len(asked)], *asked] or fitting[:_MAX_NEAR]


def describe_guesses(nbytes: int) -> str:
    """The likely shapes as text, at most two; "" without any.

    Example:
        >>> describe_guesses(50_176), describe_guesses(307_200)
        ('224x224 gray', '640x480 gray (shape 480x640) or 320x320 RGB')
    """
    likely = guess_shapes(nbytes)
    # Every square of gray with an even side is one of RGBA, too.
    shown = [shape for shape in likely if shape[2] != 4] or likely
    return " or ".join(map(show_shape, shown[:2]))


def show_shape(shape: RawShape) -> str:
    """Width, height and colours for display, and the shape for options if the order matters.

    Example:
        >>> show_shape((224, 224, 1)), show_shape((480, 640, 3))
        ('224x224 gray', '640x480 RGB (shape 480x640x3)')
    """
    size = f"{shape[1]}x{shape[0]} {RAW_CHANNELS[shape[2]]}"
    return size if shape[0] == shape[1] else f"{size} (shape {write_shape(shape)})"


def write_shape(shape: Sequence[int]) -> str:
    """A shape as `parse_shape` reads it, gray without its 1: ``480x640``, ``224x224x3``."""
    return "x".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape))
