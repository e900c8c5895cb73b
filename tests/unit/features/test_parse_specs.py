"""Printed source for other readers; that TensorFlow runs it is an interop test."""

from __future__ import annotations

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.parse_specs import print_dali_spec, print_tf_spec, print_vahidk_spec
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec

SCHEMA = Schema(
    {
        "label": Spec("int64", meaning="class id 0..9\x1b[31m"),
        "image": Spec("bytes", logical="image", format="png"),
        "xyz": ("float", (3,)),
        "tokens": ("int64", (None,)),
        "weight": Spec("float", optional=True),
        "pixels": ("uint8", (2, None)),
        "boxes": ("float", (None, 4)),
        "names": ("bytes", (None,)),
        "flag": Spec("int64", dtype="bool"),
        "raw": Spec("bytes", (2, 2), encoding="raw", dtype="uint32"),
        "packed": Spec("bytes", (2,), encoding="zlib", dtype="float64"),
        "never": Spec("bytes", (None,), seen=()),
        "mixed": Spec("bytes", (None,), seen=("bytes", "int64")),
        "\udcff": "int64",
    }
)

TF_TEXT = """\
import tensorflow as tf

FEATURES = {
    'label': tf.io.FixedLenFeature([], tf.int64),  # class id 0..9?[31m
    'image': tf.io.FixedLenFeature([], tf.string),
    'xyz': tf.io.FixedLenFeature([3], tf.float32),
    'tokens': tf.io.RaggedFeature(tf.int64),
    'weight': tf.io.RaggedFeature(tf.float32),  # missing in some records
    'pixels': tf.io.FixedLenFeature([], tf.string),
    'boxes': tf.io.RaggedFeature(tf.float32),
    'names': tf.io.RaggedFeature(tf.string),
    'flag': tf.io.FixedLenFeature([], tf.int64),
    'raw': tf.io.FixedLenFeature([], tf.string),
    'packed': tf.io.FixedLenFeature([], tf.string),
    # 'never': no record sets it
    # 'mixed': bytes and int64 in different records
    # '\\udcff': its name is not UTF-8
}


def parse_batch(records):
    \"\"\"Parse a 1-D tensor of serialized Examples into a dict of tensors.\"\"\"
    return tf.io.parse_example(records, FEATURES)


def parse_record(record):
    \"\"\"Parse one serialized Example, and decode what is inside its bytes.\"\"\"
    row = tf.io.parse_single_example(record, FEATURES)
    row['image'] = tf.io.decode_image(row['image'], channels=0, dtype=tf.uint8, expand_animations=False)
    row['pixels'] = tf.io.parse_tensor(row['pixels'], tf.uint8)
    row['pixels'] = tf.ensure_shape(row['pixels'], [2, None])
    row['boxes'] = tf.reshape(row['boxes'], [-1, 4])
    row['flag'] = tf.cast(row['flag'], tf.bool)
    row['raw'] = tf.io.decode_raw(row['raw'], tf.int32)
    row['raw'] = tf.bitcast(row['raw'], tf.uint32)
    row['raw'] = tf.reshape(row['raw'], [2, 2])
    row['packed'] = tf.io.decode_compressed(row['packed'], 'ZLIB')
    row['packed'] = tf.io.decode_raw(row['packed'], tf.float64)
    row['packed'] = tf.reshape(row['packed'], [2])
    return row


# dataset = tf.data.TFRecordDataset(paths, compression_type='').map(parse_record)
"""


def test_print_tf_spec_text_is_pinned() -> None:
    text = print_tf_spec(SCHEMA)
    assert text == TF_TEXT
    compile(text, "spec.py", "exec")


def test_print_tf_spec_sequence_example_has_two_dicts() -> None:
    schema = Schema(
        {"id": "int64"},
        feature_lists={"frame": "bytes", "xy": Spec("float", (2,), optional=True), "tokens": ("int64", (None,))},
    )
    text = print_tf_spec(schema)
    compile(text, "spec.py", "exec")
    assert (
        "SEQUENCE_FEATURES = {\n"
        "    'frame': tf.io.FixedLenSequenceFeature([], tf.string),\n"
        "    'xy': tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),  # missing in some records\n"
        "    'tokens': tf.io.RaggedFeature(tf.int64),\n"
        "}\n"
    ) in text
    assert "tf.io.parse_sequence_example(records, CONTEXT_FEATURES, SEQUENCE_FEATURES)" in text


def test_print_tf_spec_name_cannot_break_out_of_its_line() -> None:
    name = '\'])\nimport os  # \r\u2028"""'
    text = print_tf_spec(
        Schema({name: Spec("bytes", logical="image", meaning="x\ny\u2028z"), "m\n": Spec("int64", seen=())})
    )
    assert "\nimport os" not in text
    compile(text, "spec.py", "exec")


def test_print_dali_spec_text_is_pinned() -> None:
    assert (
        print_dali_spec(SCHEMA)
        == """\
import nvidia.dali.tfrecord as tfrec

FEATURES = {
    'label': tfrec.FixedLenFeature([1], tfrec.int64, 0),  # class id 0..9?[31m
    'image': tfrec.FixedLenFeature((), tfrec.string, ""),
    'xyz': tfrec.FixedLenFeature([3], tfrec.float32, 0.0),
    'tokens': tfrec.VarLenFeature(tfrec.int64, 0),
    'weight': tfrec.VarLenFeature(tfrec.float32, 0.0),  # missing in some records
    'pixels': tfrec.FixedLenFeature((), tfrec.string, ""),
    'boxes': tfrec.VarLenFeature([4], tfrec.float32, 0.0),
    # 'names': DALI reads one bytes value per record
    'flag': tfrec.FixedLenFeature([1], tfrec.int64, 0),
    'raw': tfrec.FixedLenFeature((), tfrec.string, ""),
    'packed': tfrec.FixedLenFeature((), tfrec.string, ""),
    # 'never': no record sets it
    # 'mixed': bytes and int64 in different records
    # '\\udcff': its name is not UTF-8
}

# in a pipeline (uncompressed shards only; make the index files with: tfr index --dali):
#   inputs = fn.readers.tfrecord(path=paths, index_path=index_paths, features=FEATURES)
"""
    )


def test_print_vahidk_spec_text_is_pinned() -> None:
    schema = Schema({"label": "int64", "image": "image"}, feature_lists={"xy": ("float", (2,))})
    assert (
        print_vahidk_spec(schema)
        == """\
import tfrecord

DESCRIPTION = {
    'label': 'int',
    'image': 'byte',
}

SEQUENCE_DESCRIPTION = {
    'xy': 'float',
}

# rows = tfrecord.tfrecord_loader(path, None, DESCRIPTION, sequence_description=SEQUENCE_DESCRIPTION)
"""
    )


@pytest.mark.parametrize(
    ("show", "schema", "message"),
    [
        (
            print_tf_spec,
            Schema({}, kind="raw"),
            "tf.io.parse_example expected example or sequence_example records, got raw",
        ),
        (print_vahidk_spec, Schema({}, kind="raw"), "vahidk/tfrecord expected example or sequence_example records"),
        (print_dali_spec, Schema({}, feature_lists={}), "DALI expected example records, got sequence_example"),
    ],
)
def test_print_spec_records_it_cannot_read_raise(show: object, schema: Schema, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        show(schema)  # type: ignore[operator]
