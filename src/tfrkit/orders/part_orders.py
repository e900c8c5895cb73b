"""Orders of the parts of a split, from the part of each position."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.orders.order import Listed, Order, Rearranged

# Orders with these names in their description are the same in every epoch. Others cannot be split.
_FIXED = frozenset({"whole", "slice", "listed", "without", "permuted", "joined"})


class Without(Rearranged):
    """Another order without some of its positions; `positions` are those left out, ascending."""

    def __init__(self, base: Order, positions: UInt64Array) -> None:
        self._base = base
        self._positions = np.ascontiguousarray(positions, np.uint64)
        # For each position left out, the number of positions kept before it.
        self._kept_before = self._positions - np.arange(len(self._positions), dtype=np.uint64)
        self.size = base.size - len(self._positions)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        skipped = np.searchsorted(self._kept_before, positions, side="right")
        return self._base.at(positions + skipped.astype(np.uint64), epoch)

    def members(self) -> Order:
        return self

    def describe(self) -> object:
        digest = hashlib.blake2b(self._positions.data, digest_size=16).hexdigest()
        return ["without", len(self._positions), digest, self._base.describe()]


def list_parts(base: Order, names: Sequence[str], part_of: Int64Array) -> dict[str, Order]:
    """Make the orders of parts from the part of each position; a part keeps the order of `base`."""
    return {name: Listed(base, np.flatnonzero(part_of == part).view(np.uint64)) for part, name in enumerate(names)}


def is_fixed(order: Order) -> bool:
    """Whether an order is known to be the same in every epoch."""
    return _find_moving(order.describe()) is None


def check_fixed(base: Order) -> None:
    """Raise if an order changes between epochs: its parts would exchange records."""
    moving = _find_moving(base.describe())
    if moving is not None:
        raise ValueError(
            f"expected rows in a fixed order, got {moving} ones: parts would exchange rows between epochs\n"
            "  split first, then shuffle, mix or repeat the parts"
        )


def _find_moving(description: object) -> str | None:
    """Find the name of the first nested order that is not known to be fixed."""
    if not isinstance(description, (list, tuple)) or not description or not isinstance(description[0], str):
        return None
    if description[0] not in _FIXED:
        return "shuffled" if description[0] == "window" else description[0]
    return next(filter(None, map(_find_moving, description[1:])), None)
