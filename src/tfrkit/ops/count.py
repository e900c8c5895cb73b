"""Count records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tfrkit.batches.ahead import count_ahead
from tfrkit.container.records import Policy
from tfrkit.container.shards import find_shards
from tfrkit.engines.base import Tick
from tfrkit.passes.shard_tasks import VerbEngine, choose_cluster
from tfrkit.passes.walk import open_shards
from tfrkit.storage.resolve import Address


def count_records(
    address: Address | Iterable[Address], *, engine: VerbEngine = "local", engine_address: str | None = None
) -> list[tuple[str, int]]:
    """Return (path, records) of each shard: by its index, else by its frame headers, inflated if compressed.

    With `engine` "ray" or "dask", workers of a cluster count, each a shard at a time.
    """
    cluster = choose_cluster(engine, engine_address)
    if cluster is not None:
        tasks = [CountTask(path) for path in find_shards(address, incomplete="warn")]
        counts = cluster.run(tasks, lambda *_: None)
        return [(task.path, count) for task, count in zip(tasks, counts, strict=True)]
    with open_shards(address) as shards:
        found = count_ahead(shards, Policy())
        return [(shard.name, count.num_records) for shard, count in zip(shards, found, strict=True)]


@dataclass(frozen=True)
class CountTask:
    """Counts the records of one shard."""

    path: str

    def run(self, tick: Tick) -> int:
        """Return the count."""
        return count_records(self.path)[0][1]
