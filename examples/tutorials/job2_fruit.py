"""Apples and oranges in TensorFlow's old names: one file instead of folders.

    python job2_fruit.py data/ fruit.tfrecords

`apple01.jpg` is class 0, `orange07.jpg` class 1; pictures become 32x32 RGB pixels. The file is then read with the input
queues of TensorFlow 1, in shuffled batches. The same in one command: job2_fruit.sh.
"""

import os
import re
import sys

from PIL import Image

from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf

CLASSES = {"apple": 0, "orange": 1}


def write(folder, path):
    writer = tf.python_io.TFRecordWriter(path)
    for name in sorted(os.listdir(folder)):
        # From this very name: a variable left over from a loop before would give every picture the last label.
        label = CLASSES[re.match("[a-z]+", name).group()]
        picture = Image.open(os.path.join(folder, name)).resize((32, 32))
        features = tf.train.Features(
            feature={
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture.tobytes()])),
            }
        )
        # Inside the loop: one step to the left, and only the last picture is written.
        writer.write(tf.train.Example(features=features).SerializeToString())
    writer.close()


def read_and_decode(path):
    queue = tf.train.string_input_producer([path])
    reader = tf.TFRecordReader()
    _, serialized_example = reader.read(queue)
    features = tf.parse_single_example(
        serialized_example,
        features={"label": tf.FixedLenFeature([], tf.int64), "image": tf.FixedLenFeature([], tf.string)},
    )
    image = tf.decode_raw(features["image"], tf.uint8)
    image = tf.reshape(image, [32, 32, 3])  # raw pixels have lost their shape, so it must be known here
    image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
    label = tf.cast(features["label"], tf.int32)
    return image, label


def show_batches(path):
    image, label = read_and_decode(path)
    images, labels = tf.train.shuffle_batch([image, label], batch_size=4, capacity=40, min_after_dequeue=20)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
        for step in range(3):
            some, names = session.run([images, labels])
            print(f"batch {step}: {some.shape}, labels {sorted(set(names.tolist()))}")
        coordinator.request_stop()
        coordinator.join(threads)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
    show_batches(sys.argv[2])
