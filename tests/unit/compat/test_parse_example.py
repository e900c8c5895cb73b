"""parse_single_example and parse_example: shapes, defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.testing import reference

FIRST = reference.encode_example(
    {
        b"a": ("int64", [1]),
        b"b": ("int64", [1, 2, 3, 4, 5, 6]),
        b"c": ("bytes", [b"x", b"yz\0"]),
        b"d": None,
        b"e": ("int64", []),
        b"f": ("float", [1.5]),
    }
)
SECOND = reference.encode_example({b"a": ("int64", [2]), b"b": ("int64", [9, 8, 7]), b"c": ("bytes", [b"q"])})


def parse(**features: Any) -> Any:
    return tf.io.parse_single_example(FIRST, features)


def test_fixed_features_have_their_shapes() -> None:
    parsed = parse(
        a=tf.FixedLenFeature([], tf.int64),
        b=tf.FixedLenFeature([2, 3], tf.int64),
        c=tf.FixedLenFeature([2], tf.string),
        f=tf.FixedLenFeature((1,), tf.float32),
    )
    assert parsed["a"].numpy() == 1
    assert isinstance(parsed["a"].numpy(), np.int64)
    assert parsed["b"].numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert parsed["c"].numpy().tolist() == [b"x", b"yz\0"]
    assert (parsed["f"].dtype, parsed["f"].shape) == (tf.float32, (1,))


@pytest.mark.parametrize("name", ["z", "d"])
def test_absent_and_unset_features_take_the_default(name: str) -> None:
    assert parse(**{name: tf.FixedLenFeature([2], tf.int64, [7, 8])})[name].tolist() == [7, 8]
    assert parse(**{name: tf.FixedLenFeature([], tf.string, "é")})[name].numpy() == "é".encode()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"feature '{name}' expected in every record, got none"):
        parse(**{name: tf.FixedLenFeature([], tf.int64)})


@pytest.mark.parametrize(
    ("spec", "error", "match"),
    [
        (lambda: {"e": tf.FixedLenFeature([], tf.int64, 5)}, "InvalidArgumentError", "'e' expected 1 values, got 0"),
        (lambda: {"b": tf.FixedLenFeature([2], tf.int64)}, "InvalidArgumentError", "'b' expected 2 values, got 6"),
        (lambda: {"a": tf.FixedLenFeature([], tf.float32)}, "InvalidArgumentError", "'a' expected float, got int64"),
        (lambda: {"e": tf.VarLenFeature(tf.float32)}, "InvalidArgumentError", "'e' expected float, got int64"),
        (lambda: {"a": tf.FixedLenFeature([], tf.int32)}, "InvalidArgumentError", "expected tf.int64, tf.float32 or"),
        (lambda: {"z": tf.FixedLenFeature([2], tf.int64, 7)}, "InvalidArgumentError", "expected 2 values, got 1"),
        (
            lambda: {"b": tf.FixedLenSequenceFeature([4], tf.int64, True)},
            "InvalidArgumentError",
            "'b' expected a multiple of 4 values, got 6",
        ),
    ],
)
def test_records_that_do_not_fit_are_invalid(spec: Any, error: str, match: str) -> None:
    with pytest.raises(getattr(tf.errors, error), match=match):
        tf.parse_single_example(FIRST, features=spec())


@pytest.mark.parametrize(
    ("features", "error", "match"),
    [
        (None, ValueError, "features expected a dict of names"),
        ({}, ValueError, "features expected a dict of names"),
        ({"a": 3}, ValueError, "feature 'a' expected FixedLenFeature"),
        ({1: tf.VarLenFeature(tf.int64)}, TypeError, "names that are str"),
        ({"b": tf.FixedLenFeature([None], tf.int64)}, ValueError, "FixedLenSequenceFeature or VarLenFeature"),
        ({"b": tf.FixedLenFeature([-1], tf.int64)}, ValueError, "sizes of 0 or more"),
        ({"b": tf.FixedLenSequenceFeature([3], tf.int64)}, ValueError, "allow_missing=True"),
        ({"z": tf.FixedLenFeature([], tf.int64, "x")}, TypeError, "got strings"),
        ({"z": tf.FixedLenFeature([], tf.int64, 1.5)}, TypeError, "got float"),
    ],
)
def test_specs_that_mean_nothing_are_refused(features: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        tf.io.parse_single_example(FIRST, features)


def test_var_feature_is_sparse_and_becomes_dense() -> None:
    sparse = parse(b=tf.VarLenFeature(tf.int64), c=tf.VarLenFeature(tf.string), z=tf.VarLenFeature(tf.float32))
    assert sparse["b"].indices.tolist() == [[0], [1], [2], [3], [4], [5]]
    assert sparse["b"].dense_shape.tolist() == [6]
    assert tf.sparse.to_dense(sparse["b"]).tolist() == [1, 2, 3, 4, 5, 6]
    assert tf.sparse_tensor_to_dense(sparse["c"], default_value="").tolist() == [b"x", b"yz\0"]
    assert (sparse["z"].shape, sparse["z"].indices.shape, sparse["z"].dtype) == ((0,), (0, 1), tf.float32)


def test_sequence_feature_of_one_record_is_not_padded() -> None:
    assert parse(b=tf.FixedLenSequenceFeature([3], tf.int64, True))["b"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert parse(z=tf.FixedLenSequenceFeature([3], tf.int64, True))["z"].shape == (0, 3)


def test_ragged_feature_of_one_record_is_a_vector() -> None:
    assert parse(q=tf.io.RaggedFeature(tf.int64, value_key="b"))["q"].tolist() == [1, 2, 3, 4, 5, 6]


def test_batch_pads_sequences_and_keeps_rows_apart() -> None:
    parsed = tf.io.parse_example(
        [FIRST, SECOND, b""],
        {
            "b": tf.FixedLenSequenceFeature([3], tf.int64, True, -1),
            "c": tf.VarLenFeature(tf.string),
            "a": tf.FixedLenFeature([], tf.int64, 0),
        },
    )
    assert parsed["a"].tolist() == [1, 2, 0]
    assert parsed["b"].tolist() == [
        [[1, 2, 3], [4, 5, 6]],
        [[9, 8, 7], [-1, -1, -1]],
        [[-1, -1, -1], [-1, -1, -1]],
    ]
    assert parsed["c"].indices.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert parsed["c"].dense_shape.tolist() == [3, 2]


def test_batch_of_ragged_features_keeps_lengths() -> None:
    ragged = tf.io.parse_example([FIRST, SECOND, b""], {"b": tf.io.RaggedFeature(tf.int64)})["b"]
    assert ragged.to_list() == [[1, 2, 3, 4, 5, 6], [9, 8, 7], []]
    assert ragged.row_splits.dtype == tf.int32
    assert ragged.row_lengths().tolist() == [6, 3, 0]
    assert ragged[-2].tolist() == [9, 8, 7]


def test_empty_batch_has_the_right_shapes() -> None:
    parsed = tf.io.parse_example([], {"a": tf.FixedLenFeature([2], tf.int64), "c": tf.VarLenFeature(tf.string)})
    assert parsed["a"].shape == (0, 2)
    assert parsed["c"].dense_shape.tolist() == [0, 0]


def test_batch_names_the_record_that_does_not_fit() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="got none - at record 1 of the batch"):
        tf.io.parse_example([FIRST, b""], {"a": tf.FixedLenFeature([], tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="not a well-formed.* - at record 1 of the batch"):
        tf.io.parse_example([FIRST, b"\x0a\x05"], {"a": tf.FixedLenFeature([], tf.int64)})


@pytest.mark.parametrize("record", [FIRST, np.array(FIRST, object), tf.constant(FIRST)])
def test_one_record_may_be_bytes_or_a_string_tensor(record: Any) -> None:
    assert tf.parse_example(record, {"a": tf.FixedLenFeature([], tf.int64)})["a"] == 1
    assert tf.parse_single_example(record, {"a": tf.FixedLenFeature([], tf.int64)})["a"] == 1


def test_list_of_records_for_one_is_refused() -> None:
    with pytest.raises(ValueError, match="serialized expected one string, got list"):
        tf.parse_single_example([FIRST], {"a": tf.FixedLenFeature([], tf.int64)})


PARTS = {
    "v": {"int64_list": {"value": [1, 2, 3, 4]}},
    "at": {"int64_list": {"value": [5, 0, 2, 1]}},
    "lengths": {"int64_list": {"value": [3, 0, 1]}},
    "short": {"int64_list": {"value": [3]}},
}


def parse_parts(spec: Any) -> Any:
    record = tf.train.Example(features={"feature": PARTS}).SerializeToString()
    return tf.io.parse_example([record, b""], {"x": spec})["x"]


def test_sparse_feature_puts_values_at_their_places() -> None:
    sparse = parse_parts(tf.io.SparseFeature("at", "v", tf.int64, 6))
    assert tf.sparse.to_dense(sparse).tolist() == [[2, 4, 3, 0, 0, 1], [0] * 6]
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an index in 'short' for each of its values"):
        parse_parts(tf.io.SparseFeature("short", "v", tf.int64, 6))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected indices below 5 in 'at'"):
        parse_parts(tf.io.SparseFeature("at", "v", tf.int64, 5))


def test_partitions_cut_values_into_rows() -> None:
    make = tf.io.RaggedFeature
    rows = parse_parts(make(tf.int64, "v", [make.RowLengths("lengths")]))
    assert rows.to_list() == [[[1, 2, 3], [], [4]], []]
    assert rows.to_tensor(default_value=9)[0].tolist() == [[1, 2, 3], [9, 9, 9], [4, 9, 9]]
    assert parse_parts(make(tf.int64, "v", [make.UniformRowLength(2)])).to_list() == [[[1, 2], [3, 4]], []]
    with pytest.raises(tf.errors.InvalidArgumentError, match="partition .*short.* does not fit the 4 values"):
        parse_parts(make(tf.int64, "v", [make.RowLengths("short")]))
    with pytest.raises(TypeError, match="partitions expected RaggedFeature.RowLengths or another partition, got 3"):
        make(tf.int64, partitions=[3])
    with pytest.raises(ValueError, match="'v' is requested as float and as int64"):
        tf.io.parse_example([b""], {"a": make(tf.float32, "v"), "b": make(tf.int64, "v")})


def test_example_is_read_from_json() -> None:
    text = '{"features": {"feature": {"n": {"int64List": {"value": ["3"]}}, "s": {"bytes_list": {"value": ["-_8="]}}}}}'
    record = tf.train.Example.FromString(tf.io.decode_json_example(text).numpy())
    assert record.features.feature["n"].int64_list.value == [3]
    assert record.features.feature["s"].bytes_list.value == [b"\xfb\xff"]
    for wrong in ("", "[]", '{"x": 1}', '{"features": {"feature": {"n": {"x": {}}}}}'):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected an Example as JSON"):
            tf.io.decode_json_example(wrong)
