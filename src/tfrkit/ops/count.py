"""Count records."""

from __future__ import annotations

from collections.abc import Iterable

from tfrkit.batches.ahead import count_ahead
from tfrkit.container.records import Policy
from tfrkit.passes.walk import open_shards
from tfrkit.storage.resolve import Address


def count_records(address: Address | Iterable[Address]) -> list[tuple[str, int]]:
    """Return (path, records) of each shard: by its index, else by its frame headers, inflated if compressed."""
    with open_shards(address) as shards:
        counts = count_ahead(shards, Policy())
        return [(shard.name, count.num_records) for shard, count in zip(shards, counts, strict=True)]
