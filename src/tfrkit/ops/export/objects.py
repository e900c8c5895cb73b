"""Objects in images: boxes, class names and ids, and other features of objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit.codec.columns import BytesColumn, Column, Ragged
from tfrkit.errors import CodecError, Hint, SchemaError, Step
from tfrkit.features.labels import LabelMap, is_unused, name_unused
from tfrkit.features.name_words import OBJECT_FEATURES
from tfrkit.features.schema import Schema, show_name
from tfrkit.ops.export.input import ExportInput, RecordNumber, SourceBatch
from tfrkit.ops.export.pictures import PictureSource, decode_text
from tfrkit.pictures.features import BoxFeatures
from tfrkit.pictures.values import list_values, read_corners
from tfrkit.sidecars.class_names import ClassNames

Corners = np.ndarray[Any, np.dtype[np.float32]]

_MAX_DECIMALS = 6


@dataclass
class FoundObjects:
    """The objects of one image: their corners as fractions of width and height, and a value of each list per object."""

    corners: Corners
    names: list[str]
    labels: list[int]
    extras: Mapping[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)


class ClassTable:
    """Class ids and names. If the records have no ids, the names are numbered from 1 in alphabetical order."""

    def __init__(self, names: Mapping[int, str], *, has_ids: bool) -> None:
        self.names = dict(sorted(names.items()))
        self.has_ids = has_ids
        self._ids = {name: number for number, name in self.names.items()}

    def id_of(self, name: str) -> int:
        """Return the id of a class name. Raises `CodecError` if it has none."""
        if name not in self._ids:
            raise CodecError(f"class {show_name(name)} has no id in any record")
        return self._ids[name]

    def to_text(self) -> str:
        """Return `id:name` lines as `tfr build` reads and writes them; gaps get placeholder names."""
        first, last = min(self.names), max(self.names)
        filled = tuple(self.names.get(number, name_unused(number)) for number in range(first, last + 1))
        return LabelMap(filled, offset=first).to_text()


class ObjectSource:
    """Reads the objects of each row."""

    def __init__(self, source: ExportInput, pictures: PictureSource) -> None:
        self.boxes: BoxFeatures | None = pictures.features.boxes
        self._class_names: ClassNames = pictures.class_names
        self._schema: Schema = source.schema
        self._extras = _find_extras(self.boxes, source.schema)
        self.classes = ClassTable({}, has_ids=True)
        self._notes: list[str] = []
        if self.boxes is not None:
            self.classes = _find_classes(source, self.boxes, pictures.class_names, self._notes)

    @property
    def extra_features(self) -> list[str]:
        """Features to read in addition to those of `PictureSource`."""
        return list(self._extras.values())

    def has(self, what: str) -> bool:
        """Whether records have this feature of objects, such as "area"."""
        return what in self._extras

    def describe(self, names: str | None) -> list[str]:
        """Return notes on the classes. `names` is the feature that the caller gave for them."""
        boxes = self.boxes
        if names is not None or boxes is None or boxes.text is not None or boxes.label is not None:
            return self._notes
        step = Step("name their feature: {names}", names=...)
        return [Hint("no classes of boxes were found, all are 'object';", step, gap=" ")]

    def read(self, values: Mapping[str, Any]) -> FoundObjects:
        """Return the objects of a row. Raises `CodecError` if boxes and classes do not match."""
        boxes = self.boxes
        if boxes is None:
            return FoundObjects(np.empty((0, 4), np.float32), [], [])
        corners = _check_corners(read_corners(values, boxes).astype(np.float32))
        texts = [decode_text(item) for item in list_values(values.get(boxes.text or ""))]
        labels = [int(item) for item in list_values(values.get(boxes.label or ""))]
        for feature, found in ((boxes.text, texts), (boxes.label, labels)):
            if feature is not None and len(found) != len(corners) and (found or feature in values):
                raise CodecError(
                    f"feature {show_name(feature)} expected one value per box, {len(corners)}, got {len(found)}"
                )
        names = texts or [self._name(label) for label in labels]
        if len(names) != len(corners):
            names = ["object"] * len(corners)
        if not self.classes.has_ids or not labels:
            labels = [self.classes.id_of(name) for name in names]
        extras = {what: list_values(values.get(feature)) for what, feature in self._extras.items()}
        for what, found in extras.items():
            if found and len(found) != len(corners):
                feature = show_name(self._extras[what])
                raise CodecError(f"feature {feature} expected one value per box, {len(corners)}, got {len(found)}")
        return FoundObjects(corners, names, labels, {what: found for what, found in extras.items() if found})

    def _name(self, label: int) -> str:
        assert self.boxes is not None
        assert self.boxes.label is not None
        return self.classes.names.get(label) or self._class_names.show(self.boxes.label, label)


def _check_corners(corners: Corners) -> Corners:
    """Return the corners unchanged. Raises `CodecError` for a box that is not finite or has its sides swapped."""
    is_sound = np.isfinite(corners).all(axis=1) & (corners[:, 0] <= corners[:, 2]) & (corners[:, 1] <= corners[:, 3])
    if not is_sound.all():
        number = int(np.flatnonzero(~is_sound)[0])
        shown = ", ".join(f"{side:.4g}" for side in corners[number].tolist())
        raise CodecError(f"box {number} expected xmin, ymin, xmax, ymax in order, got {shown}")
    return corners


def corners_to_pixels(corners: Corners, width: int, height: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Convert corners to pixels, with the fewest decimals that restore the stored fractions: 24, not 23.999999.

    Example:
        >>> to_pixels(np.array([[24 / 333, 0, 1, 0.5]], np.float32), 333, 100).tolist()
        [[24.0, 0.0, 333.0, 50.0]]
    """
    sizes = np.array([width, height, width, height], np.float64)
    exact = corners.astype(np.float64) * sizes
    pixels = exact.copy()
    is_open = np.ones(corners.shape, np.bool_)
    for decimals in range(_MAX_DECIMALS + 1):
        rounded = np.round(exact, decimals)
        fits = is_open & ((rounded / sizes).astype(np.float32) == corners)
        pixels[fits] = rounded[fits]
        is_open &= ~fits
    return pixels


