"""The state of a reader as a small JSON value, and the check that it fits the dataset."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfrkit.container.index import fingerprint_shard
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.orders.order import Order

_VERSION = 1
_KEYS = ("dataset", "order", "epoch", "row")
# More than any training needs, and exact in every JSON parser.
MAX_EPOCH = 2**53 - 1


def fingerprint_dataset(shards: Sequence[Shard]) -> str:
    """Hash the sizes, first bytes and last bytes of the shards of a dataset, but not their paths."""
    digest = hashlib.blake2b(digest_size=8)
    for shard in shards:
        digest.update(str(shard.nbytes).encode() + b":")
        if shard.nbytes:
            digest.update(str(fingerprint_shard(shard.reader)).encode())
            shard.reader.park()
    return digest.hexdigest()


def fingerprint_order(order: Order) -> str:
    """Hash an order; equal for equal seeds, splits and slices."""
    return hashlib.blake2b(json.dumps(order.describe()).encode(), digest_size=8).hexdigest()


class Position(NamedTuple):
    """A position in the sequence of all epochs: the rows of `epoch` before `row` were delivered."""

    epoch: int = 0
    row: int = 0


def save_state(position: Position, dataset: str, order: str) -> dict[str, Any]:
    """Return the state as a JSON value under 1 KB."""
    return {
        "tfrkit_state": _VERSION,
        "dataset": dataset,
        "order": order,
        "epoch": position.epoch,
        "row": position.row,
    }


def load_state(state: Mapping[str, Any], dataset: str, order: str, size: int) -> Position:
    """Return the position of a state; raise if it is of another dataset or order."""
    if not isinstance(state, Mapping) or "tfrkit_state" not in state:
        raise ValueError(f"expected a state from state_dict(), got {str(state)[:64]!r}")
    if state["tfrkit_state"] != _VERSION:
        raise ValueError(
            f"state is of version {state['tfrkit_state']!r:.32}, this tfrkit reads version {_VERSION}\n"
            "  it was saved by another release: pip install -U tfrkit"
        )
    for key in _KEYS:
        if key not in state:
            raise ValueError(
                f"state expected the key {key!r}, got {', '.join(map(repr, state))}\n"
                "  load the whole result of state_dict()"
            )
    for key in ("dataset", "order"):
        if not isinstance(state[key], str):
            raise TypeError(f"state key {key!r} expected a text, got {state[key]!r:.64}")
    if state["dataset"] != dataset:
        raise TfrkitError(
            f"the state is from another dataset, {state['dataset']} stored, {dataset} opened",
            hint="the files changed, or other files were opened: start again, or open the files of the state",
        )
    if state["order"] != order:
        raise TfrkitError(
            f"the state is from another order, {state['order']} stored, {order} requested",
            hint="use the seed, split, take, skip, shuffle, bucket and max_tokens that the state was saved with; "
            "with a striped shuffle also the batch size of all ranks together",
        )
    epoch = require_count("state key 'epoch'", state["epoch"], MAX_EPOCH)
    return Position(epoch, require_count("state key 'row'", state["row"], size))


def require_whole(name: str, value: Any, *, first: int | None = None) -> int:
    """Return the value as an int; TypeError if it is not an integer, ValueError if it is below `first`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} expected a whole number, got {value!r:.64}")
    number = operator.index(value)
    if first is not None and number < first:
        raise ValueError(f"{name} expected at least {first}, got {number}")
    return number


def require_count(name: str, value: Any, last: int) -> int:
    """Return the value as an int from 0 to `last`; TypeError if not an integer, ValueError if out of range."""
    number = require_whole(name, value)
    if not 0 <= number <= last:
        raise ValueError(f"{name} expected 0 to {last}, got {number}")
    return number
