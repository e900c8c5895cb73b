"""What an epoch over a dataset in an object store costs, by exact and by striped shuffles."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stripe_sizes import plan_stripes, prefers_stripes
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import StorageError
from tfrkit.orders.order import Shuffled, score_mixing
from tfrkit.orders.striped import Striped
from tfrkit.storage.resolve import Address

# Amazon S3 and Google Cloud Storage, standard class; Azure's hot tier is 10 to 30 % more.
DOLLARS_PER_REQUEST = 0.40 / 1e6
# The index, and the last bytes of a shard, which are compared with it. Without a manifest, its first bytes come before.
_REQUESTS_PER_SHARD = 2


@dataclass(frozen=True)
class EpochCost:
    """Requests and dollars of one epoch by one rank; `held_nbytes` are in memory, 0 if a batch is all."""

    order: str
    requests: int
    dollars: float
    held_nbytes: int
    mixing: float
    is_default: bool

    def to_json(self) -> dict[str, Any]:
        """Return all fields, with mixing to two places and dollars to a cent of a cent."""
        return {**asdict(self), "mixing": round(self.mixing, 2), "dollars": round(self.dollars, 4)}


def epoch_cost(address: Address | Iterable[Address]) -> list[EpochCost]:
    """Return the cost of an epoch in exact and in striped order, from the sizes and counts of the shards.

    Records are counted by the manifest or the indexes if there are any, else by a scan of the headers.
    """
    with contextlib.closing(ShardSet(Shard.open_all(find_shards(address, incomplete="warn")), Policy())) as shard_set:
        if shard_set.shards.has_pipe:
            raise StorageError("expected files, got a pipe, which has no order to choose", shard="-")
        order = shard_set.file_order
        is_striped = prefers_stripes(shard_set, order)
        per_shard = _REQUESTS_PER_SHARD * len(shard_set.shards)
        stripes = plan_stripes(shard_set, order.size)
        striped = Striped(order, 0, stripes)
        num_blocks = count_block_reads(shard_set.records.find_starts(), stripes.block)
        held = int(min(order.size, stripes.window) * shard_set.mean_nbytes)
        return [
            _price("exact", order.size + per_shard, 0, score_mixing(Shuffled(order, 0)), is_default=not is_striped),
            _price("striped", num_blocks + per_shard, held, score_mixing(striped), is_default=is_striped),
        ]


def count_block_reads(starts: Iterable[int], block: int) -> int:
    """Return the ranges of an epoch in blocks of `block` records: a block that continues in the next shard is two.

    `starts` are the numbers of the first records of the shards, and the total.
    """
    bounds = np.fromiter(starts, np.int64)
    first, stop = bounds[:-1], bounds[1:]
    filled = stop > first
    touched = (stop[filled] - 1) // block - first[filled] // block + 1
    return int(touched.sum())


def _price(name: str, requests: int, held_nbytes: int, mixing: float, *, is_default: bool) -> EpochCost:
    return EpochCost(name, requests, requests * DOLLARS_PER_REQUEST, held_nbytes, mixing, is_default)


def describe_prices() -> str:
    """Return one line about the prices and sizes that the numbers assume."""
    return (
        f"at ${DOLLARS_PER_REQUEST * 1e6:.2f} per million requests, blocks of {LIMITS.block_nbytes >> 20} MiB, without "
        "the price of traffic out of the region"
    )
