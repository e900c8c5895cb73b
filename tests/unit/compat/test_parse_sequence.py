"""parse_single_sequence_example and parse_sequence_example."""

from __future__ import annotations

from typing import Any

import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.testing import reference

FIRST = reference.encode_sequence_example(
    {b"id": ("int64", [7])},
    {
        b"x": [("int64", [1, 2]), ("int64", [3, 4])],
        b"y": [("int64", [1]), ("int64", [2, 3]), ("int64", [])],
        b"z": [],
        b"u": [None, ("int64", [5])],
        b"s": [("bytes", [b"a"])],
    },
)
SECOND = reference.encode_sequence_example(
    {b"id": ("int64", [8])},
    {b"x": [("int64", [5, 6])], b"y": [("int64", [9])], b"s": [("bytes", [b"b"]), ("bytes", [b"c"])]},
)
ID = {"id": tf.FixedLenFeature([], tf.int64)}


def test_context_and_frames_are_apart() -> None:
    context, lists = tf.io.parse_single_sequence_example(
        FIRST, ID, {"x": tf.FixedLenSequenceFeature([2], tf.int64), "y": tf.VarLenFeature(tf.int64)}
    )
    assert context["id"].numpy() == 7
    assert lists["x"].tolist() == [[1, 2], [3, 4]]
    assert lists["y"].indices.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert lists["y"].dense_shape.tolist() == [3, 2]


def test_batch_is_padded_and_returns_lengths() -> None:
    context, lists, lengths = tf.io.parse_sequence_example(
        [FIRST, SECOND],
        ID,
        {
            "x": tf.FixedLenSequenceFeature([2], tf.int64),
            "s": tf.FixedLenSequenceFeature([], tf.string),
            "y": tf.VarLenFeature(tf.int64),
        },
    )
    assert context["id"].tolist() == [7, 8]
    assert lists["x"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
    assert lists["s"].tolist() == [[b"a", b""], [b"b", b"c"]]
    assert lists["y"].indices.tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert lists["y"].dense_shape.tolist() == [2, 3, 2]
    assert {name: length.tolist() for name, length in lengths.items()} == {"x": [2, 1], "s": [1, 2]}


def test_one_sequence_given_to_the_batch_function_has_no_dimension_for_it() -> None:
    _, lists, lengths = tf.io.parse_sequence_example(FIRST, {}, {"x": tf.FixedLenSequenceFeature([2], tf.int64)})
    assert lists["x"].shape == (2, 2)
    assert lengths["x"].numpy() == 2


def test_ragged_frames_keep_both_levels() -> None:
    spec = {"y": tf.io.RaggedFeature(tf.int64)}
    assert tf.io.parse_single_sequence_example(FIRST, {}, spec)[1]["y"].to_list() == [[1], [2, 3], []]
    batch = tf.io.parse_sequence_example([FIRST, SECOND], {}, spec)[1]["y"]
    assert batch.to_list() == [[[1], [2, 3], []], [[9]]]
    assert batch[0].to_list() == [[1], [2, 3], []]


@pytest.mark.parametrize("name", ["z", "m"])
def test_no_frames_give_an_empty_tensor(name: str) -> None:
    spec = {name: tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}
    assert tf.io.parse_single_sequence_example(FIRST, {}, spec)[1][name].shape == (0, 2)
    sparse = tf.io.parse_single_sequence_example(FIRST, {}, {name: tf.VarLenFeature(tf.int64)})[1][name]
    assert sparse.dense_shape.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("context", "lists", "match"),
    [
        ({}, {"m": tf.FixedLenSequenceFeature([], tf.int64)}, "feature list 'm' expected in every record, got none"),
        ({}, {"x": tf.FixedLenSequenceFeature([], tf.int64)}, "'x' expected 1 values in every frame, got 2 in frame 0"),
        ({}, {"u": tf.FixedLenSequenceFeature([], tf.int64)}, "'u' expected 1 values in every frame, got 0 in frame 0"),
        ({}, {"y": tf.VarLenFeature(tf.float32)}, "'y' expected float, got int64"),
        ({"zz": tf.FixedLenFeature([], tf.int64)}, {}, "feature 'zz' expected in every record"),
    ],
)
def test_sequences_that_do_not_fit_are_invalid(context: Any, lists: Any, match: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=match):
        tf.parse_single_sequence_example(FIRST, context, lists)


@pytest.mark.parametrize(
    ("context", "lists", "match"),
    [
        (None, None, "got neither"),
        ({"id": tf.FixedLenSequenceFeature([], tf.int64, True)}, {}, "feature 'id' expected"),
        ({}, {"x": tf.FixedLenFeature([2], tf.int64)}, "feature 'x' expected"),
        ({}, {"x": tf.FixedLenSequenceFeature([2], tf.int64, True, 3)}, "takes no default_value"),
    ],
)
def test_specs_that_mean_nothing_are_refused(context: Any, lists: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        tf.io.parse_single_sequence_example(FIRST, context, lists)


def test_batch_names_the_record_and_frame_that_do_not_fit() -> None:
    bad = reference.encode_sequence_example({}, {b"x": [("int64", [5, 6]), ("int64", [7])]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="got 1 in frame 1 - at record 1 of the batch"):
        tf.io.parse_sequence_example([FIRST, bad], {}, {"x": tf.FixedLenSequenceFeature([2], tf.int64)})
