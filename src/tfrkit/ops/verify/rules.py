"""Rules for the records of a dataset: which features hold images, labels, boxes and masks, and which ids are valid.

Class names come from the manifest, from TFDS's features.json, or from classes.txt, labels.txt and charset.txt next to
the shards, in that order. Features without a rule are not checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfrkit.batches.stream import read_batches
from tfrkit.batches.survey import Surveyed, find_schema
from tfrkit.codec.columns import Ragged
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import SchemaError
from tfrkit.features.labels import LabelMap, name_unused
from tfrkit.features.name_words import (
    CHARACTER_LABELS,
    CLASS_NAMES,
    OBJECT_CLASS_NAMES,
    PLAIN_LABEL_WORDS,
    TEXTS_OF_LABELS,
    split_words,
)
from tfrkit.features.schema import Schema, decode_name, show_name
from tfrkit.features.spec import Spec
from tfrkit.images.sniff import sniff_image
from tfrkit.pictures.features import BoxFeatures, PictureFeatures, find_boxes, find_picture_features
from tfrkit.sidecars.read import SidecarProblem, Sidecars

_SAMPLE_SHARDS = 8
_SAMPLE_RECORDS = 256
# Boxes whose median coordinate is above this are in pixels, not in fractions of the image.
_MAX_PART = 1.5
_VOID = 255
_UNLABELLED = -1
# Limit on labels named in the note on what was checked.
_MAX_NAMED = 8


@dataclass(frozen=True)
class ClassRange:
    """Ids that a feature may hold: [low, high), and those in `also`. `names` maps ids to names, if known."""

    low: int
    high: int
    origin: str
    names: Mapping[int, str] = field(default_factory=dict)
    also: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RecordRules:
    """The rules that each record is checked against.

    Attributes:
        schema: The features to decode.
        known: The schema of all features.
        image: The feature that holds the picture (the main image), or None.
        images: Features that hold encoded images, including the picture if it is encoded.
        parts: Features that belong to the picture; None without a picture.
        labels: Label features, with the ids that each may hold.
        texts: Features that hold class names, keyed by the feature that holds the ids.
        mask: Ids that a mask may hold, if known.
        format: The feature that holds the format of the picture, or None.
        has_pixel_boxes: Whether boxes are in pixels rather than fractions of width and height.
        problems: Sidecars that cannot be used or do not match the records.
    """

    schema: Schema
    known: Schema = field(default_factory=lambda: Schema({}))
    image: str | None = None
    images: tuple[str, ...] = ()
    parts: PictureFeatures | None = None
    boxes: BoxFeatures | None = None
    labels: Mapping[str, ClassRange] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    mask: ClassRange | None = None
    format: str | None = None
    has_pixel_boxes: bool = False
    problems: tuple[SidecarProblem, ...] = ()


def find_rules(shards: Sequence[Shard], shape: tuple[int, ...] | None = None) -> RecordRules:
    """Find the rules for all records from a sample of records and from the sidecars.

    Raw pixels must have `shape`, if given; then a missing image raises `SchemaError`, an encoded one `ValueError`.
    """
    sidecars = Sidecars([shard.name for shard in shards])
    found = find_schema(shards, Policy("all", "skip"), sidecars=sidecars)
    specs = {**found.features, **found.feature_lists}
    # A feature of several kinds cannot be decoded. Sizes that differ between records are left to the checks.
    usable = {name: spec for name, spec in specs.items() if spec.seen is None}
    images = [name for name in _find_encoded(shards) if name in usable]
    parts, image = _find_picture(found, images, shape)
    ranges = _find_ranges(usable, sidecars)
    mask = None if parts is None or parts.mask is None else ranges.get(parts.mask)
    boxes = find_boxes({name: spec for name, spec in found.features.items() if spec.seen is None})
    labels = {name: known for name, known in ranges.items() if usable[name].kind == "int64"}
    texts = {
        name: TEXTS_OF_LABELS[name] for name in labels if TEXTS_OF_LABELS.get(name) in usable and labels[name].names
    }
    format_name = _find_format(image, usable)
    wanted = [*images, *(parts.names if parts is not None else ()), *labels, *texts.values()]
    wanted += [] if format_name is None else [format_name]
    wanted += [] if boxes is None else [*boxes.sides, *(name for name in (boxes.label, boxes.text) if name is not None)]
    schema = _loosen(found.select([name for name in dict.fromkeys(wanted) if name in usable]))
    return RecordRules(
        schema=schema,
        known=found,
        image=image,
        images=tuple(images),
        parts=parts,
        boxes=boxes,
        labels=labels,
        texts=texts,
        mask=mask,
        format=format_name,
        has_pixel_boxes=boxes is not None and _are_pixels(shards, schema, boxes),
        problems=tuple(sidecars.problems),
    )


def describe_rules(rules: RecordRules) -> str:
    """Describe in one line what a deep check covers, so that users know what "ok" means."""
    what = [f"image {show_name(name)}" for name in rules.images]
    if rules.image is not None and rules.image not in rules.images:
        what.append(f"pixels {show_name(rules.image)}")
    what += [
        f"label {show_name(name)} ({known.low} to {known.high - 1} by {known.origin})"
        for name, known in list(rules.labels.items())[:_MAX_NAMED]
    ]
    if len(rules.labels) > _MAX_NAMED:
        what.append(f"{len(rules.labels) - _MAX_NAMED} more labels")
    if rules.boxes is not None:
        what.append("boxes in pixels" if rules.has_pixel_boxes else "boxes")
    if rules.parts is not None and rules.parts.mask is not None:
        what.append(f"mask {show_name(rules.parts.mask)}")
    return f"looked at: {', '.join(what) or 'kinds of features, whole records'}"


def _loosen(schema: Schema) -> Schema:
    """Make all features but feature lists optional: absent features are not checked here."""
    return Schema(
        {name: spec.replace(optional=True) for name, spec in schema.features.items()},
        feature_lists=dict(schema.feature_lists) if schema.kind == "sequence_example" else None,
        kind=schema.kind,
    )


def _find_encoded(shards: Sequence[Shard]) -> list[str]:
    """Find features of which most values start like an image: one damaged image must not hide the others."""
    surveyed = Surveyed()
    for shard in shards[:_SAMPLE_SHARDS]:
        surveyed.add_shard(shard, Policy("all", "skip"), max_records=_SAMPLE_RECORDS)
    encoded = []
    for counted in surveyed.survey.features():
        heads = [bytes(head) for head in counted["heads"]]
        num_images = sum(sniff_image(head) is not None for head in heads)
        if heads and 2 * num_images > len(heads):
            encoded.append(decode_name(counted["name"]))
    return encoded


def _find_picture(
    schema: Schema, images: Sequence[str], shape: tuple[int, ...] | None
) -> tuple[PictureFeatures | None, str | None]:
    if shape is not None:
        raw = find_picture_features(schema, shape=shape)
        if raw.image in images:
            raise ValueError(f"shape is that of raw pixels, and feature {show_name(raw.image)} holds encoded images")
        return raw, raw.image
    try:
        parts = find_picture_features(schema)
    except SchemaError:
        parts = None
    if parts is not None:
        spec = schema[parts.image]
        # Text in a feature that is named like an image (base64, say) cannot be checked.
        is_pixels = spec.kind != "bytes" or spec.encoding != "list" or (parts.sizes.is_known and spec.logical != "text")
        if parts.image in images or is_pixels:
            return parts, parts.image
    plain = [name for name in images if schema[name].logical != "mask"]
    if not plain:
        return None, None
    return find_picture_features(schema, image=plain[0]), plain[0]


def _find_format(image: str | None, specs: Mapping[str, Spec]) -> str | None:
    if image is None:
        return None
    folder = image.rpartition("/")[0]
    names = (f"{folder}/format" if folder else "format", f"{image}/format")
    return next((name for name in names if name in specs and specs[name].kind == "bytes"), None)


def _find_ranges(specs: Mapping[str, Spec], sidecars: Sidecars) -> dict[str, ClassRange]:
    """Find the valid ids of each feature, from the schema or else from class files next to the shards."""
    ranges = {}
    origin = sidecars.schema_origin
    for name, spec in specs.items():
        if spec.num_classes is not None:
            also = _also(spec, origin)
            ranges[name] = _range_of_spec(spec, also)
    if any(specs[name].kind == "int64" for name in ranges):
        return ranges
    beside, charset = sidecars.class_file, sidecars.charset
    if beside is not None:
        known = (*CLASS_NAMES, *OBJECT_CLASS_NAMES)
        found = next((name for name in known if name in specs and specs[name].kind == "int64"), None)
        found = found or _find_only_label(specs)
        if found is not None:
            ranges[found] = _range_of_map(beside, frozenset({_UNLABELLED}) if origin == "tfds" else frozenset())
        masks = [name for name, spec in specs.items() if spec.logical == "mask" and spec.shape == ()]
        ranges.update({name: _range_of_map(beside, frozenset({_VOID})) for name in masks})
    if charset is not None:
        heads = [name for name, spec in specs.items() if CHARACTER_LABELS.fullmatch(name) and spec.kind == "int64"]
        ranges.update({name: _range_of_map(charset, frozenset()) for name in heads})
    return ranges


def _also(spec: Spec, origin: str) -> frozenset[int]:
    """Return ids that are valid in addition to classes: the ignored id, 255 in masks, -1 in labels of TFDS."""
    ids = {spec.ignore} if spec.ignore is not None else set()
    if spec.kind == "bytes" and origin != "manifest":
        ids.add(_VOID)
    if spec.kind == "int64" and origin == "tfds":
        ids.add(_UNLABELLED)
    return frozenset(ids)


def _range_of_spec(spec: Spec, also: frozenset[int]) -> ClassRange:
    names = dict(enumerate(spec.classes or ()))
    low = 0
    while names.get(low) == name_unused(low):
        low += 1
    return ClassRange(low, spec.num_classes or 0, "the schema", names, also)


def _range_of_map(labels: LabelMap, also: frozenset[int]) -> ClassRange:
    names = {labels.id_of(name): name for name in labels.names}
    return ClassRange(labels.offset, labels.offset + len(labels), os.path.basename(labels.origin), names, also)


def _find_only_label(specs: Mapping[str, Spec]) -> str | None:
    numbers = [name for name, spec in specs.items() if spec.kind == "int64"]
    named = [name for name in numbers if not PLAIN_LABEL_WORDS.isdisjoint(split_words(name)[-1:])]
    return named[0] if len(named) == 1 else None


def _are_pixels(shards: Sequence[Shard], schema: Schema, boxes: BoxFeatures) -> bool:
    """Are boxes in pixels? True if the median of some coordinates is too large for a fraction of the image."""
    sides = list(boxes.sides[-2:])
    decoder = Decoder(schema.select(sides))
    batches = read_batches(
        shards[:_SAMPLE_SHARDS], decoder, Policy("all", "skip"), batch_size=_SAMPLE_RECORDS, drop_last=False, threads=1
    )
    found = []
    for batch, _ in batches:
        for name in sides:
            column = batch.get("context", batch)[name]
            values = np.asarray(column.values if isinstance(column, Ragged) else column, np.float64).reshape(-1)
            found.append(values[np.isfinite(values)])
        if sum(map(len, found)):
            break
    values = np.concatenate(found) if found else np.empty(0)
    return bool(len(values)) and float(np.median(values)) > _MAX_PART
