"""The features of a picture: given as options or parameters, or guessed from names and the first records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, get_args

from tfrkit._types import Row
from tfrkit.errors import CodecError, SchemaError
from tfrkit.features.schema import Schema
from tfrkit.images.raw_shapes import guess_shapes, write_shape
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.features import (
    BoxOrder,
    BoxUnits,
    PictureFeatures,
    find_picture_features,
    is_flat_image,
    list_choices,
)
from tfrkit.pictures.pixels import read_shape
from tfrkit.pictures.values import flatten_row, read_corners

NAMES = ("image", "label", "mask", "boxes", "names", "box_order", "box_units", "shape")
"""The options of `tfr sheet` and the switches of the viewer."""
NUM_PROBED = 8
"""Records that units of boxes and shapes of raw pixels are guessed from."""
_CHOICES: dict[str, tuple[str, ...]] = {"box_order": get_args(BoxOrder), "box_units": get_args(BoxUnits)}
# Corners beyond this are pixels, not fractions of the image; boxes that reach a little beyond it are common.
_MAX_FRACTION = 2


class PictureGuesses:
    """The features of the pictures of a dataset: the `given` ones, and guesses for the others.

    `read_first` returns the first rows of the dataset, about NUM_PROBED, and is called at most once, if it is needed.
    """

    def __init__(
        self, schema: Schema, given: Mapping[str, Any], read_first: Callable[[], Iterable[Row]], *, guesses_shape: bool
    ) -> None:
        self._schema = schema
        self._given = read_given(given)
        self._read_first = read_first
        self._guesses_shape = guesses_shape

    @cached_property
    def features(self) -> PictureFeatures:
        """The features of a picture; raises `SchemaError` if no feature is an image."""
        schema, given = self._schema, dict(self._given)
        given["shape"] = read_shape(given.get("shape"))
        if given["shape"] is None and "image" not in given and self._guesses_shape:
            given["shape"] = self._guess_shape(given)
        found = find_picture_features(schema, **given)
        if found.boxes is not None and "box_units" not in given and self._are_pixels(found):
            found = find_picture_features(schema, **given, box_units="pixels")
        return found

    def to_json(self, found: PictureFeatures | None) -> dict[str, Any]:
        """Return value, options and origin of each guess."""
        values: dict[str, str | None] = dict.fromkeys(NAMES)
        if found is not None:
            boxes, fixed = found.boxes, found.sizes.fixed
            values |= {"image": found.image, "label": found.labels[0] if found.labels else None, "mask": found.mask}
            values["shape"] = None if fixed is None else write_shape(fixed)
            if boxes is not None:
                values |= {"boxes": boxes.name, "names": boxes.text or boxes.label, "box_units": boxes.units}
                values["box_order"] = boxes.order if len(boxes.sides) == 1 else "xyxy"
        options = list_choices(self._schema) if self._schema.kind != "raw" else {}
        options["shape"] = [write_shape(shape) for shape in self._shapes]
        return {
            name: {"value": values[name], "options": options.get(name, []), "is_given": name in self._given}
            for name in NAMES
        }

    @cached_property
    def _probed(self) -> list[Mapping[str, Any]]:
        return [flatten_row(row, self._schema) for row in self._read_first()]

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Likely shapes of the image feature, if it is raw pixels of equal length: bytes, or numbers by name."""
        name = self._given.get("image")
        for feature, spec in self._schema.features.items() if self._schema.kind != "raw" else ():
            if is_flat_image(feature, spec) and name in (None, feature):
                return list(guess_shapes(spec.fixed_length))
            if spec.logical != "bytes" or spec.kind != "bytes" or spec.shape != () or name not in (None, feature):
                continue
            values = [row.get(feature) for row in self._probed]
            lengths = {len(value) for value in values if isinstance(value, bytes) and sniff_image(value[:64]) is None}
            if len(lengths) == 1:
                return list(guess_shapes(lengths.pop()))
        return []

    def _guess_shape(self, given: dict[str, Any]) -> tuple[int, ...] | None:
        """Guess the shape of raw pixels if no feature is an image otherwise."""
        try:
            find_picture_features(self._schema, **given)
        except SchemaError:
            shapes = [shape for shape in self._shapes if shape[2] != 4]
            return shapes[0] if shapes else None
        return None

    def _are_pixels(self, found: PictureFeatures) -> bool:
        """Whether boxes of the first records would exceed the image if their corners were fractions."""
        for row in self._probed:
            try:
                corners = read_corners(row, found.boxes) if found.boxes is not None else None
            except CodecError:
                continue
            if corners is not None and corners.size and corners.max() > _MAX_FRACTION:
                return True
        return False


def read_given(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given guesses without empty ones; ValueError for an invalid value."""
    found = {name: given[name] for name in NAMES if given.get(name)}
    for name, choices in _CHOICES.items():
        if found.get(name, choices[0]) not in choices:
            raise ValueError(f"{name} expected {', '.join(choices)}, got {found[name]!r:.64}")
    return found
