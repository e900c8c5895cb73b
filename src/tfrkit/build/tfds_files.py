"""TFDS's metadata beside the shards, so that `tfds.builder_from_directory(out)` loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrkit.build.journal import ShardResult
from tfrkit.features.schema import Schema
from tfrkit.features.tfds_export import to_tfds

FILE_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
VERSION = "1.0.0"


def make_tfds_files(
    name: str, schema: Schema, splits: Mapping[str, Sequence[ShardResult]], *, description: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str], list[str]]:
    """features.json, dataset_info.json, label files by name, and notes on what TFDS sees otherwise than we do."""
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
                # Numbers of 64 bits are strings in protobuf's JSON.
                "numBytes": str(sum(shard.nbytes for shard in shards)),
                "shardLengths": [str(shard.num_records) for shard in shards],
            }
            for split, shards in splits.items()
        ],
        "version": VERSION,
    }
    return files.features, info, dict(files.labels), [f"TFDS: {note}" for note in files.notes]
