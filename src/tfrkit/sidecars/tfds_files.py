"""Read TFDS's sidecars, features.json and dataset_info.json, and make them for new datasets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.tfds_export import to_tfds
from tfrkit.features.tfds_json import from_tfds
from tfrkit.orders.split_names import read_split_lengths
from tfrkit.sidecars.places import FEATURES, INFO
from tfrkit.storage.lookup import UnusableFileError
from tfrkit.storage.text_files import read_json, read_text

FILE_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
VERSION = "1.0.0"


class SizedShard(Protocol):
    """A shard that was written."""

    @property
    def name(self) -> str: ...
    @property
    def num_records(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


@dataclass(frozen=True)
class TfdsFolder:
    """Contents of TFDS's files in a folder.

    Attributes:
        schema: The schema from features.json; None if it is missing or unusable.
        info: The content of dataset_info.json; None if it is missing or unusable.
        problems: (path, reason) of each unusable file.
    """

    schema: Schema | None = None
    info: Mapping[str, Any] | None = None
    problems: tuple[tuple[str, str], ...] = field(default=())

    @cached_property
    def lengths(self) -> Mapping[str, Sequence[int]]:
        """The number of records of each shard, by split, from dataset_info.json."""
        return {} if self.info is None else read_split_lengths(self.info)


def read_tfds_folder(folder: str) -> TfdsFolder:
    """Read TFDS's files in a folder."""
    problems: list[tuple[str, str]] = []

    def load(read: Callable[[str], Any], name: str) -> Any:
        try:
            return read(os.path.join(folder, name))
        except UnusableFileError as error:
            problems.append((os.path.join(folder, name), error.what))
            return None

    schema = None
    features = load(read_json, FEATURES)
    if features is not None:
        try:
            schema = from_tfds(features, read_text=partial(load, read_text)).schema
        except SchemaError as error:
            problems.append((os.path.join(folder, FEATURES), error.what))
    info = load(read_json, INFO)
    if info is not None and not isinstance(info, dict):
        problems.append((os.path.join(folder, INFO), f"expected a JSON object, got {type(info).__name__}"))
        info = None
    return TfdsFolder(schema, info, tuple(problems))


def make_tfds_files(
    name: str, schema: Schema, splits: Mapping[str, Sequence[SizedShard]], *, description: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str], list[str]]:
    """Return features.json, dataset_info.json, label files by name, and notes on what TFDS reads differently."""
    files = to_tfds(schema)
    info = {
        "description": description,
        "fileFormat": "tfrecord",
        "moduleName": "",
        "name": name,
        "splits": [
            {
                "filepathTemplate": FILE_TEMPLATE,
                "name": split,
                # protobuf's JSON format writes 64-bit integers as strings.
                "numBytes": str(sum(shard.nbytes for shard in shards)),
                "shardLengths": [str(shard.num_records) for shard in shards],
            }
            for split, shards in splits.items()
        ],
        "version": VERSION,
    }
    return files.features, info, dict(files.labels), [f"TFDS: {note}" for note in files.notes]
