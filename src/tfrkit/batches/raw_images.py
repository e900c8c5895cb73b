"""Raw pixels in place of encoded images: their shape, from size features or from the requested size."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrkit._types import UInt8Array
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import CodecError, Hint, Step
from tfrkit.features.schema import Schema
from tfrkit.features.size_features import SizeFeatures, find_sizes
from tfrkit.images.decode import NUM_CHANNELS
from tfrkit.images.options import DEFAULT_MAX_PIXELS, DecodeOptions
from tfrkit.images.raw_shapes import RAW_CHANNELS, RawShape, describe_guesses, fill_shape, guess_shapes
from tfrkit.images.sniff import sniff_image

_HEAD_NBYTES = 64
_OPAQUE = 255
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")


class RawShapes:
    """The shape of each value in a column of raw pixels.

    Size features of the row are used first. Otherwise, values of exactly the requested size are gray or RGB pixels.
    Pixels with alpha need a feature with four channels, or `has_alpha`.
    """

    def __init__(
        self, size: tuple[int, int] | None = None, columns: Sequence[Any] = (), *, has_alpha: bool = False
    ) -> None:
        self._size = size
        self._columns = columns
        self._has_alpha = has_alpha

    def find(self, index: int, data: memoryview) -> RawShape | None:
        """Find the shape of a value; None if it is not raw pixels of a known shape."""
        if sniff_image(bytes(data[:_HEAD_NBYTES])) is not None:
            return None
        stated = self._read(index)
        if stated:
            shape = fill_shape(stated, len(data), has_alpha=self._has_alpha)
            # The stated shape may have another order (channels first): do not guess height, width, channels.
            if shape is not None or math.prod(stated) == len(data):
                return shape
        return None if self._size is None else fill_shape(self._size, len(data), has_alpha=self._has_alpha)

    def _read(self, index: int) -> tuple[int, ...]:
        """Read the shape of a value from its size features; empty if unknown or implausible."""
        stated = tuple(int(column[index]) for column in self._columns)
        return stated if len(stated) > 1 and min(stated) > 0 and stated[0] * stated[1] <= DEFAULT_MAX_PIXELS else ()

    def find_common(self, values: BytesColumn) -> RawShape | None:
        """Find the common shape of all values, without a check of each; None unless all are raw pixels of one shape."""
        lengths = values.lengths
        if not len(lengths) or (lengths != lengths[0]).any():
            return None
        if any((column[: len(lengths)] != column[0]).any() for column in self._columns):
            return None
        data, starts = values.data.data, values.offsets[:-1].tolist()
        shape = self.find(0, data[starts[0] : starts[0] + int(lengths[0])])
        if shape is None or any(sniff_image(bytes(data[at : at + _HEAD_NBYTES])) is not None for at in starts):
            return None
        return shape

    def explain(self, error: CodecError, index: int, data: memoryview) -> CodecError:
        """Add a hint to the error of a value that may be raw pixels or base64 text."""
        if error.hint is not None or not len(data) or sniff_image(bytes(data[:_HEAD_NBYTES])) is not None:
            return error
        stated = self._read(index)
        hidden = _find_base64(data, stated)
        if hidden is not None:
            call = "urlsafe_b64decode" if {*b"-_"} & set(data.tolist()) else "b64decode"
            hint = (
                f"it looks like base64 text of {hidden}; decode that first: "
                f'ds.map(lambda row: {{**row, "NAME": base64.{call}(row["NAME"])}})'
            )
            return CodecError(error.what, hint=Hint(Step(hint, in_python=True)))
        for dtype in ("uint8", "uint16", "float32"):
            if stated and math.prod(stated) * np.dtype(dtype).itemsize == len(data):
                hint = f'features say {"x".join(map(str, stated))}, use it: {{"dtype": "{dtype}", "shape": {stated}}}'
                return CodecError(error.what, hint=hint)
        known = f" of {describe_guesses(len(data))}" if guess_shapes(len(data)) else ""
        shape = str(next(iter(guess_shapes(len(data))), "(height, width, channels)"))
        hint = f'if these are raw pixels{known}, give their shape: {{"dtype": "uint8", "shape": {shape}}}'
        if self._size is not None:
            height, width = self._size
            gray, rgb, rgba = (height * width * channels for channels in RAW_CHANNELS)
            hint += f"; those of {width}x{height} are {gray} or {rgb} bytes"
            if len(data) == rgba:
                hint += f', or {rgba} in RGBA, as "channels": "rgba" takes them'
        return CodecError(error.what, hint=hint)


def _find_base64(data: memoryview, stated: Sequence[int]) -> str | None:
    """Describe the content of base64 text, if it is an image file or pixels of known shape; None otherwise."""
    if _BASE64.fullmatch(data) is None:
        return None
    head = bytes(data[:_HEAD_NBYTES]).translate(bytes.maketrans(b"-_", b"+/"))
    info = sniff_image(base64.b64decode(head)) if len(head) == _HEAD_NBYTES and b"=" not in head else None
    if info is not None:
        return f"a {info.format} file"
    shapes = [tuple(stated)] if len(stated) != 2 else [(*stated, channels) for channels in RAW_CHANNELS]
    for shape in shapes:
        num_bits = 8 * math.prod(shape)
        if stated and len(data) in (-(-num_bits // 24) * 4, -(-num_bits // 6)):
            return f"{'x'.join(map(str, shape))} pixels"
    return None


def stack_raw(values: BytesColumn, shapes: RawShapes, options: DecodeOptions) -> UInt8Array | None:
    """Stack all values of a column into one array, if pixels only need to be copied.

    For small images, many times faster than value by value. None if images must be resized or converted to gray.
    """
    shape = shapes.find_common(values)
    if shape is None or options.size not in (None, shape[:2]) or shape[0] * shape[1] > options.max_pixels:
        return None
    start, stop = int(values.offsets[0]), int(values.offsets[-1])
    pixels = values.data[start:stop].reshape(len(values), *shape)
    wanted = shape[2] if options.channels == "keep" else NUM_CHANNELS[options.channels]
    if wanted == shape[2]:
        return pixels.copy()
    if wanted == 1:
        return None
    made = np.full((*pixels.shape[:3], wanted), _OPAQUE, np.uint8)
    made[..., :3] = pixels[..., :3]
    return made


def find_size_features(name: str, schema: Schema) -> SizeFeatures:
    """Find the size features that belong to `name`, if it is a feature of an Example."""
    specs = {other: spec for other, spec in schema.features.items() if spec.seen is None and other != name}
    return find_sizes(specs, name) if name in schema.features and schema.kind == "example" else SizeFeatures()


def read_shapes(
    size: tuple[int, int] | None,
    sizes: SizeFeatures,
    batch: Mapping[str, Any],
    num_values: int,
    *,
    has_alpha: bool = False,
) -> RawShapes:
    """Read the size features of a batch for a column with one value per row."""
    if sizes.shape is not None:
        shapes = batch.get(sizes.shape)
        if isinstance(shapes, np.ndarray) and shapes.shape in ((num_values, 2), (num_values, 3)):
            return RawShapes(size, list(shapes.T), has_alpha=has_alpha)
    found = [batch.get(name) for name in (sizes.height, sizes.width, sizes.channels) if name is not None]
    columns = [column for column in found if isinstance(column, np.ndarray) and column.size == num_values]
    is_whole = sizes.height is not None and sizes.width is not None and len(columns) == len(found)
    flat = [column.reshape(-1) for column in columns] if is_whole else ()
    return RawShapes(size, flat, has_alpha=has_alpha)
