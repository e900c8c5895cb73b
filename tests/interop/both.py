"""One script under real TensorFlow and under tfrkit.compat.

A script is a function of `tf`. What it returns, or the class of the error it raises, is compared.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as real

from tfrkit.compat import tensorflow as ours

Script = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """A value as something that compares, with its type: a NaN equals itself, -0.0 is not 0.0."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (real.SparseTensor, ours.SparseTensor, real.compat.v1.SparseTensorValue)) or hasattr(
        value, "dense_shape"
    ):
        return ("sparse", plain(value.indices), plain(value.values), plain(value.dense_shape))
    if isinstance(value, (real.RaggedTensor, ours.RaggedTensor)):
        return ("ragged", np.dtype(value.row_splits.numpy().dtype).name, value.to_list())
    if hasattr(value, "SerializeToString"):
        return (type(value).__name__, value.SerializeToString(deterministic=True))
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        content = array.tolist() if array.dtype.kind in "OS" else array.tobytes()
        return (array.dtype.name, array.shape, content)
    if isinstance(value, float):
        return struct.pack("<d", value) if not math.isnan(value) else "nan"
    return value


def outcome(script: Script, tf: Any) -> Any:
    try:
        return plain(script(tf))
    except Exception as error:  # noqa: BLE001 - which one it is gets compared
        return f"raises {type(error).__name__}"


def run_both(script: Script) -> Any:
    theirs, mine = outcome(script, real), outcome(script, ours)
    assert mine == theirs
    return mine


def feature(tf: Any, kind: str, values: Any) -> Any:
    lists = {"int64": "Int64List", "float": "FloatList", "bytes": "BytesList"}
    if kind == "unset":
        return tf.train.Feature()
    return tf.train.Feature(**{f"{kind}_list": getattr(tf.train, lists[kind])(value=values)})


def example(tf: Any, **features: tuple[str, Any]) -> bytes:
    made = {name: feature(tf, *given) for name, given in features.items()}
    return bytes(tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(deterministic=True))


def sequence(tf: Any, context: dict[str, Any], lists: dict[str, list[Any]]) -> bytes:
    made = {name: feature(tf, *given) for name, given in context.items()}
    frames = {
        name: tf.train.FeatureList(feature=[feature(tf, *given) for given in values]) for name, values in lists.items()
    }
    message = tf.train.SequenceExample(
        context=tf.train.Features(feature=made), feature_lists=tf.train.FeatureLists(feature_list=frames)
    )
    return bytes(message.SerializeToString(deterministic=True))
