"""Convert rows to pictures for display: scaled pixels with masks, boxes and captions."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import CodecError
from tfrkit.features.schema import Schema, show_name
from tfrkit.images.decode import decode_image, decode_thumbnail, measure_image
from tfrkit.images.options import DecodeOptions
from tfrkit.images.raw_shapes import RAW_CHANNELS
from tfrkit.images.resize import resize_as_pillow, resize_into
from tfrkit.pictures.colors import Color, class_color, voc_palette
from tfrkit.pictures.features import PictureFeatures
from tfrkit.pictures.masks import describe_sizes, read_mask
from tfrkit.pictures.pixels import fold_pixels, is_raw, read_raw, to_pixels
from tfrkit.pictures.values import flatten_row, list_values, read_corners
from tfrkit.sidecars.class_names import ClassNames

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

# Limit of class names under a picture; more would not fit.
_MAX_SPANS = 6
NO_OBJECTS = "no objects"
_BACKGROUND, _IGNORED = 0, 255


class Span(NamedTuple):
    """A part of a caption, with the colour of its class in the image."""

    text: str
    color: Color | None = None


class Box(NamedTuple):
    """A box: corners as fractions of width and height, and the text and colour of its class."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    text: str
    color: Color
    label: int | None = None
    score: float | None = None


@dataclass
class Picture:
    """The contents of a tile. If reading failed, `pixels` is None and `cause` has the reason.

    `overlay` is an array of colours and a mask of the pixels they cover, both with the size of `pixels`. `numbers` are
    the class numbers of the mask in that size, or the numbers of the objects from 1; `size` is (height, width) as
    stored.
    """

    caption: list[Span] = field(default_factory=list)
    pixels: Pixels | None = None
    overlay: tuple[Pixels, np.ndarray[Any, np.dtype[np.bool_]]] | None = None
    boxes: list[Box] = field(default_factory=list)
    cause: str | None = None
    numbers: np.ndarray[Any, np.dtype[Any]] | None = None
    size: tuple[int, int] | None = None

    @property
    def label(self) -> str:
        """The caption as plain text."""
        return ", ".join(span.text for span in self.caption)


