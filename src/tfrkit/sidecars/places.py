"""Where sidecars lie: in the folder of the shards; of a dataset of one file, in `_index`, where no glob finds them."""

from __future__ import annotations

import contextlib
import os

from tfrkit.container.index import index_path

MANIFEST = "tfrkit.json"
FEATURES = "features.json"
INFO = "dataset_info.json"
CHARSET = "charset.txt"
CLASSES = "classes.txt"
LABEL_MAP = "label_map.pbtxt"
# Names of classes, in the order in which they are looked for.
CLASS_FILES = (CLASSES, "labels.txt", LABEL_MAP)
# Files with labels that go along with the records; the last one is written by labelling tools and has colours.
LABEL_FILES = (*CLASS_FILES, CHARSET, "labelmap.txt")
TFDS_LABELS = ".labels.txt"
# What a build leaves about itself.
REPORT = "report.json"
SKIPPED = "skipped.jsonl"
INPUTS = "inputs.tsv.gz"


def own_path(shard_path: str, name: str) -> str:
    """Where a sidecar of a dataset of one file lies.

    Example:
        >>> own_path("data/x.tfrecord", "classes.txt")
        'data/_index/x.tfrecord.classes.txt'
    """
    return os.path.join(os.path.dirname(index_path(shard_path)), f"{os.path.basename(shard_path)}.{name}")


def list_own(shard_path: str) -> list[str]:
    """Where the index and the sidecars of a dataset of one file may lie, the manifest first."""
    names = (MANIFEST, *LABEL_FILES, REPORT, SKIPPED, INPUTS)
    return [*(own_path(shard_path, name) for name in names), index_path(shard_path)]


def remove_own(shard_path: str) -> None:
    """Remove the index and the sidecars of a file that was replaced: they speak of the old one."""
    for path in list_own(shard_path):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def folder_path(shard_path: str, name: str) -> str:
    """Where a sidecar of the folder that holds a shard lies."""
    return os.path.join(os.path.dirname(shard_path), name)
