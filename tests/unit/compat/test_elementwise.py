"""Arithmetic by name."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


def test_plain_number_takes_the_type_of_the_tensor() -> None:
    pixels = tf.constant(np.array([0, 128, 255], np.float32))
    scaled = tf.multiply(tf.subtract(tf.divide(pixels, 255.0), 0.5), 2)
    assert scaled.dtype == np.float32
    assert np.allclose(scaled, [-1, 1 / 255, 1], atol=1e-6)
    assert tf.add(1, tf.constant([1, 2], tf.int64)).numpy().tolist() == [2, 3]
    assert tf.maximum([1, 5], [3, 3]).numpy().tolist() == [3, 5]
    assert tf.math.less(tf.constant([1, 5]), 3).numpy().tolist() == [True, False]
    assert tf.equal(tf.constant("a"), b"a").numpy()


def test_quotient_of_integers() -> None:
    assert tf.divide(7, 2).dtype == np.float64
    assert tf.truediv(tf.constant(7, tf.uint8), 2).dtype == np.float32
    assert tf.div(7, 2).numpy() == 3


def test_two_types_and_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="the same type, got tf.float32 and tf.int64"):
        tf.add(tf.constant(1.0), tf.constant(1, tf.int64))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"incompatible shapes \(2,\) and \(3,\)"):
        tf.add(tf.constant([1, 2]), tf.constant([1, 2, 3]))
    with pytest.raises(TypeError, match="expected values of"):
        tf.add(tf.constant([1, 2]), 1.5)


def test_values_of_a_graph_are_computed_later() -> None:
    number = tf.placeholder(tf.float32)
    with tf.Session() as session:
        assert session.run(tf.multiply(tf.subtract(number, 0.5), 2.0), {number: np.float32(1)}) == 1.0


def test_scopes_and_graphs_of_old_scripts_are_accepted() -> None:
    with tf.variable_scope("input"), tf.control_dependencies([tf.no_op()]), tf.get_default_graph().as_default():
        assert tf.executing_eagerly()
    tf.disable_v2_behavior()
    assert not tf.executing_eagerly()
    tf.enable_eager_execution()
    assert tf.executing_eagerly()
    tf.disable_eager_execution()
