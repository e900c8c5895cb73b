"""Pascal VOC segmentation in TensorFlow's old names, and three ways to feed it to a model.

    python job4_voc_segmentation.py VOCdevkit/VOC2007 out/

Writes train.tfrecords and val.tfrecords with `image_raw`, `label_raw`, `height` and `width`. The masks are palette
PNGs: their indices are the classes, 0 to 20, and 255 at borders. The same in one command: job4_voc_segmentation.sh.
"""

import os
import sys

import numpy as np
from PIL import Image

from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf


def read_names(root, split):
    with tf.gfile.GFile(os.path.join(root, "ImageSets", "Segmentation", split + ".txt")) as file:
        return [line.strip() for line in file if line.strip()]


def read_pair(root, name):
    image = np.array(Image.open(os.path.join(root, "JPEGImages", name + ".jpg")))
    # Pillow gives the indices of a palette picture. Converting to colours would lose the classes.
    label = np.array(Image.open(os.path.join(root, "SegmentationClass", name + ".png")))
    return image, label


def int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def write(root, split, path):
    writer = tf.python_io.TFRecordWriter(path)
    for name in read_names(root, split):
        image, label = read_pair(root, name)
        features = {
            "image_raw": bytes_feature(image.tobytes()),
            "label_raw": bytes_feature(label.tobytes()),
            "height": int64_feature(image.shape[0]),
            "width": int64_feature(image.shape[1]),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    writer.close()


def parse(record):
    features = tf.parse_single_example(
        record,
        features={
            "image_raw": tf.FixedLenFeature([], tf.string),
            "label_raw": tf.FixedLenFeature([], tf.string),
            "height": tf.FixedLenFeature([], tf.int64),
            "width": tf.FixedLenFeature([], tf.int64),
        },
    )
    height, width = features["height"], features["width"]  # pictures differ in size, so these are needed to reshape
    image = tf.reshape(tf.decode_raw(features["image_raw"], tf.uint8), tf.stack([height, width, 3]))
    label = tf.reshape(tf.decode_raw(features["label_raw"], tf.uint8), tf.stack([height, width]))
    return image, label


def count_classes(labels):
    counts = np.bincount(np.concatenate([label.reshape(-1) for label in labels]), minlength=256)
    return {value: int(count) for value, count in enumerate(counts) if count}


def run_to_end(step):
    """Call a function of a session until its queue is empty, and collect what it returns."""
    seen = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
        try:
            while not coordinator.should_stop():
                seen.append(step(session))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return seen


def feed_from_python(root):
    """First way: Python reads, and hands each picture to a placeholder."""
    label_input = tf.placeholder(tf.uint8, shape=[None, None])
    seen = []
    with tf.Session() as session:
        for name in read_names(root, "train"):
            _, label = read_pair(root, name)
            seen.append(session.run(label_input, feed_dict={label_input: label}))
    return seen


def feed_preloaded(root):
    """Second way: all images are in memory and dealt from there."""
    labels = [tf.constant(read_pair(root, name)[1]) for name in read_names(root, "train")]
    number = tf.train.slice_input_producer([list(range(len(labels)))], num_epochs=1)[0]
    return run_to_end(lambda session: session.run(labels[session.run(number)]))


def feed_from_file(path):
    """Third way: the file is read while the model runs."""
    queue = tf.train.string_input_producer([path], num_epochs=1)
    _, record = tf.TFRecordReader().read(queue)
    _, label = parse(record)
    return run_to_end(lambda session: session.run(label))


if __name__ == "__main__":
    root, folder = sys.argv[1:]
    tf.gfile.MakeDirs(folder)
    for split in ("train", "val"):
        write(root, split, os.path.join(folder, split + ".tfrecords"))
    print("from Python", count_classes(feed_from_python(root)))
    print("preloaded", count_classes(feed_preloaded(root)))
    print("from file", count_classes(feed_from_file(os.path.join(folder, "train.tfrecords"))))
