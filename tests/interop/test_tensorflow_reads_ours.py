"""Everything tfrkit writes, TensorFlow reads: equal values by protobuf, parse_example and parse_tensor."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import oracle
import pytest
import tensorflow as tf

import tfrkit as tfr


def random_row(rng: random.Random) -> dict[str, Any]:
    """Return a row in the many forms a user may pass."""
    row: dict[str, Any] = {
        "int": rng.choice(oracle.random_values(rng, "int64", 9)),
        "float": rng.choice(oracle.random_values(rng, "float", 9)),
        "bytes": rng.choice(oracle.random_values(rng, "bytes", 9)),
        "text": rng.choice(("", "plain", "Größe 東京", "a\x00b")),
        "flag": rng.random() < 0.5,
        "ints": np.array(oracle.random_values(rng, "int64", rng.randint(0, 5)), np.int64),
        "floats": np.array(oracle.random_values(rng, "float", rng.randint(0, 5)), np.float32),
        "words": oracle.random_values(rng, "bytes", rng.randint(1, 4)),
        "list": oracle.random_values(rng, "int64", rng.randint(1, 4)),
        "numpy scalar": np.int16(rng.randint(-5, 5)),
        "鍵\x00": 1,
    }
    if rng.random() < 0.3:
        row["maybe"] = None
    elif rng.random() < 0.5:
        row["maybe"] = 3
    return row


def plain_input(value: Any) -> oracle.Plain:
    """Return the plain form a written value must have in the file."""
    if isinstance(value, str):
        return "bytes", [value.encode()]
    if isinstance(value, list) and not isinstance(value[0], bytes):
        return oracle.plain_value(np.array(value, np.int64))
    return oracle.plain_value(value)


@pytest.mark.parametrize("count", oracle.COUNTS)
@pytest.mark.parametrize("compression", oracle.COMPRESSIONS)
class TestMatrix:
    def test_rows_are_equal(self, tmp_path, seed, compression, count):
        rng = random.Random(seed)
        rows = [random_row(rng) for _ in range(count)]
        with tfr.Writer(tmp_path / "data", compression=compression) as writer:
            for row in rows:
                writer.write(row)
        payloads = oracle.read_with_tensorflow(tmp_path / "data", compression)
        expected = [{name: plain_input(value) for name, value in row.items()} for row in rows]
        assert [oracle.plain_example(payload) for payload in payloads] == expected

    def test_sequence_rows_are_equal(self, tmp_path, seed, compression, count):
        rng = random.Random(seed)
        rows = []
        for _ in range(count):
            steps = rng.randint(0, 4)
            rows.append(
                {
                    "context": {"id": rng.randint(-5, 5), "unset": None, "name": b"x"},
                    "feature_lists": {
                        "int": oracle.random_values(rng, "int64", steps),
                        "float": [np.array(oracle.random_values(rng, "float", 2), np.float32) for _ in range(steps)],
                        "bytes": oracle.random_values(rng, "bytes", steps),
                        "ragged": [
                            np.array(oracle.random_values(rng, "int64", rng.randint(0, 3)), np.int64)
                            for _ in range(steps)
                        ],
                    },
                }
            )
        with tfr.Writer(tmp_path / "data", compression=compression) as writer:
            for row in rows:
                writer.write(row)
        payloads = oracle.read_with_tensorflow(tmp_path / "data", compression)
        assert [oracle.plain_sequence(payload) for payload in payloads] == [
            oracle.plain_sequence_row(row) for row in rows
        ]

    def test_columns_are_equal(self, tmp_path, seed, compression, count):
        rng = random.Random(seed)
        columns = {
            "int": np.array(oracle.random_values(rng, "int64", count), np.int64),
            "float": np.array(oracle.random_values(rng, "float", count), np.float32),
            "bytes": oracle.random_values(rng, "bytes", count),
            "box": np.array(oracle.random_values(rng, "float", 4 * count), np.float32).reshape(count, 4),
            "tokens": tfr.Ragged.from_rows(
                [oracle.random_values(rng, "int64", rng.randint(0, 4)) for _ in range(count)]
            ),
        }
        with tfr.Writer(tmp_path / "data", compression=compression) as writer:
            writer.write_columns(columns)
        payloads = oracle.read_with_tensorflow(tmp_path / "data", compression)
        assert [oracle.plain_example(payload) for payload in payloads] == [
            {name: oracle.plain_value(column[index]) for name, column in columns.items()} for index in range(count)
        ]

    def test_records_are_equal(self, tmp_path, seed, compression, count):
        rng = random.Random(seed)
        records = [rng.randbytes(rng.choice((0, 1, 200, 5000))) for _ in range(count)]
        with tfr.Writer(tmp_path / "data", compression=compression) as writer:
            for record in records:
                writer.write_record(record)
        assert oracle.read_with_tensorflow(tmp_path / "data", compression) == records

    def test_parse_example_is_equal(self, tmp_path, seed, compression, count):
        rng = np.random.default_rng(seed)
        labels = rng.integers(-(2**63), 2**63 - 1, count, endpoint=True)
        scores = rng.standard_normal((count, 3)).astype(np.float32)
        with tfr.Writer(tmp_path / "data", compression=compression) as writer:
            for label, score in zip(labels, scores, strict=True):
                writer.write({"label": int(label), "score": score, "name": str(label)})
        spec = {
            "label": tf.io.FixedLenFeature([], tf.int64),
            "score": tf.io.FixedLenFeature([3], tf.float32),
            "name": tf.io.FixedLenFeature([], tf.string),
            "absent": tf.io.VarLenFeature(tf.int64),
        }
        dataset = tf.data.TFRecordDataset(str(tmp_path / "data"), compression_type=oracle.COMPRESSIONS[compression])
        start = 0
        for batch in dataset.batch(64).map(lambda records: tf.io.parse_example(records, spec)):
            stop = start + len(batch["label"])
            np.testing.assert_array_equal(batch["label"].numpy(), labels[start:stop])
            np.testing.assert_array_equal(batch["score"].numpy(), scores[start:stop])
            assert batch["name"].numpy().tolist() == [b"%d" % label for label in labels[start:stop]]
            start = stop
        assert start == count


@pytest.mark.parametrize("level", ["default", "fast", "small", 1, 9])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_every_level_is_readable(tmp_path, compression, level):
    records = [b"%d" % number * 50 for number in range(2000)]
    with tfr.Writer(tmp_path / "data", compression=compression, level=level) as writer:
        for record in records:
            writer.write_record(record)
    assert oracle.read_with_tensorflow(tmp_path / "data", compression) == records


@pytest.mark.parametrize("compression", ["xz", "zstd"])
def test_transport_compressions_are_refused_by_tensorflow(tmp_path, compression):
    with tfr.Writer(tmp_path / "data", compression=compression) as writer:
        writer.write({"a": 1})
    for option in oracle.COMPRESSIONS.values():
        with pytest.raises(tf.errors.DataLossError, match=r"corrupted|inflate|header"):
            list(tf.data.TFRecordDataset(str(tmp_path / "data"), compression_type=option))
    assert list(tfr.open(tmp_path / "data")) == [{"a": 1}]


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 2, 3), (4, 0)])
@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
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
    ],
)
def test_arrays_are_read_by_parse_tensor(tmp_path, seed, dtype, shape):
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 100, (6, *shape)).astype(dtype)
    with tfr.Writer(tmp_path / "rows") as writer:
        for row in array:
            writer.write({"x": np.asarray(row)})
    with tfr.Writer(tmp_path / "columns", floats="float64") as writer:
        writer.write_columns({"x": array})
    for path in (tmp_path / "rows", tmp_path / "columns"):
        for index, payload in enumerate(oracle.read_with_tensorflow(path, "none")):
            kind, values = oracle.plain_example(payload)["x"]
            if kind != "bytes":  # plain lists are used when they can hold the value
                stored = array[index].reshape(-1)
                assert shape == () or (len(shape) == 1 and dtype in ("int64", "float32"))
                assert oracle.plain_value(stored.astype(np.int64 if kind == "int64" else np.float32)) == (kind, values)
                continue
            tensor = tf.io.parse_tensor(values[0], tf.dtypes.as_dtype(dtype))
            assert tuple(tensor.shape) == shape
            assert tensor.numpy().tobytes() == array[index].tobytes()


def test_float64_is_kept_as_a_tensor(tmp_path):
    values = [0.1, 1e300, -5e-324, float("nan")]
    with tfr.Writer(tmp_path / "data", floats="float64") as writer:
        for value in values:
            writer.write({"x": value, "xs": np.array([value, 0.5])})
    for value, payload in zip(values, oracle.read_with_tensorflow(tmp_path / "data", "none"), strict=True):
        row = oracle.plain_example(payload)
        one = tf.io.parse_tensor(row["x"][1][0], tf.float64).numpy()
        many = tf.io.parse_tensor(row["xs"][1][0], tf.float64).numpy()
        assert np.float64(value).tobytes() == np.float64(one).tobytes()
        assert np.array([value, 0.5]).tobytes() == many.tobytes()


def test_float32_rounds_when_requested(tmp_path):
    with tfr.Writer(tmp_path / "data", floats="float32") as writer:
        writer.write({"x": 0.1})
    (payload,) = oracle.read_with_tensorflow(tmp_path / "data", "none")
    assert oracle.plain_example(payload) == {"x": ("float", [oracle.float_bits(np.float32(0.1))])}
