"""tf.data on values: every step, and iteration as TensorFlow 1 and 2 do it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


@pytest.fixture
def digits(tmp_path: Path) -> str:
    path = str(tmp_path / "digits.tfrecords")
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(10):
            features = {
                "data": {"int64_list": {"value": [number]}},
                "name": {"bytes_list": {"value": [b"n%d" % number]}},
            }
            writer.write(tf.train.Example(features={"feature": features}).SerializeToString())
    return path


def parse(record: Any) -> Any:
    return tf.parse_single_example(
        record, {"data": tf.FixedLenFeature([], tf.int64), "name": tf.FixedLenFeature([], tf.string)}
    )


def plain(dataset: Any) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in dataset.as_numpy_iterator()]


def test_records_of_several_files_come_in_order(digits: str) -> None:
    for files in ([digits, digits], np.array([digits, digits]), tf.data.Dataset.from_tensor_slices([digits, digits])):
        data = tf.data.TFRecordDataset(files, compression_type="").map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        assert [element["data"].numpy() for element in data] == [*range(10), *range(10)]
    assert next(iter(tf.data.TFRecordDataset(Path(digits)).map(parse)))["name"].numpy() == b"n0"


def test_dataset_can_be_read_again(digits: str) -> None:
    data = tf.data.TFRecordDataset(digits)
    assert list(data.as_numpy_iterator()) == list(data.as_numpy_iterator())


def test_steps_return_their_documented_elements() -> None:
    numbers = tf.data.Dataset.range(5)
    assert plain(numbers.batch(2)) == [[0, 1], [2, 3], [4]]
    assert plain(numbers.batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert plain(numbers.filter(lambda x: x % 2 == 0)) == [0, 2, 4]
    assert plain(numbers.take(2)) == [0, 1]
    assert plain(numbers.take(-1)) == [0, 1, 2, 3, 4]
    assert plain(numbers.skip(3)) == [3, 4]
    assert plain(numbers.skip(-1)) == []
    assert plain(tf.data.Dataset.range(2).repeat(2)) == [0, 1, 0, 1]
    assert plain(tf.data.Dataset.range(2).repeat().take(5)) == [0, 1, 0, 1, 0]
    assert plain(tf.data.Dataset.range(0).repeat()) == []
    assert plain(numbers.shard(2, 1)) == [1, 3]
    assert plain(tf.data.Dataset.range(5, 7).enumerate()) == [(0, 5), (1, 6)]
    assert plain(numbers.prefetch(1).cache().with_options(tf.data.Options()).apply(lambda d: d.take(1))) == [0]


def test_map_takes_parts_apart_and_makes_tuples_of_lists() -> None:
    data = tf.data.Dataset.from_tensor_slices(([1, 2], {"x": ["a", "b"]}))
    assert plain(data.map(lambda number, rest: [rest["x"], number * 2])) == [(b"a", 2), (b"b", 4)]
    assert plain(tf.data.Dataset.from_tensors({"a": [1, 2]}).map(lambda part: part["a"])) == [[1, 2]]


def test_shuffle_with_a_seed_is_reproducible_and_changes_each_time() -> None:
    data = tf.data.Dataset.range(20).shuffle(7, seed=3)
    first, second = plain(data), plain(data)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    again = tf.data.Dataset.range(20).shuffle(7, seed=3)
    assert [plain(again), plain(again)] == [first, second]
    # The order is pinned: changing it is a breaking change.
    assert plain(tf.data.Dataset.range(6).shuffle(6, seed=0)) == [2, 3, 1, 0, 5, 4]
    fixed = tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False)
    assert plain(fixed) == plain(fixed)


def test_parts_of_a_fixed_order_do_not_overlap() -> None:
    data = tf.data.Dataset.range(100).shuffle(100, reshuffle_each_iteration=False)
    test, train = data.take(20), data.skip(20)
    order = plain(test) + plain(train)
    assert sorted(order) == list(range(100)) != order
    assert plain(test) + plain(train) == order
    assert plain(data.repeat(2)) == order * 2
    other = tf.data.Dataset.range(100).shuffle(100, reshuffle_each_iteration=False)
    assert plain(other) != order


def test_shuffle_draws_from_its_buffer_only() -> None:
    for position, value in enumerate(plain(tf.data.Dataset.range(100).shuffle(5, seed=1))):
        assert value <= position + 5


def test_global_seed_makes_shuffles_reproducible() -> None:
    tf.set_random_seed(4)
    first = plain(tf.data.Dataset.range(20).shuffle(20))
    other = plain(tf.data.Dataset.range(20).shuffle(20))
    tf.random.set_seed(4)
    assert plain(tf.data.Dataset.range(20).shuffle(20)) == first
    assert first != other
    tf.random.set_seed(None)


def test_batch_keeps_sparse_tensors_sparse_and_refuses_shapes_that_differ() -> None:
    records = [tf.train.Example(features={"feature": {"a": {"int64_list": {"value": range(n)}}}}) for n in (1, 3, 0)]
    data = tf.data.Dataset.from_tensor_slices([record.SerializeToString() for record in records])
    sparse = data.map(lambda record: tf.parse_single_example(record, {"a": tf.VarLenFeature(tf.int64)})).batch(3)
    assert tf.sparse.to_dense(next(iter(sparse))["a"]).tolist() == [[0, 0, 0], [0, 1, 2], [0, 0, 0]]
    vectors = tf.data.Dataset.range(1, 4).map(lambda n: tf.one_hot(0, n))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"one shape, got \(1,\) and \(2,\)"):
        plain(vectors.batch(2))
    assert plain(vectors.padded_batch(2)) == [[[1, 0], [1, 0]], [[1, 0, 0]]]
    assert plain(vectors.map(lambda v: {"v": v}).padded_batch(3, {"v": [4]}, {"v": -1.0}))[0]["v"][0].tolist() == [
        1,
        -1,
        -1,
        -1,
    ]
    with pytest.raises(tf.errors.DataLossError, match=r"within \[1\], got \[2\]"):
        plain(vectors.padded_batch(2, [1]))
    with pytest.raises(ValueError, match="padded_shapes expected 1 sizes"):
        plain(vectors.padded_batch(2, [None, 1]))


def test_padded_batch_takes_single_values_and_structures() -> None:
    data = tf.data.Dataset.from_tensor_slices(["ab", "c"]).map(
        lambda text: {"text": text, "parts": (tf.decode_raw(text, tf.uint8), 5)}
    )
    for shapes in (None, {"text": [], "parts": ([None], [])}, {"text": [], "parts": (tf.TensorShape([2]), ())}):
        (found,) = data.padded_batch(2, shapes).as_numpy_iterator()
        assert found["text"].tolist() == [b"ab", b"c"]
        assert {type(text) for text in found["text"]} == {bytes}
        assert [part.tolist() for part in found["parts"]] == [[[97, 98], [99, 0]], [5, 5]]
    with pytest.raises(ValueError, match=r"padded_shapes expected the names \['parts', 'text'\], got \['text'\]"):
        plain(data.padded_batch(2, {"text": []}))
    with pytest.raises(ValueError, match="padded_shapes expected 2 parts, got 1"):
        plain(data.padded_batch(2, {"text": [], "parts": ([None],)}))
    with pytest.raises(TypeError, match="expected values of tf.int64, got float32"):
        plain(tf.data.Dataset.range(2).padded_batch(2, [], 1.5))


def test_list_files_finds_and_mixes_paths(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).touch()
    assert plain(tf.data.Dataset.list_files(f"{tmp_path}/*", shuffle=False)) == [
        f"{tmp_path}/{name}".encode() for name in "abc"
    ]
    assert len(plain(tf.data.Dataset.list_files(f"{tmp_path}/*", seed=1))) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="found no file that matches"):
        tf.data.Dataset.list_files(f"{tmp_path}/nope*")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: tf.data.Dataset.range(3).shuffle(0), "buffer_size expected 1 or more, got 0"),
        (lambda: plain(tf.data.Dataset.range(3).batch(0)), "batch_size expected 1 or more, got 0"),
        (lambda: tf.data.Dataset.range(3).shard(2, 2), "index expected within 0 to 1, got 2"),
        (lambda: tf.data.Dataset.from_tensor_slices(([1], [1, 2])), r"of equal length, got lengths \[1, 2\]"),
        (lambda: tf.data.Dataset.from_tensor_slices(3), "got a single value"),
        (lambda: tf.data.TFRecordDataset("x", compression_type="xz"), "compression_type expected"),
    ],
)
def test_steps_that_mean_nothing_are_refused(make: Any, match: str) -> None:
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=match):
        make()


def test_step_that_is_not_offered_names_the_tfrkit_way() -> None:
    with pytest.raises(AttributeError, match=r"tf\.data\.Dataset\.rejection_resample is not offered(.|\n)*tfr\.open"):
        tf.data.Dataset.range(3).rejection_resample(lambda x: x)


def test_datasets_are_put_together() -> None:
    numbers, letters = tf.data.Dataset.range(3), tf.data.Dataset.from_tensor_slices(["a", "b"])
    assert plain(tf.data.Dataset.zip((numbers, {"x": letters}))) == [(0, {"x": b"a"}), (1, {"x": b"b"})]
    assert plain(numbers.concatenate(tf.data.Dataset.range(5, 7))) == [0, 1, 2, 5, 6]
    assert plain(numbers.flat_map(lambda n: tf.data.Dataset.range(n))) == [0, 0, 1]
    cycle = numbers.interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2), cycle_length=2, block_length=1)
    assert plain(cycle) == [0, 1, 0, 1, 2, 2]
    assert plain(numbers.batch(2).unbatch()) == [0, 1, 2]
    assert plain(numbers.window(2, shift=1).flat_map(lambda part: part.batch(2))) == [[0, 1], [1, 2], [2]]
    assert plain(numbers.take_while(lambda n: n < 2)) == [0, 1]
    assert numbers.reduce(np.int64(0), lambda state, n: state + n).numpy() == 3
    with pytest.raises(TypeError, match="zip expected a tuple or dict of datasets, got int"):
        tf.data.Dataset.zip((numbers, 3))
    with pytest.raises(TypeError, match="map_func expected to return a dataset, got Tensor"):
        plain(numbers.flat_map(lambda n: n))


def test_files_are_read_in_turn_if_requested(tmp_path: Path) -> None:
    for name in "ab":
        with tf.io.TFRecordWriter(tmp_path / name) as writer:
            for number in range(2):
                writer.write(f"{name}{number}".encode())
    files = [str(tmp_path / name) for name in "ab"]
    assert plain(tf.data.TFRecordDataset(files, num_parallel_reads=2)) == [b"a0", b"b0", b"a1", b"b1"]


def test_generator_is_called_for_each_iteration_and_checked() -> None:
    data = tf.data.Dataset.from_generator(lambda n: ((i, [i] * i) for i in range(n)), (tf.int64, tf.int32), args=[3])
    for _ in range(2):
        assert [(int(a), b.tolist()) for a, b in data] == [(0, []), (1, [1]), (2, [2, 2])]
    assert next(iter(data))[0].dtype == tf.int64
    signature = tf.TensorSpec([1], tf.int32)
    with pytest.raises(TypeError, match=r"generator expected shape \(1,\), got \(2,\)"):
        plain(tf.data.Dataset.from_generator(lambda: iter([[1, 2]]), output_signature=signature))
    with pytest.raises(TypeError, match="generator expected values of tf.int32, got 'a'"):
        plain(tf.data.Dataset.from_generator(lambda: iter(["a"]), output_signature=signature))
    with pytest.raises(TypeError, match="expected output_signature, or output_types"):
        tf.data.Dataset.from_generator(lambda: iter([]))


def test_size_is_known_when_no_reading_is_needed() -> None:
    numbers = tf.data.Dataset.range(5)
    assert len(numbers.batch(2)) == numbers.batch(2).cardinality().numpy() == 3
    assert numbers.repeat().cardinality().numpy() == tf.data.INFINITE_CARDINALITY
    assert numbers.filter(bool).cardinality().numpy() == tf.data.UNKNOWN_CARDINALITY
    with pytest.raises(TypeError, match="the dataset length is unknown"):
        len(numbers.filter(bool))
    assert bool(tf.data.Dataset.range(0))


def test_kept_elements_are_not_made_again() -> None:
    calls: list[int] = []
    data = tf.data.Dataset.range(3).map(lambda n: calls.append(int(n)) or n).cache()
    next(iter(data))  # a part is not kept
    assert plain(data) == plain(data) == [0, 1, 2]
    assert calls == [0, 0, 1, 2]


def test_dataset_is_written_and_read_by_pattern(tmp_path: Path) -> None:
    records = [tf.train.Example(features={"feature": {"n": {"int64_list": {"value": [n]}}}}) for n in range(5)]
    data = tf.data.Dataset.from_tensor_slices([record.SerializeToString() for record in records])
    tf.data.experimental.TFRecordWriter(str(tmp_path / "x.tfrecord"), "GZIP").write(data)
    spec = {"n": tf.FixedLenFeature([], tf.int64), "m": tf.FixedLenFeature([], tf.int64, 7)}
    found = tf.data.experimental.make_batched_features_dataset(
        str(tmp_path / "*.tfrecord"), 2, spec, label_key="n", num_epochs=1, shuffle=False
    )
    assert [(part["m"].tolist(), label.tolist()) for part, label in found] == [
        ([7, 7], [0, 1]),
        ([7, 7], [2, 3]),
        ([7], [4]),
    ]
    with pytest.raises(ValueError, match=r"label_key expected one of the features \['m', 'n'\], got 'z'"):
        tf.data.experimental.make_batched_features_dataset(str(tmp_path / "*"), 2, spec, label_key="z")
    with pytest.raises(TypeError, match="write expected a dataset of single strings"):
        tf.data.experimental.TFRecordWriter(str(tmp_path / "y")).write(tf.data.Dataset.range(2))
    assert not (tmp_path / "y").exists()


# --- iterators


def test_iterator_of_values_ends_with_either_error() -> None:
    iterator = iter(tf.data.Dataset.range(1))
    assert iterator.get_next().numpy() == 0
    with pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
        iterator.get_next()
    assert next(iterator, None) is None


def test_one_shot_iterator_gives_parts_of_the_same_record(digits: str) -> None:
    element = tf.data.TFRecordDataset(digits).map(parse).make_one_shot_iterator().get_next()
    seen = []
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
        while True:
            seen.append(tuple(session.run([element["data"], element["name"]])))
    assert seen == [(number, b"n%d" % number) for number in range(10)]


def test_tuples_are_unpacked_before_anything_runs(digits: str) -> None:
    data = tf.data.TFRecordDataset(digits).map(parse).map(lambda part: (part["data"], part["name"])).batch(4)
    numbers, names = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as session:
        assert session.run(numbers).tolist() == [0, 1, 2, 3]
        assert session.run([names, {"n": numbers + 1}])[1]["n"].tolist() == [5, 6, 7, 8]


def test_initializable_iterator_starts_again(digits: str) -> None:
    iterator = tf.data.TFRecordDataset(digits).map(parse).make_initializable_iterator()
    element = iterator.get_next()["data"]
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="session.run"):
            session.run(element)
        for _ in range(2):
            session.run(iterator.initializer)
            assert [session.run(element) for _ in range(3)] == [0, 1, 2]


def flat_map_files(paths: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(paths).flat_map(tf.data.TFRecordDataset)


def interleave_files(paths: Any) -> Any:
    pairs = tf.data.Dataset.from_tensor_slices((paths, paths)).map(lambda a, b: b)
    return pairs.interleave(tf.data.TFRecordDataset, cycle_length=1)


@pytest.mark.parametrize("make", [tf.data.TFRecordDataset, flat_map_files, interleave_files])
def test_files_are_fed_to_the_initializer(digits: str, make: Any) -> None:
    paths = tf.placeholder(tf.string, [None])
    data = make(paths).map(parse).map(lambda part: (part["name"], {"n": part["data"] * 2})).enumerate()
    iterator = data.batch(5).repeat(2).make_initializable_iterator()
    number, (name, rest) = iterator.get_next()
    with tf.Session() as session:
        for files in ([digits], [digits, digits]):
            session.run(iterator.initializer, feed_dict={paths: files})
            seen: list[Any] = []
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    seen += zip(*session.run([number, name, rest["n"]]), strict=True)
            assert seen == [(i, b"n%d" % (i % 10), 2 * (i % 10)) for i in range(10 * len(files))] * 2


def test_errors_of_files_come_when_the_session_runs(tmp_path: Path) -> None:
    element = tf.data.TFRecordDataset(str(tmp_path / "nope")).make_one_shot_iterator().get_next()
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match="nope"):
        session.run(element)


def test_empty_dataset_ends_at_once() -> None:
    element = tf.data.Dataset.range(0).make_one_shot_iterator().get_next()
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
        session.run(element)


def test_eager_execution_gives_values(digits: str) -> None:
    tf.compat.v1.enable_eager_execution()
    iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.TFRecordDataset(digits).map(parse))
    assert [iterator.get_next()["data"].numpy() for _ in range(10)] == list(range(10))
    with pytest.raises(tf.errors.OutOfRangeError, match="end of sequence"):
        iterator.get_next()


def test_values_of_a_graph_do_not_mix_with_datasets(digits: str) -> None:
    node = tf.placeholder(tf.string)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a value in feed_dict"):
        next(iter(tf.data.TFRecordDataset([node])))
    with pytest.raises(TypeError, match="from outside it"):
        plain(tf.data.Dataset.range(1).map(lambda x: node))


@pytest.mark.parametrize("drops", [False, True])
def test_windows_are_as_many_as_the_size_says(drops: bool) -> None:
    for size, count, jump, step in itertools.product(range(8), (1, 2, 3), (1, 2, 3), (1, 2)):
        windows = tf.data.Dataset.range(size).window(count, shift=jump, stride=step, drop_remainder=drops)
        assert len(windows) == len(list(windows)), (size, count, jump, step)
