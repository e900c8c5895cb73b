"""tf.data: our batches inside TensorFlow's pipelines, against what TensorFlow reads itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfrkit as tfr

NUM_ROWS = 25


def make_row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "half": number / 2,
        "xyz": np.arange(3, dtype=np.float32) + number,
        "tokens": np.arange(number % 4, dtype=np.int64),
        "name": b"n\x00%d" % number,
        "tags": [b"t%d" % tag for tag in range(1 + number % 3)],
    }


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for number in range(NUM_ROWS):
            writer.write(make_row(number))
    return path


def ids_of(batches: Any) -> list[list[int]]:
    return [np.asarray(batch["id"]).tolist() for batch in batches]


def parse_with_tensorflow(path: str, size: int) -> tf.data.Dataset:
    spec = {
        "id": tf.io.FixedLenFeature([], tf.int64),
        "half": tf.io.FixedLenFeature([], tf.float32),
        "xyz": tf.io.FixedLenFeature([3], tf.float32),
        "tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
        "name": tf.io.FixedLenFeature([], tf.string),
        "tags": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64),
    }
    return tf.data.TFRecordDataset(path).batch(size).map(lambda records: tf.io.parse_example(records, spec))


def plain(value: Any) -> Any:
    return value.to_list() if isinstance(value, tf.RaggedTensor) else np.asarray(value.numpy(), object).tolist()


def test_batches_equal_what_tensorflow_parses(path: str) -> None:
    ours, theirs = tfr.open(path).batch(4).to_tf(), parse_with_tensorflow(path, 4)
    assert ours.element_spec == theirs.element_spec
    assert int(ours.cardinality()) == 7
    num_batches = 0
    for a, b in zip(ours, theirs, strict=True):
        assert {name: plain(value) for name, value in a.items()} == {name: plain(value) for name, value in b.items()}
        num_batches += 1
    assert num_batches == 7


def test_number_of_rows_is_static_where_all_batches_have_it(path: str) -> None:
    dataset = tfr.open(path)
    assert dataset.batch(4, drop_last=True).to_tf().element_spec["xyz"].shape == (4, 3)
    assert dataset.batch(5).to_tf().element_spec["id"].shape == (5,)
    assert dataset.batch(4).to_tf().element_spec["id"].shape.as_list() == [None]
    skipping = tfr.open(path, on_error="skip").batch(5).to_tf()
    assert skipping.element_spec["id"].shape.as_list() == [None]


def test_padded_feature_varies_unless_it_has_a_length(path: str) -> None:
    dataset = tfr.open(path).select(["tokens"])
    spec = dataset.batch(5, pad=0).to_tf().element_spec
    assert spec["tokens"].shape.as_list() == [5, None]
    assert spec["tokens/length"].shape.as_list() == [5]
    assert dataset.batch(5, pad={"tokens": (0, 9)}).to_tf().element_spec["tokens"].shape.as_list() == [5, 9]


def test_single_feature_and_empty_dataset(path: str) -> None:
    dataset = tfr.open(path).select(["id"])
    assert ids_of(dataset.take(5).batch(3).to_tf()) == [[0, 1, 2], [3, 4]]
    empty = dataset.take(0).batch(3).to_tf()
    assert empty.element_spec["id"].dtype == tf.int64
    assert ids_of(empty) == []


def test_each_pass_is_the_next_epoch(path: str) -> None:
    batches = tfr.open(path).shuffle(seed=3).batch(4)
    expected = [ids_of(batches), ids_of(batches)]
    assert expected[0] != expected[1]
    dataset = tfr.open(path).shuffle(seed=3).batch(4).to_tf()
    assert [ids_of(dataset), ids_of(dataset)] == expected
    assert ids_of(tfr.open(path).shuffle(seed=3).batch(4).to_tf().repeat(2)) == expected[0] + expected[1]


def test_several_epochs_in_one_pass_are_always_the_same(path: str) -> None:
    batches = tfr.open(path).shuffle(seed=3).batch(4)
    expected = ids_of(batches) + ids_of(batches)
    dataset = tfr.open(path).shuffle(seed=3).batch(4).to_tf(epochs=2)
    assert int(dataset.cardinality()) == 14
    assert [ids_of(dataset), ids_of(dataset)] == [expected, expected]


def test_iterator_resumes_from_its_checkpoint(path: str, tmp_path: Path) -> None:
    dataset = tfr.open(path).shuffle(seed=3).batch(4).to_tf(epochs=2)
    whole = ids_of(dataset)
    for step in (0, 1, 6, 7, 14):
        iterator = iter(dataset)
        before = [next(iterator)["id"].numpy().tolist() for _ in range(step)]
        saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / f"step{step}"))
        resumed = iter(tfr.open(path).shuffle(seed=3).batch(4).to_tf(epochs=2))
        tf.train.Checkpoint(iterator=resumed).restore(saved)
        assert before + ids_of(resumed) == whole


def test_rows_come_one_by_one(path: str) -> None:
    rows = tfr.open(path).to_tf()
    assert int(rows.cardinality()) == NUM_ROWS
    assert rows.element_spec["xyz"].shape == (3,)
    got = [{name: plain(value) for name, value in row.items()} for row in rows]
    assert [row["id"] for row in got] == list(range(NUM_ROWS))
    assert got[7]["tokens"] == [0, 1, 2]
    assert got[7]["name"] == b"n\x007"
    assert ids_of(rows.batch(10).take(1)) == [list(range(10))]


def test_changed_batches_keep_their_new_shape(path: str) -> None:
    def change(batch: dict[str, Any]) -> dict[str, Any]:
        texts = np.array([f"é{number}" for number in batch["id"]], object)
        return {"image": np.zeros((len(batch["id"]), 8, 6, 3), np.uint16), "text": texts}

    dataset = tfr.open(path).batch(5).map(change).to_tf()
    assert dataset.element_spec["image"] == tf.TensorSpec((5, 8, 6, 3), tf.uint16)
    assert next(iter(dataset))["text"].numpy()[1].decode() == "é1"


def test_rows_of_one_length_in_some_batches_are_ragged_all_the_same(path: str) -> None:
    dataset = tfr.open(path).map(lambda row: {"x": np.arange(1 + (row["id"] == 24))})
    batches = list(dataset.batch(5).to_tf())
    assert all(isinstance(batch["x"], tf.RaggedTensor) for batch in batches)
    assert batches[0]["x"].to_list() == [[0]] * 5
    assert batches[-1]["x"].to_list() == [[0]] * 4 + [[0, 1]]


def test_vectors_of_one_length_in_some_batches_are_ragged_all_the_same(path: str) -> None:
    def change(batch: dict[str, Any]) -> dict[str, Any]:
        numbers = np.arange(2 * len(batch["id"])).reshape(-1, 2)
        is_ragged = 0 in batch["id"]
        return {"x": tfr.Ragged(numbers, np.array([0, 0, 2, 3, 4, 5])) if is_ragged else numbers[:, np.newaxis]}

    batches = list(tfr.open(path).batch(5).map(change).to_tf())
    assert batches[0]["x"].to_list() == [[], [[0, 1], [2, 3]], [[4, 5]], [[6, 7]], [[8, 9]]]
    assert batches[1]["x"].to_list() == [[[2 * number, 2 * number + 1]] for number in range(5)]


def test_rows_of_tensors_without_values_come_one_by_one(path: str) -> None:
    dataset = tfr.open(path).map(lambda row: {"none": np.zeros((2, 0), np.int16), "id": row["id"]})
    rows = list(dataset.to_tf())
    assert [int(row["id"]) for row in rows] == list(range(NUM_ROWS))
    assert {(tuple(row["none"].shape), row["none"].dtype) for row in rows} == {((2, 0), tf.int16)}


def test_sequence_examples_keep_context_and_frames(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    schema = tfr.Schema({"id": "int64"}, feature_lists={"frame": "bytes", "words": ("int64", (None,))})
    with tfr.Writer(path, schema=schema) as writer:
        for number in range(4):
            lists = {"frame": [b"f"] * number, "words": [np.arange(n) for n in range(number)]}
            writer.write({"context": {"id": number}, "feature_lists": lists})
    batch = next(iter(tfr.open(path, schema=schema).batch(4).to_tf()))
    assert batch["context"]["id"].numpy().tolist() == [0, 1, 2, 3]
    assert batch["feature_lists"]["frame"].to_list() == [[], [b"f"], [b"f"] * 2, [b"f"] * 3]
    assert batch["feature_lists"]["words"].to_list() == [[], [[]], [[], [0]], [[], [0], [0, 1]]]


def test_damage_becomes_a_tensorflow_error_with_our_message(path: str) -> None:
    data = bytearray(Path(path).read_bytes())
    middle = len(data) // 2
    data[middle] ^= 1
    Path(path).write_bytes(data)
    dataset = tfr.open(path).batch(4).to_tf()
    with pytest.raises(
        tf.errors.UnknownError, match=r"CorruptRecordError: .* - at .*a\.tfrecord, record 1\d, byte \d+"
    ):
        list(dataset)


def test_varying_shape_that_was_not_foreseen_raises(path: str) -> None:
    def change(batch: dict[str, Any]) -> dict[str, Any]:
        width = 2 if batch["id"][0] == 10 else 3
        return {"x": np.zeros((len(batch["id"]), width))}

    dataset = tfr.open(path).batch(5).map(change).to_tf()
    with pytest.raises(tf.errors.UnknownError, match=r"feature 'x' expected values of shape \(3,\), got \(2,\)"):
        list(dataset)


def test_arrays_of_different_shapes_raise(path: str) -> None:
    batches = tfr.open(path).batch(5).map(lambda batch: {"x": [np.zeros((n, 2)) for n in range(len(batch["id"]))]})
    with pytest.raises(tfr.errors.SchemaError, match="feature 'x' holds arrays of different shapes"):
        batches.to_tf()


def test_no_epochs_raise(path: str) -> None:
    with pytest.raises(ValueError, match="epochs expected at least 1, got 0"):
        tfr.open(path).batch(5).to_tf(epochs=0)


def test_keras_trains_on_it(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for number in range(64):
            writer.write({"x": np.array([number / 64, 1.0], np.float32), "y": number / 32 - 0.5})
    dataset = tfr.open(path).shuffle(seed=1).batch(16).to_tf().map(lambda batch: (batch["x"], batch["y"][:, None]))
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    losses = model.fit(dataset, epochs=12, verbose=0, shuffle=False).history["loss"]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("shuffles", [False, True])
def test_batches_of_a_token_budget_are_those_of_each_epoch(path: str, shuffles: bool) -> None:
    def batches() -> Any:
        dataset = tfr.open(path)
        dataset = dataset.shuffle(seed=3) if shuffles else dataset
        return dataset.batch(max_tokens=7, bucket="tokens", pad=0)

    expected = [ids_of(epochs := batches()), ids_of(epochs), ids_of(epochs)]
    ours = batches().to_tf()
    assert ours.element_spec["tokens"].shape.as_list() == [None, None]
    assert [ids_of(ours), ids_of(ours), ids_of(ours)] == expected
    assert int(ours.cardinality()) == (tf.data.UNKNOWN_CARDINALITY if shuffles else len(expected[0]))
    several = batches().to_tf(epochs=3)
    assert ids_of(several) == sum(expected, [])
    assert int(several.cardinality()) == len(sum(expected, []))


def test_padded_frames_are_dense(tmp_path: Path) -> None:
    schema = tfr.Schema({"id": "int64"}, feature_lists={"frame": ("float", (2,)), "words": ("int64", (None,))})
    with tfr.Writer(str(tmp_path / "s.tfrecord"), schema=schema) as writer:
        for number in range(6):
            lists = {"frame": [np.zeros(2)] * number, "words": [np.arange(frame) for frame in range(number)]}
            writer.write({"context": {"id": number}, "feature_lists": lists})
    ours = tfr.open(str(tmp_path / "s.tfrecord")).batch(2, pad={"frame": 0, "words": (0, (6, None))}).to_tf()
    lists = ours.element_spec["feature_lists"]
    assert lists["frame"].shape.as_list() == [2, None, 2]
    assert lists["words"].shape.as_list() == [2, 6, None]
    assert [batch["feature_lists"]["frame"].shape.as_list() for batch in ours] == [[2, 1, 2], [2, 3, 2], [2, 5, 2]]
    assert [batch["feature_lists"]["words"].shape.as_list() for batch in ours] == [[2, 6, 0], [2, 6, 2], [2, 6, 4]]
