"""generate_tfrecord.py with pandas, as the tutorials have it.

python generate_tfrecord_pandas.py --csv_input=boxes.csv --image_dir=images --output_path=train.record
"""

import io
import os
from collections import namedtuple

import pandas as pd
import tensorflow as tf
from PIL import Image

from object_detection.utils import dataset_util

flags = tf.app.flags
flags.DEFINE_string("csv_input", "", "the table of boxes")
flags.DEFINE_string("image_dir", "", "where the pictures are")
flags.DEFINE_string("output_path", "", "the file to write")
FLAGS = flags.FLAGS

NUMBERS = {"raccoon": 1, "fox": 2}
Group = namedtuple("Group", ["name", "boxes"])


def split(table, column):
    grouped = table.groupby(column)
    return [Group(name, grouped.get_group(name)) for name in grouped.groups]


def make_example(group):
    with tf.gfile.GFile(os.path.join(FLAGS.image_dir, "{}".format(group.name)), "rb") as fid:
        data = fid.read()
    width, height = Image.open(io.BytesIO(data)).size
    texts, numbers = [], []
    sides = {"xmin": [], "xmax": [], "ymin": [], "ymax": []}
    for _, row in group.boxes.iterrows():
        for side, values in sides.items():
            values.append(row[side] / (width if side[0] == "x" else height))
        texts.append(row["class"].encode("utf8"))
        numbers.append(NUMBERS.get(row["class"]))
    feature = {
        "image/height": dataset_util.int64_feature(height),
        "image/width": dataset_util.int64_feature(width),
        "image/filename": dataset_util.bytes_feature(group.name.encode("utf8")),
        "image/encoded": dataset_util.bytes_feature(data),
        "image/format": dataset_util.bytes_feature(b"jpg"),
        "image/object/class/text": dataset_util.bytes_list_feature(texts),
        "image/object/class/label": dataset_util.int64_list_feature(numbers),
    }
    for side, values in sides.items():
        feature["image/object/bbox/" + side] = dataset_util.float_list_feature(values)
    return tf.train.Example(features=tf.train.Features(feature=feature))


def main(_):
    writer = tf.python_io.TFRecordWriter(FLAGS.output_path)
    for group in split(pd.read_csv(FLAGS.csv_input), "filename"):
        writer.write(make_example(group).SerializeToString())
    writer.close()
    print("wrote", os.path.join(os.getcwd(), FLAGS.output_path))


if __name__ == "__main__":
    tf.app.run()
