"""Boxes of a CSV file to a TFRecord, with the calls that tutorials on object detection use.

    python generate_tfrecord.py --csv_input=boxes.csv --image_dir=images --output_path=train.record

A row is filename, class, xmin, ymin, xmax, ymax; one per box.
"""

import csv
import io
import itertools
import operator
import os

import tensorflow as tf
from PIL import Image

from object_detection.utils import dataset_util

if tf.__version__ < "1.4.0":
    raise ImportError("TensorFlow 1.4 or newer is needed")

flags = tf.app.flags
flags.DEFINE_string("csv_input", "", "the table of boxes")
flags.DEFINE_string("image_dir", "", "where the pictures are")
flags.DEFINE_string("output_path", "", "the file to write")
FLAGS = flags.FLAGS

NUMBERS = {"raccoon": 1, "fox": 2}


def make_example(name, boxes):
    with tf.gfile.GFile(os.path.join(FLAGS.image_dir, name), "rb") as fid:
        data = fid.read()
    width, height = Image.open(io.BytesIO(data)).size
    sizes = {"xmin": width, "xmax": width, "ymin": height, "ymax": height}
    feature = {
        "image/height": dataset_util.int64_feature(height),
        "image/width": dataset_util.int64_feature(width),
        "image/filename": dataset_util.bytes_feature(name.encode("utf8")),
        "image/encoded": dataset_util.bytes_feature(data),
        "image/format": dataset_util.bytes_feature(b"jpg"),
        "image/object/class/text": dataset_util.bytes_list_feature([box["class"].encode("utf8") for box in boxes]),
        "image/object/class/label": dataset_util.int64_list_feature([NUMBERS[box["class"]] for box in boxes]),
    }
    for side, size in sizes.items():
        values = [float(box[side]) / size for box in boxes]
        feature["image/object/bbox/" + side] = dataset_util.float_list_feature(values)
    return tf.train.Example(features=tf.train.Features(feature=feature))


def main(_):
    writer = tf.python_io.TFRecordWriter(FLAGS.output_path)
    with open(FLAGS.csv_input) as file:
        rows = sorted(csv.DictReader(file), key=operator.itemgetter("filename"))
    for name, boxes in itertools.groupby(rows, operator.itemgetter("filename")):
        writer.write(make_example(name, list(boxes)).SerializeToString())
    writer.close()
    print("wrote", os.path.join(os.getcwd(), FLAGS.output_path))


if __name__ == "__main__":
    tf.app.run()
