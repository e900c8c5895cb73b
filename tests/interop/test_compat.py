"""The same script under real TensorFlow and under tfrkit.compat: equal values, equal bytes, equal errors.

A script is a function of `tf`. What it returns, or the class of the error it raises, is compared.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as real
from both import Script, example, plain, run_both, sequence
from oracle import random_examples, random_sequences
from PIL import Image

from tfrkit.compat import tensorflow as ours

# --- messages --------------------------------------------------------------------------------------------------------


INTS = [[], [0], [1, -1], [2**63 - 1, -(2**63)], [127, 128, 16383, 16384], range(5), (i for i in [1, 2])]
BAD_INTS = [[1.0], ["1"], [None], [2**63], [-(2**63) - 1], 3, np.array(5), np.ones((2, 2), int), [np.float32(1)], "12"]
FLOATS = [[], [0.5, 0.1], [1, True], [1e40, -1e40, 1e-46, -0.0], [float("nan"), float("inf")], [np.float16(0.5)]]
BAD_FLOATS = [["1"], [None], [b"1"], [1j], [10**400], [np.array(1.5)], [np.array([1.5])], 3.0]
BYTES = [[], [b""], [b"\0\xff", b"abc"], [np.bytes_(b"ab")], np.array([b"a", b"bc"])]
BAD_BYTES = [["a"], b"ab", [bytearray(b"a")], [memoryview(b"a")], [3], [None], 3]


@pytest.mark.parametrize(
    ("kind", "values"),
    [("Int64List", values) for values in [*map(list, INTS[:6]), np.array([5, 255], np.uint8), [np.array(5)]]]
    + [("FloatList", values) for values in [*FLOATS, np.array([0.1, 1e40]), np.array([1, 2])]]
    + [("BytesList", values) for values in BYTES]
    + [("Int64List", values) for values in BAD_INTS]
    + [("FloatList", values) for values in BAD_FLOATS]
    + [("BytesList", values) for values in BAD_BYTES],
    ids=lambda value: repr(value)[:40],
)
def test_list_takes_and_refuses_what_protobuf_does(kind: str, values: Any) -> None:
    run_both(lambda tf: getattr(tf.train, kind)(value=values))
    run_both(lambda tf: list(getattr(tf.train, kind)(value=values).value))


MESSAGE_SCRIPTS: dict[str, Script] = {
    "nothing": lambda tf: tf.train.Example(),
    "empty features": lambda tf: tf.train.Example(features=tf.train.Features()),
    "dicts": lambda tf: tf.train.Features(feature={"a": {"int64_list": {"value": [1]}}}),
    "none is unset": lambda tf: tf.train.Feature(int64_list=tf.train.Int64List(value=[1]), float_list=None),
    "last of two kinds wins": lambda tf: tf.train.Feature(int64_list={"value": [1]}, float_list={"value": [1.0]}),
    "bytes name": lambda tf: tf.train.Features(feature={b"a": tf.train.Feature()}),
    "bad bytes name": lambda tf: tf.train.Features(feature={b"\xff": tf.train.Feature()}),
    "surrogate name": lambda tf: tf.train.Features(feature={"\ud800": tf.train.Feature()}),
    "number name": lambda tf: tf.train.Features(feature={1: tf.train.Feature()}),
    "list for map": lambda tf: tf.train.Features(feature=[1]),
    "wrong message": lambda tf: tf.train.Feature(int64_list=tf.train.FloatList(value=[1.0])),
    "wrong message in map": lambda tf: tf.train.Features(feature={"a": tf.train.Int64List(value=[1])}),
    "wrong message in list": lambda tf: tf.train.FeatureList(feature=[tf.train.Int64List()]),
    "unknown field": lambda tf: tf.train.Feature(foo=1),
    "without a name": lambda tf: tf.train.Int64List([1]),
    "assign a list": lambda tf: setattr(tf.train.Int64List(), "value", [1]),
    "assign a message": lambda tf: setattr(tf.train.Example(), "features", tf.train.Features()),
    "assign what is not there": lambda tf: setattr(tf.train.Example(), "foo", 1),
    "assign in map": lambda tf: tf.train.Features().feature.__setitem__("a", tf.train.Feature()),
    "assign in messages": lambda tf: tf.train.FeatureList(feature=[{}]).feature.__setitem__(0, tf.train.Feature()),
    "number in map": lambda tf: 1 in tf.train.Features(feature={"a": {}}).feature,
    "parse text": lambda tf: tf.train.Example.FromString("abc"),
    "has unknown": lambda tf: tf.train.Feature().HasField("nope"),
    "has repeated": lambda tf: tf.train.Int64List().HasField("value"),
    "which unknown": lambda tf: tf.train.Feature().WhichOneof("x"),
    "clear unknown": lambda tf: tf.train.Example().ClearField("x"),
    "copy other": lambda tf: tf.train.Example().CopyFrom(tf.train.Features()),
    "hash": lambda tf: hash(tf.train.Example()),
    "delete from map": lambda tf: tf.train.Features().feature.__delitem__("zz"),
    "add to messages": lambda tf: tf.train.FeatureList().feature.add(int64_list=tf.train.Int64List(value=[1])),
    "append list": lambda tf: tf.train.Int64List().value.append([3]),
    "extend scalar": lambda tf: tf.train.Int64List().value.extend(3),
    "array of ints": lambda tf: np.array(tf.train.Int64List(value=[1, 2]).value),
    "array of floats": lambda tf: np.array(tf.train.FloatList(value=[1, 2]).value),
    "array of bytes": lambda tf: np.array(tf.train.BytesList(value=[b"a"]).value),
}


@pytest.mark.parametrize("name", MESSAGE_SCRIPTS)
def test_message_does_what_protobuf_does(name: str) -> None:
    run_both(MESSAGE_SCRIPTS[name])


def test_reading_creates_and_presence_follows_changes() -> None:
    def script(tf: Any) -> Any:
        seen = []
        message = tf.train.Example()
        seen += [message.HasField("features"), "a" in message.features.feature, message.features.feature.get("a")]
        seen += [message.HasField("features")]
        message.features.feature["a"]
        seen += [message.HasField("features"), message.SerializeToString(deterministic=True)]
        feature = message.features.feature["a"]
        seen += [feature.WhichOneof("kind"), feature.HasField("kind"), list(feature.int64_list.value)]
        feature.int64_list.value.append(3)
        seen += [feature.WhichOneof("kind"), feature.HasField("int64_list")]
        old = feature.int64_list
        feature.float_list.value.extend([1.5])
        old.value.append(9)
        seen += [
            feature.WhichOneof("kind"),
            list(old.value),
            list(feature.int64_list.value),
            len(message.features.feature),
        ]
        message.features.feature["b"].bytes_list.value[:] = [b"x", b"y"]
        message.features.feature["b"].bytes_list.value[0] = b"z"
        del message.features.feature["b"].bytes_list.value[1]
        seen += [message.SerializeToString(deterministic=True), message.ByteSize()]
        copied = tf.train.Example()
        copied.CopyFrom(message)
        message.features.feature["b"].Clear()
        seen += [
            copied == message,
            copied != message,
            copied.ByteSize(),
            message.features.feature["b"].WhichOneof("kind"),
        ]
        copied.MergeFrom(message)
        seen += [copied, message.ParseFromString(copied.SerializeToString()), message == copied]
        seen += [message.MergeFromString(example(tf, a=("int64", [1]), c=("unset", []))), message]
        message.ClearField("features")
        return [*seen, message]

    run_both(script)


@pytest.mark.parametrize(
    "touch",
    [
        lambda feature: feature.int64_list.value.extend([]),
        lambda feature: feature.int64_list.value.__setitem__(slice(None), []),
        lambda feature: feature.int64_list.SetInParent(),
        lambda feature: feature.int64_list.Clear(),
        lambda feature: feature.int64_list.CopyFrom(type(feature.int64_list)()),
        lambda feature: feature.int64_list.MergeFrom(type(feature.int64_list)()),
        lambda feature: feature.int64_list.ParseFromString(b""),
        lambda feature: feature.int64_list.value,
        lambda feature: feature.int64_list.SerializeToString(),
    ],
)
def test_presence_after_a_change_without_values_is_protobufs(touch: Callable[[Any], Any]) -> None:
    def script(tf: Any) -> Any:
        feature = tf.train.Feature()
        touch(feature)
        return [feature.WhichOneof("kind"), feature]

    run_both(script)


def test_values_act_as_protobufs_lists() -> None:
    def script(tf: Any) -> Any:
        values = tf.train.Int64List(value=[1, 2, 3, 4, 5]).value
        seen = [values[1:3], values[-1], len(values), list(values), 3 in values, values == [1, 2, 3, 4, 5]]
        seen += [values == (1, 2, 3, 4, 5), repr(values)]
        values[1:3] = [7]
        values.insert(0, 9)
        seen += [list(values), values.pop(), values.pop(0), list(values)]
        values.sort(reverse=True)
        seen += [list(values)]
        values.reverse()
        values.remove(7)
        return [*seen, list(values)]

    run_both(script)


def assert_same_bytes(mine: Any, theirs: Any, names: list[str]) -> None:
    data = mine.SerializeToString()
    assert type(theirs).FromString(data) == theirs
    # If one name is a prefix of another, protobuf's deterministic order puts the longer one first.
    if not any(a != b and b.startswith(a) for a in names for b in names):
        assert data == theirs.SerializeToString(deterministic=True)


def test_random_messages_are_equal_bytes_and_equal_text(seed: int) -> None:
    rng = random.Random(seed)
    for payload in random_examples(rng, 60):
        theirs, mine = real.train.Example.FromString(payload), ours.train.Example.FromString(payload)
        assert_same_bytes(mine, theirs, list(mine.features.feature))
        # TensorFlow prints text in hash order, we print it sorted, so one feature at a time.
        for name, value in mine.features.feature.items():
            assert str(value) == str(theirs.features.feature[name])
            assert value.SerializeToString() == theirs.features.feature[name].SerializeToString()
            assert type(value).FromString(value.SerializeToString()) == value
    for payload in random_sequences(rng, 60):
        theirs, mine = real.train.SequenceExample.FromString(payload), ours.train.SequenceExample.FromString(payload)
        assert_same_bytes(mine, theirs, [*mine.context.feature, *mine.feature_lists.feature_list])
        for name, frames in mine.feature_lists.feature_list.items():
            assert str(frames) == str(theirs.feature_lists.feature_list[name])
            assert frames.SerializeToString() == theirs.feature_lists.feature_list[name].SerializeToString()


@pytest.mark.parametrize(
    "given",
    [
        {"a\n\"'é": ("bytes", [b"a\0\xff'\"\\\n\t\r\x7f", "é".encode()])},
        {"a": ("float", [1, 0.1, 1e10, 1e-7, 123456789, math.inf, math.nan, -0.0, 3.4e38, 1 / 3])},
        {"a": ("unset", [])},
        {"a": ("int64", [-1, 2**62])},
    ],
)
def test_text_of_odd_values_is_protobufs(given: dict[str, Any]) -> None:
    run_both(lambda tf: str(tf.train.Example.FromString(example(tf, **given))))


# --- parsing ---------------------------------------------------------------------------------------------------------

FIRST = {
    "a": ("int64", [1]),
    "b": ("int64", [1, 2, 3, 4, 5, 6]),
    "c": ("bytes", [b"x", b"yz\0"]),
    "d": ("unset", []),
    "e": ("int64", []),
    "f": ("float", [1.5]),
}
SECOND = {"a": ("int64", [2]), "b": ("int64", [9, 8, 7]), "c": ("bytes", [b"q"])}

FEATURES: dict[str, Script] = {
    "scalars": lambda tf: {
        "a": tf.io.FixedLenFeature([], tf.int64),
        "b": tf.io.FixedLenFeature([2, 3], tf.int64),
        "c": tf.io.FixedLenFeature([2], tf.string),
        "f": tf.io.FixedLenFeature((1,), tf.float32),
    },
    "number for shape": lambda tf: {"b": tf.io.FixedLenFeature(6, tf.int64)},
    "dtype of NumPy": lambda tf: {"b": tf.io.FixedLenFeature(6, np.int64)},
    "size unknown": lambda tf: {"b": tf.io.FixedLenFeature([None], tf.int64)},
    "size negative": lambda tf: {"b": tf.io.FixedLenFeature([-1], tf.int64)},
    "missing": lambda tf: {"z": tf.io.FixedLenFeature([], tf.int64)},
    "missing with default": lambda tf: {"z": tf.io.FixedLenFeature([], tf.int64, 7)},
    "missing with list": lambda tf: {"z": tf.io.FixedLenFeature([2], tf.int64, [7, 8])},
    "missing with too few": lambda tf: {"z": tf.io.FixedLenFeature([2], tf.int64, 7)},
    "default of text": lambda tf: {"z": tf.io.FixedLenFeature([], tf.string, "x")},
    "default of wrong type": lambda tf: {"z": tf.io.FixedLenFeature([], tf.int64, "x")},
    "default of fraction": lambda tf: {"z": tf.io.FixedLenFeature([], tf.int64, 1.5)},
    "unset": lambda tf: {"d": tf.io.FixedLenFeature([], tf.int64)},
    "unset with default": lambda tf: {"d": tf.io.FixedLenFeature([], tf.int64, 5)},
    "empty list": lambda tf: {"e": tf.io.FixedLenFeature([], tf.int64)},
    "empty list with default": lambda tf: {"e": tf.io.FixedLenFeature([], tf.int64, 5)},
    "empty list of shape 0": lambda tf: {"e": tf.io.FixedLenFeature([0], tf.int64)},
    "wrong kind": lambda tf: {"a": tf.io.FixedLenFeature([], tf.float32)},
    "wrong count": lambda tf: {"b": tf.io.FixedLenFeature([2], tf.int64)},
    "dtype no record has": lambda tf: {"a": tf.io.FixedLenFeature([], tf.int32)},
    "var": lambda tf: {"b": tf.io.VarLenFeature(tf.int64), "c": tf.io.VarLenFeature(tf.string)},
    "var missing": lambda tf: {"z": tf.io.VarLenFeature(tf.int64)},
    "var wrong kind": lambda tf: {"a": tf.io.VarLenFeature(tf.float32)},
    "var empty of wrong kind": lambda tf: {"e": tf.io.VarLenFeature(tf.float32)},
    "sequence": lambda tf: {"b": tf.io.FixedLenSequenceFeature([3], tf.int64, allow_missing=True)},
    "sequence of scalars": lambda tf: {"c": tf.io.FixedLenSequenceFeature([], tf.string, True)},
    "sequence with default": lambda tf: {"b": tf.io.FixedLenSequenceFeature([], tf.int64, True, -1)},
    "sequence that does not divide": lambda tf: {"b": tf.io.FixedLenSequenceFeature([4], tf.int64, True)},
    "sequence must allow missing": lambda tf: {"b": tf.io.FixedLenSequenceFeature([3], tf.int64)},
    "sequence missing": lambda tf: {"z": tf.io.FixedLenSequenceFeature([3], tf.int64, True)},
    "ragged": lambda tf: {"b": tf.io.RaggedFeature(tf.int64)},
    "ragged by another name": lambda tf: {"q": tf.io.RaggedFeature(tf.int64, value_key="b")},
    "ragged missing": lambda tf: {"z": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)},
    "no features": lambda tf: {},
    "none": lambda tf: None,
    "no spec": lambda tf: {"a": 3},
    "name that is a number": lambda tf: {1: tf.io.FixedLenFeature([], tf.int64)},
}


@pytest.mark.parametrize("name", FEATURES)
def test_parse_of_one_record_is_tensorflows(name: str) -> None:
    run_both(lambda tf: tf.io.parse_single_example(example(tf, **FIRST), FEATURES[name](tf)))


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("rows", [[FIRST, SECOND, {}], [SECOND, SECOND], [FIRST], []], ids=["3", "2", "1", "0"])
def test_parse_of_a_batch_is_tensorflows(name: str, rows: list[dict[str, Any]]) -> None:
    def script(tf: Any) -> Any:
        records = np.array([example(tf, **row) for row in rows], object)
        return tf.io.parse_example(tf.constant(records, tf.string), FEATURES[name](tf))

    run_both(script)


@pytest.mark.parametrize(
    "record",
    [b"\x0a\x05a", "abc", [b""], np.array([b""]), b"\x1a\x01a"],
    ids=["cut", "text", "list", "array", "unknown"],
)
def test_parse_of_what_is_no_record_is_refused_as_tensorflow_does(record: Any) -> None:
    run_both(lambda tf: tf.io.parse_single_example(record, {"a": tf.io.FixedLenFeature([], tf.int64, 0)}))


CONTEXT = {"id": ("int64", [7]), "n": ("bytes", [b"nm"])}
LISTS = {
    "x": [("int64", [1, 2]), ("int64", [3, 4])],
    "y": [("int64", [1]), ("int64", [2, 3]), ("int64", [])],
    "z": [],
    "u": [("unset", []), ("int64", [5])],
    "s": [("bytes", [b"a"]), ("bytes", [b"bc"])],
}
SEQUENCES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "both": lambda tf: (
        {"id": tf.io.FixedLenFeature([], tf.int64)},
        {"x": tf.io.FixedLenSequenceFeature([2], tf.int64), "y": tf.io.VarLenFeature(tf.int64)},
    ),
    "context only": lambda tf: ({"id": tf.io.FixedLenFeature([], tf.int64)}, None),
    "context with default": lambda tf: (
        {"zz": tf.io.FixedLenFeature([], tf.int64, 4), "v": tf.io.VarLenFeature(tf.int64)},
        {},
    ),
    "context missing": lambda tf: ({"zz": tf.io.FixedLenFeature([], tf.int64)}, {}),
    "context of wrong kind": lambda tf: ({"id": tf.io.FixedLenFeature([], tf.float32)}, {}),
    "context as sequence": lambda tf: ({"id": tf.io.FixedLenSequenceFeature([], tf.int64, True)}, {}),
    "strings": lambda tf: ({}, {"s": tf.io.FixedLenSequenceFeature([], tf.string)}),
    "frames of wrong length": lambda tf: ({}, {"x": tf.io.FixedLenSequenceFeature([], tf.int64)}),
    "frames of several lengths": lambda tf: ({}, {"y": tf.io.FixedLenSequenceFeature([], tf.int64)}),
    "missing": lambda tf: ({}, {"m": tf.io.FixedLenSequenceFeature([], tf.int64)}),
    "missing allowed": lambda tf: ({}, {"m": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}),
    "missing as sparse": lambda tf: ({}, {"m": tf.io.VarLenFeature(tf.int64)}),
    "no frames": lambda tf: ({}, {"z": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}),
    "no frames as sparse": lambda tf: ({}, {"z": tf.io.VarLenFeature(tf.int64)}),
    "unset frame": lambda tf: ({}, {"u": tf.io.FixedLenSequenceFeature([], tf.int64)}),
    "unset frame as sparse": lambda tf: ({}, {"u": tf.io.VarLenFeature(tf.int64)}),
    "ragged": lambda tf: ({}, {"y": tf.io.RaggedFeature(tf.int64)}),
    "wrong kind": lambda tf: ({}, {"y": tf.io.VarLenFeature(tf.float32)}),
    "fixed": lambda tf: ({}, {"x": tf.io.FixedLenFeature([2], tf.int64)}),
    "default": lambda tf: ({}, {"x": tf.io.FixedLenSequenceFeature([2], tf.int64, True, 3)}),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_parse_of_a_sequence_is_tensorflows(name: str) -> None:
    run_both(lambda tf: tf.io.parse_single_sequence_example(sequence(tf, CONTEXT, LISTS), *SEQUENCES[name](tf)))


@pytest.mark.parametrize("name", SEQUENCES)
def test_parse_of_a_batch_of_sequences_is_tensorflows(name: str) -> None:
    def script(tf: Any) -> Any:
        other = sequence(tf, CONTEXT, {"x": [("int64", [5, 6])], "y": [("int64", [9])], "s": [("bytes", [b"d"])]})
        return tf.io.parse_sequence_example([sequence(tf, CONTEXT, LISTS), other], *SEQUENCES[name](tf))

    run_both(script)


ARRAY_SCRIPTS: dict[str, Script] = {
    "raw": lambda tf: tf.io.decode_raw(b"\1\2\3\4", tf.uint16),
    "raw of several": lambda tf: tf.io.decode_raw([b"\1\2", b"\3\4"], tf.uint8),
    "raw of several lengths": lambda tf: tf.io.decode_raw([b"\1\2", b"\3"], tf.uint8),
    "raw that does not divide": lambda tf: tf.io.decode_raw(b"\1\2\3", tf.uint16),
    "raw of the other order": lambda tf: tf.io.decode_raw(b"\1\2", tf.uint16, little_endian=False),
    "raw booleans": lambda tf: tf.io.decode_raw(b"\1\0", tf.bool),
    "raw nothing": lambda tf: tf.io.decode_raw(b"", tf.float32),
    "raw floats": lambda tf: tf.io.decode_raw(np.arange(3.0).tobytes(), tf.float64),
    "reshape": lambda tf: tf.reshape([1, 2, 3, 4], [2, -1]),
    "reshape by tensors": lambda tf: tf.reshape(np.arange(6), [tf.constant(2, tf.int64), 3]),
    "reshape that does not fit": lambda tf: tf.reshape([1, 2, 3], [2, 2]),
    "cast": lambda tf: [
        tf.cast([1.9, -1.9, 300.0], tf.uint8),
        tf.cast([1.9, -1.9], tf.int32),
        tf.cast([0, 2], tf.bool),
    ],
    "cast by name": lambda tf: tf.cast(np.array([1, 2]), "float32"),
    "cast of text": lambda tf: tf.cast(b"a", tf.int32),
    "scale": lambda tf: tf.cast(np.arange(4, dtype=np.uint8), tf.float32) * (1.0 / 255) - 0.5,
    "constants": lambda tf: [
        tf.constant(1.5),
        tf.constant(1),
        tf.constant("a"),
        tf.constant([1, 2]),
        tf.constant(2**40),
    ],
    "constant of shape": lambda tf: tf.constant(3, shape=[2, 2]),
    "stack": lambda tf: [tf.stack([tf.constant(1), 2, 3]), tf.concat([[1, 2], [3]], 0)],
    "dimensions": lambda tf: [tf.squeeze([[1], [2]]), tf.expand_dims([1, 2], -1), tf.shape(np.zeros((2, 3)))],
    "one hot": lambda tf: tf.one_hot([0, 2, 5], 3),
    "tensor and back": lambda tf: tf.io.parse_tensor(tf.io.serialize_tensor(np.arange(6).reshape(2, 3)), tf.int64),
    "tensor bytes": lambda tf: [tf.io.serialize_tensor(np.float32(1)), tf.io.serialize_tensor(["a", "b\0"])],
    "tensor of another type": lambda tf: tf.io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32),
    "tensor of nothing": lambda tf: tf.io.parse_tensor(b"xx", tf.float32),
    "dense": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[0, 1]], np.array([5]), [2, 2])),
    "dense with default": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[0, 1]], [5], [2, 2]), default_value=-1),
    "dense text": lambda tf: tf.sparse.to_dense(tf.SparseTensor([[0, 1]], [b"a"], [2, 2])),
    "dtypes": lambda tf: [tf.int64 == np.int64, tf.string == np.object_, tf.float32.name, tf.as_dtype("uint8").size],
    "bytes and text": lambda tf: [tf.compat.as_bytes("é"), tf.compat.as_text(b"a"), tf.compat.as_str(b"a")],
}


def apply(tf: Any, function: Callable[[Any], Any], *values: Any) -> list[Any]:
    """The results of a map step, as people write it around a function of Python."""
    return list(tf.data.Dataset.from_tensor_slices(list(values)).map(function))


PYTHON_CALLS: dict[str, Script] = {
    "with tensors": lambda tf: tf.py_function(lambda a, b: a.numpy() + b.numpy(), (tf.constant(1.5), 2.0), tf.float32),
    "several results": lambda tf: tf.py_function(lambda a: (a, b"%d" % a), [tf.constant(3)], [tf.int32, tf.string]),
    "one result in a list": lambda tf: tf.py_function(lambda a: [a], [tf.constant(3)], [tf.int32]),
    "no result": lambda tf: tf.py_function(lambda a: None, [tf.constant(3)], []),
    "mapped": lambda tf: apply(tf, lambda a: tf.py_function(lambda v: v.numpy() * 2, [a], tf.int32), 1, 2),
    "mapped, converted": lambda tf: apply(tf, lambda a: tf.py_function(lambda v: 0.5, [a], tf.float32), 1),
    "mapped, text": lambda tf: apply(tf, lambda a: tf.py_function(lambda v: v.numpy() + b"!", [a], tf.string), b"a"),
    "with NumPy": lambda tf: tf.numpy_function(lambda a: a * 2, [np.arange(3)], tf.int64),
    "with NumPy, mapped": lambda tf: apply(tf, lambda a: tf.numpy_function(np.square, [a], tf.int32), 3, 4),
    "with NumPy, text": lambda tf: apply(tf, lambda a: tf.numpy_function(lambda v: v + b"!", [a], tf.string), b"a"),
    "of another type": lambda tf: apply(tf, lambda a: tf.numpy_function(lambda v: 0.5, [a], tf.float32), 1),
    "too many results": lambda tf: apply(
        tf, lambda a: tf.numpy_function(lambda v: (v, v, v), [a], [tf.int32, tf.int32]), 1
    ),
    "its old name": lambda tf: apply(tf, lambda a: tf.compat.v1.py_func(np.square, [a], tf.int32), 3),
    "numbers of rank 0 in lists": lambda tf: [
        tf.train.FloatList(value=[tf.constant(1.5), tf.constant(3), tf.constant(True)]).SerializeToString(),
        tf.train.Int64List(value=[tf.constant(3), tf.constant(4, tf.int64)]).SerializeToString(),
    ],
    "a row in a list of floats": lambda tf: tf.train.FloatList(value=[tf.constant([1.5])]),
}


@pytest.mark.parametrize("name", PYTHON_CALLS)
def test_function_of_the_script_gives_tensorflows_values(name: str) -> None:
    run_both(PYTHON_CALLS[name])


@pytest.mark.parametrize("name", ARRAY_SCRIPTS)
def test_operation_gives_tensorflows_values(name: str) -> None:
    run_both(ARRAY_SCRIPTS[name])


def encode(picture: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def pictures() -> dict[str, bytes]:
    rng = np.random.default_rng(5)
    smooth = np.add.outer(np.arange(24) * 5, np.arange(16) * 6)[:, :, None] + np.array([0, 20, 40])
    colour = Image.fromarray(smooth.astype(np.uint8))
    palette = Image.fromarray(rng.integers(0, 21, (24, 16), dtype=np.uint8), "P")
    palette.putpalette(rng.integers(0, 256, 768, dtype=np.uint8).tobytes())
    deep = Image.fromarray(rng.integers(0, 65536, (24, 16), dtype=np.uint16))
    exif = Image.Exif()
    exif[0x0112] = 6  # an EXIF orientation, which TensorFlow ignores
    return {
        "rgb png": encode(colour, "PNG"),
        "gray png": encode(colour.convert("L"), "PNG"),
        "palette png": encode(palette, "PNG"),
        "transparent palette png": encode(palette, "PNG", transparency=3),
        "rgba png": encode(colour.convert("RGBA"), "PNG"),
        "gray alpha png": encode(colour.convert("LA"), "PNG"),
        "bits png": encode(colour.convert("1"), "PNG"),
        "deep png": encode(deep, "PNG"),
        "jpeg": encode(colour, "JPEG", quality=95),
        "turned jpeg": encode(colour, "JPEG", quality=95, exif=exif),
        "gray jpeg": encode(colour.convert("L"), "JPEG", quality=95),
        "bmp": encode(colour, "BMP"),
        "gif": encode(palette, "GIF"),
        "nothing": b"nothing",
        "half a jpeg": encode(colour, "JPEG")[:300],
    }


@pytest.mark.parametrize("name", pictures())
@pytest.mark.parametrize("channels", [0, 1, 3, 4])
def test_pictures_decode_as_in_tensorflow(name: str, channels: int) -> None:
    data = pictures()[name]

    def script(tf: Any) -> Any:
        try:
            return np.asarray(tf.io.decode_image(data, channels=channels).numpy())
        except tf.errors.InvalidArgumentError:
            return None

    theirs, mine = script(real), script(ours)
    assert (mine is None) == (theirs is None)
    if mine is not None:
        if name == "bits png" and channels == 4:
            theirs[..., 3] = 255  # where TensorFlow gives 1 for a pixel that is not transparent
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        is_exact = "jpeg" not in name and (channels != 1 or name.startswith(("gray", "bits", "deep")))
        # JPEG decoders and weights of colours in gray differ by rounding.
        assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= (0 if is_exact else 3)


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_each_reads_what_the_other_wrote(tmp_path: Path, compression: str) -> None:
    records = [b"", b"abc", bytes(1000)]
    for writes, reads in ((real, ours), (ours, real)):
        path = str(tmp_path / f"{writes.__name__}{compression}")
        with writes.io.TFRecordWriter(path, compression) as writer:
            for record in records:
                writer.write(record)
            writer.flush()
        assert [r.numpy() for r in reads.data.TFRecordDataset(path, compression_type=compression)] == records
        options = reads.compat.v1.io.TFRecordOptions(compression_type=compression)
        assert list(reads.compat.v1.io.tf_record_iterator(path, options)) == records
    if compression == "":
        assert (tmp_path / ours.__name__).read_bytes() == (tmp_path / real.__name__).read_bytes()


FILE_SCRIPTS: dict[str, Callable[[Any, str], Any]] = {
    "missing file": lambda tf, folder: list(tf.data.TFRecordDataset(f"{folder}/nope")),
    "missing folder": lambda tf, folder: tf.io.TFRecordWriter(f"{folder}/no/pe"),
    "no TFRecord": lambda tf, folder: list(tf.data.TFRecordDataset(f"{folder}/text")),
    "unknown compression": lambda tf, folder: tf.io.TFRecordWriter(f"{folder}/x", "gzip"),
    "unknown compression in options": lambda tf, folder: tf.io.TFRecordOptions(compression_type="xz"),
    "compression of options": lambda tf, folder: [
        tf.compat.v1.io.TFRecordOptions.get_compression_type_string(given)
        for given in [
            tf.io.TFRecordOptions(),
            tf.io.TFRecordOptions("GZIP"),
            tf.compat.v1.python_io.TFRecordOptions(tf.compat.v1.python_io.TFRecordCompressionType.ZLIB),
            "GZIP",
            None,
        ]
    ],
    "exists": lambda tf, folder: [tf.io.gfile.exists(folder), tf.compat.v1.gfile.Exists(f"{folder}/nope")],
    "list": lambda tf, folder: sorted(tf.io.gfile.listdir(folder)),
    "glob": lambda tf, folder: sorted(tf.compat.v1.gfile.Glob(f"{folder}/t*")),
    "read": lambda tf, folder: tf.io.gfile.GFile(f"{folder}/text").read(),
    "read lines": lambda tf, folder: list(tf.compat.v1.gfile.GFile(f"{folder}/text", "r")),
    "read bytes": lambda tf, folder: tf.compat.v1.gfile.FastGFile(f"{folder}/text", "rb").read(),
    "remove what is not there": lambda tf, folder: tf.io.gfile.remove(f"{folder}/nope"),
    "list what is not there": lambda tf, folder: tf.io.gfile.listdir(f"{folder}/nope"),
    "copy onto a file": lambda tf, folder: tf.io.gfile.copy(f"{folder}/text", f"{folder}/text"),
    "read file": lambda tf, folder: tf.io.read_file(f"{folder}/text"),
    "read file that is not there": lambda tf, folder: tf.io.read_file(f"{folder}/nope"),
}


@pytest.mark.parametrize("name", FILE_SCRIPTS)
def test_files_are_handled_as_in_tensorflow(tmp_path: Path, name: str) -> None:
    (tmp_path / "text").write_bytes("this is no TFRecord, it is text: é\r\nsecond\n".encode())
    run_both(lambda tf: FILE_SCRIPTS[name](tf, str(tmp_path)))


def test_closed_writer_refuses_as_tensorflows(tmp_path: Path) -> None:
    for act in ("write", "flush", "close"):

        def script(tf: Any, act: str = act) -> Any:
            writer = tf.io.TFRecordWriter(str(tmp_path / "x"))
            writer.close()
            return getattr(writer, act)(*([b"a"] if act == "write" else []))

        run_both(script)


# --- datasets --------------------------------------------------------------------------------------------------------


def parse_var(tf: Any, record: Any) -> Any:
    return tf.io.parse_single_example(record, {"b": tf.io.VarLenFeature(tf.int64)})


DATASET_SCRIPTS: dict[str, Script] = {
    "slices": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2]),
    "slices of parts": lambda tf: tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b\0"], {"x": [[1.0, 2], [3, 4]]})),
    "slices of lengths": lambda tf: tf.data.Dataset.from_tensor_slices(([1, 2], [1])),
    "tensors": lambda tf: tf.data.Dataset.from_tensors({"a": [1, 2]}),
    "map to list": lambda tf: tf.data.Dataset.from_tensor_slices([1, 2]).map(lambda x: [x, x + 1]),
    "map of tuple": lambda tf: tf.data.Dataset.range(3).map(lambda x: (x, x + 1)).map(lambda a, b: a * b),
    "map of dict": lambda tf: tf.data.Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda part: part["a"]),
    "map to numbers": lambda tf: tf.data.Dataset.range(2).map(lambda x: {"a": 1.5, "b": 2, "c": "t"}),
    "batch": lambda tf: tf.data.Dataset.range(5).batch(2),
    "batch dropping": lambda tf: tf.data.Dataset.range(5).batch(2, drop_remainder=True),
    "batch of text": lambda tf: tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2),
    "batch of shapes": lambda tf: (
        tf.data.Dataset.range(4).map(lambda x: tf.reshape(tf.one_hot(0, tf.cast(x, tf.int32)), [-1])).batch(2)
    ),
    "batch of sparse": lambda tf: (
        tf.data.Dataset.from_tensor_slices([example(tf, **row) for row in (FIRST, SECOND, {})])
        .map(lambda record: parse_var(tf, record))
        .batch(2)
    ),
    "padded": lambda tf: (
        tf.data.Dataset.range(1, 4).map(lambda x: tf.one_hot(0, tf.cast(x, tf.int32))).padded_batch(2, [None])
    ),
    "padded to": lambda tf: (
        tf.data.Dataset.range(1, 4).map(lambda x: tf.one_hot(0, tf.cast(x, tf.int32))).padded_batch(2, [4], -1.0)
    ),
    "padded too small": lambda tf: (
        tf.data.Dataset.range(1, 4).map(lambda x: tf.one_hot(0, tf.cast(x, tf.int32))).padded_batch(2, [1])
    ),
    "filter": lambda tf: tf.data.Dataset.range(5).filter(lambda x: x % 2 == 0),
    "take": lambda tf: tf.data.Dataset.range(5).take(2),
    "take all": lambda tf: tf.data.Dataset.range(5).take(-1),
    "skip": lambda tf: tf.data.Dataset.range(5).skip(3),
    "skip all": lambda tf: tf.data.Dataset.range(5).skip(-1),
    "repeat": lambda tf: tf.data.Dataset.range(2).repeat(2),
    "repeat never": lambda tf: tf.data.Dataset.range(2).repeat(0),
    "repeat for ever": lambda tf: tf.data.Dataset.range(2).repeat().take(5),
    "shard": lambda tf: tf.data.Dataset.range(7).shard(3, 1),
    "enumerate": lambda tf: tf.data.Dataset.range(5, 7).enumerate(),
    "no ops": lambda tf: tf.data.Dataset.range(3).prefetch(tf.data.AUTOTUNE).cache().with_options(tf.data.Options()),
    "shuffle of one": lambda tf: tf.data.Dataset.range(5).shuffle(1),
}


@pytest.mark.parametrize("name", DATASET_SCRIPTS)
def test_dataset_gives_tensorflows_elements(name: str) -> None:
    run_both(lambda tf: list(DATASET_SCRIPTS[name](tf)))


def test_shuffle_gives_all_elements_again_and_again() -> None:
    def script(tf: Any) -> Any:
        data = tf.data.Dataset.range(20).shuffle(7, seed=3)
        first, second = list(data.as_numpy_iterator()), list(data.as_numpy_iterator())
        fixed = tf.data.Dataset.range(20).shuffle(20, seed=3, reshuffle_each_iteration=False)
        again = list(fixed.as_numpy_iterator()) == list(fixed.as_numpy_iterator())
        # The first of a buffer of 7 is one of the first 7.
        return [sorted(first), sorted(second), first != second, first[0] < 7, again]

    run_both(script)


def test_iterator_of_values_ends_as_tensorflows() -> None:
    def script(tf: Any) -> Any:
        iterator = iter(tf.data.Dataset.range(2))
        seen = [next(iterator), iterator.get_next()]
        try:
            iterator.get_next()
        except tf.errors.OutOfRangeError:
            seen.append("end")
        return [*seen, next(iterator, "stop")]

    run_both(script)


# --- TensorFlow 1 ----------------------------------------------------------------------------------------------------


def write_digits(tf: Any, path: Path) -> None:
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for number in range(10):
            writer.write(example(tf, data=("int64", [number]), pixels=("bytes", [bytes(range(number, number + 12))])))


def run_both_v1(script: Callable[[Any, Path], Any], tmp_path: Path) -> Any:
    """Under `tensorflow.compat.v1` in a graph, and under ours."""
    results = []
    for tf in (real.compat.v1, ours, ours.compat.v1):
        path = tmp_path / "digits.tfrecords"
        path.unlink(missing_ok=True)
        write_digits(tf, path)
        with tf.Graph().as_default():
            results.append(plain(script(tf, path)))
    assert results[1] == results[0]
    assert results[2] == results[0]
    return results[0]


def parse_digit(tf: Any, record: Any) -> tuple[Any, Any]:
    parsed = tf.parse_single_example(
        record, {"data": tf.FixedLenFeature([], tf.int64), "pixels": tf.FixedLenFeature([], tf.string)}
    )
    pixels = tf.reshape(tf.decode_raw(parsed["pixels"], tf.uint8), [2, 2, 3])
    return tf.cast(pixels, tf.float32) * (1.0 / 255) - 0.5, tf.cast(parsed["data"], tf.int32)


def test_one_shot_iterator_in_a_session_is_tensorflows(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        iterator = (
            tf.data.TFRecordDataset([str(path)]).map(lambda record: parse_digit(tf, record)).make_one_shot_iterator()
        )
        pixels, data = iterator.get_next()
        seen = []
        config = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
        with tf.Session(config=config) as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            try:
                while True:
                    seen.append(session.run([pixels, {"data": data}]))
            except tf.errors.OutOfRangeError:
                seen.append("end")
        return seen

    assert len(run_both_v1(script, tmp_path)) == 11


def test_initializable_iterator_in_a_session_is_tensorflows(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        data = tf.data.TFRecordDataset(str(path)).map(lambda record: {"number": parse_digit(tf, record)[1]}).batch(4)
        iterator = tf.data.make_initializable_iterator(data)
        element = iterator.get_next()
        seen = []
        with tf.Session() as session:
            try:
                session.run(element)
            except tf.errors.FailedPreconditionError:
                seen.append("not started")
            for _ in range(2):
                session.run(iterator.initializer)
                try:
                    while True:
                        seen.append(session.run(element["number"]))
                except tf.errors.OutOfRangeError:
                    seen.append("end")
        return seen

    assert len(run_both_v1(script, tmp_path)) == 9


def test_missing_file_is_reported_when_the_session_runs(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        element = tf.data.TFRecordDataset(f"{path}.nope").make_one_shot_iterator().get_next()
        with tf.Session() as session:
            try:
                session.run(element)
            except tf.errors.NotFoundError:
                return "not found"

    assert run_both_v1(script, tmp_path) == "not found"


def test_input_queue_in_order_is_tensorflows(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        queue = tf.train.string_input_producer([str(path)], num_epochs=2, shuffle=False)
        key, record = tf.TFRecordReader().read(queue)
        pixels, number = parse_digit(tf, record)
        keys, batch, numbers = tf.train.batch([key, pixels, number], batch_size=4)
        seen = []
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
            try:
                while not coordinator.should_stop():
                    seen.append(session.run([keys, batch, numbers]))
            except tf.errors.OutOfRangeError:
                seen.append("end")
            finally:
                coordinator.request_stop()
            coordinator.join(threads)
        return seen

    assert len(run_both_v1(script, tmp_path)) == 6


def test_shuffled_input_queue_keeps_pictures_with_their_numbers(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        queue = tf.train.string_input_producer([str(path)], num_epochs=1)
        _, record = tf.TFRecordReader().read(queue)
        pixels, number = parse_digit(tf, record)
        batch, numbers = tf.train.shuffle_batch(
            [pixels, number], batch_size=4, capacity=8, min_after_dequeue=3, allow_smaller_final_batch=True
        )
        pairs, sizes = [], []
        with tf.Session() as session:
            session.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
            try:
                while True:
                    some, names = session.run([batch, numbers])
                    sizes.append(len(some))
                    pairs += [(int(name), some[i].tobytes()) for i, name in enumerate(names)]
            except tf.errors.OutOfRangeError:
                pass
            coordinator.request_stop()
            coordinator.join(threads)
        return [sorted(pairs), sizes]

    assert len(run_both_v1(script, tmp_path)[0]) == 10


def test_placeholders_are_fed_as_in_tensorflow(tmp_path: Path) -> None:
    def script(tf: Any, path: Path) -> Any:
        given = tf.placeholder(tf.string, shape=[])
        pixels, number = parse_digit(tf, given)
        sparse = tf.parse_single_example(given, {"data": tf.VarLenFeature(tf.int64)})["data"]
        dense = tf.sparse_tensor_to_dense(sparse)
        seen = []
        with tf.Session() as session:
            for record in tf.python_io.tf_record_iterator(str(path)):
                seen.append(session.run([pixels, number, sparse, dense, sparse.values], feed_dict={given: record}))
            try:
                session.run(number)
            except tf.errors.InvalidArgumentError:
                seen.append("not fed")
        return seen

    assert len(run_both_v1(script, tmp_path)) == 11


# --- the tutorials ---------------------------------------------------------------------------------------------------

TUTORIALS = Path(__file__).parents[2] / "examples" / "tutorials"
IMPORT = "from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf"


def make_pictures(folder: Path, names: list[str], form: str) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(6)
    for name in names:
        Image.fromarray(rng.integers(0, 256, (60, 160, 3), dtype=np.uint8)).save(folder / f"{name}.{form}")


def make_inputs(folder: Path) -> dict[str, list[str]]:
    """Inputs of the scripts: arguments before the output, by script."""
    make_pictures(folder / "captchas", ["7KQ3X_1", "aB3dE_2", "00000_3", "zzZZ9_4"], "png")
    make_pictures(folder / "fruit", ["apple01", "apple02", "orange01"], "jpg")
    make_pictures(folder / "VOC" / "JPEGImages", ["000032", "000039", "000042"], "jpg")
    for name in ("SegmentationClass", "ImageSets/Segmentation"):
        (folder / "VOC" / name).mkdir(parents=True)
    for name in ("000032", "000039", "000042"):
        mask = Image.fromarray(np.random.default_rng(7).choice([0, 20, 255], (60, 160)).astype(np.uint8), "P")
        mask.putpalette(bytes(range(256)) * 3)
        mask.save(folder / "VOC" / "SegmentationClass" / f"{name}.png")
    (folder / "VOC/ImageSets/Segmentation/train.txt").write_text("000032\n000039\n")
    (folder / "VOC/ImageSets/Segmentation/val.txt").write_text("000042\n")
    return {
        "job1_captchas": [f"{folder}/captchas"],
        "job2_fruit": [f"{folder}/fruit"],
        "job3_arrays": [f"{folder}/fruit/apple01.jpg"],
        "job4_voc_segmentation": [f"{folder}/VOC"],
        "job5_options": [f"{folder}/fruit"],
    }


def run_job(name: str, tf_import: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    source = (TUTORIALS / f"{name}.py").read_text(encoding="utf-8")
    assert IMPORT in source
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), real.Graph().as_default():
        exec(compile(source.replace(IMPORT, tf_import), f"{name}.py", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.mark.parametrize(
    "name", ["job1_captchas", "job2_fruit", "job3_arrays", "job4_voc_segmentation", "job5_options"]
)
def test_tutorial_does_the_same_under_tensorflow(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = make_inputs(tmp_path / "in")[name]
    printed, records = {}, {}
    for side, line in {"theirs": "import tensorflow.compat.v1 as tf", "ours": IMPORT}.items():
        out = tmp_path / side / ("x.tfrecords" if name == "job2_fruit" else "out")
        out.parent.mkdir()
        printed[side] = run_job(
            name, line, [*given, str(out), *(["1"] if name == "job1_captchas" else [])], monkeypatch
        )
        files = sorted(path for path in (tmp_path / side).rglob("*") if path.is_file() and path.name != "labels.txt")
        records[side] = {
            str(path.relative_to(tmp_path / side)): [
                type(message).FromString(bytes(record)).SerializeToString(deterministic=True)
                for record in ours.io.tf_record_iterator(path)
                for message in [
                    real.train.SequenceExample() if path.name == "names.tfrecords" else real.train.Example()
                ]
            ]
            for path in files
        }
    assert records["ours"] == records["theirs"]
    assert sum(map(len, records["ours"].values())) > 0
    lines = {
        side: [line for line in text.replace(str(tmp_path / side), "").splitlines() if "bytes" not in line]
        for side, text in printed.items()
    }
    # Labels of a shuffled batch are random; zlib sizes depend on the library.
    if name != "job2_fruit":
        assert lines["ours"] == lines["theirs"]
