"""TensorFlow and protobuf as the oracle: random messages, and one plain form for what every side reads.

The plain form of a feature is ``(kind, values)`` with kind "int64", "float", "bytes" or None (no list is set), floats
as the bits of their float32, so that -0.0, infinities and NaN compare. The plain form of a row is a dict of these; of a
SequenceExample, a pair of a row and a dict of lists of features.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tfrkit as tfr

COMPRESSIONS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
COUNTS = (0, 1, 300)
NAMES = ["label", "image/encoded", "a", "", "a\x00b", "ключ", "鍵🔑", "x" * 200, "é", "e\u0301"]

Plain = tuple[str | None, list[Any]]


# -- plain forms -------------------------------------------------------------------------------------------------------


def float_bits(value: float) -> int:
    """Return the bits of a float32; all NaNs are one."""
    if value != value:
        return 0x7FC00000
    return struct.unpack("<I", struct.pack("<f", value))[0]


def plain_message(feature: Any) -> Plain:
    """Return the plain form of a tf.train.Feature."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None, []
    values = list(getattr(feature, kind).value)
    kind = kind.removesuffix("_list")
    return kind, [float_bits(value) for value in values] if kind == "float" else values


def plain_features(features: Any) -> dict[str, Plain]:
    """Return the plain form of a tf.train.Features."""
    return {name: plain_message(feature) for name, feature in features.feature.items()}


def plain_example(payload: bytes) -> dict[str, Plain]:
    """Return the plain form of an Example as protobuf parses it."""
    return plain_features(tf.train.Example.FromString(payload).features)


def plain_sequence(payload: bytes) -> tuple[dict[str, Plain], dict[str, list[Plain]]]:
    """Return the plain form of a SequenceExample as protobuf parses it."""
    message = tf.train.SequenceExample.FromString(payload)
    lists = {
        name: [plain_message(feature) for feature in steps.feature]
        for name, steps in message.feature_lists.feature_list.items()
    }
    return plain_features(message.context), lists


def plain_value(value: Any) -> Plain:
    """Return the plain form of what tfrkit gives for a feature."""
    if value is None:
        return None, []
    if isinstance(value, bytes):
        return "bytes", [value]
    if isinstance(value, (int, np.integer)):
        return "int64", [int(value)]
    if isinstance(value, (float, np.floating)):
        return "float", [float_bits(float(value))]
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == 1:
        return "int64", value.tolist()
    if isinstance(value, np.ndarray) and value.dtype == np.float32 and value.ndim == 1:
        return "float", [float_bits(item) for item in value.tolist()]
    if isinstance(value, (list, tfr.BytesColumn)):
        assert all(isinstance(item, bytes) for item in value), value
        return "bytes", list(value)
    raise AssertionError(f"tfrkit gave {type(value)}: {value!r}")


def plain_row(row: dict[str, Any]) -> dict[str, Plain]:
    """Return the plain form of a tfrkit row."""
    return {name: plain_value(value) for name, value in row.items()}


def plain_sequence_row(row: dict[str, Any]) -> tuple[dict[str, Plain], dict[str, list[Plain]]]:
    """Return the plain form of a tfrkit row of a SequenceExample."""
    lists = {name: [plain_value(step) for step in steps] for name, steps in row["feature_lists"].items()}
    return plain_row(row["context"]), lists


def plain_columns(columns: dict[str, Any]) -> Iterator[dict[str, Plain]]:
    """Yield the rows of a batch of Examples, read off its columns."""
    num_rows = {len(column) for column in columns.values()}
    assert len(num_rows) <= 1, "columns of one batch differ in length"
    for index in range(num_rows.pop() if num_rows else 0):
        row = {}
        for name, column in columns.items():
            state = 2 if getattr(column, "presence", None) is None else column.presence[index]
            if state != 0:
                row[name] = plain_value(column[index]) if state == 2 else (None, [])
        yield row


def plain_frame_lists(lists: dict[str, Any]) -> Iterator[dict[str, list[Plain]]]:
    """Yield the feature lists of each row of a batch of SequenceExamples."""
    num_rows = {len(column) for column in lists.values()}
    assert len(num_rows) <= 1, "columns of one batch differ in length"
    for index in range(num_rows.pop() if num_rows else 0):
        row = {}
        for name, column in lists.items():
            if column.presence is None or column.presence[index] != 0:
                frames = column[index]
                states = getattr(frames, "presence", None)
                row[name] = [
                    plain_value(frame) if states is None or states[number] == 2 else (None, [])
                    for number, frame in enumerate(frames)
                ]
        yield row


