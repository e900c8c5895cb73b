"""Count records."""

from __future__ import annotations

from collections.abc import Iterable

from tfrkit.container.locate import count_frames
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.storage.resolve import Address


def count_records(address: Address | Iterable[Address]) -> list[tuple[str, int]]:
    """Return (path, records) of each shard: by its index, else by its frame headers, inflated if compressed."""
    counts = []
    for path in find_shards(address, incomplete="warn"):
        shard = Shard.open(path)
        try:
            counts.append((path, count_frames(shard, Policy()).num_records))
        finally:
            shard.close()
    return counts
