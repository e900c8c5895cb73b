"""Where a reader stands, as a small JSON value, and whether that value belongs to this dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit.container.index import fingerprint_shard
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.orders.order import Order

_VERSION = 1


def fingerprint_dataset(shards: Sequence[Shard]) -> str:
    """A name for the bytes of a dataset: sizes, heads and tails of its shards, but not where they lie."""
    digest = hashlib.blake2b(digest_size=8)
    for shard in shards:
        digest.update(str(shard.nbytes).encode() + b":")
        if shard.nbytes:
            digest.update(str(fingerprint_shard(shard.reader)).encode())
            shard.reader.park()
    return digest.hexdigest()


def fingerprint_order(order: Order) -> str:
    """A name for an order: equal for equal seeds, splits and slices."""
    return hashlib.blake2b(json.dumps(order.describe()).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Position:
    """A place in the sequence of all epochs: rows of `epoch` before `row` were given."""

    epoch: int = 0
    row: int = 0


def save_state(position: Position, dataset: str, order: str) -> dict[str, Any]:
    """A JSON value under 1 KB."""
    return {
        "tfrkit_state": _VERSION,
        "dataset": dataset,
        "order": order,
        "epoch": position.epoch,
        "row": position.row,
    }


def load_state(state: Mapping[str, Any], dataset: str, order: str, size: int) -> Position:
    """The place a state names, after a check that it belongs to this dataset and order."""
    if not isinstance(state, Mapping) or state.get("tfrkit_state") != _VERSION:
        raise ValueError(f"expected a state saved by state_dict(), got {str(state)[:64]!r}")
    if state["dataset"] != dataset:
        raise TfrkitError(
            f"the state is of another dataset, {state['dataset']} stored, {dataset} opened",
            hint="the files changed, or others were opened: start again, or open those the state was saved with",
        )
    if state["order"] != order:
        raise TfrkitError(
            f"the state is of another order, {state['order']} stored, {order} asked for",
            hint="use the seed, split, take, skip and shuffle that the state was saved with",
        )
    epoch, row = state["epoch"], state["row"]
    if not (isinstance(epoch, int) and isinstance(row, int) and epoch >= 0 and 0 <= row <= size):
        raise ValueError(f"expected epoch and row within {size} rows, got epoch {epoch!r}, row {row!r}")
    return Position(epoch, row)
