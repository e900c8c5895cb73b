"""Paths of sidecars: in the folder of the shards, or for a single file in `_index`, which globs do not match."""

from __future__ import annotations

import contextlib
import os

from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.container.listed import MANIFEST as MANIFEST
from tfrkit.container.listed import TABLE as TABLE
from tfrkit.storage.addresses import has_scheme

FEATURES = "features.json"
INFO = "dataset_info.json"
CHARSET = "charset.txt"
CLASSES = "classes.txt"
LABEL_MAP = "label_map.pbtxt"
# Class files, in order of preference.
CLASS_FILES = (CLASSES, "labels.txt", LABEL_MAP)
# Label files that are copied with the records; the last one is written by labelling tools and has colours.
LABEL_FILES = (*CLASS_FILES, CHARSET, "labelmap.txt")
TFDS_LABELS = ".labels.txt"
# Files in which a build describes itself.
REPORT = "report.json"
SKIPPED = "skipped.jsonl"
INPUTS = "inputs.tsv.gz"


def own_path(shard_path: str, name: str) -> str:
    """Return the path of a sidecar of a single-file dataset.

    Example:
        >>> own_path("data/x.tfrecord", "classes.txt")
        'data/_index/x.tfrecord.classes.txt'
    """
    folder, shard = os.path.split(shard_path)
    return os.path.join(folder, INDEX_FOLDER, f"{shard}.{name}")


def list_own(shard_path: str) -> list[str]:
    """Return the possible paths of the sidecars and the index of a single-file dataset, the manifest first."""
    names = (MANIFEST, *LABEL_FILES, REPORT, SKIPPED, INPUTS)
    return [*(own_path(shard_path, name) for name in names), index_path(shard_path)]


def remove_own(shard_path: str) -> None:
    """Remove the index and sidecars of a replaced file, because they describe the old file."""
    if has_scheme(shard_path):
        from tfrkit.storage.upload import delete_objects  # imported only for remote addresses

        delete_objects(list_own(shard_path))
        return
    for path in list_own(shard_path):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)
