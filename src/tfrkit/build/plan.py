"""The plan of a build: the records of each shard, in order, and a hash.

Equal inputs and options give an equal plan on any machine and with any number of workers. The contents of a shard
depend on the plan only, so a shard can be written at any time, on any worker, and more than once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.build.splits import Assignment, order_split
from tfrkit.container.names import name_shard
from tfrkit.outputs.sizes import ShardSizes
from tfrkit.sources.base import Items, RecordOrder, Scan


@dataclass(frozen=True)
class PlannedShard:
    """One file to write, and its items in the order of its records."""

    name: str
    split: str
    numbers: Int64Array


@dataclass(frozen=True)
class BuildPlan:
    """All shards, and a description of everything that determines their bytes."""

    shards: tuple[PlannedShard, ...]
    description: dict[str, Any]

    @cached_property
    def hash(self) -> str:
        """A hash of the description."""
        text = json.dumps(self.description, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def num_records(self) -> int:
        """The number of records in all shards."""
        return sum(len(shard.numbers) for shard in self.shards)


def make_shards(
    assignment: Assignment,
    sizes: ShardSizes,
    *,
    name: str,
    single_file: str | None,
    seed: int,
    order: RecordOrder,
    estimate: Mapping[str, float],
) -> tuple[PlannedShard, ...]:
    """Cut each split into shards with nearly equal numbers of records.

    `estimate` is the expected size in bytes of each split. With `single_file` there is one shard with that name.
    """
    sizes.check(assignment.splits)
    if single_file is not None and len(assignment.splits) > 1:
        raise ValueError(
            f"one output file has one split, got {', '.join(assignment.splits)}\n"
            "  name a folder instead, or split later: tfr.open(...).split(...)"
        )
    if single_file is not None and sizes.count not in (None, 1):
        raise ValueError(f"one output file is one shard, got {sizes.count}\n  name a folder instead")
    shards = []
    for split, numbers in assignment.splits.items():
        if order == "seeded":
            numbers = order_split(split, numbers, seed)
        if single_file is not None:
            shards.append(PlannedShard(single_file, split, numbers))
            continue
        num_shards = sizes.num_shards(split, len(numbers), estimate.get(split, 0))
        for index in range(num_shards):
            start, stop = len(numbers) * index // num_shards, len(numbers) * (index + 1) // num_shards
            file_name = name_shard(f"{name}-{split}.tfrecord", index, num_shards)
            shards.append(PlannedShard(file_name, split, numbers[start:stop]))
    return tuple(shards)


def describe_inputs(items: Items) -> dict[str, Any]:
    """Describe the inputs: number, size, and a digest of names, sizes and private data.

    mtimes are left out, so that a copy of the same files gives the same description.
    """
    digest = hashlib.sha256()
    for column in (items.keys, None if items.is_data_derived else items.data):
        if column is not None:
            digest.update(np.ascontiguousarray(column.offsets).tobytes())
            digest.update(np.ascontiguousarray(column.data).tobytes())
    if items.nbytes is not None:
        digest.update(items.nbytes.tobytes())
    total = None if items.nbytes is None else int(items.nbytes.sum())
    return {"items": items.size, "nbytes": total, "digest": digest.hexdigest()[:32]}


def digest_stamps(scan: Scan) -> str:
    """Return a digest of the inputs' mtimes, which must not change before a build is resumed."""
    stamps = b"" if scan.items.stamps is None else scan.items.stamps.tobytes()
    return hashlib.sha256(stamps + scan.stamp.to_bytes(16, "little", signed=True)).hexdigest()[:32]


def digest_shards(shards: tuple[PlannedShard, ...]) -> str:
    """Return a digest of the assignment of items to shards."""
    digest = hashlib.sha256()
    for shard in shards:
        digest.update(f"{shard.name}\0{len(shard.numbers)}\0".encode())
        digest.update(np.ascontiguousarray(shard.numbers, "<i8").tobytes())
    return digest.hexdigest()[:32]
