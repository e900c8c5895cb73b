"""Folders of pictures to shards on several threads, with the calls the inception converters use.

python build_image_data.py --train_directory=photos --output_directory=out --labels_file=labels.txt
"""

import os
import threading

import tensorflow as tf

tf.app.flags.DEFINE_string("train_directory", "/tmp/", "pictures, a folder per class")
tf.app.flags.DEFINE_string("output_directory", "/tmp/", "where shards go")
tf.app.flags.DEFINE_string("labels_file", "", "names of the classes, one per line")
tf.app.flags.DEFINE_integer("num_threads", 2, "threads, and shards")
FLAGS = tf.app.flags.FLAGS


def int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.compat.as_bytes(value)]))


class ImageCoder(object):
    def __init__(self):
        self.sess = tf.Session()
        self.png = tf.placeholder(dtype=tf.string)
        self.jpeg_of_png = tf.image.encode_jpeg(tf.image.decode_png(self.png, channels=3), format="rgb", quality=100)
        self.jpeg = tf.placeholder(dtype=tf.string)
        self.pixels = tf.image.decode_jpeg(self.jpeg, channels=3)

    def read(self, path):
        with tf.gfile.FastGFile(path, "rb") as f:
            data = f.read()
        if path.endswith(".png"):
            data = self.sess.run(self.jpeg_of_png, feed_dict={self.png: data})
        return data, self.sess.run(self.pixels, feed_dict={self.jpeg: data})


def write_shard(coder, number, items):
    path = os.path.join(FLAGS.output_directory, "train-%.5d-of-%.5d" % (number, FLAGS.num_threads))
    writer = tf.python_io.TFRecordWriter(path)
    for name, label, text in items:
        try:
            data, pixels = coder.read(name)
        except Exception as error:
            print("left out %s: %s" % (os.path.basename(name), type(error).__name__))
            continue
        feature = {
            "image/height": int64_feature(pixels.shape[0]),
            "image/width": int64_feature(pixels.shape[1]),
            "image/class/label": int64_feature(label),
            "image/class/text": bytes_feature(text),
            "image/filename": bytes_feature(os.path.basename(name)),
            "image/encoded": bytes_feature(data),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    writer.close()


def main(unused_argv):
    items = []
    for number, text in enumerate(tf.gfile.FastGFile(FLAGS.labels_file, "r").readlines(), 1):
        text = text.strip()
        items += [(name, number, text) for name in tf.gfile.Glob("%s/%s/*" % (FLAGS.train_directory, text))]
    coord = tf.train.Coordinator()
    coder = ImageCoder()
    threads = []
    for number in range(FLAGS.num_threads):
        thread = threading.Thread(target=write_shard, args=(coder, number, items[number :: FLAGS.num_threads]))
        thread.start()
        threads.append(thread)
    coord.join(threads)


if __name__ == "__main__":
    tf.app.run()
