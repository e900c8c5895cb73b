"""How a dataset is stored and addressed: one file, a folder, one shard alone, a glob of one split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Compression = Literal["none", "gzip", "zlib", "xz", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = ("none", "gzip", "zlib", "xz", "zstd")

_NORTH = {"north": 0.5, "south": 0.5}
_EXTRA = {"train": 0.5, "train_extra": 0.5}
_USUAL = {"train": 0.75, "test": 0.25}


@dataclass(frozen=True)
class Storage:
    """How to store a dataset, and which part of it is opened.

    `splits` are names and shares; every split has `shards` files. `address` is what is opened: everything, the last
    shard of the last split, or a glob of the last split. With `has_table` its shards are opened by the table of shards,
    as those of large datasets are.
    """

    name: str
    layout: Literal["file", "folder"]
    compression: Compression = "none"
    splits: Mapping[str, float] = field(default_factory=dict)
    shards: int = 1
    address: Literal["all", "shard", "split"] = "all"
    has_table: bool = False


_ALL = (
    *(Storage(f"file_{name}", "file", name) for name in COMPRESSIONS),
    Storage("folder_plain", "folder", shards=2),
    Storage("folder_usual_gzip", "folder", "gzip", _USUAL, 2),
    Storage("folder_north", "folder", "none", _NORTH, 2),
    Storage("folder_north_gzip", "folder", "gzip", _NORTH, 2),
    Storage("folder_extra_zstd", "folder", "zstd", _EXTRA),
    Storage("shard_north", "folder", "none", _NORTH, 2, "shard"),
    Storage("shard_usual_gzip", "folder", "gzip", _USUAL, 2, "shard"),
    Storage("split_extra", "folder", "none", _EXTRA, 2, "split"),
    Storage("split_north_gzip", "folder", "gzip", _NORTH, 2, "split"),
    Storage("folder_table_gzip", "folder", "gzip", _USUAL, 2, has_table=True),
    Storage("split_table", "folder", "none", _NORTH, 2, "split", has_table=True),
)
STORAGES: Mapping[str, Storage] = {storage.name: storage for storage in _ALL}
