"""Arrays and one photo in TensorFlow's old names.

    python job3_arrays.py photo.jpg out/

Writes ten numbers with labels to data.tfrecords and reads them back in order; writes a photo with its shape to
photo.tfrecords and reads it back as an array. The same in a few lines: job3_arrays_tfrkit.py.
"""

import os
import sys

import numpy as np
from PIL import Image

from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf


def int64_feature(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def write_numbers(path):
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(10):
            features = {"data": int64_feature([number]), "label": int64_feature([number % 2])}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def read_numbers(path):
    def parse(record):
        return tf.parse_single_example(
            record, {"data": tf.FixedLenFeature([], tf.int64), "label": tf.FixedLenFeature([], tf.int64)}
        )

    element = tf.data.TFRecordDataset(path).map(parse).make_one_shot_iterator().get_next()
    data, labels = [], []
    with tf.Session() as session:
        try:
            while True:
                number, label = session.run([element["data"], element["label"]])
                data.append(int(number))
                labels.append(int(label))
        except tf.errors.OutOfRangeError:
            print(f"end of the file after {len(data)} records")
    return data, labels


def write_photo(photo, path):
    pixels = np.asarray(Image.open(photo))
    features = {
        "name": bytes_feature(b"cat"),
        "shape": int64_feature(pixels.shape),
        "data": bytes_feature(pixels.tobytes()),
    }
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def read_photo(path):
    record = next(tf.python_io.tf_record_iterator(path))
    feature = tf.train.Example.FromString(record).features.feature
    shape = feature["shape"].int64_list.value
    pixels = np.frombuffer(feature["data"].bytes_list.value[0], np.uint8).reshape(shape)
    return feature["name"].bytes_list.value[0].decode(), pixels


if __name__ == "__main__":
    photo, folder = sys.argv[1:]
    tf.gfile.MakeDirs(folder)
    write_numbers(os.path.join(folder, "data.tfrecords"))
    data, labels = read_numbers(os.path.join(folder, "data.tfrecords"))
    print("data", data)
    print("label", labels)
    write_photo(photo, os.path.join(folder, "photo.tfrecords"))
    name, pixels = read_photo(os.path.join(folder, "photo.tfrecords"))
    print(name, pixels.shape, pixels.dtype)
