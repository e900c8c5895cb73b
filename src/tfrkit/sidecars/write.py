"""Make the sidecars of a new dataset, for builds and reshape verbs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit._version import VERSION
from tfrkit.container.shards import name_shard
from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.sidecars.carry import Carried
from tfrkit.sidecars.places import FEATURES, INFO
from tfrkit.sidecars.tfds_files import make_tfds_files
from tfrkit.storage.text_files import format_json


@dataclass(frozen=True)
class NewShard:
    """A shard that was written: its file name, split, and size."""

    name: str
    split: str | None
    num_records: int
    nbytes: int
    sha256: str | None = None


@dataclass(frozen=True)
class NewDataset:
    """A written dataset, with everything needed for its sidecars.

    Attributes:
        name: Name of the dataset.
        schema: Schema of the records.
        compression: Compression of the shards.
        shards: All shards, in order.
        recipe: Source or verb, and the options that determine the bytes of the shards.
        path: Path of the input.
        is_file: It is a single file; its sidecars are in `_index`, and TFDS cannot read it.
        plan: A hash of everything that determines the bytes; if None, it is made from recipe and shards.
        more: Additional keys of the manifest.
    """

    name: str
    schema: Schema
    compression: str
    shards: Sequence[NewShard]
    recipe: Mapping[str, Any]
    path: str
    is_file: bool = False
    plan: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def make_texts(self, carried: Carried, *, is_edited: bool = False) -> tuple[dict[str, str], list[str]]:
        """Return sidecars by name, without the manifest, and notes. `is_edited`: features differ from `carried`."""
        texts = dict(carried.labels)
        notes: list[str] = []
        if self.is_file:
            return texts, notes
        kept = {} if is_edited else carried.tfds
        texts |= kept
        obstacle = self._find_tfds_obstacle()
        if obstacle and (carried.info is not None or carried.is_new):
            notes.append(f"TFDS reads {obstacle}; {INFO} was left out")
        # A new features.json for edited features still says more than the records, even if TFDS cannot read the shards.
        if obstacle and (kept or not carried.tfds):
            return texts, notes
        splits: dict[str, list[NewShard]] = {}
        for shard in self.shards:
            splits.setdefault(shard.split or "", []).append(shard)
        try:
            features, info, labels, more = make_tfds_files(
                self.name, self.schema, splits, description=f"Made by tfrkit from {self.path}"
            )
        except SchemaError as error:
            if carried.info is not None or carried.is_new:
                notes.append(f"TFDS: {error.what}; {INFO} was left out")
            return texts, notes
        if obstacle:
            info = {}
        elif carried.info is not None:
            info = {**carried.info, "splits": info["splits"], "name": self.name}
        if FEATURES not in kept:
            notes += more
            texts |= labels
            texts[FEATURES] = format_json(features)
        if info:
            texts[INFO] = format_json(info)
        return texts, notes

    def make_manifest(self, files: Sequence[str]) -> dict[str, Any]:
        """Return the content of the manifest; `files` are the names of the other sidecars."""
        splits: dict[str, dict[str, int]] = {}
        shards = []
        for shard in self.shards:
            row = {"name": shard.name, "split": shard.split, "records": shard.num_records, "nbytes": shard.nbytes}
            shards.append(row if shard.sha256 is None else {**row, "sha256": shard.sha256})
            if shard.split is not None:
                counts = splits.setdefault(shard.split, {"records": 0, "shards": 0, "nbytes": 0})
                counts["records"] += shard.num_records
                counts["shards"] += 1
                counts["nbytes"] += shard.nbytes
        return {
            "name": self.name,
            "plan": self.plan or _hash_plan(self.recipe, shards),
            "made_by": f"tfrkit {VERSION}",
            "path": self.path,
            **self.more,
            "recipe": dict(self.recipe),
            "schema": to_json(self.schema),
            "splits": splits,
            "shards": shards,
            "files": sorted(files),
        }

    def _find_tfds_obstacle(self) -> str:
        """Return why TFDS cannot read the shards, or "" if it can."""
        if self.compression != "none":
            return f"no shards compressed with {self.compression}"
        numbers: dict[str, list[str]] = {}
        for shard in self.shards:
            if shard.split is None:
                return "no shards without a split"
            numbers.setdefault(shard.split, []).append(shard.name)
        for split, names in numbers.items():
            for number, name in enumerate(names):
                if name != name_shard(f"{self.name}-{split}.tfrecord", number, len(names)):
                    return "no files of such names"
        return ""


def _hash_plan(recipe: Mapping[str, Any], shards: Sequence[Mapping[str, Any]]) -> str:
    text = json.dumps({"recipe": recipe, "shards": shards}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
