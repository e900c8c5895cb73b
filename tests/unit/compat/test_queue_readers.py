"""Input queues of TensorFlow 1."""

from __future__ import annotations

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
                "raw": {"bytes_list": {"value": [bytes([number] * 4)]}},
            }
            writer.write(tf.train.Example(features={"feature": features}).SerializeToString())
    return path


def read(paths: list[str], **options: Any) -> tuple[Any, Any, Any]:
    key, record = tf.TFRecordReader().read(tf.train.string_input_producer(paths, **options))
    parsed = tf.parse_single_example(
        record, features={"data": tf.FixedLenFeature([], tf.int64), "raw": tf.FixedLenFeature([], tf.string)}
    )
    return key, tf.reshape(tf.decode_raw(parsed["raw"], tf.uint8), [2, 2]), parsed["data"]


def run_to_end(fetches: Any) -> list[Any]:
    seen = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
        try:
            while not coordinator.should_stop():
                seen.append(session.run(fetches))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return seen


def test_reader_gives_records_with_file_and_byte(digits: str) -> None:
    seen = run_to_end(read([digits], num_epochs=2, shuffle=False))
    assert [int(number) for _, _, number in seen] == [*range(10), *range(10)]
    assert all((pixels == number).all() for _, pixels, number in seen)
    size = Path(digits).stat().st_size // 10
    assert [key for key, _, _ in seen[:2]] == [f"{digits}:0".encode(), f"{digits}:{size}".encode()]


def test_queue_repeats_forever_without_epochs(digits: str) -> None:
    _, _, number = read([digits])
    with tf.Session() as session:
        assert [int(session.run(number)) for _ in range(25)] == [*range(10), *range(10), *range(5)]


def test_batches_in_order_drop_or_keep_the_rest(digits: str) -> None:
    _, pixels, number = read([digits], num_epochs=1)
    assert [numbers.tolist() for _, numbers in run_to_end(tf.train.batch([pixels, number], batch_size=4))] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]
    _, pixels, number = read([digits], num_epochs=1)
    named = tf.train.batch({"p": pixels, "n": number}, 4, allow_smaller_final_batch=True)
    assert [batch["p"].shape for batch in run_to_end(named)] == [(4, 2, 2), (4, 2, 2), (2, 2, 2)]
    single = tf.train.batch(read([digits], num_epochs=1)[2], 10)
    assert run_to_end(single)[0].tolist() == list(range(10))


def test_shuffled_batches_keep_pictures_with_their_numbers(digits: str) -> None:
    _, pixels, number = read([digits], num_epochs=1)
    batches = tf.train.shuffle_batch([pixels, number], batch_size=5, capacity=8, min_after_dequeue=3, seed=1)
    seen = run_to_end(batches)
    numbers = np.concatenate([batch for _, batch in seen])
    assert sorted(numbers.tolist()) == list(range(10))
    assert numbers.tolist() != list(range(10))
    for some, batch in seen:
        assert (some == batch[:, None, None]).all()


def test_rows_of_arrays_are_dealt_one_each_run() -> None:
    images, labels = tf.train.slice_input_producer([np.arange(6).reshape(3, 2), [0, 1, 2]], num_epochs=1, seed=2)
    seen = run_to_end([images, labels])
    assert sorted(int(label) for _, label in seen) == [0, 1, 2]
    assert all(image[0] == 2 * label for image, label in seen)


def test_files_are_mixed_by_default_and_reproducibly(tmp_path: Path, digits: str) -> None:
    names = [str(tmp_path / f"{number}.tfrecords") for number in range(8)]
    for number, name in enumerate(names):
        with tf.io.TFRecordWriter(name) as writer:
            writer.write(bytes([number]))
    orders = []
    for _ in range(2):
        _, record = tf.TFRecordReader().read(tf.train.string_input_producer(names, num_epochs=1, seed=5))
        orders.append(run_to_end(record))
    assert orders[0] == orders[1] != sorted(orders[0])


def test_files_of_a_pattern_are_listed_lazily(tmp_path: Path, digits: str) -> None:
    found = tf.train.match_filenames_once(str(tmp_path / "*.tfrecords"))
    queue = tf.train.string_input_producer(found, num_epochs=1)
    _, record = tf.TFRecordReader().read(queue)
    with tf.Session() as session:
        tf.local_variables_initializer().run()
        tf.global_variables_initializer().run(session=session)
        assert session.run(found).tolist() == [digits.encode()]
    assert len(run_to_end(record)) == 10
    nothing = tf.train.string_input_producer(tf.train.match_filenames_once("nope*"))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="at least one file name"):
        session.run(tf.TFRecordReader().read(nothing))