class PictureReader:
    """Reads pictures that fit into a square of `side` pixels. Memory: one decoded image at a time.

    With `keeps_pixels`, an image whose boxes or mask are wrong is shown without them. Small images are enlarged, unless
    `enlarges` is False. With `is_quick`, large JPEGs are decoded less exactly.
    """

    def __init__(
        self,
        schema: Schema,
        features: PictureFeatures,
        names: ClassNames,
        *,
        side: int,
        keeps_pixels: bool = False,
        enlarges: bool = True,
        is_quick: bool = False,
    ) -> None:
        self._keeps_pixels = keeps_pixels
        self._is_quick = is_quick
        self._enlarges = enlarges
        self._features = features
        self._names = names
        self._side = side
        self._schema = schema
        self._is_framed = features.image in schema.feature_lists
        mask = features.mask
        self._is_mask_framed = mask is not None and mask in schema.feature_lists
        # If the feature holds image files, a value that is not an image is a damaged file, even if its size fits.
        self._is_encoded = schema[features.image].logical == "image"

    def find_image(self, row: Row) -> Any:
        """Return the stored value of the image feature, or None."""
        return flatten_row(row, self._schema).get(self._features.image)

    def read_pixels(self, row: Row) -> tuple[Pixels, tuple[int, int]]:
        """Return the pixels of a row in the size of the tile, and their stored size; raise `CodecError` without any."""
        return self._read_pixels(flatten_row(row, self._schema))

    def read(self, row: Row) -> Picture:
        """Read the picture of a row; a failure is reported in its `cause`."""
        values = flatten_row(row, self._schema)
        picture = Picture(caption=self._read_texts(values, self._features.labels))
        try:
            pixels, size = self._read_pixels(values)
            picture.size = size
            if self._keeps_pixels:
                picture.pixels = pixels
            picture.boxes = self._read_boxes(values, size)
            picture.overlay = self._read_mask(values, picture, size, (pixels.shape[0], pixels.shape[1]))
            picture.pixels = pixels
        except CodecError as error:
            picture.cause = error.what
        if not picture.caption:
            picture.caption = self._describe_objects(picture) or self._read_title(values)
        return picture

    def _describe_objects(self, picture: Picture) -> list[Span]:
        """Return the classes of the boxes; "no objects" if the dataset has boxes or masks but this picture has none."""
        has_objects = self._features.boxes is not None or self._features.mask is not None
        if picture.boxes or not has_objects or picture.cause is not None:
            return _summarize_boxes(picture.boxes)
        return [Span(NO_OBJECTS)]

    def _read_title(self, values: Mapping[str, Any]) -> list[Span]:
        title = self._features.title
        return self._read_texts(values, (title,) if title else ())

    def _read_texts(self, values: Mapping[str, Any], names: tuple[str, ...]) -> list[Span]:
        words: list[str] = []
        for name in names:
            value = values.get(name)
            for item in list_values(value)[: _MAX_SPANS * 4]:
                is_number = isinstance(item, (int, np.integer))
                words.append(self._names.show(name, int(item)) if is_number else _to_text(item))
        if not words:
            return []
        # Labels of one character each are the characters of a text: join them without separators.
        is_spelled = all(len(word) == 1 for word in words)
        return [Span(("" if is_spelled else ", ").join(words))]

    def _read_pixels(self, values: Mapping[str, Any]) -> tuple[Pixels, tuple[int, int]]:
        """Return the pixels in the size of the tile, and their stored size."""
        name, sizes = self._features.image, self._features.sizes
        value = values.get(name)
        if self._is_framed or isinstance(value, list):
            if value is None or len(value) == 0:
                raise CodecError(f"feature {show_name(name)} holds no image")
            value = value[0]
            if isinstance(value, list):
                value = value[0] if value else None
        if value is None:
            raise CodecError(f"feature {show_name(name)} is not there")
        if isinstance(value, bytes):
            if not is_raw(value, sizes):
                return self._decode(value)
            try:
                array = read_raw(value, values, sizes)
            except CodecError:
                # If the feature holds image files, this is a damaged file.
                if self._is_encoded:
                    return self._decode(value)
                raise
        else:
            array = np.asarray(value)
            if array.ndim == 1:
                array = fold_pixels(array, values, sizes, channels=RAW_CHANNELS)
        return self._fit(to_pixels(array))

    def _decode(self, data: bytes) -> tuple[Pixels, tuple[int, int]]:
        size = measure_image(memoryview(data), DecodeOptions())
        if size is not None and max(size) > self._side:
            # A JPEG can be decoded in a smaller size, which is faster.
            fitted = fit_size(*size, self._side)
            return (decode_thumbnail(data, fitted) if self._is_quick else decode_image(data, size=fitted)), size
        return self._fit(decode_image(data))

    def _fit(self, pixels: Pixels) -> tuple[Pixels, tuple[int, int]]:
        """Resize pixels to the tile: with averaging if the image becomes smaller, in blocks if it becomes larger."""
        height, width = pixels.shape[:2]
        if not self._enlarges and max(height, width) <= self._side:
            return pixels, (height, width)
        size = fit_size(height, width, self._side)
        return resize_as_pillow(pixels, size, "nearest" if size[0] > height else "lanczos"), (height, width)

    def _read_mask(
        self, values: Mapping[str, Any], picture: Picture, size: tuple[int, int], shown: tuple[int, int]
    ) -> tuple[Pixels, np.ndarray[Any, np.dtype[np.bool_]]] | None:
        name = self._features.mask
        value = None if name is None else values.get(name)
        if name is None or value is None:
            return None
        if self._is_mask_framed:
            value = value[0] if len(value) else None
            if value is None:
                return None
        elif isinstance(value, list):
            return _paint_objects([self._decode_mask(item, size) for item in value], picture, shown)
        numbers = self._decode_mask(value, size)
        if not picture.caption:
            picture.caption = self._summarize_mask(name, numbers)
        small = picture.numbers = resize_nearest(numbers, shown)
        return voc_palette()[small & 255], small != _BACKGROUND

    def _decode_mask(self, value: Any, size: tuple[int, int]) -> np.ndarray[Any, np.dtype[Any]]:
        numbers = read_mask(value, size)
        if numbers.shape != size:
            raise CodecError(describe_sizes(numbers.shape[::-1], (size[1], size[0])))
        return numbers

    def _summarize_mask(self, name: str, numbers: np.ndarray[Any, np.dtype[Any]]) -> list[Span]:
        found, counts = np.unique(numbers, return_counts=True)
        ranked = sorted(zip(counts.tolist(), found.tolist(), strict=True), key=lambda pair: (-pair[0], pair[1]))
        shown = [number for _, number in ranked if number not in (_BACKGROUND, _IGNORED)][:_MAX_SPANS]
        return [Span(self._names.show(name, number), _to_color(voc_palette()[number & 255])) for number in shown]

    def _read_boxes(self, values: Mapping[str, Any], size: tuple[int, int]) -> list[Box]:
        features = self._features.boxes
        if features is None:
            return []
        corners = read_corners(values, features)
        if features.units == "pixels":
            corners = corners / np.array([size[1], size[0], size[1], size[0]], np.float64)
        texts = [_to_text(item) for item in list_values(values.get(features.text or ""))]
        labels = [int(item) for item in list_values(values.get(features.label or ""))]
        scores = [float(item) for item in list_values(values.get(features.score or ""))]
        boxes = []
        for number, (xmin, ymin, xmax, ymax) in enumerate(corners.tolist()):
            if not (xmin < xmax and ymin < ymax and xmax > 0 and ymax > 0 and xmin < 1 and ymin < 1):
                sides = ", ".join(f"{side:.4g}" for side in (xmin, ymin, xmax, ymax))
                raise CodecError(f"box {number} expected corners from 0 to 1 in order, got {sides}")
            label = labels[number] if number < len(labels) else None
            text = texts[number] if number < len(texts) else ""
            if not text and label is not None and features.label is not None:
                text = self._names.show(features.label, label)
            key = label if label is not None else zlib.crc32(text.encode("utf-8", "replace"))
            score = scores[number] if number < len(scores) and math.isfinite(scores[number]) else None
            boxes.append(Box(xmin, ymin, xmax, ymax, text, class_color(key), label, score))
        return boxes


