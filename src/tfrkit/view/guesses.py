"""What a picture is made of: found by the code of `tfr sheet`, overridden by parameters of the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from tfrkit.errors import CodecError, ContainerError, SchemaError
from tfrkit.images.raw_shapes import guess_shapes, write_shape
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.features import BoxOrder, BoxUnits, PictureFeatures, find_picture_features, list_choices
from tfrkit.pictures.masks import voc_palette
from tfrkit.pictures.picture import PictureReader
from tfrkit.pictures.pixels import read_shape
from tfrkit.pictures.values import flatten_row, read_corners
from tfrkit.view.opened import Opened

NAMES = ("image", "label", "mask", "boxes", "names", "box_order", "box_units", "shape")
# Records looked at to guess units of boxes and the shape of raw pixels.
_PROBED = 8
_MAX_CLASSES = 256


@dataclass(frozen=True)
class Guesses:
    """The features of pictures of a dataset: `given` ones, and guesses for the others."""

    opened: Opened
    given: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, opened: Opened, query: Mapping[str, str]) -> Guesses:
        """Read parameters; an unknown feature raises `SchemaError`, a wrong value ValueError."""
        given = {name: query[name] for name in NAMES if query.get(name)}
        for name, choices in (("box_order", get_args(BoxOrder)), ("box_units", get_args(BoxUnits))):
            if given.get(name, choices[0]) not in choices:
                raise ValueError(f"{name} expected {', '.join(choices)}, got {given[name]!r:.64}")
        return cls(opened, tuple(given.items()))

    @cached_property
    def features(self) -> PictureFeatures | None:
        """The features of pictures; None if there are no pictures."""
        given: dict[str, Any] = dict(self.given)
        if self.opened.kind not in ("example", "sequence_example") or given.get("image") == "-":
            return None
        given["shape"] = read_shape(given.get("shape"))
        schema = self.opened.schema
        if given["shape"] is None and "image" not in given:
            given["shape"] = self._guess_shape(schema, given)
        try:
            found = find_picture_features(schema, **given)
        except SchemaError:
            if self.given:
                raise
            return None
        if found.boxes is not None and "box_units" not in given and self._are_pixels(found):
            found = find_picture_features(schema, **given, box_units="pixels")
        return found

    def new_reader(self, side: int, *, enlarges: bool = True) -> PictureReader | None:
        """Make a reader of pictures that fit into a square; small ones are enlarged by default."""
        if self.features is None:
            return None
        opened = self.opened
        return PictureReader(
            opened.schema,
            self.features,
            opened.names,
            side=side,
            keeps_pixels=True,
            enlarges=enlarges,
            is_quick=True,
        )

    def to_json(self) -> dict[str, Any]:
        """Return value, options and origin of each guess."""
        given, found = dict(self.given), self.features
        options = list_choices(self.opened.schema) if self.opened.kind != "raw" else {}
        values: dict[str, str | None] = dict.fromkeys(NAMES)
        if found is not None:
            boxes, fixed = found.boxes, found.sizes.fixed
            values |= {"image": found.image, "label": found.labels[0] if found.labels else None, "mask": found.mask}
            values["shape"] = None if fixed is None else write_shape(fixed)
            if boxes is not None:
                values |= {"boxes": boxes.name, "names": boxes.text or boxes.label, "box_units": boxes.units}
                values["box_order"] = boxes.order if len(boxes.sides) == 1 else "xyxy"
        options["shape"] = [write_shape(shape) for shape in self._shapes]
        return {
            name: {"value": values[name], "options": options.get(name, []), "is_given": name in given} for name in NAMES
        }

    def list_classes(self) -> list[dict[str, Any]]:
        """Return id, name and colour of the classes of the mask."""
        mask = None if self.features is None else self.features.mask
        if mask is None:
            return []
        ids = [number for number in self.opened.names.list_ids(mask) if 0 <= number < _MAX_CLASSES]
        return [
            {
                "id": number,
                "name": self.opened.names.show(mask, number),
                "color": to_hex(voc_palette()[number].tolist()),
            }
            for number in ids
        ]

    @cached_property
    def _probed(self) -> list[dict[str, Any]]:
        rows = []
        for record in range(min(_PROBED, self.opened.num_records)):
            try:
                rows.append(dict(flatten_row(self.opened.read_row(record), self.opened.schema)))
            except (ContainerError, CodecError, SchemaError):
                continue
        return rows

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Likely shapes of the bytes of the image feature, if they are raw pixels of one length."""
        name = dict(self.given).get("image")
        for feature, spec in self.opened.schema.features.items() if self.opened.kind != "raw" else ():
            if spec.logical != "bytes" or spec.kind != "bytes" or spec.shape != () or name not in (None, feature):
                continue
            values = [row.get(feature) for row in self._probed]
            lengths = {len(value) for value in values if isinstance(value, bytes) and sniff_image(value[:64]) is None}
            if len(lengths) == 1:
                return list(guess_shapes(lengths.pop()))
        return []

    def _guess_shape(self, schema: Any, given: dict[str, Any]) -> tuple[int, ...] | None:
        """Guess the shape of raw pixels if no feature is an image otherwise."""
        try:
            find_picture_features(schema, **given)
        except SchemaError:
            shapes = [shape for shape in self._shapes if shape[2] != 4]
            return shapes[0] if shapes else None
        return None

    def _are_pixels(self, found: PictureFeatures) -> bool:
        """Whether boxes of the first records have corners beyond the image if they were fractions."""
        for row in self._probed:
            try:
                corners = read_corners(row, found.boxes) if found.boxes is not None else None
            except CodecError:
                continue
            if corners is not None and corners.size and corners.max() > 2:
                return True
        return False


def to_hex(color: Any) -> str:
    """Return a colour as #rrggbb."""
    red, green, blue = color
    return f"#{red:02x}{green:02x}{blue:02x}"
