"""tf.data under real TensorFlow and under tfrkit.compat: elements, sizes, and what comes after an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from both import Script, plain, run_both

FileScript = Callable[[Any, list[str]], Any]


def walk(dataset: Any) -> list[Any]:
    """Elements and names of errors, in order, until the end."""
    seen: list[Any] = []
    iterator = iter(dataset)
    while len(seen) < 40:
        try:
            seen.append(plain(next(iterator)))
        except StopIteration:
            return [*seen, "end"]
        except Exception as error:  # noqa: BLE001 - which one it is gets compared
            seen.append(f"raises {type(error).__name__}")
    return seen


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three files; the third record of the second is damaged."""
    from tfrkit.compat import tensorflow as tf

    paths = []
    for name, count in (("a", 3), ("b", 4), ("c", 2)):
        path = tmp_path / name
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(count):
                writer.write(f"{name}{number}".encode())
        paths.append(str(path))
    data = bytearray((tmp_path / "b").read_bytes())
    data[2 * len(data) // 4 + 12] ^= 0xFF
    (tmp_path / "b").write_bytes(data)
    return paths


DAMAGED: dict[str, FileScript] = {
    "files": lambda tf, paths: tf.data.TFRecordDataset(paths),
    "in turn": lambda tf, paths: tf.data.TFRecordDataset(paths, num_parallel_reads=2),
    "ignored": lambda tf, paths: tf.data.TFRecordDataset(paths).ignore_errors(),
    "ignored with a warning": lambda tf, paths: tf.data.TFRecordDataset(paths).ignore_errors(log_warning=True),
    "batch": lambda tf, paths: tf.data.TFRecordDataset(paths).batch(2),
    "large batch": lambda tf, paths: tf.data.TFRecordDataset(paths).batch(4),
    "take": lambda tf, paths: tf.data.TFRecordDataset(paths).take(6),
    "skip": lambda tf, paths: tf.data.TFRecordDataset(paths).skip(4),
    "shard": lambda tf, paths: tf.data.TFRecordDataset(paths).shard(2, 1),
    "repeat": lambda tf, paths: tf.data.TFRecordDataset(paths[1]).repeat(2),
    "repeat for ever": lambda tf, paths: tf.data.TFRecordDataset(paths[1]).repeat().take(6),
    "enumerate": lambda tf, paths: tf.data.TFRecordDataset(paths).enumerate(),
    "zip": lambda tf, paths: tf.data.Dataset.zip((tf.data.TFRecordDataset(paths), tf.data.Dataset.range(20))),
    "concatenate": lambda tf, paths: tf.data.TFRecordDataset(paths[1]).concatenate(tf.data.TFRecordDataset(paths[0])),
    "prefetch": lambda tf, paths: tf.data.TFRecordDataset(paths).prefetch(3),
    "cache": lambda tf, paths: tf.data.TFRecordDataset(paths).cache(),
    "flat map": lambda tf, paths: tf.data.Dataset.from_tensor_slices(paths).flat_map(tf.data.TFRecordDataset),
    "interleave": lambda tf, paths: tf.data.Dataset.from_tensor_slices(paths).interleave(
        tf.data.TFRecordDataset, cycle_length=2, block_length=2
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_next_file_comes_after_damage(name: str, files: list[str]) -> None:
    run_both(lambda tf: walk(DAMAGED[name](tf, files)))


def test_kept_elements_are_those_that_could_be_had(files: list[str]) -> None:
    def script(tf: Any) -> Any:
        data = tf.data.TFRecordDataset(files).cache()
        return [walk(data), walk(data)]

    run_both(script)


def odd(tf: Any) -> Any:
    """Strings; those with three letters or one are not to be had as numbers of two bytes."""
    return tf.data.Dataset.from_tensor_slices([b"ab", b"abc", b"cd", b"ef", b"gh", b"i"])


def numbers(tf: Any, **options: Any) -> Any:
    return odd(tf).map(lambda text: tf.io.decode_raw(text, tf.uint16), **options)


WRONG: dict[str, Script] = {
    "map": numbers,
    "parallel map": lambda tf: numbers(tf, num_parallel_calls=2),
    "map, batch": lambda tf: numbers(tf).batch(2),
    "map, padded batch": lambda tf: numbers(tf).padded_batch(2, [3]),
    "ignored": lambda tf: numbers(tf).ignore_errors(),
    "ignored, then batch": lambda tf: numbers(tf).ignore_errors().batch(2),
    "batch, then ignored": lambda tf: numbers(tf).batch(2).ignore_errors(),
    "filter": lambda tf: odd(tf).filter(lambda text: tf.io.decode_raw(text, tf.uint16)[0] > 0),
    "take while": lambda tf: odd(tf).take_while(lambda text: tf.io.decode_raw(text, tf.uint16)[0] > 0),
    "enumerate": lambda tf: numbers(tf).enumerate(),
    "zip": lambda tf: tf.data.Dataset.zip((numbers(tf), odd(tf))),
    "unbatch": lambda tf: numbers(tf).unbatch(),
    "parse": lambda tf: tf.data.Dataset.from_tensor_slices([b"", b"\x0a\x05a", b""]).map(
        lambda record: tf.io.parse_single_example(record, {"a": tf.io.FixedLenFeature([], tf.int64, 3)})
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_next_element_comes_after_one_that_fails(name: str) -> None:
    run_both(lambda tf: walk(WRONG[name](tf)))


# --- shuffles --------------------------------------------------------------------------------------------------------


def test_parts_of_a_fixed_order_do_not_overlap() -> None:
    def script(tf: Any) -> Any:
        data = tf.data.Dataset.range(100).shuffle(100, reshuffle_each_iteration=False)
        train, test = data.skip(20), data.take(20)
        orders = [[int(x) for x in part.as_numpy_iterator()] for part in (test, train, test, train)]
        twice = [int(x) for x in data.repeat(2).as_numpy_iterator()]
        return [
            sorted(orders[0] + orders[1]) == list(range(100)),
            orders[:2] == orders[2:],
            twice == (orders[0] + orders[1]) * 2,
        ]

    assert run_both(script) == [True, True, True]


# --- padding ---------------------------------------------------------------------------------------------------------


def letters(tf: Any) -> Any:
    return odd(tf).map(lambda text: tf.io.decode_raw(text, tf.uint8))


def pairs(tf: Any) -> Any:
    return letters(tf).map(lambda text: (text, text[0]))


def named(tf: Any) -> Any:
    return letters(tf).map(lambda text: {"a": text, "b": {"c": text[0]}})


PADDED: dict[str, Script] = {
    "scalars": lambda tf: tf.data.Dataset.range(5).padded_batch(2),
    "scalars, shape given": lambda tf: tf.data.Dataset.range(5).padded_batch(2, []),
    "scalars, tuple given": lambda tf: tf.data.Dataset.range(5).padded_batch(2, ()),
    "strings": lambda tf: odd(tf).padded_batch(4, []),
    "rows of strings": lambda tf: odd(tf).map(lambda text: tf.stack([text])).padded_batch(2, [2], "P"),
    "tuple": lambda tf: pairs(tf).padded_batch(4, ([None], [])),
    "tuple, nothing given": lambda tf: pairs(tf).padded_batch(4),
    "tuple of shapes": lambda tf: pairs(tf).padded_batch(4, (tf.TensorShape([None]), tf.TensorShape([]))),
    "dict": lambda tf: named(tf).padded_batch(
        4, {"a": [5], "b": {"c": []}}, {"a": tf.constant(7, tf.uint8), "b": {"c": None}}
    ),
    "one value for all": lambda tf: named(tf).padded_batch(4, padding_values=tf.constant(7, tf.uint8)),
    "minus one": lambda tf: letters(tf).padded_batch(4, [-1]),
    "two sizes": lambda tf: (
        letters(tf).map(lambda text: tf.stack([text, text])).padded_batch(4, [None, 4], tf.constant(9, tf.uint8))
    ),
    "dropping": lambda tf: letters(tf).padded_batch(4, [None], drop_remainder=True),
    "too small": lambda tf: letters(tf).padded_batch(4, [2]),
}
NOT_PADDED: dict[str, Script] = {
    "name left out": lambda tf: named(tf).padded_batch(4, {"a": [5]}),
    "too many sizes": lambda tf: letters(tf).padded_batch(4, [None, None]),
    "fraction for whole numbers": lambda tf: letters(tf).padded_batch(4, [None], 7.5),
    "sparse": lambda tf: tf.data.Dataset.from_tensors(tf.SparseTensor([[0, 1]], [1], [2, 2])).padded_batch(2),
    "batch of none": lambda tf: tf.data.Dataset.range(3).padded_batch(0),
}


@pytest.mark.parametrize("name", PADDED)
def test_padded_batches_are_tensorflows(name: str) -> None:
    run_both(lambda tf: walk(PADDED[name](tf)))


@pytest.mark.parametrize("name", NOT_PADDED)
def test_what_cannot_be_padded_is_refused_as_in_tensorflow(name: str) -> None:
    assert run_both(lambda tf: list(NOT_PADDED[name](tf))).startswith("raises ")
