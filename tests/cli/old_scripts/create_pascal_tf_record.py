"""Pascal VOC boxes to a TFRecord, with the calls of the Object Detection API's converter.

python create_pascal_tf_record.py --data_dir=VOCdevkit --year=VOC2012 --label_map_path=map.pbtxt --output_path=x
"""

import hashlib
import logging
import os
from xml.etree import ElementTree

import tensorflow.compat.v1 as tf

from object_detection.utils import dataset_util
from object_detection.utils import label_map_util

flags = tf.app.flags
flags.DEFINE_string("data_dir", None, "the folder of all years")
flags.DEFINE_enum("set", "train", ["train", "val", "trainval", "test"], "which list of pictures")
flags.DEFINE_string("year", "VOC2007", "the folder of one year")
flags.DEFINE_string("output_path", None, "the file to write")
flags.DEFINE_string("label_map_path", None, "numbers of the classes")
flags.DEFINE_boolean("ignore_difficult_instances", False, "leave out difficult boxes")
FLAGS = flags.FLAGS


def read_annotation(path):
    with tf.gfile.GFile(path, "r") as fid:
        root = ElementTree.fromstring(fid.read())
    return dataset_util.recursive_parse_xml_to_dict(root)["annotation"]


def make_example(annotation, numbers):
    name = annotation["filename"]
    with tf.gfile.GFile(os.path.join(FLAGS.data_dir, annotation["folder"], "JPEGImages", name), "rb") as fid:
        data = fid.read()
    sizes = {axis: int(annotation["size"][axis]) for axis in ("width", "height")}
    objects = annotation.get("object", [])
    if FLAGS.ignore_difficult_instances:
        objects = [one for one in objects if not int(one["difficult"])]
    feature = {
        "image/filename": dataset_util.bytes_feature(name.encode("utf8")),
        "image/key/sha256": dataset_util.bytes_feature(hashlib.sha256(data).hexdigest().encode("utf8")),
        "image/encoded": dataset_util.bytes_feature(data),
        "image/object/class/text": dataset_util.bytes_list_feature([one["name"].encode("utf8") for one in objects]),
        "image/object/class/label": dataset_util.int64_list_feature([numbers[one["name"]] for one in objects]),
        "image/object/difficult": dataset_util.int64_list_feature([int(one["difficult"]) for one in objects]),
    }
    for axis, size in sizes.items():
        feature["image/" + axis] = dataset_util.int64_feature(size)
    for side, axis in (("xmin", "width"), ("ymin", "height"), ("xmax", "width"), ("ymax", "height")):
        values = [float(one["bndbox"][side]) / sizes[axis] for one in objects]
        feature["image/object/bbox/" + side] = dataset_util.float_list_feature(values)
    return tf.train.Example(features=tf.train.Features(feature=feature))


def main(_):
    numbers = label_map_util.get_label_map_dict(FLAGS.label_map_path)
    year = os.path.join(FLAGS.data_dir, FLAGS.year)
    names = dataset_util.read_examples_list(os.path.join(year, "ImageSets", "Main", "cat_%s.txt" % FLAGS.set))
    with tf.python_io.TFRecordWriter(FLAGS.output_path) as writer:
        for number, name in enumerate(names):
            logging.info("picture %d of %d", number, len(names))
            annotation = read_annotation(os.path.join(year, "Annotations", name + ".xml"))
            writer.write(make_example(annotation, numbers).SerializeToString())


if __name__ == "__main__":
    flags.mark_flag_as_required("data_dir")
    flags.mark_flags_as_required(["output_path", "label_map_path"])
    tf.app.run()
