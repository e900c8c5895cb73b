"""Images with objects: the common part of VOC, COCO and YOLO after their files are parsed.

Rows have the features that readers of the TensorFlow Object Detection API expect: one list for each side of the boxes,
as fractions of width and height, and lists of labels, names and other values of the format, all of equal length.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import BACKGROUND, LabelMap
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions
from tfrkit.images.resize import resize_as_pillow
from tfrkit.images.turn import ExifPolicy
from tfrkit.sidecars.class_names import make_detection_labels
from tfrkit.sources.base import Facts, Item, ItemsBuilder, Problem, Scan
from tfrkit.sources.boxes import BoxFitter, Corners
from tfrkit.sources.image_features import ImageReader, image_row, image_specs, to_problem
from tfrkit.sources.measure import Size, explain_difference, measure_image_file
from tfrkit.storage.inputs import stat_input

_SIDES = ("xmin", "ymin", "xmax", "ymax")
# An empty list of text: unlike [], the array has a type.
_EMPTY_TEXTS = np.empty(0, "S1")
# Maximum number of places shown for a class that is not in the map.
_MAX_USES = 3
_NO_OUTLINE = "masks expected a segmentation of every object, got none"
_WITHOUT_MASKS = Hint(Step("store boxes only: leave out {masks}", masks=True))


@dataclass
class FoundObject:
    """One object of an image: its class, its corners in pixels, its place in a file, and other values by feature."""

    name: str
    corners: Corners
    where: str
    values: Mapping[str, int | float | str] = field(default_factory=dict)
    outline: Any = None


class DetectionGatherer:
    """Collects images with their objects, checks them, and makes the items for the reader."""

    def __init__(
        self,
        root: str,
        fitter: BoxFitter,
        *,
        exif: ExifPolicy,
        split_names: Sequence[str] = (),
        needs_outlines: bool = False,
    ) -> None:
        self.builder = ItemsBuilder(split_names)
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.num_empty = 0
        self._root = root
        self._fitter = fitter
        self._exif = exif
        self._needs_outlines = needs_outlines
        self._uses: dict[str, list[str]] = {}
        self._keys: set[str] = set()

    def add(
        self,
        key: str,
        file: str,
        objects: Sequence[FoundObject],
        *,
        source_id: str,
        name: str | None = None,
        declared: tuple[int | None, int | None] = (None, None),
        declared_at: str = "",
        captions: Sequence[str] = (),
        split: int = -1,
        are_parts: bool = False,
    ) -> None:
        """Add the image `file` below the root.

        `declared` is the (width, height) in its annotation. With `are_parts` corners are fractions of its size.
        """
        path = os.path.join(self._root, file)
        if key in self._keys:
            self.problems.append(Problem(declared_at or key, f"image {key!r} expected once, got it twice", input=None))
            return
        self._keys.add(key)
        try:
            nbytes, stamp = stat_input(path)
            width, height = measure_image_file(path, self._exif)
        except (SourceError, OSError) as error:
            self.problems.append(to_problem(file, error, input=key))
            return
        wrong = self._compare_sizes(path, declared, (width, height))
        if wrong is not None:
            reason, hint = wrong
            self.problems.append(Problem(declared_at or key, reason, input=key, hint=hint or ""))
            return
        if are_parts:
            objects = [replace(found, corners=_scale(found.corners, width, height)) for found in objects]
        kept = self._fit(key, objects, width, height)
        if kept is None:
            return
        for found in kept:
            self.counts[found.name] += 1
            uses = self._uses.setdefault(found.name, [])
            if len(uses) < _MAX_USES:
                uses.append(found.where)
        self.num_empty += not kept
        data = _pack(file, source_id, name, kept, captions, width, height)
        self.builder.add(key, data=data, nbytes=nbytes, stamp=stamp, split=split)

    def _compare_sizes(
        self, path: str, declared: tuple[int | None, int | None], size: Size
    ) -> tuple[str, str | None] | None:
        """Return a reason and a hint if the annotation gives another image size: its boxes would be misplaced."""
        width, height = declared
        if width is None or height is None or declared == size:
            return None
        why, hint = explain_difference(path, (width, height), size, self._exif)
        return f"annotation expected an image of {width}x{height}, got one of {size[0]}x{size[1]}{why}", hint

    def _fit(self, key: str, objects: Sequence[FoundObject], width: int, height: int) -> list[FoundObject] | None:
        """Return the objects to store, or None if one of them fails the build."""
        kept = []
        is_sound = True
        for found in objects:
            name = self._fitter.name(found.name, found.where)
            corners, problem = self._fitter.fit(found.corners, found.where, width=width, height=height)
            if problem is not None:
                self.problems.append(Problem(found.where, problem.reason, input=key, hint=problem.hint))
                is_sound = False
            elif corners is not None and self._needs_outlines and not found.outline:
                self.problems.append(Problem(found.where, _NO_OUTLINE, input=key, hint=_WITHOUT_MASKS))
                is_sound = False
            elif corners is not None:
                kept.append(replace(found, name=name, corners=corners))
        return kept if is_sound else None

    def ids(self, labels: LabelMap) -> dict[str, int]:
        """Return the id of each class that occurs; add a blocking problem for each class that is not in the map."""
        ids = {}
        for name in sorted(self.counts):
            if name in labels:
                ids[name] = labels.id_of(name)
                continue
            uses = self._uses[name]
            more = self.counts[name] - len(uses)
            where = "; ".join(uses) + (f" and {more} more" if more else "")
            reason = f"class {name!r:.64} is not one of the {len(labels)} of {labels.origin}"
            hint = Hint(Step("name the file of all classes: {classes}", classes=...))
            self.problems.append(Problem(where, reason, blocking=True, input=None, hint=hint))
        return ids

    def make_scan(
        self,
        looked_for: str,
        labels: LabelMap,
        images: ImageOptions,
        *,
        fields: Mapping[str, str],
        notes: Sequence[str],
        about_labels: Sequence[str],
        masks: bool = False,
        captions: bool = False,
        **more: Any,
    ) -> Scan:
        """Return a scan of the collected images; `more` are further attributes of the scan."""
        ids = self.ids(labels)

        def make_schema(facts: Facts) -> Schema:
            return detection_schema(
                images, facts, classes=labels.spec_names(), fields=fields, masks=masks, captions=captions
            )

        return Scan(
            looked_for=looked_for,
            items=self.builder.build(),
            reader=DetectionReader(self._root, images, ids=ids, fields=fields, masks=masks, captions=captions),
            schema=make_schema({}),
            problems=self.problems,
            notes=[*notes, *self.notes(), *about_labels, *images.describe()],
            counts={"objects": dict(self.counts.most_common())},
            label_files=make_detection_labels(labels),
            refine=make_schema,
            explain=images.describe_seen,
            **more,
        )

    def notes(self) -> list[str]:
        """Return notes about changed boxes and names, and about images without objects."""
        notes = self._fitter.notes()
        if self.num_empty:
            notes.append(f"images without objects, kept: {self.num_empty}")
        return notes


def describe_classes(labels: LabelMap) -> list[str]:
    """Describe the number of classes, their origin and their labels."""
    numbers = f", labels {labels.offset} to {labels.offset + len(labels) - 1}" if len(labels) else ""
    return [f"classes: {len(labels)}, {labels.origin}{numbers}", *note_zero(labels)]


def note_zero(labels: LabelMap) -> list[str]:
    """Return a note if a class has label 0, which detection readers reserve for the background."""
    if labels.offset or not labels.names or labels.names[0].lower() in BACKGROUND:
        return []
    what = f"label 0 is class {labels.names[0]!r:.64}"
    text = f"{what}, which the Object Detection API keeps for the background; from 1: {{label_offset}}"
    return [Hint(Step(text, label_offset=1))]


def _scale(corners: Corners, width: int, height: int) -> Corners:
    return corners[0] * width, corners[1] * height, corners[2] * width, corners[3] * height


def _pack(
    file: str,
    source_id: str,
    name: str | None,
    objects: Sequence[FoundObject],
    captions: Sequence[str],
    width: int,
    height: int,
) -> bytes:
    packed: dict[str, Any] = {
        "file": file,
        "id": source_id,
        "size": [width, height],
        "corners": [found.corners for found in objects],
        "names": [found.name for found in objects],
    }
    if name is not None:
        packed["name"] = name
    for key in objects[0].values if objects else ():
        packed[key] = [found.values[key] for found in objects]
    if any(found.outline is not None for found in objects):
        packed["outlines"] = [found.outline for found in objects]
    if captions:
        packed["captions"] = list(captions)
    return json.dumps(packed, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")


class DetectionReader(ImageReader):
    """Reads an image and its objects as a row."""

    def __init__(
        self,
        root: str,
        images: ImageOptions,
        *,
        ids: Mapping[str, int],
        fields: Mapping[str, str],
        masks: bool = False,
        captions: bool = False,
    ) -> None:
        super().__init__(root, images)
        self._ids = dict(ids)
        self._fields = dict(fields)
        self._masks = masks
        self._captions = captions

    def files_of(self, item: Item) -> Sequence[str]:
        return [os.path.join(self._root, json.loads(item.data.decode("utf-8", "surrogateescape"))["file"])]

    def read(self, item: Item) -> Row:
        """Return the row of one image."""
        found = json.loads(item.data.decode("utf-8", "surrogateescape"))
        stored = self.store(found["file"], is_annotated=bool(found["names"]))
        width, height = found["size"]
        if (stored.source_width, stored.source_height) != (width, height):
            raise SourceError(
                f"image changed since it was scanned, {width}x{height} then, "
                f"{stored.source_width}x{stored.source_height} now"
            )
        sides = np.array(found["corners"], np.float64).reshape(-1, 4) / (width, height, width, height)
        names = found["names"]
        unknown = [name for name in names if name not in self._ids]
        if unknown:
            raise SourceError(f"class {unknown[0]!r:.64} is not one of the classes")
        row: Row = {
            **image_row(stored),
            "image/filename": os.fsencode(found.get("name") or os.path.basename(found["file"])),
            "image/source_id": found["id"].encode("utf-8", "surrogateescape"),
            "image/key/sha256": hashlib.sha256(stored.data).hexdigest(),
            "image/object/class/text": _texts(names),
            "image/object/class/label": np.array([self._ids[name] for name in names], np.int64),
        }
        for index, side in enumerate(_SIDES):
            row[f"image/object/bbox/{side}"] = sides[:, index].astype(np.float32)
        for name, kind in self._fields.items():
            values = found.get(name, [])
            row[f"image/object/{name}"] = (
                _texts(values) if kind == "bytes" else np.array(values, np.int64 if kind == "int64" else np.float32)
            )
        if self._masks:
            row["image/object/mask"] = self._read_masks(found, (stored.width, stored.height))
        if self._captions:
            row["image/caption"] = _texts(found.get("captions", []))
        return row

    def _read_masks(self, found: dict[str, Any], size: tuple[int, int]) -> Any:
        from tfrkit.pictures.masks import encode_indices
        from tfrkit.sources.coco_masks import rasterize_segmentation

        width, height = found["size"]
        masks = []
        for name, outline in zip(found["names"], found.get("outlines", []), strict=True):
            try:
                mask = rasterize_segmentation(outline, width=width, height=height)
            except ValueError as error:
                raise SourceError(f"object {name!r} {error}") from None
            masks.append(encode_indices(resize_as_pillow(mask, size[::-1], "nearest")))
        return masks or _EMPTY_TEXTS


def _texts(values: Sequence[str]) -> Any:
    """Encode text as a list of bytes; an empty list becomes an array with a type."""
    return [value.encode("utf-8", "surrogateescape") for value in values] or _EMPTY_TEXTS


def detection_schema(
    images: ImageOptions,
    facts: Facts,
    *,
    classes: tuple[str, ...] | None,
    fields: Mapping[str, str],
    masks: bool = False,
    captions: bool = False,
) -> Schema:
    """Return the schema of the rows."""
    texts = Spec("bytes", (None,), logical="text")
    features: dict[str, Spec] = {
        **image_specs(images, facts),
        "image/filename": Spec("bytes", logical="text"),
        "image/source_id": Spec("bytes", logical="text"),
        "image/key/sha256": Spec("bytes", logical="text"),
    }
    for side in _SIDES:
        features[f"image/object/bbox/{side}"] = Spec("float", (None,))
    features["image/object/class/label"] = Spec("int64", (None,), logical="class_label", classes=classes)
    features["image/object/class/text"] = texts
    for name, kind in fields.items():
        features[f"image/object/{name}"] = texts if kind == "bytes" else Spec(kind, (None,))  # type: ignore[arg-type]
    if masks:
        features["image/object/mask"] = Spec("bytes", (None,), logical="mask", format="png")
    if captions:
        features["image/caption"] = texts
    return Schema(features)