def show_number(value: float) -> str:
    """Format a number with at most 6 decimals and no trailing zeros: 24, 0.5.

    Example:
        >>> show_number(24.0), show_number(0.125)
        ('24', '0.125')
    """
    return f"{value:.6f}".rstrip("0").rstrip(".") if value != int(value) else str(int(value))


def _find_extras(boxes: BoxFeatures | None, schema: Schema) -> dict[str, str]:
    if boxes is None:
        return {}
    stem = boxes.sides[0].rpartition("bbox")[0]
    found = {}
    for what, words in OBJECT_FEATURES.items():
        names = [f"{stem}{word}" for word in words if f"{stem}{word}" in schema.features]
        if names:
            found[what] = names[0]
    return found


class _ClassTexts:
    """The first text that records have for each class id, and the first that differs from it, with its record."""

    def __init__(self, feature: str) -> None:
        self._feature = feature
        self._firsts: dict[int, bytes] = {}
        self._others: dict[int, tuple[bytes, RecordNumber]] = {}

    def add(self, labels: list[int], texts: Iterable[bytes], batch: SourceBatch) -> None:
        """Add the ids and texts of all objects of a batch."""
        for at, (label, text) in enumerate(zip(labels, texts, strict=True)):
            if self._firsts.setdefault(label, text) != text and label not in self._others:
                row = _row_of(batch.columns[self._feature], at, batch.num_rows)
                self._others[label] = (text, RecordNumber(batch.first.shard, batch.first.record + row))

    @property
    def names(self) -> dict[int, str]:
        return {label: decode_text(text) for label, text in self._firsts.items()}

    def describe(self, paths: Sequence[str]) -> list[str]:
        """Return a note on the first class with two texts, and the number of others; empty if there is none."""
        if not self._others:
            return []
        label, (text, place) = next(iter(self._others.items()))
        first, other = (show_name(decode_text(one)) for one in (self._firsts[label], text))
        more = len(self._others) - 1
        rest = f"; {more:,} more {'class has' if more == 1 else 'classes have'} several texts" if more else ""
        where = f"at {paths[place.shard]}, record {place.record}"
        return [f"class {label} expected one text, got {first} and {other}, listed as {first} - {where}{rest}"]


def _find_classes(source: ExportInput, boxes: BoxFeatures, class_names: ClassNames, notes: list[str]) -> ClassTable:
    """Read the labels of every record and return all classes that are named or used; add notes on their texts."""
    named = _ClassTexts(boxes.text or "")
    texts: set[str] = set()
    used: set[int] = set()
    wanted = [name for name in (boxes.label, boxes.text) if name is not None]
    for batch in source.batches(wanted, watched=False) if wanted else ():
        labels = _flat(batch.columns.get(boxes.label)) if boxes.label is not None else None
        words = _flat(batch.columns.get(boxes.text)) if boxes.text is not None else None
        if labels is None:
            texts.update(decode_text(word) for word in words or ())
            continue
        used.update(np.unique(np.asarray(labels, np.int64)).tolist())
        if words is not None and len(words) == len(labels):
            named.add(labels.tolist(), words, batch)
    if boxes.label is None:
        listed = sorted(texts) or ["object"]
        return ClassTable(dict(enumerate(listed, 1)), has_ids=False)
    notes += named.describe(source.paths)
    names = named.names
    listed_ids = range(len(source.schema[boxes.label].classes or ()))
    known = {number: class_names.show(boxes.label, number) for number in sorted({*listed_ids, *used})}
    merged = {number: names.get(number, known[number]) for number in known}
    # An id that is neither used nor named is a placeholder between other ids.
    merged = {number: name for number, name in merged.items() if number in used or not is_unused(name)}
    if len(set(merged.values())) != len(merged):
        twice = next(name for name in merged.values() if list(merged.values()).count(name) > 1)
        raise SchemaError(f"classes expected different names, got {show_name(twice)} for two of them")
    return ClassTable(merged, has_ids=True)


def _row_of(column: Column, at: int, num_rows: int) -> int:
    """Return the row of a value of the flat sequence."""
    if isinstance(column, Ragged):
        return int(np.searchsorted(column.row_splits, column.row_splits[0] + at, side="right")) - 1
    return at * num_rows // len(_flat(column))


def _flat(column: Column) -> Any:
    """Return the values of a column as one flat sequence."""
    if isinstance(column, Ragged):
        return column.values[int(column.row_splits[0]) : int(column.row_splits[-1])]
    return column if isinstance(column, BytesColumn) else column.reshape(-1)
