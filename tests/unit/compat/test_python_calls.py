from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.compat import tensorflow as tf


def test_results_are_tensors_of_the_given_types() -> None:
    assert tf.py_function(lambda a: a.numpy() + 1, [tf.constant(2)], tf.float32).dtype == np.float32
    one, other = tf.py_function(lambda a: (a, "b"), [tf.constant(2)], [tf.int32, tf.string])
    assert (one.numpy(), other.numpy()) == (2, b"b")
    assert tf.py_function(lambda: None, [], []) == []
    assert tf.numpy_function(np.square, [np.arange(3)], tf.int64).numpy().tolist() == [0, 1, 4]


@pytest.mark.parametrize("results", [0.5, (1, 2)])
def test_results_of_numpy_functions_are_not_converted(results: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"function expected .*, got "):
        tf.numpy_function(lambda: results, [], [tf.int64])


def test_function_is_called_when_a_session_runs() -> None:
    calls: list[Any] = []
    given = tf.placeholder(tf.int32)
    doubled = tf.py_func(lambda value: calls.append(value) or value * 2, [given], tf.int32)
    assert calls == []
    assert tf.Session().run(doubled, {given: np.int32(4)}) == 8
    assert calls == [4]


def test_dataset_is_written_by_a_function_of_the_script(tmp_path: Path) -> None:
    """The way of TensorFlow's own guide to TFRecord files."""

    def serialize(flag: Any, number: Any, name: Any, share: Any) -> bytes:
        feature = {
            "flag": tf.train.Feature(int64_list=tf.train.Int64List(value=[flag])),
            "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.numpy()])),
            "share": tf.train.Feature(float_list=tf.train.FloatList(value=[share])),
        }
        return bytes(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())

    def wrap(*values: Any) -> Any:
        return tf.reshape(tf.py_function(serialize, values, tf.string), ())

    columns = (np.array([True, False]), np.array([4, 5]), np.array([b"cat", b"dog"]), np.array([0.5, -1.5]))
    tf.data.experimental.TFRecordWriter(str(tmp_path / "a")).write(
        tf.data.Dataset.from_tensor_slices(columns).map(wrap)
    )
    assert list(tfrkit.open(tmp_path / "a")) == [
        {"flag": 1, "number": 4, "name": b"cat", "share": 0.5},
        {"flag": 0, "number": 5, "name": b"dog", "share": -1.5},
    ]
