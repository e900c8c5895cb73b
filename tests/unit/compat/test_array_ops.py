"""Operations of parse functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


def test_decode_raw_reads_numbers_in_either_order() -> None:
    assert tf.decode_raw(b"\1\2\3\4", tf.uint16).tolist() == [513, 1027]
    assert tf.io.decode_raw(b"\1\2", tf.uint16, little_endian=False).tolist() == [258]
    assert tf.io.decode_raw([b"\1\2", b"\3\4"], tf.uint8).tolist() == [[1, 2], [3, 4]]
    assert tf.io.decode_raw(b"\1\2\3", tf.uint8, fixed_length=2).tolist() == [1, 2]
    assert tf.io.decode_raw([], tf.uint8).shape == (0, 0)


@pytest.mark.parametrize(
    ("data", "match"),
    [(b"\1\2\3", r"multiple of 2 bytes \(uint16\), got 3"), ([b"\1\2", b""], "of equal length, got 2 and 0 bytes")],
)
def test_decode_raw_refuses_bytes_that_do_not_divide(data: Any, match: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        tf.io.decode_raw(data, tf.uint16)


def test_reshape_takes_tensors_as_sizes() -> None:
    height = tf.constant(2, tf.int64)
    assert tf.reshape(np.arange(6), [height, -1]).shape == (2, 3)
    assert tf.reshape(np.arange(6), tf.stack([height, 3])).shape == (2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \(4, 2\) has, got 6"):
        tf.reshape(np.arange(6), [4, 2])


def test_cast_cuts_fractions_and_wraps() -> None:
    assert tf.cast([1.9, -1.9, 300.0], tf.uint8).tolist() == [1, 255, 44]
    assert tf.cast([1.9, -1.9], tf.int32).tolist() == [1, -1]
    assert tf.cast([0, 2], "bool").tolist() == [False, True]
    assert tf.to_float([1]).dtype == tf.float32
    assert tf.to_int32([1.5]).tolist() == [1]
    assert tf.to_int64([1.5]).dtype == tf.int64
    with pytest.raises(tf.errors.UnimplementedError, match="cast from tf.string to tf.int32"):
        tf.cast("1", tf.int32)


def test_shapes_are_joined_and_changed() -> None:
    assert tf.stack([tf.constant(1, tf.int64), 2]).dtype == tf.int64
    assert tf.concat([[1, 2], [3]], 0).tolist() == [1, 2, 3]
    assert tf.squeeze([[1], [2]]).tolist() == [1, 2]
    assert tf.expand_dims([1, 2], -1).shape == (2, 1)
    assert tf.shape(np.zeros((2, 3))).tolist() == [2, 3]
    assert tf.constant(3, shape=[2, 2]).tolist() == [[3, 3], [3, 3]]
    assert tf.one_hot([0, 2, 5], 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert tf.identity("a").numpy() == b"a"


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.float32(1), np.array(["a", "b\0c"], object)])
def test_tensor_survives_serializing(array: Any) -> None:
    back = tf.io.parse_tensor(tf.io.serialize_tensor(array), tf.convert_to_tensor(array).dtype)
    assert np.array_equal(back, tf.convert_to_tensor(array))


def test_parse_tensor_refuses_another_type_and_other_bytes() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected tf.float32, got tf.int64"):
        tf.io.parse_tensor(tf.io.serialize_tensor(np.arange(3)), tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a serialized tensor"):
        tf.io.parse_tensor(b"xx", tf.float32)


def test_to_dense_fills_with_the_default() -> None:
    sparse = tf.SparseTensor([[0, 1]], [5], [2, 2])
    assert tf.sparse.to_dense(sparse).tolist() == [[0, 5], [0, 0]]
    assert tf.sparse.to_dense(sparse, default_value=-1).tolist() == [[-1, 5], [-1, -1]]
    assert tf.sparse.to_dense(tf.SparseTensor([[1]], ["a"], [2])).tolist() == [b"", b"a"]
    with pytest.raises(TypeError, match="expected a SparseTensor, got int"):
        tf.sparse.to_dense(3)
