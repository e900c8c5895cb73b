"""Raw pixels as pictures: bytes that need a shape, and one that was given held against them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tfrkit.errors import SchemaError
from tfrkit.features.schema import show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.images.raw_shapes import (
    FOUND_CHANNELS,
    check_shape,
    describe_guesses,
    fill_shape,
    guess_shapes,
    parse_shape,
    suggest_shapes,
    write_shape,
)

ShapeWord = str | Sequence[int]
"""A shape as "224x224x3" or as (224, 224, 3)."""


def read_shape(shape: ShapeWord | None) -> tuple[int, ...] | None:
    """A shape as integers, (height, width) or (height, width, channels)."""
    if shape is None:
        return None
    return parse_shape(shape) if isinstance(shape, str) else check_shape(shape)


def require_raw_shape(name: str, sizes: SizeFeatures, nbytes: int, *, shard: str) -> None:
    """Raise where raw bytes, `nbytes` in every record, have no shape, or one was given that does not fit them."""
    if sizes.fixed is not None:
        if fill_shape(sizes.fixed, nbytes) is None:
            raise ValueError(f"{describe_misfit(sizes.fixed, nbytes)} - at {shard}{_suggest(sizes.fixed, nbytes)}")
        return
    if sizes.is_told:
        return
    likely = guess_shapes(nbytes)
    guess = f" ({describe_guesses(nbytes)}?)" if likely else ""
    shape = write_shape(likely[0]) if likely else "..."
    raise SchemaError(
        f"feature {show_name(name)} holds raw bytes, {nbytes} each{guess}, and nothing says their height and width",
        shard=shard,
        hint=f'give their shape: shape="{shape}"',
    )


def describe_misfit(shape: Sequence[int], nbytes: int) -> str:
    """What is wrong with bytes that are no pixels of a shape."""
    sizes = [math.prod(shape)] if len(shape) == 3 else [math.prod(shape) * channels for channels in FOUND_CHANNELS]
    expected = ", ".join(f"{size}" for size in sizes[:-1]) + (" or " if len(sizes) > 1 else "") + f"{sizes[-1]}"
    return f"shape {write_shape(shape)} expected {expected} bytes, got {nbytes}"


def _suggest(shape: Sequence[int], nbytes: int) -> str:
    near = suggest_shapes(nbytes, shape)
    return f"\n  shapes that fit: {', '.join(map(write_shape, near))}" if near else ""