def fit_size(height: int, width: int, side: int) -> tuple[int, int]:
    """Return the height and width of an image fitted into a square: scaled down, or up by an integer factor.

    Example:
        >>> fit_size(375, 500, 128), fit_size(28, 28, 128)
        ((96, 128), (112, 112))
    """
    longest = max(height, width)
    if longest <= side:
        factor = side // longest
        return height * factor, width * factor
    return max(1, round(height * side / longest)), max(1, round(width * side / longest))


def resize_nearest(numbers: np.ndarray[Any, np.dtype[Any]], size: tuple[int, int]) -> np.ndarray[Any, np.dtype[Any]]:
    """Resize class numbers by nearest neighbour, so that no new numbers appear."""
    small = np.empty((*size, 1), numbers.dtype)
    resize_into(numbers[:, :, None], small, filter="nearest")
    return small[:, :, 0]


def _paint_objects(
    masks: list[np.ndarray[Any, np.dtype[Any]]], picture: Picture, shown: tuple[int, int]
) -> tuple[Pixels, np.ndarray[Any, np.dtype[np.bool_]]] | None:
    """Paint one mask per object, in the colour of its box."""
    if not masks:
        return None
    colors = np.zeros((*shown, 3), np.uint8)
    covered = np.zeros(shown, np.bool_)
    boxes, numbers = picture.boxes, np.zeros(shown, np.uint8)
    for number, mask in enumerate(masks):
        inside = resize_nearest(mask, shown) != 0
        colors[inside] = boxes[number].color if number < len(boxes) else class_color(number)
        numbers[inside] = number % 254 + 1
        covered |= inside
    picture.numbers = numbers
    return colors, covered


def _summarize_boxes(boxes: list[Box]) -> list[Span]:
    counts: dict[tuple[str, Color], int] = {}
    for box in boxes:
        counts[box.text, box.color] = counts.get((box.text, box.color), 0) + 1
    return [Span(text if count == 1 else f"{text} x{count}", color) for (text, color), count in list(counts.items())][
        :_MAX_SPANS
    ]


def _to_color(values: np.ndarray[Any, np.dtype[np.uint8]]) -> Color:
    return int(values[0]), int(values[1]), int(values[2])


def _to_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
