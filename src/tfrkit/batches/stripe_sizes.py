"""When a shuffle is striped, and the sizes of its blocks, groups and windows."""

from __future__ import annotations

from typing import Literal

from tfrkit._limits import LIMITS
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.state import require_whole
from tfrkit.orders.order import Order
from tfrkit.orders.striped import Stripes, choose_stripes

ShuffleMode = Literal["exact", "striped"]


def prefers_stripes(shard_set: ShardSet, order: Order) -> bool:
    """Whether a shuffle of this order should be striped: remote shards, too large to hold, of small records.

    Only for records that are adjacent in their files. It depends on the dataset, not on the machine, so that all ranks
    agree.
    """
    if not shard_set.shards.is_remote or shard_set.shards.has_pipe or order.runs() is None:
        return False
    if not shard_set.shards.compressions <= {"none"}:
        return False  # no range of a compressed shard is a block of records
    nbytes = shard_set.shards.nbytes
    return nbytes > LIMITS.exact_nbytes and shard_set.mean_nbytes < LIMITS.large_request_nbytes


def plan_stripes(
    shard_set: ShardSet,
    num_rows: int,
    *,
    window: int | None = None,
    block: int | None = None,
    groups: int | None = None,
) -> Stripes:
    """Return the sizes of a striped order, as given or by the size of the records."""
    chosen = choose_stripes(
        num_rows,
        shard_set.mean_nbytes,
        block_nbytes=LIMITS.block_nbytes,
        window_nbytes=LIMITS.stripes_nbytes,
    )
    block = chosen.block if block is None else require_whole("block", block, first=1)
    groups = chosen.groups if groups is None else require_whole("groups", groups, first=1)
    if window is None:
        return Stripes(block, groups)
    window = require_whole("window", window, first=1)
    return Stripes(block, groups, max(1, window // (block * groups)))
