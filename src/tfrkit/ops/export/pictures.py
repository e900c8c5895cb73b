"""Finds the features with image, file name and class in a dataset, and reads the pictures of its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Row
from tfrkit.errors import Hint, SchemaError, Step
from tfrkit.features.name_words import CLASS_NAMES, CLASS_TEXTS, FILE_WORDS, split_words
from tfrkit.features.schema import Schema
from tfrkit.ops.export.input import ExportInput
from tfrkit.ops.export.pixels import ImageFile, to_image_files, to_mask_file
from tfrkit.pictures.features import PictureFeatures, find_picture_features
from tfrkit.pictures.pixels import require_raw_shape
from tfrkit.pictures.values import flatten_row, list_values
from tfrkit.sidecars.class_names import ClassNames
from tfrkit.sources.walk import IMAGE_SUFFIXES

_FRAME_NAMES = "image/filename"


@dataclass
class PictureRow:
    """The pictures of one record: one file, or for a clip (`is_clip`) one per image, with their names if stored."""

    name: str | None
    files: list[ImageFile]
    is_clip: bool = False
    frame_names: list[str] = field(default_factory=list)
    class_name: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


class PictureNames:
    """The file names of images, from the names that records store."""

    def __init__(self, schema: Schema, title: str | None, name: str | None = None) -> None:
        self.feature = name or (None if title is None or schema[title].kind == "float" else title)
        # A stored file name is used unchanged; an id needs a suffix.
        self._is_file_name = self.feature is not None and bool(FILE_WORDS & set(split_words(self.feature)))

    def read(self, values: Mapping[str, Any]) -> str | None:
        """Return the name that a record stores, or None."""
        value = None if self.feature is None else values.get(self.feature)
        if isinstance(value, (list, np.ndarray)):
            value = value[0] if len(value) else None
        if value is None:
            return None
        return decode_text(value) if isinstance(value, bytes) else str(value)

    def name_file(self, name: str | None, file: ImageFile, otherwise: str) -> tuple[str, str]:
        """Return the file name to use, and the one to use instead if that is unsafe."""
        if not name:
            return f"{otherwise}{file.suffix}", f"{otherwise}{file.suffix}"
        suffix = os.path.splitext(name)[1].lower()
        if file.is_made and suffix in IMAGE_SUFFIXES:
            name = os.path.splitext(name)[0] + file.suffix
        elif not self._is_file_name and suffix not in IMAGE_SUFFIXES:
            name += file.suffix
        return name, f"{otherwise}{file.suffix}"


class PictureSource:
    """Reads rows of a dataset as pictures. Holds the rows of one batch in memory, and one image."""

    def __init__(
        self,
        source: ExportInput,
        *,
        image: str | None = None,
        label: str | None = None,
        name: str | None = None,
        names: str | None = None,
        shape: tuple[int, ...] | None = None,
        extra: Sequence[str] = (),
    ) -> None:
        source.require_examples()
        schema, first = source.schema, source.paths[0]
        try:
            if name is not None:
                schema.require_one_kind(name)
            self.features: PictureFeatures = find_picture_features(
                schema, image=image, label=label, names=names, shape=shape
            )
        except SchemaError as error:
            named = Step("name it: {image}, {label} or {name}", image=..., label=..., name=...)
            hint = Hint(f"see what is there: tfr info {first}", named)
            raise error.replace(shard=first, hint=hint) from None
        self._require_shape(source)
        beside = source.sidecars.class_file
        self.notes: list[str] = source.sidecars.notes
        self.class_names = ClassNames.of_schema(schema, beside)
        self._has_names_beside = beside is not None
        self._schema = schema
        self.names = PictureNames(schema, self.features.title, name)
        self.class_feature = self._find_class(label)
        self.is_framed = self.features.image in schema.feature_lists
        frames = [_FRAME_NAMES] if self.is_framed and _FRAME_NAMES in schema.feature_lists else []
        wanted = [*self.features.names, self.names.feature, self.class_feature, *frames, *extra]
        self.feature_names = list(dict.fromkeys(one for one in wanted if one is not None and one in schema))
        self._num_inexact = 0

    def _require_shape(self, source: ExportInput) -> None:
        """Raise if all images are raw bytes of equal length, and no shape is known or it does not match that length."""
        name = self.features.image
        spec = source.schema[name]
        report = source.report.get((name, name in source.schema.feature_lists))
        is_raw = spec.kind == "bytes" and spec.encoding == "list" and spec.logical == "bytes"
        if report is not None and is_raw and report["min_bytes"] == report["max_bytes"] and report["min_bytes"]:
            require_raw_shape(name, self.features.sizes, report["max_bytes"], shard=source.paths[0])

    @property
    def mask_feature(self) -> str | None:
        """The feature with a mask of the whole image, or None; masks of single objects do not count."""
        mask = self.features.mask
        if mask is None or "object" in split_words(mask):
            return None
        spec = self._schema[mask]
        return mask if spec.encoding != "list" or spec.shape == () else None

    def read(self, row: Row) -> PictureRow:
        """Return the pictures of a row. Raises `CodecError` if there is none."""
        values = flatten_row(row, self._schema)
        image = self.features.image
        value = values.get(image)
        files = to_image_files(image, value, values, self.features.sizes)
        self._num_inexact += sum(not file.is_exact for file in files)
        is_clip = self.is_framed or len(files) > 1
        frames = [decode_text(one) or "" for one in list_values(values.get(_FRAME_NAMES))] if is_clip else []
        return PictureRow(self.names.read(values), files, is_clip, frames, self._read_class(values), values)

    def read_mask(self, picture: PictureRow, size: tuple[int, int] | None = None) -> bytes | None:
        """Return the mask of a picture as a PNG with a palette, or None if it has no mask."""
        name = self.mask_feature
        value = None if name is None else picture.values.get(name)
        if name is None or value is None:
            return None
        if self._schema[name].is_list:
            value = value[0] if len(value) else None
        return None if value is None else to_mask_file(name, value, size)

    def find_others(self) -> list[str]:
        """Return the other features with images or masks, which are not read."""
        specs = {**self._schema.features, **self._schema.feature_lists}
        taken = (self.features.image, self.mask_feature)
        return [name for name, spec in specs.items() if spec.logical in ("image", "mask") and name not in taken]

    def describe(self) -> list[str]:
        """Return notes on the pictures that were read."""
        notes = list(self.notes)
        if self._num_inexact:
            notes.append(
                f"images with numbers that PNG cannot store, written in 256 levels: {self._num_inexact}; "
                "their values: tfr export npz"
            )
        return notes

    def _find_class(self, label: str | None) -> str | None:
        """Return the feature whose value names the class folder of an image, or None."""
        features = self._schema.features
        if label is not None:
            return label if label in features and self._names_class(label, is_asked=True) else None
        candidates = [*CLASS_TEXTS, *CLASS_NAMES, *self.features.labels]
        return next((name for name in candidates if name in features and self._names_class(name)), None)

    def _names_class(self, name: str, *, is_asked: bool = False) -> bool:
        spec = self._schema[name]
        if spec.shape != () or spec.seen is not None or spec.encoding != "list":
            return False
        if spec.kind == "int64":
            return spec.classes is not None or self._has_names_beside
        return spec.kind == "bytes" and (is_asked or name in CLASS_TEXTS)

    def _read_class(self, values: Mapping[str, Any]) -> str | None:
        name = self.class_feature
        value = None if name is None else values.get(name)
        if name is None or value is None or isinstance(value, (list, np.ndarray)):
            return None
        return decode_text(value) if isinstance(value, bytes) else self.class_names.show(name, int(value))


def show_number(number: int, num_records: int) -> str:
    """Return a record number as a file name: at least 6 digits, all of the same length."""
    return f"{number:0{max(6, len(str(num_records - 1)))}d}"


def decode_text(value: bytes | str) -> str:
    """Decode bytes as text; bytes that are not UTF-8 become surrogates."""
    return os.fsdecode(value)
