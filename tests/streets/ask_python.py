"""Askers that use the Python API: `tfr.open` and what a Dataset offers."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import tfrkit as tfr
from streets.facts import Facts
from streets.placing import parse_record
from streets.truth import LIST, Feature, Made, Row, Truth, freeze, freeze_frames, freeze_row
from tfrkit import Ragged

_ENCODED = ("image", "mask")
_STORED_DTYPES = {"int64": "int64", "float": "float32", "bytes": "bytes"}


def ask_open(made: Made, folder: Path) -> Facts:
    ds = tfr.open(made.path)
    rows = [freeze_row(row, made.truth.features) for row in ds]
    return Facts(rows, count=len(ds), kind=ds.kind, features=facts_of_schema(ds.schema))


def ask_slices(made: Made, folder: Path) -> Facts:
    ds = tfr.open(made.path)
    middle = len(ds) // 2
    picked = [*ds[:middle], *ds[list(range(middle, len(ds) - 1))], ds[-1]]
    return Facts([freeze_row(row, made.truth.features) for row in picked])


def ask_batches(made: Made, folder: Path) -> Facts:
    return Facts(unfold(tfr.open(made.path).batch(5), made.truth))


def ask_map(made: Made, folder: Path) -> Facts:
    """Rows are the results of the function: unchanged, or without a common form."""
    ds = tfr.open(made.path)
    pairs = zip(map(repr, ds.map(_mark)), (repr(_mark(row)) for row in ds), strict=True)
    wrong = [f"map gives {found:.200}, the function returned {row:.200}" for found, row in pairs if found != row]
    return Facts([freeze_row(row, made.truth.features) for row in ds.map(_same)], problems=wrong[:1])


def ask_records(made: Made, folder: Path) -> Facts:
    return facts_of_records(tfr.open(made.path).records(), made.records, made.truth)


def ask_splits(made: Made, folder: Path) -> Facts:
    return Facts(splits=tfr.open(made.path).splits)


def ask_split_rows(made: Made, folder: Path) -> Facts:
    """Rows and length of each split."""
    ds = tfr.open(made.path)
    problems, rows = [], {}
    for name in _certain_splits(made, ds):
        part = ds[name]
        rows[name] = [freeze_row(row, made.truth.features) for row in part]
        if len(part) != made.splits[name]:
            problems.append(f"split {name} has {len(part)} rows, expected {made.splits[name]}")
    return Facts(split_rows=rows, problems=problems)


def ask_split_records(made: Made, folder: Path) -> Facts:
    """`records()` of a split returns exactly its records."""
    ds = tfr.open(made.path)
    problems = []
    for name in _certain_splits(made, ds):
        expected = [record for shard in made.shards if shard.split == name for record in shard.records]
        found = [bytes(record) for record in ds[name].records()]
        if found != expected:
            problems.append(
                f"records() of split {name} gives {len(found)} records, expected {len(expected)} of its own"
            )
    return Facts(problems=problems)


def ask_parts(made: Made, folder: Path) -> Facts:
    """Parts, orders and cuts made while reading: rows and records() agree, and parts are disjoint."""
    ds = tfr.open(made.path)
    one, two = ds.split({"one": 0.5, "two": 0.5}, seed=1)
    rows, problems = [], []
    for name, part in {"split one": one, "split two": two, "shuffle": ds.shuffle(3), "take": ds.take(2)}.items():
        frozen = [freeze_row(row, made.truth.features) for row in part]
        rows += frozen if part in (one, two) else []
        try:
            stored = [parse_record(bytes(record), made.truth) for record in part.records()]
        except (TypeError, ValueError) as error:
            if "records" not in str(error):
                problems.append(f"records() of {name}: {error}")
            continue
        seen = [_as_stored(row, made.truth) for row in frozen]
        if [_as_stored(row, made.truth) for row in stored] != seen:
            problems.append(f"records() of {name} are not those of its {len(frozen)} rows, got {len(stored)}")
    return Facts(rows, is_ordered=False, problems=problems)


def ask_rewrite(made: Made, folder: Path) -> Facts:
    """Rows written again with the inferred schema give the same records."""
    ds = tfr.open(made.path)
    if ds.kind == "raw":
        return Facts()
    path = folder / "again.tfrecord"
    with tfr.Writer(path, schema=ds.schema) as writer:
        for row in ds:
            writer.write(row)
    return facts_of_records(tfr.open(path).records(), None, made.truth)


def ask_decode(made: Made, folder: Path) -> Facts:
    """Images decode to the size in their record; masks hold class numbers in every form of decode."""
    ds, problems = tfr.open(made.path), []
    for name, feature in made.truth.features.items():
        if feature.logical == "image" and feature.encoding == "list" and not name.endswith(LIST):
            problems += _check_pictures(ds, name, made)
        if feature.logical == "mask":
            problems += _check_masks(ds, name)
    return Facts(problems=problems)


def ask_to_arrow(made: Made, folder: Path) -> Facts:
    import pyarrow

    table = pyarrow.table(tfr.open(made.path))
    return Facts(freeze_arrow(table, made.truth), count=table.num_rows)


def facts_of_schema(schema: tfr.Schema) -> dict[str, dict[str, Any]]:
    """What a schema states about each feature."""
    specs = {**schema.features, **{name + LIST: spec for name, spec in schema.feature_lists.items()}}
    if schema.kind == "raw":
        return {"record": {"kind": "bytes"}}
    return {
        name: {
            "kind": spec.kind,
            # TFDS declares the dtype of the pixels; a row has encoded bytes.
            "dtype": "bytes"
            if spec.logical in _ENCODED and spec.encoding == "list"
            else spec.dtype or _STORED_DTYPES[spec.kind],
            "shape": spec.shape,
            "encoding": spec.encoding,
            "optional": spec.optional,
            "logical": spec.logical,
            "classes": spec.classes,
        }
        for name, spec in specs.items()
    }


def unfold(batches: Iterable[Mapping[str, Any]], truth: Truth) -> list[Row]:
    """The rows of batches, whatever their size."""
    rows: list[Row] = []
    for batch in batches:
        columns = _flatten(batch) if truth.kind == "sequence_example" else dict(batch)
        unfolded = {
            name: _unfold(column, truth.features.get(name, Feature()), name) for name, column in columns.items()
        }
        size = max(map(len, unfolded.values()))
        rows += [
            {name: values[k] for name, values in unfolded.items() if values[k] is not _ABSENT} for k in range(size)
        ]
    return rows


def freeze_arrow(table: Any, truth: Truth) -> list[Row]:
    """Rows of an Arrow table. Null is absent: Arrow has nothing else for a feature without a value."""
    rows = []
    for row in table.to_pylist():
        if truth.kind == "sequence_example":
            row = {part: _without_null(row[part]) for part in row}
        rows.append(freeze_row(_without_null(row), truth.features))
    return rows


_ABSENT: Any = object()


def _same(row: Any) -> Any:
    return row


def _mark(row: Any) -> Any:
    """Some rows get one more value, a list of varying length."""
    number = zlib.crc32(repr(row).encode()) % 3
    return {**row, "mark": list(range(number))} if number else row


def _certain_splits(made: Made, ds: tfr.Dataset) -> list[str]:
    """Splits a reader must find, plus any others it found."""
    return [name for name in made.splits if made.is_certain or name in ds.splits]


def _without_null(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def facts_of_records(records: Iterable[Any], expected: Sequence[bytes] | None, truth: Truth) -> Facts:
    found = [bytes(record) for record in records]
    problems = ["records are not the stored bytes"] if expected is not None and found != list(expected) else []
    return Facts([parse_record(record, truth) for record in found], problems=problems)


def _as_stored(row: Row, truth: Truth) -> Row:
    """Without dtypes and shapes, for readers that do not know them."""
    return {name: None if value is None else value[-1] for name, value in row.items()}  # type: ignore[misc]


def _flatten(batch: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name + LIST: column for name, column in batch["feature_lists"].items()}
    return {**batch["context"], **lists}


def _unfold(column: Any, feature: Feature, name: str) -> list[Any]:
    presence = column.presence if isinstance(column, Ragged) and column.presence is not None else None
    values = []
    for number, value in enumerate(column):
        state = 2 if presence is None else int(presence[number])
        if state < 2 or value is None:
            values.append(_ABSENT if state == 0 else None)
        elif name.endswith(LIST):
            values.append(freeze_frames(value, feature))
        else:
            # An optional feature is a column of lists with zero or one value.
            is_list = not isinstance(value, (bytes, str)) and np.ndim(value) == len(feature.shape) + 1
            values.append(freeze(value[0] if is_list and len(value) == 1 else value, feature))
    return values


def _check_pictures(ds: tfr.Dataset, name: str, made: Made) -> list[str]:
    prefix = name.rpartition("/")[0] + "/" if "/" in name else ""
    problems = []
    for number, row in enumerate(ds.decode(**{name: "image"})):
        stored = np.asarray(Image.open(io.BytesIO(made.rows[number][name][2][0])).convert("RGB")).astype(int)  # type: ignore[index]
        pixels = row[name].astype(int)
        if f"{prefix}height" in row and pixels.shape[:2] != (row[f"{prefix}height"], row[f"{prefix}width"]):
            stated = f"{row[f'{prefix}height']}x{row[f'{prefix}width']}"
            problems.append(f"row {number}: picture decodes to {pixels.shape}, its record states {stated}")
        elif pixels.shape != stored.shape or np.abs(pixels - stored).max() > 40:  # JPEG decoders differ a little
            problems.append(f"row {number}: picture decodes to other pixels than are stored")
    return problems[:2]


def _check_masks(ds: tfr.Dataset, name: str) -> list[str]:
    """Enlarged: a photo would get interpolated colours."""
    problems = []
    ways: dict[str, Any] = {"name": "mask", "size": (9, 13), "options": {"size": (9, 13)}, "type": {"type": "mask"}}
    for words, way in ways.items():
        try:
            found = [row[name] for row in ds.decode(**{name: way})]
        except (ValueError, TypeError, tfr.TfrkitError) as error:
            problems.append(f"mask asked for by {words}: {error}")
            continue
        values = {value for mask in found for value in np.unique(mask).tolist()}
        if values - {0, 1, 2, 255} or any(mask.squeeze().ndim != 2 for mask in found):
            problems.append(f"mask asked for by {words} is {found[0].shape} and holds {sorted(values)[:9]}")
    return problems


def ask_view(made: Made, folder: Path) -> Facts:
    from tfrkit.view.viewer import Viewer

    viewer = Viewer([[str(made.path)]])
    try:
        (one,) = viewer.describe_start({})["sets"]
        return Facts(count=one["records"], kind=one["kind"])
    finally:
        viewer.close()
