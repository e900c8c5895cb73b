"""The printed tf.io.parse_example source runs in real TensorFlow and gives the values that are in the records."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import tensorflow as tf
from PIL import Image

import tfrkit as tfr
from tfrkit.features.parse_specs import print_tf_spec
from tfrkit.features.spec import Spec
from tfrkit.ops.schema import make_schema_text

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
NUM_RECORDS = 40


def run_spec(schema: tfr.Schema) -> dict[str, Any]:
    """Run the printed source and return its names."""
    namespace: dict[str, Any] = {}
    exec(compile(print_tf_spec(schema), "spec.py", "exec"), namespace)
    return namespace


def list_corpus(payload: str) -> list[str]:
    if not CORPUS.is_dir():
        return []
    entries = json.loads((CORPUS / "MANIFEST.json").read_text())
    wanted = (payload, f"{payload} (")
    return [
        entry["file"]
        for entry in entries
        if entry["kind"] == "record" and entry["records"] and (entry["payload"] + " (").startswith(wanted[1])
    ]


def flatten(values: Any) -> list[Any]:
    """The values of one row of a parsed tensor, floats as bits."""
    if isinstance(values, bytes):  # NumPy's bytes dtype drops trailing NULs
        return [values]
    array = np.asarray(values).ravel()
    if array.dtype == np.float32:
        return [oracle.float_bits(value) for value in array.tolist()]
    return array.tolist()


def read_column(column: Any) -> list[list[Any]]:
    if isinstance(column, tf.RaggedTensor):
        return [flatten(row.numpy()) for row in column]
    return [flatten(row) for row in column.numpy()]


def check_batch(columns: dict[str, Any], rows: list[dict[str, oracle.Plain]]) -> None:
    for name, column in columns.items():
        expected = [row[name][1] if name in row else [] for row in rows]
        assert read_column(column) == expected, name


@pytest.mark.parametrize("file", list_corpus("Example"))
def test_tf_spec_of_examples_gives_equal_values(file: str) -> None:
    with tfr.open(CORPUS / file) as ds:
        payloads, schema = ds.records()[:NUM_RECORDS], ds.schema
    spec = run_spec(schema)
    settable = [name for name in schema if schema[name].seen is None]
    assert list(spec["FEATURES"]) == settable
    check_batch(spec["parse_batch"](tf.constant(payloads)), [oracle.plain_example(payload) for payload in payloads])
    for payload in payloads[:3]:
        check_record(schema, spec["parse_record"](payload), oracle.plain_example(payload))


def check_record(schema: tfr.Schema, row: dict[str, Any], plain: dict[str, oracle.Plain]) -> None:
    for name, value in row.items():
        spec = schema[name]
        stored = plain.get(name, (None, []))[1]
        if value.dtype == tf.uint8 and spec.logical in ("image", "mask"):
            with Image.open(io.BytesIO(stored[0])) as image:
                assert (value.shape[1], value.shape[0]) == image.size, name
        elif spec.encoding == "list" and spec.dtype is None:
            assert flatten(value.numpy()) == stored, name
        elif spec.dtype == "bool":
            assert value.dtype == tf.bool
            assert value.numpy().ravel().tolist() == [bool(item) for item in stored]
        else:
            assert flatten(value.numpy()) == stored, name


@pytest.mark.parametrize("file", list_corpus("SequenceExample"))
def test_tf_spec_of_sequence_examples_gives_equal_values(file: str) -> None:
    with tfr.open(CORPUS / file) as ds:
        payloads, schema = ds.records()[:NUM_RECORDS], ds.schema
    spec = run_spec(schema)
    parsed = [oracle.plain_sequence(payload) for payload in payloads]
    context, lists, lengths = spec["parse_batch"](tf.constant(payloads))
    check_batch(context, [row for row, _ in parsed])
    assert list(lists) == list(schema.feature_lists)
    for name, column in lists.items():
        for index, (_, frames) in enumerate(parsed):
            steps = column[index]
            if not isinstance(column, tf.RaggedTensor):
                steps = steps[: int(lengths[name][index])]
            assert [flatten(step.numpy()) for step in steps] == [values for _, values in frames.get(name, [])], name
    for payload in payloads[:3]:
        one_context, one_lists = spec["parse_record"](payload)
        assert set(one_context) == set(spec["CONTEXT_FEATURES"])
        assert set(one_lists) == set(spec["SEQUENCE_FEATURES"])


ARRAYS = {
    "f64": np.arange(6, dtype=np.float64).reshape(2, 3) / 3,
    "u8": np.arange(4, dtype=np.uint8).reshape(2, 2),
    "f16": np.arange(3, dtype=np.float16),
    "flags": np.array([True, False]),
    "i32": np.arange(3, dtype=np.int32),
    "u32": np.array([0, 2**32 - 1], dtype=np.uint32),
    "c64": np.array([1 + 2j], dtype=np.complex64),
    "empty": np.zeros((0, 3), dtype=np.int16),
}


def test_tf_spec_parses_our_tensors(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "data") as writer:
        writer.write({**ARRAYS, "rows": np.zeros((2, 3), np.uint8)})
        writer.write({**ARRAYS, "rows": np.ones((4, 3), np.uint8)})
    with tfr.open(tmp_path / "data") as ds:
        payloads, schema = list(ds.records()), ds.schema
    assert schema["rows"].shape == (None, 3)
    parse_record = run_spec(schema)["parse_record"]
    for payload, num_rows in zip(payloads, (2, 4), strict=True):
        row = parse_record(payload)
        for name, array in ARRAYS.items():
            assert row[name].dtype == array.dtype, name
            assert row[name].shape == array.shape, name
            assert np.array_equal(row[name].numpy(), array), name
        assert row["rows"].shape == (num_rows, 3)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float64"]
)
@pytest.mark.parametrize("encoding", ["raw", "zlib"])
def test_tf_spec_decodes_raw_arrays(dtype: str, encoding: Any) -> None:
    array = np.array([[0, 1, 2], [3, 4, 5]], dtype=dtype)
    content = array.tobytes() if encoding == "raw" else zlib.compress(array.tobytes())
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))
    payload = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    schema = tfr.Schema({"x": Spec("bytes", (None, 3), encoding=encoding, dtype=dtype)})
    value = run_spec(schema)["parse_record"](payload)["x"]
    assert value.dtype == dtype
    assert np.array_equal(value.numpy(), array)


def test_tf_spec_names_of_any_utf8_are_found() -> None:
    names = ["a\0b", "'quote\"", "back\\slash", "line\nbreak", "鍵", ""]
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    payload = tf.train.Example(features=tf.train.Features(feature=dict.fromkeys(names, feature))).SerializeToString()
    batch = run_spec(tfr.Schema(dict.fromkeys(names, "int64")))["parse_batch"](tf.constant([payload]))
    assert {name: value.numpy().tolist() for name, value in batch.items()} == {name: [7] for name in names}


def test_tf_spec_missing_and_unset_features_are_empty() -> None:
    def encode(**features: Any) -> bytes:
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    one = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    payloads = [encode(x=one), encode(), encode(x=tf.train.Feature())]
    batch = run_spec(tfr.Schema({"x": Spec("int64", optional=True)}))["parse_batch"](tf.constant(payloads))
    assert batch["x"].to_list() == [[1], [], []]


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_tf_source_opens_its_files(tmp_path: Path, compression: Any) -> None:
    paths = [str(tmp_path / "a.tfrecord")]
    with tfr.Writer(paths[0], compression=compression) as writer:
        for number in range(3):
            writer.write({"x": number})
    source, _ = make_schema_text(paths, "tf")
    names: dict[str, Any] = {"paths": paths}
    exec(source.replace("# dataset = ", "dataset = "), names)
    assert [int(row["x"]) for row in names["dataset"]] == [0, 1, 2]
