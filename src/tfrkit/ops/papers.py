"""Papers of a dataset: class names, TFDS's metadata and the manifest, carried over to what was made of it."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit._version import VERSION
from tfrkit.batches.survey import find_schema, read_text
from tfrkit.build.journal import ShardResult
from tfrkit.build.plan import name_dataset
from tfrkit.build.tfds_files import make_tfds_files
from tfrkit.container.manifest import MANIFEST_NAME, find_manifest, write_manifest, write_text
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, name_shard
from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import from_json, to_json

FEATURES, INFO = "features.json", "dataset_info.json"
_LABEL_FILES = ("classes.txt", "labels.txt", "charset.txt", "labelmap.txt", "label_map.pbtxt")
_TFDS_LABELS = "*.labels.txt"


@dataclass
class Papers:
    """What lies beside some shards, by name; of several folders, what they agree about."""

    texts: dict[str, str] = field(default_factory=dict)
    name: str | None = None
    schema: Schema | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def labels(self) -> dict[str, str]:
        """Class names and character sets."""
        return {name: text for name, text in self.texts.items() if name in _LABEL_FILES}

    @property
    def info(self) -> dict[str, Any] | None:
        """TFDS's dataset_info.json."""
        content = json.loads(self.texts[INFO]) if INFO in self.texts else None
        return content if isinstance(content, dict) else None


def collect_papers(paths: Sequence[str]) -> Papers:
    """The papers beside shards."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        if path != "-":
            folders.setdefault(os.path.dirname(path), []).append(path)
    found = [_read_folder(folder, shards) for folder, shards in folders.items()]
    papers = Papers()
    for name in dict.fromkeys(name for texts, _ in found for name in texts):
        versions = {texts.get(name) for texts, _ in found}
        [*texts] = versions - {None}
        if len(versions) == 1:
            papers.texts[name] = str(texts[0])
        else:
            papers.notes.append(f"{name} was not carried over, the folders to read have not the same one")
    manifests = [manifest for _, manifest in found if manifest is not None]
    if len(manifests) == len(found) == 1:
        papers.schema = _read_schema(manifests[0])
    try:
        info = papers.info
    except ValueError:
        del papers.texts[INFO]
        info = None
    names = {str(content["name"]) for content in (info, *manifests) if content is not None and content.get("name")}
    papers.name = names.pop() if len(names) == 1 else None
    return papers


def _read_folder(folder: str, shards: Sequence[str]) -> tuple[dict[str, str], dict[str, Any] | None]:
    names = [*_LABEL_FILES, FEATURES, INFO]
    names += [os.path.basename(path) for path in glob.glob(os.path.join(glob.escape(folder), _TFDS_LABELS))]
    places = {name: [os.path.join(folder, name)] for name in names}
    if len(shards) == 1:
        # What is known about a dataset of one file lies in its index folder.
        for name in _LABEL_FILES:
            own = os.path.join(folder, "_index", f"{os.path.basename(shards[0])}.{name}")
            places[name].insert(0, own)
    texts = {}
    for name, paths in places.items():
        text = next((text for path in paths if (text := read_text(path)) is not None), None)
        if text is not None:
            texts[name] = text
    return texts, find_manifest(shards[0])


def _read_schema(manifest: Mapping[str, Any]) -> Schema | None:
    try:
        return from_json(manifest.get("schema"))
    except SchemaError:
        return None


def find_source_schema(papers: Papers, shards: Sequence[Shard]) -> Schema:
    """What the records hold: as the manifest says, else read off them."""
    return papers.schema if papers.schema is not None else find_schema(shards, Policy())


@dataclass(frozen=True)
class DatasetPapers:
    """What there is to say about a dataset in a folder: enough to write everything that lies beside its shards."""

    name: str
    schema: Schema
    compression: str
    shards: Sequence[tuple[str | None, ShardResult]]
    """The split of each shard, and what became of it."""
    recipe: Mapping[str, Any]
    """Verb and options."""
    path: str
    """What was read."""

    def write(self, folder: str, source: Papers, *, is_edited: bool) -> tuple[list[str], list[str]]:
        """Write papers into a folder: (their names, notes). `is_edited`: features are not those of `source`."""
        notes: list[str] = []
        texts = dict(source.labels)
        if not is_edited:
            texts |= {name: text for name, text in source.texts.items() if name != INFO}
        texts |= self._describe_to_tfds(source, texts, notes)
        for name, text in texts.items():
            write_text(os.path.join(folder, name), text)
        write_manifest(os.path.join(folder, MANIFEST_NAME), self._make_manifest(sorted(texts)))
        return [*texts, MANIFEST_NAME], notes

    def _describe_to_tfds(self, source: Papers, carried: Mapping[str, str], notes: list[str]) -> dict[str, str]:
        splits: dict[str, list[ShardResult]] = {}
        for split, result in self.shards:
            splits.setdefault(split or "", []).append(result)
        reason = ""
        if self.compression != "none":
            reason = f"no shards compressed with {self.compression}"
        elif not self._has_tfds_names(splits):
            reason = "no files of such names"
        if reason and INFO in source.texts:
            notes.append(f"TFDS reads {reason}; {INFO} was left out")
        if reason and (FEATURES in carried or FEATURES not in source.texts):
            return {}
        try:
            features, info, labels, more = make_tfds_files(
                self.name, self.schema, splits, description=f"Made by tfrkit from {self.path}"
            )
        except SchemaError as error:
            if INFO in source.texts:
                notes.append(f"TFDS: {error.what}; {INFO} was left out")
            return {}
        texts: dict[str, str] = {}
        if source.info is not None:
            info = {**source.info, "splits": info["splits"], "name": self.name}
        if FEATURES not in carried:
            notes += more
            texts |= labels
            texts[FEATURES] = json.dumps(features, indent=2, ensure_ascii=False) + "\n"
        if not reason:
            texts[INFO] = json.dumps(info, indent=2, ensure_ascii=False) + "\n"
        return texts

    def _has_tfds_names(self, splits: Mapping[str, Sequence[ShardResult]]) -> bool:
        """Would TFDS find the files by the names it expects?"""
        return "" not in splits and all(
            shard.name == name_shard(f"{self.name}-{split}.tfrecord", number, len(shards))
            for split, shards in splits.items()
            for number, shard in enumerate(shards)
        )

    def _make_manifest(self, files: list[str]) -> dict[str, Any]:
        splits: dict[str, dict[str, int]] = {}
        shards = []
        for split, result in self.shards:
            shards.append(
                {
                    "name": result.name,
                    "split": split,
                    "records": result.num_records,
                    "nbytes": result.nbytes,
                }
            )
            if split is not None:
                counts = splits.setdefault(split, {"records": 0, "shards": 0, "nbytes": 0})
                counts["records"] += result.num_records
                counts["shards"] += 1
                counts["nbytes"] += result.nbytes
        text = json.dumps({"recipe": self.recipe, "shards": shards}, sort_keys=True)
        return {
            "name": self.name,
            "plan": hashlib.sha256(text.encode()).hexdigest()[:16],
            "made_by": f"tfrkit {VERSION}",
            "path": self.path,
            "recipe": dict(self.recipe),
            "schema": to_json(self.schema),
            "splits": splits,
            "shards": shards,
            "files": files,
        }


def choose_name(papers: Papers, out: str) -> str:
    """The name of the dataset to come: that of the one it is made of, else that of its folder."""
    return papers.name if papers.name is not None and name_dataset(papers.name) == papers.name else name_dataset(out)
