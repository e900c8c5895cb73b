"""Examples of images, and label files, under the names of slim's `datasets.dataset_utils`.

from tfrkit.compat.slim.datasets import dataset_utils   # was: from datasets import dataset_utils
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tfrkit.compat.gfile import exists, open_file
from tfrkit.compat.record_io import TFRecordWriter
from tfrkit.compat.train_messages import BytesList, Example, Feature, Features, FloatList, Int64List

LABELS_FILENAME = "labels.txt"


def _listed(values: Any) -> Any:
    return values if isinstance(values, (tuple, list)) else [values]


def int64_feature(values: Any) -> Feature:
    """Make a Feature of one integer or several."""
    return Feature(int64_list=Int64List(value=_listed(values)))


def float_feature(values: Any) -> Feature:
    """Make a Feature of one float or several."""
    return Feature(float_list=FloatList(value=_listed(values)))


def bytes_feature(values: bytes) -> Feature:
    """Make a Feature of one bytes value."""
    return Feature(bytes_list=BytesList(value=[values]))


def bytes_list_feature(values: Any) -> Feature:
    """Make a Feature of one bytes value or several."""
    return Feature(bytes_list=BytesList(value=_listed(values)))


def image_to_tfexample(image_data: bytes, image_format: bytes, height: int, width: int, class_id: int) -> Example:
    """Make an Example of one image file and its class."""
    features = {
        "image/encoded": bytes_feature(image_data),
        "image/format": bytes_feature(image_format),
        "image/class/label": int64_feature(class_id),
        "image/height": int64_feature(height),
        "image/width": int64_feature(width),
    }
    return Example(features=Features(feature=features))


def write_label_file(labels_to_class_names: dict[int, str], dataset_dir: Any, filename: str = LABELS_FILENAME) -> None:
    """Write `0:daisy`, one class per line."""
    with open_file(os.path.join(dataset_dir, filename), "w") as file:
        for label, name in labels_to_class_names.items():
            file.write(f"{label}:{name}\n")


def has_labels(dataset_dir: Any, filename: str = LABELS_FILENAME) -> bool:
    """Whether the label file exists."""
    return exists(os.path.join(dataset_dir, filename))


def read_label_file(dataset_dir: Any, filename: str = LABELS_FILENAME) -> dict[int, str]:
    """Read a label file written by `write_label_file`."""
    path = os.path.join(dataset_dir, filename)
    with open_file(path) as file:
        lines = [line for line in file.read().split("\n") if line]
    classes = {}
    for number, line in enumerate(lines, 1):
        label, colon, name = line.partition(":")
        if not colon or not label.strip().isdecimal():
            raise ValueError(f"label file expected number:name, got {line!r:.64} - at {path}, line {number}")
        classes[int(label)] = name
    return classes


def open_sharded_output_tfrecords(exit_stack: contextlib.ExitStack, base_path: str, num_shards: int) -> list[Any]:
    """Open writers for `base_path-00000-of-00010` and so on; the exit stack closes them."""
    return [
        exit_stack.enter_context(TFRecordWriter(f"{base_path}-{number:05d}-of-{num_shards:05d}"))
        for number in range(num_shards)
    ]


def __getattr__(name: str) -> Any:
    if name.startswith("download"):
        raise AttributeError(f"dataset_utils.{name} is not offered\n  download and unpack it: curl -L URL | tar xz")
    raise AttributeError(f"dataset_utils.{name} is not offered by tfrkit.compat")
