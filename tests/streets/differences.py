"""Differences on purpose: where an asker does not return what went in, and why. The only such list."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from streets.columns import is_column, is_dense
from streets.truth import Feature, Value

Applies = Callable[[str, Feature], bool]


@dataclass(frozen=True)
class Difference:
    """What an asker returns instead, for the features it `applies` to.

    `expect` maps name and value to the returned ones (name None: absent), `facts` replace the stated facts (...: not
    compared), `is_ignored` leaves the feature out. `example` is a cell (made, stored) that fails without it.
    """

    asked: str  # a pattern of askers
    reason: str
    applies: Applies
    example: tuple[str, str]
    expect: Callable[[str, Value], tuple[str | None, Value]] | None = None
    facts: Callable[[Feature], Mapping[str, Any]] | None = None
    is_ignored: bool = False

    def is_asked(self, asked: str) -> bool:
        return fnmatchcase(asked, self.asked)


def _any(name: str, feature: Feature) -> bool:
    return True


def _is_list(name: str, feature: Feature) -> bool:
    return feature.shape != ()


def _is_bytes(name: str, feature: Feature) -> bool:
    return feature.dtype == "bytes" and feature.shape == ()


def _unset_is_absent(name: str, value: Value) -> tuple[str | None, Value]:
    return (None if value is None else name), value


def _bytes_are_base64(name: str, value: Value) -> tuple[str | None, Value]:
    try:
        value[2][0].decode()  # type: ignore[index]
    except UnicodeDecodeError:
        text = base64.b64encode(value[2][0]).decode()  # type: ignore[index]
        return name, ("bytes", (), (f'{{"base64":"{text}"}}'.encode(),))
    return name, value


def _numbers_are_wide(name: str, value: Value) -> tuple[str | None, Value]:
    """Integers as int64, floats as float32."""
    if value is None or value[0] in ("bytes", "frames"):
        return name, value
    dtype = np.dtype(value[0])
    wide = "float32" if dtype.kind == "f" else "int64"
    return name, (wide, value[1], np.frombuffer(value[2], dtype).astype(wide).tobytes())


def _booleans_are_text(name: str, value: Value) -> tuple[str | None, Value]:
    return name, ("bytes", (), (b"true" if value == ("bool", (), b"\x01") else b"false",))


def _numbers_are_numbers(name: str, value: Value) -> tuple[str | None, Value]:
    return name, ("int", (), value[2][0].decode())  # type: ignore[index]


def _from_one(name: str, value: Value) -> tuple[str | None, Value]:
    labels = np.frombuffer(value[2], "int64")  # type: ignore[index]
    return name, ("int64", value[1], (labels - 4).tobytes())  # type: ignore[index]


def _is_named(*endings: str) -> Applies:
    return lambda name, feature: name.startswith("image/") and name.rpartition("/")[2] in endings


DIFFERENCES: tuple[Difference, ...] = (
    *(
        Difference(
            asked,
            "Arrow, SQL and tables have one null: a feature without a value and an absent one are the same",
            _any,
            ("writer_gaps", "file_none"),
            _unset_is_absent,
        )
        for asked in ("to_arrow", "sql", "export_parquet", "parquet_back", "csv_back", "jsonl_back")
    ),
    Difference(
        "csv_back",
        "a cell of CSV holds one value: lists and arrays are JSON text",
        _is_list,
        ("rows_ragged", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "csv_back",
        "a cell of CSV is text: other bytes are base64 in JSON",
        _is_bytes,
        ("table_parquet", "file_none"),
        _bytes_are_base64,
    ),
    Difference(
        "parquet_back",
        "`build table` reads lists, no lists in lists, and integers of 64 bits with sign",
        lambda name, feature: not is_column(name, feature),
        ("rows_ragged", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "parquet_back",
        "numbers of a table become int64 and float32 lists, where these hold them",
        lambda name, feature: is_column(name, feature) and _is_list(name, feature),
        ("rows_ragged", "file_none"),
        _numbers_are_wide,
    ),
    Difference(
        "jsonl_back",
        "a JSON list that is empty in every row has no type",
        lambda name, feature: 0 in feature.shape,
        ("arrays_npz", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "npz_back",
        "`build arrays` reads arrays with one row for each record",
        lambda name, feature: not is_dense(name, feature),
        ("rows_ragged", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "csv_back",
        "CSV has no booleans: true and false are text",
        lambda name, feature: feature.dtype == "bool" and feature.shape == (),
        ("tfds", "folder_plain"),
        _booleans_are_text,
    ),
    Difference(
        "csv_back",
        "a text that is a number in every row is a number in CSV",
        lambda name, feature: feature.is_number,
        ("coco", "file_none"),
        _numbers_are_numbers,
    ),
    Difference(
        "images_back",
        "splits are folders, and a file's name begins with its folder",
        _is_named("filename"),
        ("class_folders", "folder_usual_gzip"),
        is_ignored=True,
    ),
    Difference(
        "yolo_back",
        "YOLO has boxes and classes and nothing else",
        _is_named("difficult", "truncated", "view", "area", "is_crowd", "mask", "source_id"),
        ("voc_det", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "yolo_back",
        "YOLO numbers its classes from 0, which `build yolo` stores from 1",
        lambda name, feature: name == "image/object/class/label" and len(feature.classes or ()) == 8,
        ("coco", "file_none"),
        _from_one,
    ),
    Difference(
        "coco_back",
        "COCO knows areas and crowds, not difficult, truncated and view, and has ids of its own",
        _is_named("difficult", "truncated", "view", "area", "is_crowd", "source_id"),
        ("voc_det", "file_none"),
        is_ignored=True,
    ),
    Difference(
        "voc_back",
        "VOC knows difficult, truncated and view, not areas, crowds, outlines and ids",
        _is_named("difficult", "truncated", "view", "area", "is_crowd", "mask", "source_id"),
        ("coco", "file_none"),
        is_ignored=True,
    ),
)
