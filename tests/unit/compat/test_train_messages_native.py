"""Messages that the core makes are those that Python makes, and are freed."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
from typing import Any

import numpy as np
import pytest

from tfrkit.compat import tensorflow as tf


class _Text(str):
    pass


VALUES: list[tuple[str, Any]] = [
    *(
        ("Int64List", values)
        for values in ([], [1], [-1, 0, 2**63 - 1, -(2**63)], (1, 2), range(3), [True], [np.int8(3)])
    ),
    *(("Int64List", values) for values in (np.arange(3), iter([4]), [2**63], [1.5], ["1"], [None], 7, "ab")),
    *(("FloatList", values) for values in ([], [0.1], [1e39, -1e39, 1e-50], [math.inf, -0.0], [1, 2**70], (0.5,))),
    *(("FloatList", values) for values in ([np.float64(0.1)], np.arange(3) / 7, ["1"], [None], [math.nan], [b""])),
    *(("BytesList", values) for values in ([], [b""], [b"a", b"\xff" * 300], (b"a",), [bytearray(b"a")], ["a"], b"ab")),
]


def outcome(make: Any) -> Any:
    try:
        message = make()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return message.SerializeToString(), str(message)


@pytest.mark.parametrize(("kind", "values"), VALUES)
def test_core_makes_the_lists_that_python_makes(kind: str, values: Any) -> None:
    def slowly() -> Any:
        message = getattr(tf.train, kind)()
        message._init(value=list(given) if is_iterator else given)
        return message

    is_iterator = hasattr(values, "__next__")
    given = list(values) if is_iterator else values
    assert outcome(lambda: getattr(tf.train, kind)(value=iter(given) if is_iterator else given)) == outcome(slowly)


@pytest.mark.parametrize("name", ["a", "", "größe", _Text("a"), b"a", "\udcff", 7, "n" * 300])
def test_core_makes_the_features_that_python_makes(name: Any) -> None:
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))

    def slowly() -> Any:
        message = tf.train.Features()
        message._init(feature={name: feature})
        return message

    found = outcome(lambda: tf.train.Features(feature={name: feature}))
    assert found == outcome(slowly)
    whole = outcome(lambda: tf.train.Example(features=tf.train.Features(feature={name: feature})))
    assert (whole[0][2:].endswith(found[0])) if isinstance(found, tuple) else whole == found


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.Feature(int64_list=tf.train.FloatList(value=[1.0])),
        lambda: tf.train.Feature(value=tf.train.FloatList(value=[1.0])),
        lambda: tf.train.Feature(tf.train.FloatList(value=[1.0])),
        lambda: tf.train.Features(feature={"a": tf.train.Int64List(value=[1])}),
        lambda: tf.train.Features(feature=[tf.train.Feature()]),
        lambda: tf.train.Example(features=tf.train.Feature()),
        lambda: tf.train.Example(feature={}),
        lambda: tf.train.Int64List([1]),
        lambda: tf.train.Int64List(values=[1]),
    ],
)
def test_wrong_arguments_of_messages_raise(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"expected|takes its fields by name|has no field"):
        make()


def test_float_list_rounds_a_copy() -> None:
    values = [0.1, 0.5]
    message = tf.train.FloatList(value=values)
    assert values == [0.1, 0.5]
    assert list(message.value) == [float(np.float32(0.1)), 0.5]


def test_messages_are_freed_also_in_cycles() -> None:
    values = [10**6, 10**7]

    def make() -> None:
        feature = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        example = tf.train.Example(features=tf.train.Features(feature={"a": feature}))
        example.SerializeToString()
        with contextlib.suppress(TypeError):
            tf.train.Int64List(value=[values[0], "x"])
        with contextlib.suppress(TypeError):
            tf.train.Features(feature={"a": feature, "b": 7})
        example.features.feature["b"].float_list.value.append(1)  # the fields refer to their messages

    make()
    gc.collect()
    before = sys.getrefcount(values[0]), sys.getrefcount(tf.train.Feature)
    for _ in range(50):
        make()
    gc.collect()
    assert (sys.getrefcount(values[0]), sys.getrefcount(tf.train.Feature)) == before
