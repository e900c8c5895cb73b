"""Values computed by a Session."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


def test_placeholder_is_fed_and_used_in_arithmetic() -> None:
    number = tf.placeholder(tf.float32, shape=[None], name="number")
    result = (1 - tf.cast(number, tf.float32) * 2 / 4) // 1
    with tf.Session() as session:
        assert session.run(result, feed_dict={number: [2, 4]}).tolist() == [0, -1]
        assert session.run([number > 2, number[0]], {number: [2.0, 4.0]})[0].tolist() == [False, True]
        with pytest.raises(tf.errors.InvalidArgumentError, match="placeholder number expected a value in feed_dict"):
            session.run(result)
    assert number.eval({number: [1]}).tolist() == [1]


def test_parse_of_a_placeholder_gives_parts() -> None:
    record = tf.placeholder(tf.string)
    features = tf.parse_single_example(
        record, {"a": tf.FixedLenFeature([2], tf.int64), "s": tf.VarLenFeature(tf.int64)}
    )
    shaped = tf.reshape(features["a"], [features["a"][0], 1])
    shaped.set_shape([2, 1])
    given = {"feature": {"a": {"int64_list": {"value": [2, 5]}}, "s": {"int64_list": {"value": [7]}}}}
    data = tf.train.Example(features=given).SerializeToString()
    with tf.Session() as session:
        assert session.run(shaped, {record: data}).tolist() == [[2], [5]]
        sparse = session.run(features["s"], {record: data})
        assert (sparse.values.tolist(), sparse.indices.tolist(), sparse.dense_shape.tolist()) == ([7], [[0]], [1])
        assert session.run([features["s"].values, features["s"].indices, features["s"].dense_shape], {record: data})


def test_sequences_and_batches_are_parsed_in_a_graph() -> None:
    records = tf.placeholder(tf.string)
    data = tf.train.SequenceExample(
        feature_lists={"feature_list": {"x": {"feature": [{"int64_list": {"value": [3]}}]}}}
    )
    spec = {"x": tf.FixedLenSequenceFeature([], tf.int64)}
    _, one = tf.io.parse_single_sequence_example(records, None, spec)
    _, many, lengths = tf.io.parse_sequence_example(records, None, spec)
    examples = tf.parse_example(records, {"x": tf.FixedLenFeature([], tf.int64, 4)})
    with tf.Session() as session:
        assert session.run(one["x"], {records: data.SerializeToString()}).tolist() == [3]
        feed = {records: [data.SerializeToString()] * 2}
        assert session.run([many["x"], lengths["x"]], feed)[1].tolist() == [1, 1]
        assert session.run(examples["x"], {records: [b"", b""]}).tolist() == [4, 4]


def test_session_gives_plain_numpy_in_the_same_structure() -> None:
    with tf.Session() as session:
        values = session.run({"a": tf.constant([1]), "b": (tf.constant("x"),)})
    assert type(values["a"]) is np.ndarray
    assert values["b"] == (b"x",)


@pytest.mark.parametrize("fetch", ["name", 3, None])
def test_session_refuses_what_is_no_value(fetch: Any) -> None:
    with tf.Session() as session, pytest.raises(TypeError, match="session.run expected values of a graph, got"):
        session.run(fetch)


def test_closed_session_refuses() -> None:
    session = tf.InteractiveSession()
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(tf.constant(1))


def test_initializers_and_options_do_nothing() -> None:
    config = tf.compat.v1.ConfigProto(gpu_options=tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.3))
    config.gpu_options.allow_growth = True
    config.inter.depth.of = 3
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.name_scope("input"), tf.Session(config=config) as session:
        assert session.run(tf.global_variables_initializer()) is None
        assert session.run([tf.group(tf.local_variables_initializer())]) == [None]
    tf.reset_default_graph()


def test_unevaluated_values_name_session_run() -> None:
    node = tf.placeholder(tf.int64)
    for use in (list, bool):
        with pytest.raises(TypeError, match="before it is run"):
            use(node)
    with pytest.raises(AttributeError, match=r"a value of a graph has no 'numpy'(.|\n)*session.run"):
        node.numpy()
