"""Make the sidecars of a new dataset other than its manifest, for builds and reshape verbs."""

from __future__ import annotations

from tfrkit.container.names import name_shard
from tfrkit.errors import SchemaError
from tfrkit.sidecars.carry import Carried
from tfrkit.sidecars.manifest import NewDataset, NewShard
from tfrkit.sidecars.places import FEATURES, INFO
from tfrkit.sidecars.tfds_files import make_tfds_files
from tfrkit.storage.text_files import format_json


def make_texts(dataset: NewDataset, carried: Carried, *, is_edited: bool = False) -> tuple[dict[str, str], list[str]]:
    """Return sidecars by name, without the manifest, and notes. `is_edited`: features differ from `carried`."""
    texts = dict(carried.labels)
    notes: list[str] = []
    if dataset.is_file:
        return texts, notes
    kept = {} if is_edited else carried.tfds
    texts |= kept
    obstacle = _find_tfds_obstacle(dataset)
    if obstacle and (carried.info is not None or carried.is_new):
        notes.append(f"TFDS reads {obstacle}; {INFO} was left out")
    # A new features.json for edited features still says more than the records, even if TFDS cannot read the shards.
    if obstacle and (kept or not carried.tfds):
        return texts, notes
    splits: dict[str, list[NewShard]] = {}
    for shard in dataset.shards:
        splits.setdefault(shard.split or "", []).append(shard)
    try:
        features, info, labels, more = make_tfds_files(
            dataset.name, dataset.schema, splits, description=f"Made by tfrkit from {dataset.path}"
        )
    except SchemaError as error:
        if carried.info is not None or carried.is_new:
            notes.append(f"TFDS: {error.what}; {INFO} was left out")
        return texts, notes
    if obstacle:
        info = {}
    elif carried.info is not None:
        info = {**carried.info, "splits": info["splits"], "name": dataset.name}
    if FEATURES not in kept:
        notes += more
        texts |= labels
        texts[FEATURES] = format_json(features)
    if info:
        texts[INFO] = format_json(info)
    return texts, notes


def _find_tfds_obstacle(dataset: NewDataset) -> str:
    """Return why TFDS cannot read the shards, or "" if it can."""
    if dataset.compression != "none":
        return f"no shards compressed with {dataset.compression}"
    numbers: dict[str, list[str]] = {}
    for shard in dataset.shards:
        if shard.split is None:
            return "no shards without a split"
        numbers.setdefault(shard.split, []).append(shard.name)
    for split, names in numbers.items():
        for number, name in enumerate(names):
            if name != name_shard(f"{dataset.name}-{split}.tfrecord", number, len(names)):
                return "no files of such names"
    return ""
