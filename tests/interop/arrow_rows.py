"""Datasets with every kind of column, and their rows as an Arrow library should give them."""

from __future__ import annotations

import io
import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

import tfrkit as tfr
from tfrkit import Spec
from tfrkit.codec.tensor_proto import encode_tensor
from tfrkit.features.arrow_schema import ArrowField, ArrowType, is_kept_as_bytes, to_arrow_fields
from tfrkit.feeds.arrow import ArrowStream, to_arrow

TENSOR_DTYPES = ["bool", "float16", "float32", "float64", "int64"]
TENSOR_DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)]
WORDS = [b"", b"\0", b"\xff\xfe", b"abc" * 20]
TEXTS = ["", "plain", "é", "鍵🔑"]


def stream_of(ds: tfr.Dataset, size: int = 7) -> ArrowStream:
    """Return the rows of a dataset as a stream of small batches."""
    return to_arrow(lambda: iter(ds.batch(size)), ds.schema)


def build_schema(schema: tfr.Schema) -> pa.Schema:
    """Return our Arrow fields as a schema of pyarrow."""
    return pa.schema([_build_field(field) for field in to_arrow_fields(schema)])


def _build_field(field: ArrowField) -> pa.Field:
    return pa.field(field.name, _build_type(field.type), field.nullable, dict(field.metadata) or None)


def _build_type(type_: ArrowType) -> pa.DataType:
    if type_.name == "struct":
        return pa.struct([_build_field(inner) for inner in type_.fields])
    if type_.item is None:
        return pa.type_for_alias(type_.name)
    item = _build_type(type_.item)
    return pa.large_list(item) if type_.size is None else pa.list_(item, type_.size)


def encode_png(color: tuple[int, int, int]) -> bytes:
    """Return a small image of one colour."""
    file = io.BytesIO()
    Image.new("RGB", (4, 3), color).save(file, "PNG")
    return file.getvalue()


# -- rows as Arrow libraries give them ---------------------------------------------------------------------------------


def expected_rows(ds: tfr.Dataset) -> list[dict[str, Any]]:
    """Return tfrkit's rows as nested Python values, None for what is absent or unset."""
    rows = []
    for row in ds:
        if ds.schema.kind == "sequence_example":
            parts = {"context": ds.schema.features, "feature_lists": ds.schema.feature_lists}
            rows.append({part: expected_row(row[part], specs) for part, specs in parts.items() if specs})
        else:
            rows.append(expected_row(row, ds.schema.features))
    return rows


def expected_row(row: dict[str, Any], specs: Any) -> dict[str, Any]:
    """Return the values of one row, by the names they have in Arrow."""
    values = {}
    for name, spec in specs.items():
        value = row.get(name)
        if value is not None:
            value = [expected_value(frame, spec) for frame in value] if spec.is_list else expected_value(value, spec)
        values[name.replace("\0", "\\x00")] = value
    return values


def expected_value(value: Any, spec: Spec) -> Any:
    """Return one value as plain Python."""
    if value is None:
        return None
    if is_kept_as_bytes(spec):
        return value.tobytes() if spec.encoding == "raw" else encode_tensor(value)
    if spec.kind == "bytes" and spec.encoding == "list" and len(spec.shape) > 1 and None not in spec.shape[1:]:
        # Rows keep bytes flat; a shape is folded in Arrow.
        count = len(value) // math.prod(spec.shape[1:])
        folded = np.empty(len(value), object)
        folded[:] = value
        value = folded.reshape(count, *spec.shape[1:])
    value = np.asarray(value).tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    return plain(decode_texts(value) if spec.logical == "text" and spec.encoding == "list" else value)


def decode_texts(value: Any) -> Any:
    """Return the same with str for bytes."""
    return [decode_texts(item) for item in value] if isinstance(value, list) else value.decode()


