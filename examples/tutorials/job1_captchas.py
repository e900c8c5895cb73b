"""Captchas in TensorFlow's old names: five characters of a file name become five labels.

    python job1_captchas.py captcha/images captcha/ [number of test pictures, 500]

Writes train.tfrecords, test.tfrecords and labels.txt. Each record holds `image`, 224x224 gray pixels, and `label0` to
`label4`, the places of the five characters in CHARACTERS. The same in one command: job1_captchas.sh.
"""

import os
import random
import sys

from PIL import Image

from tfrkit.compat import tensorflow as tf  # was: import tensorflow as tf

RANDOM_SEED = 0
SIZE = (224, 224)
# One numbering for all characters. Numbering digits from 0 and letters by their codes leaves holes in the classes.
CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def make_example(pixels, labels):
    features = {"image": bytes_feature(pixels)}
    for place, label in enumerate(labels):
        features[f"label{place}"] = int64_feature(label)
    return tf.train.Example(features=tf.train.Features(feature=features))


def output_path(folder, split):
    return os.path.join(folder, split + ".tfrecords")


def is_done(folder):
    return all(tf.gfile.Exists(output_path(folder, split)) for split in ("train", "test"))


def convert(split, paths, folder):
    written = 0
    options = tf.compat.v1.GPUOptions(per_process_gpu_memory_fraction=0.5)
    config = tf.compat.v1.ConfigProto(gpu_options=options)
    with tf.compat.v1.Session(config=config), tf.python_io.TFRecordWriter(output_path(folder, split)) as writer:
        for number, path in enumerate(paths):
            sys.stdout.write(f"\r>> {split} picture {number + 1} of {len(paths)}")
            try:
                picture = Image.open(path).resize(SIZE).convert("L")
            except OSError as error:
                print(f"\ncould not read {path}, left out: {error}")
                continue
            text = os.path.basename(path)[:5]
            example = make_example(picture.tobytes(), [CHARACTERS.index(character) for character in text])
            writer.write(example.SerializeToString())
            written += 1
    print(f"\n{split}: {written} pictures written")


def main(images, folder, num_test=500):
    if is_done(folder):
        print("both files exist, nothing to do")
        return
    tf.gfile.MakeDirs(folder)
    paths = [os.path.join(images, name) for name in sorted(os.listdir(images))]
    random.seed(RANDOM_SEED)
    random.shuffle(paths)
    convert("test", paths[:num_test], folder)
    convert("train", paths[num_test:], folder)
    with tf.gfile.GFile(os.path.join(folder, "labels.txt"), "w") as file:
        for number, character in enumerate(CHARACTERS):
            file.write(f"{number}:{character}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