def test_several_records_are_read_at_once(digits: str) -> None:
    queue = tf.train.string_input_producer([digits, digits], num_epochs=1, shuffle=False)
    keys, records = tf.TFRecordReader().read_up_to(queue, 4)
    numbers = tf.parse_example(records, {"data": tf.FixedLenFeature([], tf.int64)})["data"]
    seen = run_to_end([keys, numbers])
    assert [numbers.tolist() for _, numbers in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] * 2
    assert [len(keys) for keys, _ in seen] == [4, 4, 2] * 2


def test_rows_are_batched_one_by_one(digits: str) -> None:
    queue = tf.train.string_input_producer([digits], num_epochs=1)
    _, records = tf.TFRecordReader().read_up_to(queue, 3)
    numbers = tf.parse_example(records, {"data": tf.FixedLenFeature([], tf.int64)})["data"]
    seen = run_to_end(tf.train.batch([numbers, records], 4, enqueue_many=True, allow_smaller_final_batch=True))
    assert [numbers.tolist() for numbers, _ in seen] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    # Of one tensor, it alone.
    _, records = tf.TFRecordReader().read_up_to(tf.train.string_input_producer([digits], num_epochs=1), 3)
    assert [len(batch) for batch in run_to_end(tf.train.batch([records], 5, enqueue_many=True))] == [5, 5]


def test_batch_is_filled_up_to_one_shape() -> None:
    (number,) = tf.train.slice_input_producer([[1, 2, 3]], num_epochs=1, shuffle=False)
    row = tf.one_hot(0, number)
    rows, _ = run_to_end(tf.train.batch([row, number], 3, dynamic_pad=True))[0]
    assert rows.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_several_readers_are_joined(digits: str, is_shuffled: bool) -> None:
    queue = tf.train.string_input_producer([digits] * 3, num_epochs=1)
    sources = [read_number(queue) for _ in range(2)]
    if is_shuffled:
        batches = tf.train.shuffle_batch_join(sources, 5, capacity=10, min_after_dequeue=5)
    else:
        batches = tf.train.batch_join(sources, 5)
    seen = np.concatenate([numbers for _, numbers in run_to_end(batches)])
    assert sorted(seen.tolist()) == sorted([*range(10)] * 3)


def read_number(queue: Any) -> list[Any]:
    _, record = tf.TFRecordReader().read(queue)
    return [record, tf.parse_single_example(record, {"data": tf.FixedLenFeature([], tf.int64)})["data"]]


def test_coordinator_stops_when_a_block_fails() -> None:
    coordinator = tf.train.Coordinator()
    with coordinator.stop_on_exception():
        pass
    assert not coordinator.should_stop()
    with coordinator.stop_on_exception():
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert coordinator.should_stop()
    coordinator.join([])
    with coordinator.stop_on_exception():
        raise KeyError("from a block")
    with pytest.raises(KeyError, match="from a block"):
        coordinator.join([])


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tf.train.string_input_producer([]), ValueError, "at least one file name"),
        (lambda: tf.train.shuffle_batch([], 1, 5, 5), ValueError, "less than capacity 5, got 5"),
        (lambda: tf.train.batch([], 1), ValueError, "at least one tensor"),
    ],
)
def test_queues_that_mean_nothing_are_refused(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_reader_of_empty_files_terminates(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    _, record = tf.TFRecordReader().read(tf.train.string_input_producer([str(tmp_path / "x")]))
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError, match="got none in 10000 files"):
        session.run(record)


def test_coordinator_waits_for_threads_and_raises_their_error() -> None:
    import threading
    import time

    done = []

    def work(coordinator: Any, error: Exception | None) -> None:
        with coordinator.stop_on_exception():
            while not coordinator.should_stop() and not done:
                time.sleep(0.001)
                done.append(1)
            if error:
                raise error

    for error, expected in ((None, None), (tf.errors.OutOfRangeError(), None), (ValueError("bad"), "bad")):
        coordinator = tf.train.Coordinator()
        threads = [threading.Thread(target=work, args=(coordinator, error), daemon=True)]
        threads[0].start()
        if expected:
            with pytest.raises(ValueError, match=expected):
                coordinator.join(threads)
        else:
            coordinator.join(threads)
        assert not threads[0].is_alive()
        assert done == [1]
        assert coordinator.should_stop() == (error is not None)