def plain(value: Any) -> Any:
    """Return nested Python values in which a NaN equals itself and -0.0 differs from 0.0."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    return value


# -- data --------------------------------------------------------------------------------------------------------------


def all_specs() -> dict[str, Spec]:
    """Return a spec of every kind, shape and absence."""
    specs = {}
    shapes = {"one": (), "three": (3,), "table": (2, 3), "some": (None,), "pairs": (None, 2), "flat": (2, None)}
    kinds: dict[str, dict[str, Any]] = {
        "int": {"kind": "int64"},
        "float": {"kind": "float"},
        "bytes": {"kind": "bytes"},
        "text": {"kind": "bytes", "logical": "text"},
        "bool": {"kind": "int64", "dtype": "bool"},
        "byte": {"kind": "int64", "dtype": "uint8"},
    }
    for (kind, given), (shape_name, shape), optional in itertools.product(kinds.items(), shapes.items(), (False, True)):
        if kind in ("bytes", "text") and shape_name in ("table", "pairs", "flat"):
            continue  # the writer takes bytes in one dimension only
        specs[f"{kind}/{shape_name}{'?' if optional else ''}"] = Spec(shape=shape, optional=optional, **given)
    shapes = {"one": (), "table": (2, 3), "rows": (None, 2), "images": (None, None, 3)}
    for dtype, (shape_name, shape), optional in itertools.product(TENSOR_DTYPES, shapes.items(), (False, True)):
        name = f"tensor/{dtype}/{shape_name}{'?' if optional else ''}"
        specs[name] = Spec("bytes", shape, encoding="tensor_proto", dtype=dtype, optional=optional)
    for dtype in ("complex64", "string"):
        specs[f"tensor/{dtype}"] = Spec("bytes", (2,), encoding="tensor_proto", dtype=dtype)
    specs["raw"] = Spec("bytes", (2, 2), encoding="raw", dtype="uint16")
    specs["raw/rows"] = Spec("bytes", (None, 2), encoding="raw", dtype="float32", optional=True)
    specs["label"] = Spec("int64", logical="class_label", classes=("cat", "dog"))
    specs["image"] = Spec("bytes", logical="image", optional=True)
    return specs


def random_value(rng: random.Random, spec: Spec) -> Any:
    """Return a value that fits a spec."""
    shape = tuple(rng.randint(0, 3) if size is None else size for size in spec.shape)
    count = math.prod(shape)
    if spec.logical == "image":
        return encode_png((rng.randrange(256), 0, 0))
    if spec.logical == "class_label":
        return rng.randrange(2)
    if spec.kind == "bytes" and spec.encoding == "list":
        values: list[Any] = rng.choices(TEXTS if spec.logical == "text" else WORDS, k=count)
        return values[0] if shape == () else values or np.empty(0, object)
    dtype = spec.dtype or ("int64" if spec.kind == "int64" else "float32")
    if dtype == "string":
        return np.array(rng.choices(WORDS, k=count), object).reshape(shape)
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], dtype).reshape(shape)
    if np.dtype(dtype).kind in "fc":
        edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.5]
        return np.array(rng.choices(edges, k=count), dtype).reshape(shape)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return np.array([rng.choice((0, low, high)) for _ in range(count)], dtype).reshape(shape)


def random_row(rng: random.Random, specs: dict[str, Spec]) -> dict[str, Any]:
    """Return a row; optional features are present, absent or None."""
    row = {}
    for name, spec in specs.items():
        state = rng.choice(("there", "absent", "unset")) if spec.optional else "there"
        if state != "absent":
            row[name] = random_value(rng, spec) if state == "there" else None
    return row


def write_examples(path: Path, rng: random.Random, num_rows: int, specs: dict[str, Spec]) -> tfr.Dataset:
    """Write random rows and open them."""
    schema = tfr.Schema(specs)
    with tfr.Writer(path, schema=schema) as writer:
        for _ in range(num_rows):
            writer.write(random_row(rng, specs))
    return tfr.open(path, schema=schema)


def write_sequences(path: Path, rng: random.Random, num_rows: int) -> tfr.Dataset:
    """Write random SequenceExamples, one name in both parts, and open them."""
    context = {"id": Spec("int64"), "note": Spec("bytes", logical="text", optional=True), "both": Spec("float")}
    lists = {
        "action": Spec("int64"),
        "position": Spec("float", (4,)),
        "words": Spec("bytes", (None,)),
        "tokens": Spec("int64", (None,), optional=True),
        "both": Spec("bytes", logical="text"),
        "frame": Spec("bytes", logical="image"),
        "matrix": Spec("bytes", (None, 2), encoding="tensor_proto", dtype="float64"),
    }
    schema = tfr.Schema(context, feature_lists=lists)
    with tfr.Writer(path, schema=schema) as writer:
        for _ in range(num_rows):
            row = random_row(rng, lists)
            steps = rng.randint(0, 4)
            frames = {name: [random_value(rng, lists[name]) for _ in range(steps)] for name in row}
            writer.write({"context": random_row(rng, context), "feature_lists": frames})
    return tfr.open(path, schema=schema)
