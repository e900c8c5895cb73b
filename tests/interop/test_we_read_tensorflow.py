"""Everything TensorFlow writes, tfrkit reads: equal by row, by column, by number and as payloads."""

from __future__ import annotations

import random

import numpy as np
import oracle
import pytest
import tensorflow as tf

import tfrkit as tfr


@pytest.mark.parametrize("count", oracle.COUNTS)
@pytest.mark.parametrize("compression", oracle.COMPRESSIONS)
class TestExamples:
    def test_rows_are_equal(self, tmp_path, seed, compression, count):
        payloads = oracle.random_examples(random.Random(seed), count)
        oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
        ds = tfr.open(tmp_path / "data")
        expected = [oracle.plain_example(payload) for payload in payloads]
        assert len(ds) == count
        assert [oracle.plain_row(row) for row in ds] == expected
        assert [oracle.plain_row(ds[index]) for index in range(count)] == expected
        assert list(ds.records()) == payloads

    def test_column_batches_are_equal(self, tmp_path, seed, compression, count):
        payloads = oracle.random_examples(random.Random(seed), count)
        oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
        expected = [oracle.plain_example(payload) for payload in payloads]
        for threads in (1, 2):
            batches = tfr.open(tmp_path / "data").batch(64, threads=threads)
            assert [row for batch in batches for row in oracle.plain_columns(batch)] == expected

    def test_one_value_everywhere_is_a_scalar(self, tmp_path, seed, compression, count):
        payloads = oracle.random_examples(random.Random(seed), count)
        oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
        lengths: dict[str, set[int]] = {}
        for payload in payloads:
            for name, (kind, values) in oracle.plain_example(payload).items():
                if kind is not None:
                    lengths.setdefault(name, set()).add(len(values))
        for row in tfr.open(tmp_path / "data"):
            for name, value in row.items():
                if value is not None:
                    assert isinstance(value, (int, float, bytes)) == (lengths[name] == {1}), name


@pytest.mark.parametrize("count", oracle.COUNTS)
@pytest.mark.parametrize("compression", oracle.COMPRESSIONS)
class TestSequenceExamples:
    def test_rows_are_equal(self, tmp_path, seed, compression, count):
        payloads = oracle.random_sequences(random.Random(seed), count)
        oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
        ds = tfr.open(tmp_path / "data")
        expected = [oracle.plain_sequence(payload) for payload in payloads]
        assert len(ds) == count
        assert [oracle.plain_sequence_row(row) for row in ds] == expected
        assert list(ds.records()) == payloads

    def test_column_batches_are_equal(self, tmp_path, seed, compression, count):
        payloads = oracle.random_sequences(random.Random(seed), count)
        oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
        parsed = [oracle.plain_sequence(payload) for payload in payloads]
        contexts, lists = [], []
        for batch in tfr.open(tmp_path / "data").batch(64):
            contexts += oracle.plain_columns(batch["context"])
            lists += oracle.plain_frame_lists(batch["feature_lists"])
        assert contexts == [context for context, _ in parsed]
        assert lists == [steps for _, steps in parsed]


@pytest.mark.parametrize("count", oracle.COUNTS)
@pytest.mark.parametrize("compression", oracle.COMPRESSIONS)
def test_raw_records_are_equal(tmp_path, seed, compression, count):
    rng = random.Random(seed)
    payloads = [rng.choice((b"", b"\xff", b"text", rng.randbytes(rng.randint(0, 3000)))) for _ in range(count)]
    oracle.write_with_tensorflow(tmp_path / "data", payloads, compression)
    records = tfr.open(tmp_path / "data").records()
    assert len(records) == count
    assert list(records) == payloads
    assert [records[index] for index in range(count)] == payloads


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 2, 3)])
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
def test_serialized_tensors_come_back_as_arrays(tmp_path, seed, dtype, shape):
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(0, 100, shape).astype(dtype) for _ in range(5)]
    payloads = [
        tf.train.Example(
            features=tf.train.Features(
                feature={"tensor": oracle.to_feature("bytes", [tf.io.serialize_tensor(array).numpy()])}
            )
        ).SerializeToString()
        for array in arrays
    ]
    oracle.write_with_tensorflow(tmp_path / "data", payloads, "none")
    for row, array in zip(tfr.open(tmp_path / "data"), arrays, strict=True):
        value = np.asarray(row["tensor"])
        assert value.dtype == array.dtype
        assert value.shape == array.shape
        assert value.tobytes() == array.tobytes()


def test_parse_example_and_batch_agree(tmp_path, seed):
    rng = random.Random(seed)
    payloads = [
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "label": oracle.to_feature("int64", oracle.random_values(rng, "int64", 1)),
                    "box": oracle.to_feature("float", oracle.random_values(rng, "float", 4)),
                    "name": oracle.to_feature("bytes", oracle.random_values(rng, "bytes", 1)),
                    "tokens": oracle.to_feature("int64", oracle.random_values(rng, "int64", rng.randint(0, 9))),
                }
            )
        ).SerializeToString()
        for _ in range(100)
    ]
    oracle.write_with_tensorflow(tmp_path / "data", payloads, "gzip")
    parsed = tf.io.parse_example(
        payloads,
        {
            "label": tf.io.FixedLenFeature([], tf.int64),
            "box": tf.io.FixedLenFeature([4], tf.float32),
            "name": tf.io.FixedLenFeature([], tf.string),
            "tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
        },
    )
    (batch,) = tfr.open(tmp_path / "data").batch(1000)
    np.testing.assert_array_equal(batch["label"], parsed["label"].numpy())
    assert batch["box"].tobytes() == parsed["box"].numpy().tobytes()
    assert list(batch["name"]) == parsed["name"].numpy().tolist()
    np.testing.assert_array_equal(batch["tokens"].values, parsed["tokens"].values.numpy())
    np.testing.assert_array_equal(batch["tokens"].row_splits, parsed["tokens"].row_splits.numpy())
