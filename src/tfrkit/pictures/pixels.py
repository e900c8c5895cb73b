"""Convert raw pixels to images: their shape, given or from size features, and their levels."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tfrkit._types import UInt8Array
from tfrkit.errors import CodecError, Hint, SchemaError, Step
from tfrkit.features.schema import show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.images.options import DEFAULT_MAX_PIXELS
from tfrkit.images.raw_shapes import (
    FOUND_CHANNELS,
    RAW_CHANNELS,
    check_pixel_shape,
    describe_guesses,
    fill_shape,
    guess_shapes,
    parse_shape,
    suggest_shapes,
    write_shape,
)
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.values import list_values

Array = np.ndarray[Any, np.dtype[Any]]

ShapeWord = str | Sequence[int]
"""A shape as "224x224x3" or as (224, 224, 3)."""


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+=*")
_STANDARD = bytes.maketrans(b"-_", b"+/")  # from the letters for addresses


def read_shape(shape: ShapeWord | None) -> tuple[int, ...] | None:
    """Return a shape as integers, (height, width) or (height, width, channels)."""
    if shape is None:
        return None
    return parse_shape(shape) if isinstance(shape, str) else check_pixel_shape(shape)


def require_raw_shape(name: str, sizes: SizeFeatures, nbytes: int, *, shard: str) -> None:
    """Raise if the shape of raw pixels is unknown, or the given shape does not match `nbytes` per record."""
    if sizes.fixed is not None:
        if fill_shape(sizes.fixed, nbytes) is None:
            raise ValueError(f"{describe_misfit(sizes.fixed, nbytes)} - at {shard}{_suggest(sizes.fixed, nbytes)}")
        return
    if sizes.is_known:
        return
    likely = guess_shapes(nbytes)
    guess = f" ({describe_guesses(nbytes)}?)" if likely else ""
    shape: Any = write_shape(likely[0]) if likely else ...
    raise SchemaError(
        f"feature {show_name(name)} holds raw bytes, {nbytes} each{guess}, and their height and width are unknown",
        shard=shard,
        hint=Hint(Step("give their shape: {shape}", shape=shape)),
    )


def is_ppm(data: bytes) -> bool:
    """Whether these bytes are a Netpbm file, which no decoder here supports."""
    return data[:1] == b"P" and data[1:2] in b"123456" and data[2:3].isspace()


def is_raw(data: bytes, sizes: SizeFeatures) -> bool:
    """Whether these bytes are raw pixels: the size is known and they are not an image file, or the given shape fits."""
    if sizes.fixed is not None and fill_shape(sizes.fixed, len(data)) is not None:
        return True
    return sizes.is_known and bool(data) and sniff_image(data[:64]) is None and not is_ppm(data)


def read_raw(data: bytes, values: Mapping[str, Any], sizes: SizeFeatures) -> Array:
    """Fold raw pixels of 8 bits, of 16 bits, or in base64 text; raise `CodecError` if their number does not match."""
    try:
        return fold_pixels(np.frombuffer(data, np.uint8), values, sizes, channels=FOUND_CHANNELS)
    except CodecError:
        for flat in _read_otherwise(data):
            with suppress(CodecError):
                return fold_pixels(flat, values, sizes, channels=FOUND_CHANNELS)
        raise


def _read_otherwise(data: bytes) -> Iterator[Array]:
    if len(data) % 2 == 0:
        wide = np.frombuffer(data, "<u2")
        # Many programs write levels from 0 to 255 as numbers of 16 bits.
        yield wide.astype(np.uint8) if wide.size and wide.max() <= 255 else wide
    if _BASE64.fullmatch(data[:64]):
        with suppress(ValueError):
            padded = data.translate(_STANDARD) + b"=" * (-len(data) % 4)
            yield np.frombuffer(base64.b64decode(padded, validate=True), np.uint8)


def read_size(values: Mapping[str, Any], sizes: SizeFeatures) -> tuple[int, ...] | None:
    """Read height, width and, if there is a feature, channels from a row; None if the row has no size."""
    if sizes.shape is not None:
        size = list_values(values.get(sizes.shape))
    else:
        names = (sizes.height, sizes.width, sizes.channels)
        height, width, channels = (list_values(values.get(name or ""))[:1] for name in names)
        size = [*height, *width, *channels] if height and width else []
    return tuple(map(int, size)) if len(size) >= 2 else None


def fold_pixels(
    flat: Array, values: Mapping[str, Any], sizes: SizeFeatures, *, channels: Collection[int] | None
) -> Array:
    """Reshape flat pixels to (height, width, channels); raise `CodecError` if their number does not match.

    If only height and width are known, the number of values gives the channels; `channels` limits them, unless None.
    """
    if sizes.fixed is not None:
        filled = fill_shape(sizes.fixed, flat.size)
        if filled is None:
            raise CodecError(describe_misfit(sizes.fixed, flat.size))
        return flat.reshape(filled)
    size = read_size(values, sizes)
    if size is None:
        raise CodecError(f"pixels expected a height and a width, got {flat.size:,} values")
    fitting = flat.size // max(1, size[0] * size[1])
    shape = size if len(size) > 2 else (*size, fitting if channels is None or fitting in channels else 1)
    if min(shape) < 1 or flat.size != math.prod(shape) or flat.size > 4 * DEFAULT_MAX_PIXELS:
        shown = "x".join(map(str, (size[1], size[0], *size[2:])))
        raise CodecError(f"pixels expected {shown}, got {flat.size:,} values")
    return flat.reshape(shape)


def arrange_channels(array: Array, channels: Collection[int]) -> Array:
    """Return an array as (height, width, channels), from gray, channels first or last; raise `CodecError` otherwise."""
    pixels = array[:, :, None] if array.ndim == 2 else array
    if pixels.ndim == 3 and pixels.shape[2] not in channels and pixels.shape[0] in RAW_CHANNELS:
        pixels = np.moveaxis(pixels, 0, 2)
    if pixels.ndim != 3 or pixels.shape[2] not in channels or pixels.size == 0 or pixels.dtype.kind not in "buif":
        raise CodecError(f"image expected gray or RGB pixels, got a {array.dtype} array of shape {array.shape}")
    return pixels


def to_pixels(array: Array) -> UInt8Array:
    """Convert an array to RGB pixels (height, width, 3), from gray or RGB, channels first or last, or a clip."""
    frame = array[0] if array.ndim == 4 and len(array) else array
    levels = to_levels(arrange_channels(frame, RAW_CHANNELS)[:, :, :3])
    return np.repeat(levels, 3, axis=2) if levels.shape[2] == 1 else levels


def to_levels(array: Array) -> UInt8Array:
    """Convert numbers to levels from 0 to 255: kept if in range, scaled from 0 to 1, else stretched to the range."""
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        values = np.floor(array / 256)
    else:
        values = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1 and array.dtype.kind in "bf":
        values = values * 255
    elif low < 0 or high > 255:
        values = (values - low) * (255 / (high - low) if high > low else 0)
    levels: UInt8Array = (values + 0.5).astype(np.uint8)
    return levels


def describe_misfit(shape: Sequence[int], nbytes: int) -> str:
    """Return the message for a number of bytes that does not match a shape."""
    sizes = [math.prod(shape)] if len(shape) == 3 else [math.prod(shape) * channels for channels in FOUND_CHANNELS]
    expected = ", ".join(f"{size}" for size in sizes[:-1]) + (" or " if len(sizes) > 1 else "") + f"{sizes[-1]}"
    return f"shape {write_shape(shape)} expected {expected} bytes, got {nbytes}"


def _suggest(shape: Sequence[int], nbytes: int) -> str:
    near = suggest_shapes(nbytes, shape)
    return f"\n  shapes that fit: {', '.join(map(write_shape, near))}" if near else ""
