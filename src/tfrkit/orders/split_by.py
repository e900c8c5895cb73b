"""Entry point for all kinds of splits, with notes on the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrkit.orders.group_split import check_groups, split_grouped
from tfrkit.orders.order import Order
from tfrkit.orders.shares import Parts
from tfrkit.orders.split import split_hashed, split_order, split_stratified


def split_by(
    base: Order,
    parts: Parts,
    read_key: Callable[[str], Any],
    *,
    seed: int,
    stratify: str | None,
    group: str | None,
    hash_by: str | None,
) -> tuple[dict[str, Order], list[str]]:
    """Return the parts, and notes for the user. `read_key` returns a feature in the order of `base`."""
    if hash_by is not None:
        if stratify is not None or group is not None:
            raise ValueError("a split by hash cannot be stratified or keep groups together")
        orders = split_hashed(base, parts, read_key(hash_by), seed)
        return orders, [f"{name}: {order.size} of {base.size} rows" for name, order in orders.items()]
    if group is not None:
        labels = None if stratify is None else read_key(stratify)
        groups = read_key(group)
        made = split_grouped(base, parts, groups, seed, labels=labels)
        found = check_groups(made.parts, groups, base)
        shown = ", ".join(f"{name} {count}" for name, count in found.items())
        return made.parts, [f"no {group} is in two parts: {shown}", *made.describe()]
    if stratify is not None:
        return split_stratified(base, parts, read_key(stratify), seed), []
    return split_order(base, parts, seed), []
