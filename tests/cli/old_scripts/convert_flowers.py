"""Folders of pictures, one per class, to shards, with the calls slim's converters use: a graph decodes each picture.

python convert_flowers.py flower_photos out/
"""

import os
import random
import sys

import tensorflow as tf

from datasets import dataset_utils

NUM_SHARDS = 2
NUM_VALIDATION = 4


class ImageReader(object):
    def __init__(self):
        self.data = tf.placeholder(dtype=tf.string)
        self.pixels = tf.image.decode_jpeg(self.data, channels=3)

    def read_size(self, sess, data):
        pixels = sess.run(self.pixels, feed_dict={self.data: data})
        assert len(pixels.shape) == 3 and pixels.shape[2] == 3
        return pixels.shape[0], pixels.shape[1]


def shard_path(folder, split, shard):
    return os.path.join(folder, "flowers_%s_%05d-of-%05d.tfrecord" % (split, shard, NUM_SHARDS))


def convert(split, paths, numbers, folder):
    with tf.Graph().as_default():
        reader = ImageReader()
        with tf.Session("") as sess:
            for shard in range(NUM_SHARDS):
                with tf.python_io.TFRecordWriter(shard_path(folder, split, shard)) as writer:
                    for path in paths[shard::NUM_SHARDS]:
                        sys.stdout.write("\r>> %s, shard %d" % (split, shard))
                        sys.stdout.flush()
                        data = tf.gfile.FastGFile(path, "rb").read()
                        height, width = reader.read_size(sess, data)
                        number = numbers[os.path.basename(os.path.dirname(path))]
                        example = dataset_utils.image_to_tfexample(data, b"jpg", height, width, number)
                        writer.write(example.SerializeToString())
    print()


def main(root, folder):
    if tf.gfile.Exists(shard_path(folder, "train", 0)):
        print("there already")
        return
    tf.gfile.MakeDirs(folder)
    names = sorted(tf.gfile.ListDirectory(root))
    paths = [
        os.path.join(root, name, photo) for name in names for photo in sorted(os.listdir(os.path.join(root, name)))
    ]
    random.seed(0)
    random.shuffle(paths)
    numbers = dict(zip(names, range(len(names))))
    convert("train", paths[NUM_VALIDATION:], numbers, folder)
    convert("validation", paths[:NUM_VALIDATION], numbers, folder)
    dataset_utils.write_label_file(dict(enumerate(names)), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
