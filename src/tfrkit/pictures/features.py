"""Find the features of a picture in a schema: image, mask, label, boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from tfrkit.errors import SchemaError
from tfrkit.features import name_words as well_known
from tfrkit.features.name_words import split_words
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.size_features import SizeFeatures, find_sizes
from tfrkit.features.spec import Spec

# A feature with one of these words in its name is not an image.
_NOT_IMAGE_WORDS = well_known.MASK_WORDS | well_known.PLAIN_LABEL_WORDS
_CHANNELS = (1, 3, 4)
_BOX_SHAPES = ((4,), (None, 4), (None,))
_HEAD = re.compile(r"(.*?)(\d+)")

BoxOrder = Literal["xyxy", "yxyx", "xywh", "cxcywh"]
"""The four numbers of a box: corners with x or y first, or a corner or the centre with width and height."""
BoxUnits = Literal["fraction", "pixels"]

NO_FEATURE: Final = "-"
"""Given instead of a feature: the picture has none of this kind."""


@dataclass(frozen=True)
class BoxFeatures:
    """Features of boxes. `sides` is four lists (xmin, ymin, xmax, ymax), or one list of four-number boxes (TFDS).

    `order` is that of one list, by default as TFDS stores it; `units` are fractions of width and height, or pixels.
    """

    sides: tuple[str, ...]
    text: str | None = None
    label: str | None = None
    order: BoxOrder = "yxyx"
    units: BoxUnits = "fraction"
    score: str | None = None

    @property
    def name(self) -> str:
        """The feature, or the common start of the four features: ``image/object/bbox``."""
        return self.sides[0] if len(self.sides) == 1 else self.sides[0].rpartition("/")[0]


@dataclass(frozen=True)
class PictureFeatures:
    """The names of the features that make up a picture.

    `labels` are shown together as one text; `title` is shown if there is neither a label nor an object.
    """

    image: str
    sizes: SizeFeatures
    mask: str | None = None
    labels: tuple[str, ...] = ()
    title: str | None = None
    boxes: BoxFeatures | None = None

    @property
    def names(self) -> list[str]:
        """All features that have to be read."""
        boxes = self.boxes
        names = [self.image, self.mask, *self.labels, self.title, *self.sizes.names]
        if boxes is not None:
            names += [*boxes.sides, boxes.text, boxes.label, boxes.score]
        return list(dict.fromkeys(name for name in names if name is not None))


def find_picture_features(
    schema: Schema,
    *,
    image: str | None = None,
    label: str | None = None,
    mask: str | None = None,
    boxes: str | None = None,
    names: str | None = None,
    box_order: BoxOrder | None = None,
    box_units: BoxUnits | None = None,
    shape: tuple[int, ...] | None = None,
) -> PictureFeatures:
    """Find the features of a picture by names, kinds and meanings; each argument overrides the choice.

    `label`, `mask`, `boxes` and `names` (of the classes of boxes) may be `NO_FEATURE`. `boxes` is a feature with four
    numbers per box, or the common start of four features.

    `shape` is the shape of raw pixels and overrides size features; ValueError is raised if the image is not raw pixels.

    Raises `SchemaError` if there is no image feature.
    """
    for name in (image, *(_read_choice(one) for one in (label, mask, names))):
        if name is not None:
            schema.require_one_kind(name)
    specs = {name: spec for name, spec in _all_specs(schema).items() if spec.seen is None}
    mask = _find_mask(specs, image) if mask is None else _read_choice(mask)
    if image is None:
        image = _find_image(specs, mask, shape)
    if image is None:
        known = ", ".join(show_name(name) for name in schema.names[:8]) + (" and more" if len(schema) > 8 else "")
        raise SchemaError(f"no feature looks like an image, there is {known or 'nothing'}")
    if shape is not None and (specs[image].logical in ("image", "text") or _is_array(specs[image])):
        held = {"image": "encoded images", "text": "text"}.get(specs[image].logical, "arrays that have one")
        raise ValueError(f"shape is that of raw pixels, and feature {show_name(image)} holds {held}")
    context = {name: spec for name, spec in specs.items() if not spec.is_list and name not in (image, mask)}
    found = _choose_boxes(context, boxes, names, box_order, box_units)
    # Class names of boxes are drawn at the boxes, not in the caption.
    boxed = () if found is None else (found.text, found.label)
    labels = _find_labels({k: v for k, v in context.items() if k not in boxed})
    if label is not None:
        labels = () if label == NO_FEATURE else (label,)
    titles = [name for name in well_known.TITLE_NAMES if name in context and context[name].shape == ()]
    return PictureFeatures(
        image,
        find_sizes(context, image) if shape is None else SizeFeatures(fixed=shape),
        mask,
        labels,
        titles[0] if titles else None,
        found,
    )


def list_choices(schema: Schema) -> dict[str, list[str]]:
    """List the values that each argument of `find_picture_features` may have for this schema."""
    specs = {name: spec for name, spec in _all_specs(schema).items() if spec.seen is None}
    context = {name: spec for name, spec in specs.items() if not spec.is_list}
    listed = [
        name
        for name, spec in specs.items()
        if (spec.kind == "bytes" and spec.logical != "text") or is_flat_image(name, spec)
    ]
    arrays = [name for name, spec in specs.items() if _is_array(spec) and name not in listed]
    boxes = [name.removesuffix("/xmin") for name in context if name.endswith("/xmin")]
    sides = {f"{name}/{side}" for name in boxes for side in ("xmin", "ymin", "xmax", "ymax")}
    fours = [name for name, spec in context.items() if spec.kind == "float" and spec.shape in _BOX_SHAPES]
    boxes += [name for name in fours if name not in sides]
    return {
        "image": listed + arrays,
        "mask": listed + arrays,
        "label": [name for name, spec in context.items() if spec.kind == "int64" or spec.logical == "text"],
        "boxes": [name for name in boxes if _find_box_sides(context, name)],
        "names": [name for name, spec in context.items() if _can_name_boxes(spec)],
        "box_order": [*get_args(BoxOrder)],
        "box_units": [*get_args(BoxUnits)],
    }


def _read_choice(name: str | None) -> str | None:
    return None if name == NO_FEATURE else name


def _choose_boxes(
    specs: Mapping[str, Spec], boxes: str | None, names: str | None, order: BoxOrder | None, units: BoxUnits | None
) -> BoxFeatures | None:
    found = find_boxes(specs) if boxes is None else None
    if boxes is not None and boxes != NO_FEATURE:
        sides = _find_box_sides(specs, boxes)
        if not sides:
            raise SchemaError(f"boxes expected numbers in {show_name(boxes)} or its xmin, ymin, xmax and ymax")
        near = {name: spec for name, spec in specs.items() if name in sides or _can_name_boxes(spec)}
        known = find_boxes(near | {name: specs[name] for name in specs if name.endswith(well_known.SCORE_NAMES)})
        found = known if known is not None and known.sides == sides else BoxFeatures(sides)
    if found is None:
        return None
    changes: dict[str, Any] = {}
    if names is not None:
        is_number = names in specs and specs[names].kind == "int64"
        changes |= {"text": None if is_number else _read_choice(names), "label": names if is_number else None}
    if order is not None and len(found.sides) == 1:
        changes["order"] = order
    if units is not None:
        changes["units"] = units
    return replace(found, **changes)


def _find_box_sides(specs: Mapping[str, Spec], name: str) -> tuple[str, ...]:
    sides = tuple(f"{name}/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))
    if all(side in specs and specs[side].kind != "bytes" for side in sides):
        return sides
    return (name,) if name in specs and specs[name].kind != "bytes" else ()


def _can_name_boxes(spec: Spec) -> bool:
    return spec.shape in ((None,), (1,), ()) and (spec.kind == "int64" or spec.logical == "text")


def _all_specs(schema: Schema) -> dict[str, Spec]:
    return {**schema.features, **schema.feature_lists}


def _find_mask(specs: Mapping[str, Spec], image: str | None) -> str | None:
    if well_known.MASK_NAME in specs and specs[well_known.MASK_NAME].kind == "bytes" and image != well_known.MASK_NAME:
        return well_known.MASK_NAME
    named = [name for name, spec in specs.items() if spec.logical == "mask" and name != image]
    return named[0] if named else None


def _find_image(specs: Mapping[str, Spec], mask: str | None, shape: tuple[int, ...] | None) -> str | None:
    sizes = find_sizes(specs, "") if shape is None else SizeFeatures(fixed=shape)
    ranked = []
    for number, (name, spec) in enumerate(specs.items()):
        rank = None if name == mask or spec.logical == "mask" else _rank_image(name, spec, sizes)
        if rank is not None:
            known = (
                well_known.IMAGE_NAMES.index(name) if name in well_known.IMAGE_NAMES else len(well_known.IMAGE_NAMES)
            )
            ranked.append((rank, known, number, name))
    return min(ranked)[-1] if ranked else None


def _rank_image(name: str, spec: Spec, sizes: SizeFeatures) -> int | None:
    """Rank how likely a feature is an image, 0 is the likeliest; None if it is not an image."""
    if sizes.fixed is not None and not is_flat_image(name, spec) and (spec.kind != "bytes" or spec.encoding != "list"):
        return None
    words = split_words(name)
    is_fact = _is_fact(name)
    is_named = bool(well_known.IMAGE_WORDS & set(words)) and not is_fact
    if spec.logical == "image":
        return 0
    if _NOT_IMAGE_WORDS & set(words):
        return None
    if _is_array(spec):
        return 1 if is_named else 4 if _has_channels(spec) else None
    if spec.encoding != "list":
        return None
    if spec.kind == "bytes":
        is_raw = bool(well_known.RAW_WORDS & set(words)) and not is_fact and spec.logical != "text"
        if is_raw and sizes.is_known:
            return 2
        # If a shape is given, bytes of unknown content are assumed to be the pixels.
        return (
            5 if name in well_known.IMAGE_NAMES else 6 if sizes.fixed is not None and spec.logical == "bytes" else None
        )
    return 3 if is_named and sizes.is_known and spec.shape not in ((), (1,)) else None


def is_flat_image(name: str, spec: Spec) -> bool:
    """Whether a list of numbers may be the pixels of an image, by its name; its length has to fit a shape."""
    is_named = bool(well_known.IMAGE_WORDS & set(split_words(name))) and not _is_fact(name)
    return (
        is_named and spec.kind != "bytes" and spec.encoding == "list" and len(spec.shape) == 1 and spec.fixed_length > 0
    )


def _is_array(spec: Spec) -> bool:
    is_inside = spec.encoding != "list" and spec.dtype is not None and spec.dtype != "string"
    is_listed = spec.encoding == "list" and spec.kind != "bytes" and spec.logical != "boxes"
    return (is_inside or is_listed) and 2 <= len(spec.shape) <= 4


def _has_channels(spec: Spec) -> bool:
    return len(spec.shape) >= 3 and (spec.shape[-1] in _CHANNELS or spec.shape[-3] in _CHANNELS)


def _find_labels(specs: Mapping[str, Spec]) -> tuple[str, ...]:
    """Return the features that best describe a picture; empty if there are none."""
    texts = [name for name, spec in specs.items() if spec.kind == "bytes" and spec.logical == "text"]
    numbers = [name for name, spec in specs.items() if spec.kind == "int64" and _is_label(name, spec)]
    for known in well_known.CAPTION_NAMES:
        if known in texts:
            return (known,)
    named = [name for name in texts if _is_label(name, specs[name]) and specs[name].shape == ()]
    if named:
        return (named[0],)
    for known in (*well_known.CLASS_NAMES, well_known.CHARACTER_IDS):
        if known in numbers:
            return (known,)
    heads = [(match[1], int(match[2]), name) for name in numbers if (match := _HEAD.fullmatch(name))]
    if heads:
        stem = min(heads)[0]
        return tuple(name for other, _, name in sorted(heads) if other == stem)
    return (numbers[0],) if numbers else ()


def _is_label(name: str, spec: Spec) -> bool:
    return well_known.is_label_name(name) or (spec.logical == "class_label" and not _is_fact(name))


def _is_fact(name: str) -> bool:
    return not well_known.FACT_WORDS.isdisjoint(split_words(name)[-1:])


def find_boxes(specs: Mapping[str, Spec]) -> BoxFeatures | None:
    """Find the features of boxes, or None."""
    for name in specs:
        if name.endswith("bbox/xmin"):
            stem = name.removesuffix("bbox/xmin")
            sides = tuple(f"{stem}bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))
            if all(side in specs and specs[side].kind == "float" for side in sides):
                text, label = (_find_first(specs, [f"{stem}class/{last}"]) for last in ("text", "label"))
                if text is None and label is None:
                    label = _find_class_list(specs, stem)
                return BoxFeatures(sides, text, label, score=_find_score(specs, stem))
    for name, spec in specs.items():
        if spec.logical == "boxes" and spec.kind == "float" and spec.shape in ((4,), (None, 4)):
            stem = name.rpartition("/")[0] + "/"
            label = _find_first(specs, [f"{stem}label"]) or _find_class_list(specs, stem)
            return BoxFeatures((name,), None, label, score=_find_score(specs, stem))
    return None


def _find_class_list(specs: Mapping[str, Spec], stem: str) -> str | None:
    """Return the list of class ids whose name starts with `stem`; of several the one called a class, or None.

    A list without a common start may be the classes of the picture.
    """
    lists = [
        name
        for name, spec in specs.items()
        if stem
        and name.startswith(stem)
        and spec.logical == "class_label"
        and spec.kind == "int64"
        and spec.shape == (None,)
    ]
    named = [name for name in lists if well_known.can_be_class(name.removeprefix(stem))]
    found = lists if len(lists) == 1 else named
    return found[0] if len(found) == 1 else None


def _find_first(specs: Mapping[str, Spec], names: Iterable[str]) -> str | None:
    return next((name for name in names if name in specs), None)


def _find_score(specs: Mapping[str, Spec], stem: str) -> str | None:
    floats = {name: spec for name, spec in specs.items() if spec.kind == "float" and spec.shape in ((None,), (1,), ())}
    return _find_first(floats, [stem + name for name in well_known.SCORE_NAMES])
