"""Parse shapes of raw pixels, and guess them from the number of bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

RawShape = tuple[int, int, int]
"""(height, width, channels)."""

RAW_CHANNELS: Final = {1: "gray", 3: "RGB", 4: "RGBA"}
FOUND_CHANNELS: Final = (1, 3)
"""Numbers of channels that are tried if only height and width are known."""

# Smaller squares are more likely hashes or embeddings than images.
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
    """Parse HxW or HxWxC to (height, width) or (height, width, channels); raise ValueError if invalid.

    Example:
        >>> parse_shape("224x224"), parse_shape("32x48x3")
        ((224, 224), (32, 48, 3))
    """
    match = _WRITTEN.fullmatch(text.strip().strip("()").replace(" ", ""))
    if match is None:
        raise ValueError(f"shape expected HEIGHTxWIDTH or HEIGHTxWIDTHxCHANNELS, such as 224x224x3, got {text!r:.64}")
    return check_pixel_shape(tuple(int(number) for number in match.groups() if number is not None))


def check_pixel_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return (height, width) or (height, width, channels) of raw pixels as integers; raise ValueError if invalid."""
    sizes = tuple(int(size) for size in shape)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"shape expected a height, a width and perhaps channels from 1 up, got {sizes!r:.64}")
    if len(sizes) == 3 and sizes[2] not in RAW_CHANNELS:
        raise ValueError(f"shape expected 1, 3 or 4 channels, got {sizes[2]}")
    return sizes


def fill_shape(shape: Sequence[int], nbytes: int, *, has_alpha: bool = False) -> RawShape | None:
    """Add the channels to a shape; return None unless pixels of this shape have exactly `nbytes` bytes.

    Four channels are never guessed: the bytes may also be gray pixels with twice the sides, or float32 values. They
    are accepted only if the shape has 4 channels, or with `has_alpha`.

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
    """Return likely image shapes for this number of bytes, the likeliest first; often none.

    These are squares and common image sizes. RGBA is last, because it is rare.

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
    # An RGB image of 4:3 often has as many bytes as a square gray image; a common size in colour is likelier.
    return sorted(found, key=lambda shape: (shape[2] == 4, shape[0] == shape[1], shape[:2] in _USUAL and shape[2] == 1))


def suggest_shapes(nbytes: int, near: Sequence[int] = ()) -> list[RawShape]:
    """Return shapes with this number of bytes: first those with the height or width of `near`, then likely shapes."""
    found: list[RawShape] = []
    if near:
        same = fill_shape(near[:2], nbytes, has_alpha=True)
        found += [] if same is None else [same]
        for channels in (near[2],) if len(near) == 3 else RAW_CHANNELS:
            num_pixels, rest = divmod(nbytes, channels)
            if rest == 0 and num_pixels:
                found += [(side, num_pixels // side, channels) for side in near[:1] if num_pixels % side == 0]
                found += [(num_pixels // side, side, channels) for side in near[1:2] if num_pixels % side == 0]
    # Narrow strips are unlikely to be images.
    likely = [shape for shape in found if max(shape[:2]) <= 8 * min(shape[:2])]
    likely.sort(key=lambda shape: abs(math.log(shape[0] / shape[1])))
    fitting = list(dict.fromkeys([*likely, *guess_shapes(nbytes)]))
    plain = [shape for shape in fitting if shape[2] != 4 or near[2:] == (4,)]
    asked = [shape for shape in fitting if shape[:2] == tuple(near[:2]) and shape not in plain]
    return [*plain[: _MAX_NEAR - len(asked)], *asked] or fitting[:_MAX_NEAR]


def describe_guesses(nbytes: int) -> str:
    """Describe at most two likely shapes; "" if there are none.

    Example:
        >>> describe_guesses(50_176), describe_guesses(307_200)
        ('224x224 gray', '640x480 gray (shape 480x640) or 320x320 RGB')
    """
    likely = guess_shapes(nbytes)
    # Every gray square with an even side has as many bytes as an RGBA square of half the side.
    shown = [shape for shape in likely if shape[2] != 4] or likely
    return " or ".join(map(show_shape, shown[:2]))


def show_shape(shape: RawShape) -> str:
    """Format width, height and colours for display, with the shape as an option value unless it is square.

    Example:
        >>> show_shape((224, 224, 1)), show_shape((480, 640, 3))
        ('224x224 gray', '640x480 RGB (shape 480x640x3)')
    """
    size = f"{shape[1]}x{shape[0]} {RAW_CHANNELS[shape[2]]}"
    return size if shape[0] == shape[1] else f"{size} (shape {write_shape(shape)})"


def write_shape(shape: Sequence[int]) -> str:
    """Format a shape for `parse_shape`, without the 1 of gray: ``480x640``, ``224x224x3``."""
    return "x".join(map(str, shape[:2] if len(shape) == 3 and shape[2] == 1 else shape))
