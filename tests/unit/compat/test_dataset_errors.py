"""A dataset continues after an error with the next element, and after damage with the next file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tfrkit.compat import tensorflow as tf


def walk(dataset: Any) -> list[Any]:
    seen: list[Any] = []
    iterator = iter(dataset)
    while True:
        try:
            value = next(iterator).numpy()
            seen.append(value if isinstance(value, bytes) else value.tolist())
        except StopIteration:
            return seen
        except tf.errors.OpError as error:
            seen.append(type(error).__name__)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three files; the third record of the second is damaged."""
    for name in "abc":
        with tf.io.TFRecordWriter(tmp_path / name) as writer:
            for number in range(4):
                writer.write(f"{name}{number}".encode())
    data = bytearray((tmp_path / "b").read_bytes())
    data[2 * len(data) // 4 + 12] ^= 0xFF
    (tmp_path / "b").write_bytes(data)
    return [str(tmp_path / name) for name in "abc"]


def test_next_file_comes_after_damage(files: list[str]) -> None:
    expected = [b"a0", b"a1", b"a2", b"a3", b"b0", b"b1", "DataLossError", b"c0", b"c1", b"c2", b"c3"]
    assert walk(tf.data.TFRecordDataset(files)) == expected
    assert walk(tf.data.TFRecordDataset(files).ignore_errors()) == [x for x in expected if isinstance(x, bytes)]


def test_next_file_comes_after_one_that_is_missing(files: list[str]) -> None:
    seen = walk(tf.data.TFRecordDataset([files[0], "nope", files[2]]))
    assert seen[3:6] == [b"a3", "NotFoundError", b"c0"]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda d: d, [1, "E", 3, "E", 5]),
        (lambda d: d.batch(2), ["E", "E", [5]]),
        (lambda d: d.padded_batch(2), ["E", "E", [5]]),
        (lambda d: d.take(2), [1, "E", 3]),
        (lambda d: d.skip(1), ["E", 3, "E", 5]),
        (lambda d: d.repeat(2), [1, "E", 3, "E", 5, 1, "E", 3, "E", 5]),
        (lambda d: d.filter(lambda x: x > 1), ["E", 3, "E", 5]),
        (lambda d: d.shard(2, 1), ["E", 3, "E"]),
        (lambda d: d.concatenate(d), [1, "E", 3, "E", 5, 1, "E", 3, "E", 5]),
        (lambda d: d.flat_map(tf.data.Dataset.from_tensors), [1, "E", 3, "E", 5]),
        (lambda d: d.window(1).flat_map(lambda w: w), [1, "E", 3, "E", 5]),
        (lambda d: d.enumerate().map(lambda number, x: number), [0, "E", 2, "E", 4]),
    ],
)
def test_next_element_comes_after_one_that_fails(step: Any, expected: list[Any]) -> None:
    def check(x: Any) -> Any:
        if int(x) % 2 == 0:
            raise tf.errors.InvalidArgumentError(None, None, f"{int(x)} is even")
        return x

    seen = walk(step(tf.data.Dataset.range(1, 6).map(check)))
    assert ["E" if x == "InvalidArgumentError" else x for x in seen] == expected


def test_shuffle_keeps_what_waits_when_an_element_fails() -> None:
    data = tf.data.Dataset.from_tensor_slices([b"ab", b"c", b"de", b"fg"]).map(lambda x: tf.io.decode_raw(x, tf.uint16))
    seen = walk(data.shuffle(10))
    assert seen[0] == "InvalidArgumentError"
    assert len(seen) == 4


def test_element_left_out_is_reported_if_requested(files: list[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tfrkit.compat"):
        walk(tf.data.TFRecordDataset(files).ignore_errors())
        assert caplog.messages == []
        walk(tf.data.TFRecordDataset(files).ignore_errors(log_warning=True))
    assert len(caplog.messages) == 1
    assert "element left out: payload checksum mismatch" in caplog.messages[0]


def test_bug_of_a_script_is_not_left_out() -> None:
    with pytest.raises(NameError):
        walk(tf.data.Dataset.range(3).map(lambda x: undefined).ignore_errors())  # noqa: F821


@pytest.mark.parametrize("is_first", [True, False])
def test_session_continues_after_an_error(is_first: bool) -> None:
    texts = [b"a", b"bc", b"de"] if is_first else [b"bc", b"a", b"de"]
    data = tf.data.Dataset.from_tensor_slices(texts).map(lambda x: (tf.io.decode_raw(x, tf.uint16), x))
    for make in (tf.data.make_one_shot_iterator, tf.data.make_initializable_iterator):
        iterator = make(data)
        _, text = iterator.get_next()
        seen: list[Any] = []
        with tf.Session() as session:
            session.run(iterator.initializer)
            while True:
                try:
                    seen.append(session.run(text))
                except tf.errors.InvalidArgumentError:
                    seen.append(b"a")
                except tf.errors.OutOfRangeError:
                    break
        assert seen == texts
