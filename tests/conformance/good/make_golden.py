"""Make the golden files of this folder with TensorFlow, and the values they hold as JSON.

    pip install tensorflow-cpu==2.21.0
    python make_golden.py          # writes the files, cases.json and PROVENANCE.md next to itself

Expected values are written from the Python values that went in, not read back from the files, and spelled so that JSON
loses nothing: bytes as hex, floats as the hex of their IEEE-754 bits, int64 as decimal strings.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

HERE = Path(__file__).parent
SEED = 7
COMPRESSIONS = {"none": ("", ""), "gzip": (".gz", "GZIP"), "zlib": (".zlib", "ZLIB")}

# A feature is (kind, values); kind None is a Feature message in which no list is set.
Feature = tuple[str | None, list[Any]]
Row = dict[str, Feature]

INT64_EDGES = sorted(
    {0, -1, -(2**63), 2**63 - 1}
    | {sign * (2**power + delta) for power in range(63) for delta in (-1, 0, 1) for sign in (1, -1)}
)
FLOAT_EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    math.pi,
    math.inf,
    -math.inf,
    math.nan,
    float(np.float32(1e-45)),  # smallest denormal
    float(np.float32(1.1754942e-38)),  # largest denormal
    float(np.float32(1.17549435e-38)),  # smallest normal
    float(np.finfo(np.float32).max),
    float(np.finfo(np.float32).min),
    float(np.float32(0.1)),
    16777217.0,
]
BYTES_EDGES = [b"", b"\x00", b"a\x00b", b"\x00" * 9, bytes(range(256)), "Straße 東京 🎲".encode(), b"\xff\xfe\xfd"]
NAME_EDGES = ["", " ", "a", "A", "label", "image/encoded", "a\x00b", "ключ", "鍵", "🔑", "é", "e\u0301", "n" * 130]


# -- building messages -------------------------------------------------------------------------------------------------


def to_feature(feature: Feature) -> tf.train.Feature:
    """Return the protobuf message of a feature."""
    kind, values = feature
    if kind is None:
        return tf.train.Feature()
    if kind == "bytes":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if kind == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def to_features(row: Row) -> tf.train.Features:
    """Return the map message of a row."""
    return tf.train.Features(feature={name: to_feature(feature) for name, feature in row.items()})


def to_example(row: Row) -> bytes:
    """Serialize an Example."""
    return tf.train.Example(features=to_features(row)).SerializeToString()


def to_sequence(row: dict[str, Any]) -> bytes:
    """Serialize a SequenceExample."""
    lists = {
        name: tf.train.FeatureList(feature=[to_feature(step) for step in steps])
        for name, steps in row["feature_lists"].items()
    }
    return tf.train.SequenceExample(
        context=to_features(row["context"]), feature_lists=tf.train.FeatureLists(feature_list=lists)
    ).SerializeToString()


# -- spelling values in JSON -------------------------------------------------------------------------------------------


def spell_feature(feature: Feature) -> dict[str, Any]:
    """Return a feature as JSON."""
    kind, values = feature
    if kind == "bytes":
        return {"kind": kind, "values": [value.hex() for value in values]}
    if kind == "float":
        return {"kind": kind, "values": [struct.pack(">f", np.float32(value)).hex() for value in values]}
    return {"kind": kind, "values": [str(value) for value in values]}


def spell_row(kind: str, row: Any) -> Any:
    """Return a row, or a raw record, as JSON."""
    if kind == "raw":
        return row.hex()
    if kind == "example":
        return {name: spell_feature(feature) for name, feature in row.items()}
    lists = {name: [spell_feature(step) for step in steps] for name, steps in row["feature_lists"].items()}
    return {"context": spell_row("example", row["context"]), "feature_lists": lists}


# -- the tables --------------------------------------------------------------------------------------------------------


def one_example() -> Row:
    """Return a row with one feature of each sort."""
    return {
        "label": ("int64", [7]),
        "weight": ("float", [0.5]),
        "image": ("bytes", [b"\x89PNG\r\n\x1a\n"]),
        "ids": ("int64", [3, 1, 4, 1, 5]),
        "box": ("float", [0.0, 0.25, 0.5, 1.0]),
        "words": ("bytes", [b"a", b"", b"bc"]),
        "empty_ints": ("int64", []),
        "empty_floats": ("float", []),
        "empty_bytes": ("bytes", []),
        "unset": (None, []),
    }


def many_examples(count: int) -> list[Row]:
    """Return rows whose keys come and go and whose lists differ in length."""
    rng = np.random.default_rng(SEED)
    rows = []
    for index in range(count):
        row: Row = {"id": ("int64", [index]), "score": ("float", [float(np.float32(rng.standard_normal()))])}
        row["tokens"] = ("int64", rng.integers(-(10**12), 10**12, int(rng.integers(0, 4))).tolist())
        if index % 3:
            row["name"] = ("bytes", [f"row {index}".encode()])
        if index % 5 == 0:
            row["maybe"] = (None, []) if index % 2 else ("float", [])
        rows.append(row)
    return rows


def one_sequence() -> dict[str, Any]:
    """Return a SequenceExample with one list of each sort."""
    return {
        "context": {"id": ("int64", [1]), "name": ("bytes", [b"clip"]), "unset": (None, []), "none": ("float", [])},
        "feature_lists": {
            "frames": [("bytes", [b"f0"]), ("bytes", [b"\x00"]), ("bytes", [b""])],
            "actions": [("int64", [1]), ("int64", [-1])],
            "positions": [("float", [0.0, 1.5]), ("float", [-0.0, 2.5])],
            "ragged": [("int64", [1, 2, 3]), ("int64", []), ("int64", [4])],
            "gaps": [("float", [1.0]), (None, []), ("float", [2.0])],
            "no_steps": [],
        },
    }


def many_sequences(count: int) -> list[dict[str, Any]]:
    """Return SequenceExamples of 0..3 steps; every seventh has no feature list at all."""
    rng = np.random.default_rng(SEED + 1)
    rows = []
    for index in range(count):
        steps = int(rng.integers(0, 4))
        lists: dict[str, list[Feature]] = {
            "token": [("int64", [int(token)]) for token in rng.integers(0, 1 << 40, steps)],
            "word": [("bytes", [b"w%d" % step]) for step in range(steps)],
        }
        rows.append({"context": {"id": ("int64", [index])}, "feature_lists": lists if index % 7 else {}})
    return rows


def tensor_values() -> list[tuple[str, Any]]:
    """Return (dtype name, tensor) for every dtype ``tf.io.serialize_tensor`` takes, in three shapes."""
    tensors = []
    for name in (
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "complex64",
        "complex128",
        "string",
    ):
        dtype = tf.dtypes.as_dtype(name)
        for shape in ((), (0,), (2, 3)):
            numbers = np.array([0, 1, 2, 3, 100, 7][: math.prod(shape)]).reshape(shape)
            if name == "string":
                tensor = tf.constant(
                    np.array([b"", b"a", b"a\x00b", b"\xff", "ü".encode(), b"x" * 40], object)[
                        : math.prod(shape)
                    ].reshape(shape),
                    tf.string,
                )
            elif name.startswith(("float", "bfloat")):
                tensor = tf.cast(numbers / 4 - 1, dtype)
            elif name.startswith("complex"):
                tensor = tf.cast(numbers - 1j * numbers / 2, dtype)
            elif name.startswith("int"):
                tensor = tf.cast(-numbers, dtype)
            else:
                tensor = tf.cast(numbers, dtype)
            tensors.append((name, tensor))
    return tensors


def spell_tensor(name: str, tensor: Any) -> dict[str, Any]:
    """Return a tensor as JSON: its elements in row-major order, little endian, or the hex of each string."""
    spelled: dict[str, Any] = {"dtype": name, "shape": tensor.shape.as_list()}
    if name == "string":
        spelled["strings"] = [value.hex() for value in tf.reshape(tensor, [-1]).numpy().tolist()]
    else:
        spelled["content"] = tensor.numpy().tobytes().hex()
    return spelled


def make_tables() -> dict[str, dict[str, Any]]:
    """Return every table: its kind of record, its rows, and which files it goes into."""
    every = tuple(COMPRESSIONS)
    tensors = {f"{name}{tensor.shape.as_list()}": (name, tensor) for name, tensor in tensor_values()}
    tensor_row: Row = {key: ("bytes", [tf.io.serialize_tensor(tensor).numpy()]) for key, (_, tensor) in tensors.items()}
    text = [line.encode() for line in ("plain text", "", "zwölf Boxkämpfer", '{"json": true}', "tab\tand\0nul")]
    return {
        "example_zero": {"kind": "example", "rows": [], "in": every},
        "example_one": {"kind": "example", "rows": [one_example()], "in": every},
        "example_many": {"kind": "example", "rows": many_examples(60), "in": every},
        "sequence_zero": {"kind": "sequence_example", "rows": [], "in": every},
        "sequence_one": {"kind": "sequence_example", "rows": [one_sequence()], "in": every},
        "sequence_many": {"kind": "sequence_example", "rows": many_sequences(60), "in": every},
        "int64_edges": {
            "kind": "example",
            "in": ("none",),
            "rows": [{"all": ("int64", INT64_EDGES)}, *({"value": ("int64", [value])} for value in INT64_EDGES[::16])],
        },
        "float_edges": {
            "kind": "example",
            "in": ("none",),
            "rows": [{"all": ("float", FLOAT_EDGES)}, *({"value": ("float", [value])} for value in FLOAT_EDGES)],
        },
        "bytes_edges": {
            "kind": "example",
            "in": ("none",),
            "rows": [{"all": ("bytes", BYTES_EDGES)}, *({"value": ("bytes", [value])} for value in BYTES_EDGES)],
        },
        "name_edges": {
            "kind": "example",
            "in": ("none",),
            "rows": [{name: ("int64", [index]) for index, name in enumerate(NAME_EDGES)}],
        },
        "empty_and_unset": {
            "kind": "example",
            "in": ("none",),
            "rows": [
                {},
                {"a": (None, [])},
                {"a": ("int64", [])},
                {"a": ("float", [])},
                {"a": ("bytes", [])},
                {"a": ("bytes", [b""])},
                {"a": ("int64", [0])},
                {"b": ("int64", [0])},
            ],
        },
        "sequence_empty_parts": {
            "kind": "sequence_example",
            "in": ("none",),
            "rows": [
                {"context": {}, "feature_lists": {}},
                {"context": {"a": ("int64", [1])}, "feature_lists": {}},
                {"context": {}, "feature_lists": {"a": []}},
                {"context": {}, "feature_lists": {"a": [(None, [])]}},
                {"context": {}, "feature_lists": {"a": [("float", [])]}},
                {"context": {}, "feature_lists": {"a": [("float", [0.0])]}},
            ],
        },
        "tensors": {
            "kind": "example",
            "in": ("none",),
            "rows": [tensor_row],
            "tensors": {key: spell_tensor(*tensor) for key, tensor in tensors.items()},
        },
        "raw_empty_records": {"kind": "raw", "in": every, "rows": [b"", b"", b""]},
        "raw_text": {"kind": "raw", "in": every, "rows": text},
        "raw_sizes": {
            "kind": "raw",
            "in": ("none", "gzip"),
            "rows": [
                bytes(index % 251 for index in range(nbytes))
                for nbytes in (0, 1, 7, 8, 15, 16, 17, 255, 256, 1000, 4096)
            ],
        },
    }


def main() -> None:
    """Write all files."""
    serialize = {"raw": bytes, "example": to_example, "sequence_example": to_sequence}
    tables, cases, provenance = {}, [], []
    for name, table in make_tables().items():
        kind = table["kind"]
        tables[name] = {"kind": kind, "rows": [spell_row(kind, row) for row in table["rows"]]}
        if "tensors" in table:
            tables[name]["tensors"] = table["tensors"]
        for compression in table["in"]:
            suffix, option = COMPRESSIONS[compression]
            path = HERE / f"{name}.tfrecord{suffix}"
            with tf.io.TFRecordWriter(str(path), options=option) as writer:
                for row in table["rows"]:
                    writer.write(serialize[kind](row))
            content = path.read_bytes()
            cases.append(
                {
                    "file": path.name,
                    "table": name,
                    "compression": compression,
                    "records": len(table["rows"]),
                    "bytes": len(content),
                }
            )
            provenance.append(f"| `{path.name}` | {len(content)} | {hashlib.sha256(content).hexdigest()} |")
    (HERE / "cases.json").write_text(json.dumps({"cases": cases, "tables": tables}, indent=0, ensure_ascii=True) + "\n")
    (HERE / "PROVENANCE.md").write_text(
        "# Where these files come from\n\n"
        f"Written by `make_golden.py` with TensorFlow {tf.__version__} (`tf.train.Example`,\n"
        "`tf.train.SequenceExample`, `tf.io.serialize_tensor`, `tf.io.TFRecordWriter`). No other program touched\n"
        "them. Protobuf may order the keys of a map differently each time, so making them again gives equal values\n"
        "but not always equal bytes.\n\n"
        "`cases.json` lists every file with its compression and its table; `tables` holds the values: bytes as hex,\n"
        "floats as the hex of their IEEE-754 bits (big endian), int64 as decimal strings, `kind: null` for a Feature\n"
        "in which no list is set. `tensors` gives dtype, shape and elements of every serialized tensor.\n\n"
        "| file | bytes | sha256 |\n| --- | ---: | --- |\n" + "\n".join(provenance) + "\n"
    )


if __name__ == "__main__":
    main()
