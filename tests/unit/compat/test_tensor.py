"""Values: NumPy arrays with TensorFlow's methods, and TensorFlow's types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


def test_scalar_gives_a_plain_number_or_bytes() -> None:
    assert type(tf.constant(3, tf.int64).numpy()) is np.int64
    assert tf.constant("é").numpy() == "é".encode()
    assert int(tf.constant(3)) == 3
    assert f"{tf.constant(3):04d}" == "0003"


def test_array_given_out_may_be_written_to_without_changing_the_tensor() -> None:
    tensor = tf.io.decode_raw(b"\1\2", tf.uint8)
    array = tensor.numpy()
    array[0] = 9
    assert type(array) is np.ndarray
    assert tensor.tolist() == [1, 2]


def test_elements_and_results_stay_tensors() -> None:
    tensor = tf.constant([1, 2, 3])
    for value in (tensor[0], tensor[1:], tensor + 1, tensor[0] * 2, next(iter(tensor)), tensor[0] == 1):
        assert hasattr(value, "numpy")
    assert [value.numpy() for value in tensor] == [1, 2, 3]
    assert bool(tensor[0] == 1)
    assert bool(tf.constant("cat") == b"cat")


def test_float32_times_a_python_number_stays_float32() -> None:
    assert (tf.cast([1, 2], tf.float32) * (1.0 / 255) - 0.5).dtype == tf.float32


def test_shape_is_returned_and_checked() -> None:
    tensor = tf.constant([[1, 2, 3]])
    assert tensor.get_shape().as_list() == [1, 3]
    assert tensor.get_shape().ndims == 2
    tensor.set_shape([None, 3])
    with pytest.raises(ValueError, match=r"expected shape \(2, 3\), got \(1, 3\)"):
        tensor.set_shape([2, 3])


def test_shape_answers_as_in_both_versions() -> None:
    shape = tf.constant([[1, 2, 3]]).shape
    assert shape == [1, 3] == shape.as_list()
    assert shape == (1, 3)
    assert shape[1] == shape[-1].value == shape.dims[1] == 3
    assert (shape.ndims, shape.rank, len(shape), shape.num_elements()) == (2, 2, 2, 3)
    assert shape[1:].as_list() == [3]
    assert shape.concatenate([4]).as_list() == [1, 3, 4]
    assert (str(shape), repr(shape)) == ("(1, 3)", "TensorShape([1, 3])")
    assert tf.TensorShape([None, 3]).is_compatible_with(shape)
    assert tf.TensorShape([None, 3]).merge_with([2, None]).as_list() == [2, 3]
    unknown = tf.TensorShape(None)
    assert (unknown.rank, unknown.dims, str(unknown)) == (None, None, "<unknown>")
    assert unknown != tf.TensorShape([])
    with pytest.raises(ValueError, match="expected a shape with a known rank"):
        unknown.as_list()
    with pytest.raises(ValueError, match=r"shape expected \(1, 3\), got \(2,\)"):
        shape.assert_is_compatible_with([2])


def test_shape_of_a_graph_is_what_the_script_says() -> None:
    image = tf.placeholder(tf.float32, [None, 3])
    assert image.get_shape().as_list() == [None, 3]
    assert image.shape[1].value == 3
    assert tf.reshape(image, [2, 2, 3]).shape.as_list() == [2, 2, 3]
    image.set_shape([2, None])
    assert image.shape.as_list() == [2, 3]
    assert tf.cast(image, tf.int32).shape.rank is None


def test_empty_list_is_of_any_type() -> None:
    assert tf.constant([], tf.string).dtype == object
    assert tf.constant([], tf.int64).dtype == tf.int64
    assert tf.constant([]).dtype == tf.float32


def test_errors_have_tensorflows_parts() -> None:
    error = tf.errors.DataLossError(None, None, "damaged")
    assert (error.message, error.op, error.node_def, error.error_code) == ("damaged", None, None, tf.errors.DATA_LOSS)
    assert tf.errors.OpError(None, None, "x", 5).error_code == tf.errors.NOT_FOUND == 5
    assert tf.errors.OutOfRangeError.error_code == tf.errors.OUT_OF_RANGE == 11


def test_tensor_prints_as_tensorflows() -> None:
    assert str(tf.constant(5, tf.int64)) == "tf.Tensor(5, shape=(), dtype=int64)"
    assert repr(tf.constant(["a"])) == "<tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (2**40, "int64"),
        (1.5, "float32"),
        (True, "bool"),
        ([1, 2.5], "float32"),
        ("a", "string"),
        ([b"a\0", b"b"], "string"),
        ([["a"], ["b"]], "string"),
        (np.float64(1), "float64"),
        (np.array([1, 2]), "int64"),
        ([np.int64(1)], "int64"),
    ],
)
def test_python_values_take_tensorflows_types(value: Any, dtype: str) -> None:
    assert tf.as_dtype(tf.convert_to_tensor(value).dtype).name == dtype


def test_zero_bytes_at_the_end_of_strings_are_kept() -> None:
    assert tf.constant([[b"a\0"], [b"b"]]).tolist() == [[b"a\0"], [b"b"]]


def test_values_of_mixed_types_are_refused() -> None:
    with pytest.raises(TypeError, match="expected numbers or strings of the same type, got int"):
        tf.constant(["a", 1])


@pytest.mark.parametrize("name", ["int64", "float32", "uint8", "bool", "complex64", "float16"])
def test_types_equal_their_names_and_numpys(name: str) -> None:
    dtype = getattr(tf, name)
    assert dtype == name
    assert dtype == np.dtype(name)
    assert np.dtype(name) == dtype
    assert dtype.as_numpy_dtype is np.dtype(name).type
    assert np.zeros(2, dtype).dtype == name
    assert tf.as_dtype(name) is dtype
    assert repr(dtype) == f"tf.{name}"
    assert {dtype: 1}[tf.as_dtype(name)] == 1


def test_types_that_are_none_are_refused() -> None:
    assert tf.int64 != "int32"
    assert tf.string not in [Exception]
    assert tf.as_dtype(str) is tf.string
    with pytest.raises(TypeError, match="expected a type of values such as tf.int64, got 'nothing'"):
        tf.as_dtype("nothing")
    with pytest.raises(TypeError, match="such as tf.int64, got 'M8'"):
        tf.as_dtype("M8")


def test_ragged_tensor_refuses_indices_that_are_not_there() -> None:
    ragged = tf.RaggedTensor([1, 2], [0, 1, 2])
    assert len(ragged) == 2
    with pytest.raises(IndexError, match="row 2 of 2"):
        ragged[2]
    with pytest.raises(TypeError, match="indexed by one number"):
        ragged[0:1]
