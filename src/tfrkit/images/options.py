"""Options of image decoding."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, get_args

from tfrkit.images.resize import Filter, Fit

Channels = Literal["rgb", "gray", "rgba", "keep"]
Exif = Literal["keep", "apply"]

# Pillow's limit: 537 MB of RGB. A larger image is probably a decompression bomb; if not, raise max_pixels.
DEFAULT_MAX_PIXELS = 178_956_970
# No supported format has a larger height or width.
_MAX_SIDE = 1 << 20


@dataclass(frozen=True)
class DecodeOptions:
    """Options of image decoding.

    Attributes:
        size: (height, width) of the result; None keeps the stored size.
        channels: "rgb" (3 channels), "gray" (1), "rgba" (4), always uint8; or "keep" for the channels of the file: 1 to
            4 channels, 16-bit gray as uint16. Palettes become colours, CMYK becomes RGB, alpha is dropped unless
            requested.
        fit: "stretch" to the size; "crop" keeps the aspect ratio and crops both sides; "pad"
            keeps the aspect ratio and fills with `fill`.
        filter: "bilinear", or "nearest" for pixels that must not be blended.
        antialias: Use every source pixel when the image becomes smaller, like tf.image.resize(antialias=True) and
            Pillow. False is the default of tf.image.resize: faster, with jagged edges.
        reduced: Let the JPEG decoder halve an image once or twice before it is resized, if it then still has at least
            twice the requested height and width. About twice as fast for large photos; pixels differ by about
            one level on average. Only with `antialias`.
        exif: "keep" returns the pixels as stored, as TensorFlow does; boxes, masks and sizes of a record refer to these
            pixels. "apply" turns them according to the EXIF orientation, as viewers do.
        fill: The pixel level for the padding of `fit="pad"`.
        max_pixels: Images with more pixels (height times width) are refused before they are decoded.
    """

    size: tuple[int, int] | None = None
    channels: Channels = "rgb"
    fit: Fit = "stretch"
    filter: Filter = "bilinear"
    antialias: bool = True
    reduced: bool = True
    exif: Exif = "keep"
    fill: int = 0
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", check_size(self.size))
        check_choice("channels", self.channels, get_args(Channels))
        check_choice("fit", self.fit, get_args(Fit))
        check_choice("filter", self.filter, get_args(Filter))
        check_choice("exif", self.exif, get_args(Exif))
        for name in ("antialias", "reduced"):
            check_flag(name, getattr(self, name))
        check_fill_and_limit(self.fill, self.max_pixels)


def check_size(size: object) -> tuple[int, int] | None:
    """Return (height, width) as integers of at least 1, or None; raise TypeError or ValueError if invalid."""
    if size is None:
        return None
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise TypeError(f"size expected (height, width), got {size!r:.64}")
    height, width = operator.index(size[0]), operator.index(size[1])
    if not (1 <= height <= _MAX_SIDE and 1 <= width <= _MAX_SIDE):
        raise ValueError(f"size expected a height and a width from 1 up, got {(height, width)}")
    return height, width


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} expected {', '.join(map(repr, choices))}, got {value!r:.64}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} expected True or False, got {value!r:.64}")


def check_fill_and_limit(fill: int, max_pixels: int) -> None:
    """Raise ValueError unless both are in range."""
    if not 0 <= operator.index(fill) <= 255:
        raise ValueError(f"fill expected 0 to 255, got {fill}")
    if operator.index(max_pixels) < 1:
        raise ValueError(f"max_pixels expected at least 1, got {max_pixels}")