# -- random messages ---------------------------------------------------------------------------------------------------


def random_values(rng: random.Random, kind: str, count: int) -> list[Any]:
    """Return values with the edges of their kind among them."""
    if kind == "int64":
        edges = (0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63))
        return [rng.choice(edges) if rng.random() < 0.3 else rng.getrandbits(rng.randint(1, 63)) for _ in range(count)]
    if kind == "float":
        edges = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), float(np.float32(1e-45)), 3.4028234663852886e38)
        return [rng.choice(edges) if rng.random() < 0.3 else float(np.float32(rng.gauss(0, 1e3))) for _ in range(count)]
    return [
        rng.choice((b"", b"\x00", b"a\x00")) if rng.random() < 0.3 else rng.randbytes(rng.randint(1, 40))
        for _ in range(count)
    ]


def to_feature(kind: str | None, values: list[Any]) -> Any:
    """Return a tf.train.Feature."""
    if kind is None:
        return tf.train.Feature()
    lists = {"int64": tf.train.Int64List, "float": tf.train.FloatList, "bytes": tf.train.BytesList}
    return tf.train.Feature(**{f"{kind}_list": lists[kind](value=values)})


def random_layout(rng: random.Random) -> dict[str, tuple[str, Callable[[], int], float, float]]:
    """Choose, for some names, kind, number of values, and how often it is absent or sets no list.

    The first one is never absent: a batch without columns does not tell its number of rows.
    """
    layout = {}
    for name in rng.sample(NAMES, rng.randint(1, len(NAMES))):
        width = rng.choice((1, 1, 3, None))
        length = (lambda: rng.randint(0, 5)) if width is None else (lambda width=width: width)
        layout[name] = (
            rng.choice(("int64", "float", "bytes")),
            length,
            rng.choice((0, 0, 0.3)) if layout else 0,
            rng.choice((0, 0, 0.2)),
        )
    return layout


def random_examples(rng: random.Random, count: int) -> list[bytes]:
    """Return serialized Examples in which a name keeps its kind."""
    layout = random_layout(rng)
    return [tf.train.Example(features=random_features(rng, layout)).SerializeToString() for _ in range(count)]


def random_features(rng: random.Random, layout: dict[str, Any]) -> Any:
    """Return a tf.train.Features."""
    features = {}
    for name, (kind, length, absent, unset) in layout.items():
        if rng.random() >= absent:
            is_unset = rng.random() < unset
            features[name] = to_feature(None if is_unset else kind, random_values(rng, kind, length()))
    return tf.train.Features(feature=features)


def random_sequences(rng: random.Random, count: int) -> list[bytes]:
    """Return serialized SequenceExamples in which a name keeps its kind."""
    context, lists = random_layout(rng), random_layout(rng)
    payloads = []
    for _ in range(count):
        steps = {}
        for name, (kind, length, absent, unset) in lists.items():
            if rng.random() >= absent:
                steps[name] = tf.train.FeatureList(
                    feature=[
                        to_feature(None if rng.random() < unset else kind, random_values(rng, kind, length()))
                        for _ in range(rng.randint(0, 4))
                    ]
                )
        payloads.append(
            tf.train.SequenceExample(
                context=random_features(rng, context), feature_lists=tf.train.FeatureLists(feature_list=steps)
            ).SerializeToString()
        )
    return payloads


# -- TensorFlow's readers and writer -----------------------------------------------------------------------------------


def write_with_tensorflow(path: Path, payloads: list[bytes], compression: str) -> None:
    """Write payloads with ``tf.io.TFRecordWriter``."""
    with tf.io.TFRecordWriter(str(path), options=COMPRESSIONS[compression]) as writer:
        for payload in payloads:
            writer.write(payload)


def read_with_tensorflow(path: Path, compression: str) -> list[bytes]:
    """Return a file's payloads, once both of TensorFlow's readers agree on them."""
    option = COMPRESSIONS[compression]
    by_dataset = [record.numpy() for record in tf.data.TFRecordDataset(str(path), compression_type=option)]
    kinds = tf.compat.v1.io.TFRecordCompressionType
    kind = {"": kinds.NONE, "GZIP": kinds.GZIP, "ZLIB": kinds.ZLIB}[option]
    by_iterator = list(tf.compat.v1.io.tf_record_iterator(str(path), tf.compat.v1.io.TFRecordOptions(kind)))
    assert by_dataset == by_iterator
    return by_dataset
