"""tf.data under real TensorFlow and under tfrkit.compat: elements, sizes, and what comes after an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as real
from both import Script, example, plain, run_both

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
    """Strings; those with one or three letters do not decode as 2-byte numbers."""
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


# --- steps -----------------------------------------------------------------------------------------------------------


def count_to(tf: Any, *bounds: int) -> Any:
    return tf.data.Dataset.range(*bounds)


def generate() -> Any:
    yield 1, "a"
    yield 2, "bc"


STEPS: dict[str, Script] = {
    "range of a type": lambda tf: count_to(tf, 3).concatenate(tf.data.Dataset.range(5, 1, -2)),
    "slices of rows": lambda tf: tf.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4]], "b": ["x", "y"]}),
    "slices of sparse": lambda tf: tf.data.Dataset.from_tensor_slices(
        tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [3, 2])
    ),
    "tensors": lambda tf: tf.data.Dataset.from_tensors(([1, 2], {"a": "x"})),
    "zip": lambda tf: tf.data.Dataset.zip((count_to(tf, 3), count_to(tf, 5, 9))),
    "zip of dict": lambda tf: tf.data.Dataset.zip({"a": count_to(tf, 3), "b": (count_to(tf, 2), count_to(tf, 9))}),
    "zip of arguments": lambda tf: tf.data.Dataset.zip(count_to(tf, 3), count_to(tf, 5, 9)),
    "zip of a list": lambda tf: tf.data.Dataset.zip([count_to(tf, 3)]),
    "zip without end": lambda tf: tf.data.Dataset.zip((count_to(tf, 3), count_to(tf, 2).repeat())),
    "concatenate": lambda tf: count_to(tf, 2).concatenate(count_to(tf, 5, 7)),
    "enumerate": lambda tf: count_to(tf, 5, 7).enumerate(start=3),
    "take while": lambda tf: count_to(tf, 9).take_while(lambda x: x < 4),
    "filter": lambda tf: count_to(tf, 9).filter(lambda x: x > 4),
    "unbatch": lambda tf: count_to(tf, 5).batch(2).map(lambda x: {"a": x, "b": x * 2}).unbatch(),
    "unbatch of sparse": lambda tf: tf.data.Dataset.from_tensors(
        tf.SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2])
    ).unbatch(),
    "flat map": lambda tf: count_to(tf, 4).flat_map(lambda x: tf.data.Dataset.range(x)),
    "flat map of slices": lambda tf: count_to(tf, 4).batch(3).flat_map(tf.data.Dataset.from_tensor_slices),
    "flat map of a tuple": lambda tf: tf.data.Dataset.zip((count_to(tf, 3), count_to(tf, 3))).flat_map(
        lambda a, b: tf.data.Dataset.from_tensors((b, a))
    ),
    "interleave": lambda tf: count_to(tf, 1, 6).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=3, block_length=2
    ),
    "interleave one by one": lambda tf: count_to(tf, 1, 6).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=2
    ),
    "interleave in parallel": lambda tf: count_to(tf, 1, 6).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=2, num_parallel_calls=2, deterministic=True
    ),
    "window": lambda tf: count_to(tf, 7).window(3).flat_map(lambda part: part.batch(3)),
    "windows that overlap": lambda tf: (
        count_to(tf, 7).window(3, shift=1, drop_remainder=True).flat_map(lambda part: part.batch(3))
    ),
    "windows that overlap to the end": lambda tf: (
        count_to(tf, 5).window(3, shift=2).flat_map(lambda part: part.batch(3))
    ),
    "windows with gaps": lambda tf: count_to(tf, 9).window(2, shift=4, stride=2).flat_map(lambda part: part.batch(3)),
    "windows far apart": lambda tf: count_to(tf, 12).window(2, shift=5).flat_map(lambda part: part.batch(3)),
    "windows of parts": lambda tf: (
        count_to(tf, 4)
        .map(lambda x: {"a": x, "b": x * 2})
        .window(2)
        .flat_map(lambda part: tf.data.Dataset.zip((part["a"].batch(2), part["b"].batch(2))))
    ),
    "generator": lambda tf: tf.data.Dataset.from_generator(generate, (tf.int64, tf.string)),
    "generator of shapes": lambda tf: tf.data.Dataset.from_generator(
        lambda: iter([[1, 2], [3, 4]]), tf.float32, tf.TensorShape([2])
    ),
    "generator with a signature": lambda tf: tf.data.Dataset.from_generator(
        lambda: ({"a": [n], "b": n} for n in range(3)),
        output_signature={"a": tf.TensorSpec([1], tf.int32), "b": tf.TensorSpec(shape=(), dtype=tf.int64)},
    ),
    "generator with arguments": lambda tf: tf.data.Dataset.from_generator(
        lambda n: iter(range(n)), tf.int64, args=(3,)
    ),
    "generator that is none": lambda tf: tf.data.Dataset.from_generator(3, tf.int64),
    "generator without types": lambda tf: tf.data.Dataset.from_generator(generate),
    "apply": lambda tf: count_to(tf, 5).apply(lambda data: data.skip(3)),
    "map and batch": lambda tf: count_to(tf, 5).apply(
        tf.data.experimental.map_and_batch(lambda x: x * 2, 2, drop_remainder=True)
    ),
    "parallel interleave": lambda tf: count_to(tf, 1, 4).apply(
        tf.data.experimental.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(x), cycle_length=2)
    ),
    "shuffle and repeat": lambda tf: count_to(tf, 1).apply(tf.data.experimental.shuffle_and_repeat(3, count=2)),
    "unbatch, applied": lambda tf: count_to(tf, 4).batch(2).apply(tf.data.experimental.unbatch()),
    "enumerate, applied": lambda tf: count_to(tf, 4).apply(tf.data.experimental.enumerate_dataset(2)),
    "ignore errors, applied": lambda tf: numbers(tf).apply(tf.data.experimental.ignore_errors()),
    "counter": lambda tf: tf.data.experimental.Counter(3, 2).take(3),
    "too many": lambda tf: count_to(tf, 4).apply(tf.data.experimental.assert_cardinality(3)),
    "too few": lambda tf: count_to(tf, 4).apply(tf.data.experimental.assert_cardinality(5)),
    "named": lambda tf: (
        count_to(tf, 4)
        .map(lambda x: x, name="a")
        .batch(2, name="b")
        .unbatch(name="c")
        .shuffle(1, name="d")
        .repeat(2, name="e")
        .take(9, name="f")
        .skip(1, name="g")
        .shard(2, 0, name="h")
        .cache(name="i")
        .prefetch(1, name="j")
        .filter(lambda x: True, name="k")
        .enumerate(name="l")
    ),
    "shards that are none": lambda tf: count_to(tf, 3).shard(2, 2),
    "windows of none": lambda tf: count_to(tf, 3).window(0),
    "batch of none": lambda tf: count_to(tf, 3).batch(0),
    "shuffle of none": lambda tf: count_to(tf, 3).shuffle(0),
    "files that are none": lambda tf: tf.data.Dataset.list_files("no such folder/*"),
}


@pytest.mark.parametrize("name", STEPS)
def test_step_gives_tensorflows_elements(name: str) -> None:
    run_both(lambda tf: walk(STEPS[name](tf)))


SIZES: dict[str, Script] = {
    "map": lambda tf: count_to(tf, 5).map(lambda x: x),
    "filter": lambda tf: count_to(tf, 5).filter(lambda x: True),
    "batch": lambda tf: count_to(tf, 5).batch(2),
    "batch dropping": lambda tf: count_to(tf, 5).batch(2, drop_remainder=True),
    "padded batch": lambda tf: count_to(tf, 5).padded_batch(2),
    "repeat": lambda tf: count_to(tf, 5).repeat(2),
    "repeat for ever": lambda tf: count_to(tf, 5).repeat(),
    "nothing for ever": lambda tf: count_to(tf, 0).repeat(),
    "repeat never": lambda tf: count_to(tf, 5).repeat(0),
    "take": lambda tf: count_to(tf, 5).take(3),
    "take more": lambda tf: count_to(tf, 5).take(9),
    "take of no end": lambda tf: count_to(tf, 5).repeat().take(9),
    "take all": lambda tf: count_to(tf, 5).take(-1),
    "skip": lambda tf: count_to(tf, 5).skip(3),
    "skip more": lambda tf: count_to(tf, 5).skip(9),
    "skip of no end": lambda tf: count_to(tf, 5).repeat().skip(9),
    "shard": lambda tf: count_to(tf, 5).shard(3, 1),
    "zip": lambda tf: tf.data.Dataset.zip((count_to(tf, 5), count_to(tf, 3).repeat())),
    "zip unknown": lambda tf: tf.data.Dataset.zip((count_to(tf, 5), count_to(tf, 3).filter(lambda x: True))),
    "concatenate": lambda tf: count_to(tf, 5).concatenate(count_to(tf, 3)),
    "concatenate without end": lambda tf: count_to(tf, 5).concatenate(count_to(tf, 3).repeat()),
    "enumerate": lambda tf: count_to(tf, 5).enumerate(),
    "window": lambda tf: count_to(tf, 5).window(2),
    "window dropping": lambda tf: count_to(tf, 7).window(3, 2, 2, drop_remainder=True),
    "shuffle": lambda tf: count_to(tf, 5).shuffle(2).prefetch(1).cache(),
    "records": lambda tf: tf.data.TFRecordDataset("x"),
    "flat map": lambda tf: count_to(tf, 5).flat_map(lambda x: tf.data.Dataset.range(x)),
    "generator": lambda tf: tf.data.Dataset.from_generator(generate, (tf.int64, tf.string)),
    "asserted": lambda tf: numbers(tf).apply(tf.data.experimental.assert_cardinality(3)),
    "slices": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2]),
    "tensors": lambda tf: tf.data.Dataset.from_tensors([1, 2]),
    "take while": lambda tf: count_to(tf, 5).take_while(lambda x: True),
}


@pytest.mark.parametrize("name", SIZES)
def test_size_is_tensorflows(name: str) -> None:
    run_both(lambda tf: [SIZES[name](tf).cardinality(), tf.data.experimental.cardinality(SIZES[name](tf))])
    run_both(lambda tf: len(SIZES[name](tf)))


def test_reduce_is_tensorflows() -> None:
    zero = {"sum": 0, "count": 0}
    run_both(lambda tf: count_to(tf, 5).reduce(tf.constant(0, tf.int64), lambda state, x: state + x))
    run_both(
        lambda tf: (
            count_to(tf, 5)
            .map(lambda x: (tf.cast(x, tf.int32), x))
            .reduce(zero, lambda state, x: {"sum": state["sum"] + x[0], "count": state["count"] + 1})
        )
    )
    run_both(lambda tf: count_to(tf, 1).get_single_element())
    run_both(lambda tf: count_to(tf, 2).get_single_element())
    run_both(lambda tf: [bool(count_to(tf, 0)), tf.data.UNKNOWN_CARDINALITY, tf.data.INFINITE_CARDINALITY])


def test_kept_elements_are_not_made_again() -> None:
    def script(tf: Any) -> Any:
        data = tf.data.Dataset.range(5).shuffle(5).cache()
        next(iter(data))
        return [list(data.as_numpy_iterator()) == list(data.as_numpy_iterator()) for _ in range(2)]

    assert run_both(script) == [True, True]


def test_batches_of_a_pattern_are_tensorflows(tmp_path: Path) -> None:
    def script(tf: Any) -> Any:
        data = tf.data.Dataset.from_tensor_slices(
            [example(tf, a=("int64", [n]), b=("bytes", [b"x"])) for n in range(5)]
        )
        for name in "pq":
            tf.data.experimental.TFRecordWriter(str(tmp_path / f"{name}.tfrecord")).write(data)
        spec = {"a": tf.io.FixedLenFeature([], tf.int64), "b": tf.io.VarLenFeature(tf.string)}
        make = tf.data.experimental.make_batched_features_dataset
        return [
            walk(make(f"{tmp_path}/*.tfrecord", 4, spec, num_epochs=1, shuffle=False)),
            walk(make(f"{tmp_path}/*.tfrecord", 4, spec, num_epochs=1, shuffle=False, reader_num_threads=2)),
            walk(make(f"{tmp_path}/p.tfrecord", 3, spec, label_key="a", shuffle=False).take(4)),
            walk(make([f"{tmp_path}/p.tfrecord"], 3, spec, num_epochs=1, shuffle=False, drop_final_batch=True)),
            walk(data.batch(2).apply(tf.data.experimental.parse_example_dataset(spec))),
        ]

    run_both(script)
    spec = {"b": real.io.FixedLenFeature([], real.int64)}
    make = "make_batched_features_dataset"
    run_both(lambda tf: getattr(tf.data.experimental, make)(f"{tmp_path}/p.tfrecord", 3, spec, label_key="a"))
    run_both(lambda tf: getattr(tf.data.experimental, make)(f"{tmp_path}/nope*", 3, spec))
    run_both(lambda tf: tf.data.experimental.TFRecordWriter(str(tmp_path / "x")).write(count_to(tf, 3)))
    run_both(lambda tf: tf.data.experimental.TFRecordWriter(str(tmp_path / "x")).write([b"x"]))
