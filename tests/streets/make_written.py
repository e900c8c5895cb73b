"""Rows from memory: `tfr.build` of an iterable, and `Writer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tfrkit as tfr
from streets.placing import place
from streets.storages import Storage
from streets.truth import LIST, Feature, Made, Row, Truth, freeze, freeze_frames

NUM_ROWS = 12
Column = tuple[Feature, Callable[[int], Any]]
ABSENT = object()


def _tensor(dtype: str, *shape: int | None) -> Feature:
    return Feature(dtype, shape, "tensor_proto")


def _array(dtype: str, *shape: int) -> Callable[[int], Any]:
    """Numbers that use the whole range of a dtype and differ from row to row."""

    def make(number: int) -> Any:
        size = int(np.prod(shape))
        if dtype == "bool":
            return (np.arange(size) % (number % 3 + 2) == 0).reshape(shape)
        if dtype.startswith("float"):
            return (np.arange(size) * 0.5 - number).astype(dtype).reshape(shape)
        limits = np.iinfo(dtype)
        return np.array([[limits.min, limits.max, number][k % 3] for k in range(size)], dtype).reshape(shape)

    return make


# Every dtype, ranks 0 to 3, text beyond ASCII, bytes with NULs.
DENSE: dict[str, Column] = {
    "id": (Feature(), lambda i: i),
    "flag": (Feature(), lambda i: i % 2 == 0),
    "tiny": (Feature(), lambda i: np.int8(-i)),
    "rank0": (Feature(), lambda i: np.array(i, "uint16")),
    "score": (Feature("float32"), lambda i: i * 0.5 - 1),
    "text": (Feature("bytes", logical="text"), lambda i: f"grüße {i}"),
    "blob": (Feature("bytes"), lambda i: b"\xff\x00" + bytes([i, 0])),
    "words": (Feature("bytes", (2,), logical="text"), lambda i: ["one", f"two {i}"]),
    "i64": (Feature("int64", (3,)), _array("int64", 3)),
    "f32": (Feature("float32", (2,)), _array("float32", 2)),
    "cube": (_tensor("uint8", 2, 1, 2), _array("uint8", 2, 1, 2)),
    "i64m": (_tensor("int64", 2, 2), _array("int64", 2, 2)),
    "f32m": (_tensor("float32", 2, 2), _array("float32", 2, 2)),
    **{
        f"a_{dtype}": (_tensor(dtype, 3), _array(dtype, 3))
        for dtype in ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "float16", "float64")
    },
}
# Absent, unset and empty are distinct; lengths differ within any three consecutive rows.
RAGGED: dict[str, Column] = {
    "id": (Feature(), lambda i: i),
    "list": (Feature("int64", (None,)), lambda i: list(range(i % 3 + 1))),
    "empty": (Feature("float32", (None,)), lambda i: np.arange(i % 3, dtype="float32")),
    "texts": (Feature("bytes", (None,), logical="text"), lambda i: [f"ä{k}" for k in range(i % 3 + 1)]),
    "tensor": (_tensor("float64", None), lambda i: np.arange(i % 3 + 1) * 0.25),
    "grid": (_tensor("uint8", None, 2), lambda i: np.full((i % 3 + 1, 2), i, "uint8")),
    "rare": (Feature(optional=True), lambda i: i if i % 3 else ABSENT),
    "gap_text": (Feature("bytes", logical="text", optional=True), lambda i: f"t{i}" if i % 3 != 1 else ABSENT),
    "gap_tensor": (
        Feature("float64", (2,), "tensor_proto", optional=True),
        lambda i: np.full(2, i / 4) if i % 3 != 2 else ABSENT,
    ),
    "unset": (Feature(optional=True), lambda i: i if i % 3 != 1 else None),
}
CLASSES = ("cat", "dog", "fish")
# What only a schema can express: class names, a list of one, plain lists and raw bytes with a shape.
SCHEMA: dict[str, tuple[Feature, Callable[[int], Any], tfr.Spec]] = {
    "id": (Feature(), lambda i: i, tfr.Spec("int64")),
    "label": (
        Feature(logical="class_label", classes=CLASSES),
        lambda i: i % 3,
        tfr.Spec("int64", logical="class_label", classes=CLASSES),
    ),
    "one": (Feature("int64", (1,)), lambda i: [i], tfr.Spec("int64", (1,), "tensor")),
    "matrix": (
        Feature("float32", (2, 2)),
        lambda i: np.full((2, 2), i, "float32"),
        tfr.Spec("float", (2, 2), "tensor"),
    ),
    "raw": (
        Feature("uint8", (2, 3), "raw"),
        lambda i: np.full((2, 3), i, "uint8"),
        tfr.Spec("bytes", (2, 3), "tensor", "raw", "uint8"),
    ),
    "bits": (
        Feature("bool", (3,)),
        lambda i: np.array([True, False, i % 2 == 0]),
        tfr.Spec("int64", (3,), "tensor", dtype="bool"),
    ),
}


def make_rows(folder: Path, storage: Storage) -> Made:
    return _build(folder, storage, DENSE)


def make_rows_ragged(folder: Path, storage: Storage) -> Made:
    return _build(folder, storage, RAGGED)


def make_rows_mixed(folder: Path, storage: Storage) -> Made:
    return _build(folder, storage, {**DENSE, **RAGGED})


def make_rows_schema(folder: Path, storage: Storage) -> Made:
    columns = {name: (feature, value) for name, (feature, value, _) in SCHEMA.items()}
    schema = tfr.Schema({name: spec for name, (_, _, spec) in SCHEMA.items()})
    return _build(folder, storage, columns, schema=schema)


def make_writer_rows(folder: Path, storage: Storage) -> Made:
    rows, truth = rows_of(RAGGED), truth_of(RAGGED)
    return write_shards(folder, storage, truth, rows, lambda writer, part: [writer.write(row) for row in part])


def make_writer_gaps(folder: Path, storage: Storage) -> Made:
    """Absent, unset and empty, without arrays."""
    columns = {name: RAGGED[name] for name in ("id", "list", "empty", "rare", "gap_text", "unset")}

    def write(writer: tfr.Writer, part: Sequence[Mapping[str, Any]]) -> None:
        for row in part:
            writer.write(dict(row))

    return write_shards(folder, storage, truth_of(columns), rows_of(columns), write)


def make_writer_columns(folder: Path, storage: Storage) -> Made:
    columns = {name: column for name, column in DENSE.items() if name not in ("flag", "rank0", "tiny", "words")}

    def write(writer: tfr.Writer, part: Sequence[Mapping[str, Any]]) -> None:
        writer.write_columns({name: _stack([row[name] for row in part]) for name in columns})

    return write_shards(folder, storage, truth_of(columns), rows_of(columns), write)


SEQUENCE_CONTEXT: dict[str, Column] = {
    "id": (Feature(), lambda i: i),
    "name": (Feature("bytes", logical="text"), lambda i: f"clip {i}"),
}
SEQUENCE_LISTS: dict[str, Column] = {
    "pair": (Feature("int64", (2,)), lambda i: [[i, k] for k in range(i % 3 + 1)]),
    "word": (Feature("bytes"), lambda i: [f"w{k}" for k in range(i % 3 + 1)]),
    "tensor": (_tensor("float64", 2), lambda i: [np.array([i, k]) * 0.25 for k in range(i % 3 + 1)]),
}


def make_writer_sequence(folder: Path, storage: Storage) -> Made:
    rows = [
        {
            "context": {name: value(i) for name, (_, value) in SEQUENCE_CONTEXT.items()},
            "feature_lists": {name: value(i) for name, (_, value) in SEQUENCE_LISTS.items()},
        }
        for i in range(NUM_ROWS)
    ]
    features = {name: feature for name, (feature, _) in SEQUENCE_CONTEXT.items()}
    features |= {name + LIST: feature for name, (feature, _) in SEQUENCE_LISTS.items()}
    frozen: list[Row] = [
        {
            **{name: freeze(value, features[name]) for name, value in row["context"].items()},
            **{
                name + LIST: freeze_frames(value, features[name + LIST]) for name, value in row["feature_lists"].items()
            },
        }
        for row in rows
    ]
    truth = Truth(features, frozen, "sequence_example", keeps_order=True)
    return write_shards(folder, storage, truth, rows, lambda writer, part: [writer.write(row) for row in part])


def rows_of(columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    made = []
    for number in range(NUM_ROWS):
        values = {name: value(number) for name, (_, value) in columns.items()}
        made.append({name: value for name, value in values.items() if value is not ABSENT})
    return made


def truth_of(columns: Mapping[str, Column], **facts: Any) -> Truth:
    features = {name: feature for name, (feature, _) in columns.items()}
    rows = [freeze_written(row, features) for row in rows_of(columns)]
    return Truth(features, rows, **{"keeps_order": True, **facts})


def freeze_written(row: Mapping[str, Any], features: Mapping[str, Feature]) -> Row:
    """A row as it went in: scalars of any width are their values, arrays keep their dtype."""
    frozen: Row = {}
    for name, value in row.items():
        if isinstance(value, (bool, np.generic)) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = np.asarray(value).astype(features[name].dtype).item()
        frozen[name] = freeze(value, features[name])
    return frozen


def split_parts(storage: Storage, num_rows: int = NUM_ROWS) -> list[tuple[str | None, list[range]]]:
    """Rows of each shard of each split, cut in order: what a writer without splits of its own is given."""
    parts, start = [], 0
    for split, share in (storage.splits or {None: 1.0}).items():
        stop = start + round(share * num_rows)
        edges = np.linspace(start, stop, storage.shards + 1).round().astype(int).tolist()
        parts.append((split, [range(*pair) for pair in pairwise(edges)]))
        start = stop
    return parts


def write_shards(
    folder: Path,
    storage: Storage,
    truth: Truth,
    rows: Sequence[Any],
    write: Callable[[tfr.Writer, Sequence[Any]], object],
) -> Made:
    """One `Writer` for each shard, under the names that `build` gives them: without sidecars."""
    if storage.layout == "file":
        # Every verb derives the compression from the file name.
        is_named = storage.compression == "gzip"
        path = folder / ("data.tfrecord.gz" if is_named else "data.tfrecord")
        with tfr.Writer(path) if is_named else tfr.Writer(path, compression=storage.compression) as writer:
            write(writer, rows)
        return place(path, truth, storage)
    out = folder / "data"
    out.mkdir()
    for split, ranges in split_parts(storage):
        for number, chosen in enumerate(ranges):
            name = f"data-{split or 'train'}.tfrecord-{number:05d}-of-{len(ranges):05d}"
            with tfr.Writer(out / name, compression=storage.compression) as writer:
                write(writer, rows[chosen.start : chosen.stop])
    return place(out, truth, storage, is_bare=True)


def _build(folder: Path, storage: Storage, columns: Mapping[str, Column], **options: Any) -> Made:
    out = folder / ("data.tfrecord" if storage.layout == "file" else "data")
    build_rows(rows_of(columns), out, storage, **options)
    return place(out, truth_of(columns), storage)


def build_rows(source: Any, out: Path, storage: Storage, **options: Any) -> None:
    """`tfr.build` with the splits, shards and compression of a storage."""
    tfr.build(
        source,
        out,
        splits=dict(storage.splits) or None,
        shards=storage.shards if storage.layout == "folder" else None,
        compression=storage.compression,
        jobs=1,
        **options,
    )


def _stack(values: list[Any]) -> Any:
    return np.stack(values) if isinstance(values[0], np.ndarray) else values
