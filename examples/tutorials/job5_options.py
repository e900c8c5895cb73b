"""Writer options and messages in TensorFlow's old names.

    python job5_options.py pictures/ out/

Writes the pictures of a folder three times, uncompressed, as ZLIB and as GZIP, with an int label; then one
SequenceExample with a context and frames. The same with tfrkit: job5_options_tfrkit.py.
"""

import os
import sys

import numpy as np
from PIL import Image

from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf

KINDS = tf.python_io.TFRecordCompressionType
OPTIONS = {
    "plain": tf.python_io.TFRecordOptions(KINDS.NONE),
    "zlib": tf.python_io.TFRecordOptions(KINDS.ZLIB),
    "gzip": tf.python_io.TFRecordOptions(KINDS.GZIP),
}


def imread(path):
    """What cv2.imread(path) gives: blue first, then green and red. Whoever shows it as RGB sees blue faces."""
    return np.asarray(Image.open(path).convert("RGB"))[:, :, ::-1]


def make_example(pixels, label):
    features = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()])),
        "shape": tf.train.Feature(int64_list=tf.train.Int64List(value=pixels.shape)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "mean": tf.train.Feature(float_list=tf.train.FloatList(value=pixels.mean(axis=(0, 1)))),
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


def make_sequence(names):
    frames = [tf.train.Feature(bytes_list=tf.train.BytesList(value=[name.encode()])) for name in names]
    lengths = [tf.train.Feature(int64_list=tf.train.Int64List(value=[len(name)])) for name in names]
    return tf.train.SequenceExample(
        context=tf.train.Features(
            feature={"count": tf.train.Feature(int64_list=tf.train.Int64List(value=[len(names)]))}
        ),
        feature_lists=tf.train.FeatureLists(
            feature_list={
                "name": tf.train.FeatureList(feature=frames),
                "length": tf.train.FeatureList(feature=lengths),
            }
        ),
    )


def main(pictures, folder):
    tf.gfile.MakeDirs(folder)
    names = sorted(tf.gfile.ListDirectory(pictures))
    for form, options in OPTIONS.items():
        path = os.path.join(folder, form + ".tfrecords")
        with tf.python_io.TFRecordWriter(path, options) as writer:
            for label, name in enumerate(names):
                writer.write(make_example(imread(os.path.join(pictures, name)), label).SerializeToString())
        print(f"{form}: {os.path.getsize(path)} bytes")
        for record in tf.python_io.tf_record_iterator(path, options):
            example = tf.train.Example()
            example.ParseFromString(record)
            assert example.features.feature["label"].WhichOneof("kind") == "int64_list"
    path = os.path.join(folder, "names.tfrecords")
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(make_sequence(names).SerializeToString())
    record = next(tf.python_io.tf_record_iterator(path))
    parsed = tf.parse_single_sequence_example(
        record,
        context_features={"count": tf.FixedLenFeature([], tf.int64)},
        sequence_features={
            "name": tf.FixedLenSequenceFeature([], tf.string),
            "length": tf.FixedLenSequenceFeature([], tf.int64),
        },
    )
    with tf.Session() as session:
        context, lists = session.run(parsed)
    print("frames", context["count"], lists["name"].tolist())


if __name__ == "__main__":
    main(*sys.argv[1:])
