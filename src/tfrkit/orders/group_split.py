"""Splits that keep groups whole: all records of one patient, one video, one author in one part."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.orders.group_deal import Mix, deal_mixes, deal_sizes, fill_empty, refine_sizes
from tfrkit.orders.order import Order, derive_key, permute
from tfrkit.orders.part_orders import check_fixed, list_parts
from tfrkit.orders.shares import Parts, parse_parts
from tfrkit.orders.value_codes import Values, code_values


@dataclass(frozen=True)
class GroupedSplit:
    """A split into parts of whole groups, with requested and actual sizes."""

    parts: dict[str, Order]
    asked: dict[str, int]
    """The requested number of records of each part."""
    counts: dict[str, int]
    """The actual number of records of each part."""
    num_groups: dict[str, int]
    largest_group: tuple[Any, int]
    """The value of the largest group and its number of records."""
    class_counts: dict[str, dict[Any, int]] | None
    """The number of records of each class in each part; None without labels."""

    @property
    def max_miss(self) -> int:
        """Largest difference between requested and actual records of a part."""
        return max((abs(self.counts[name] - asked) for name, asked in self.asked.items()), default=0)

    @property
    def max_label_gap(self) -> float | None:
        """The largest difference between the share of a class in a part and in all records; None without labels."""
        if self.class_counts is None:
            return None
        rows = [[counts[value] for value in counts] for counts in self.class_counts.values()]
        table = np.array(rows, np.int64).reshape(len(rows), -1)
        shares = table / np.maximum(1, table.sum(axis=1, keepdims=True))
        whole = table.sum(axis=0) / max(1, table.sum())
        held = table.sum(axis=1) > 0
        return float(np.abs(shares - whole)[held].max(initial=0.0))

    def describe(self) -> list[str]:
        """Return one line per part, one if a large group explains wrong sizes, and one for labels."""
        size = max(1, sum(self.counts.values()))
        lines = [
            f"{name}: {self.counts[name]} records ({self.counts[name] / size:.1%}), groups {self.num_groups[name]}, "
            f"asked {asked} ({asked / size:.1%})"
            for name, asked in self.asked.items()
        ]
        value, largest = self.largest_group
        smallest = min((asked for asked in self.asked.values() if asked), default=0)
        if self.max_miss and largest > smallest:
            lines.append(f"group {value!r} has {largest} records, more than the smallest part may have")
        if self.max_label_gap is not None:
            lines.append(f"largest distance of a class from its share: {self.max_label_gap:.1%}")
        return lines


def split_grouped(base: Order, parts: Parts, groups: Values, seed: int, labels: Values | None = None) -> GroupedSplit:
    """Split into parts that share no group, with sizes as close to the requested sizes as whole groups allow.

    A group larger than its part makes the part larger: see `max_miss`. With `labels` groups are chosen
    so that classes have similar shares in all parts, and sizes may differ a little more. Cost for 1M records:
    below a second, with labels one or two.
    """
    seed = operator.index(seed)
    check_fixed(base)
    asked = parse_parts(parts, base.size)
    names = list(asked)
    part_of_group, codes, values = assign_groups(list(asked.values()), groups, seed, labels)
    part_of = part_of_group[codes]
    counts = np.bincount(part_of, minlength=len(names)).tolist()
    num_groups = np.bincount(part_of_group, minlength=len(names)).tolist()
    group_sizes = np.bincount(codes, minlength=len(values))
    largest = int(np.argmax(group_sizes)) if values else -1
    return GroupedSplit(
        parts=list_parts(base, names, part_of),
        asked=asked,
        counts=dict(zip(names, counts, strict=True)),
        num_groups=dict(zip(names, num_groups, strict=True)),
        largest_group=(values[largest], int(group_sizes[largest])) if values else (None, 0),
        class_counts=None if labels is None else _count_classes(names, part_of, labels),
    )


def assign_groups(
    targets: list[int], groups: Values, seed: int, labels: Values | None
) -> tuple[Int64Array, Int64Array, list[Any]]:
    """Return the part of each group, the group of each position, and the values of the groups."""
    size = sum(targets)
    codes, values = code_values(groups, "group", size)
    num_parts = sum(1 for target in targets if target)
    if len(values) < num_parts:
        raise ValueError(f"{num_parts} parts expected at least {num_parts} groups, got {len(values)}")
    group_sizes = np.bincount(codes, minlength=len(values))
    mixed = permute(len(values), derive_key("groups", seed), np.arange(len(values), dtype=np.uint64))
    ties = permute(len(targets), derive_key("parts", seed), np.arange(len(targets), dtype=np.uint64)).tolist()
    if labels is None:
        sizes, kind_of_group, num_groups = np.unique(group_sizes, return_inverse=True, return_counts=True)
        table = deal_sizes(sizes, num_groups, targets, ties)
        fill_empty(table, sizes, targets)
        refine_sizes(table, sizes, targets)
    else:
        kind_of_group, mixes = _find_mixes(codes, code_values(labels, "label", size)[0], mixed)
        num_groups = np.bincount(kind_of_group, minlength=len(mixes))
        table = deal_mixes(mixes, num_groups, targets, ties)
        sizes = np.array([sum(count for _, count in mix) for mix in mixes], np.int64)
        fill_empty(table, sizes, targets)
    part_of_group = np.empty(len(values), np.int64)
    by_kind = mixed[np.argsort(kind_of_group[mixed], kind="stable")]
    part_of_group[by_kind] = np.repeat(np.tile(np.arange(len(targets)), len(table)), table.ravel())
    return part_of_group, codes, values


def _find_mixes(codes: Int64Array, labels: Int64Array, mixed: np.ndarray[Any, Any]) -> tuple[Int64Array, list[Mix]]:
    """Return the kind of each group and the classes of each kind; kinds are numbered in the seeded order of groups."""
    num_groups = len(mixed)
    num_classes = int(labels.max(initial=0)) + 1
    pairs, counts = np.unique(codes * num_classes + labels, return_counts=True)
    cells = np.stack([pairs % num_classes, counts], axis=1)
    stops = np.cumsum(np.bincount(pairs // num_classes, minlength=num_groups))
    content, width = cells.tobytes(), cells.itemsize * 2
    rows = [content[start * width : stop * width] for start, stop in pairwise([0, *stops.tolist()])]
    kinds: dict[bytes, int] = {}
    for group in mixed.tolist():
        kinds.setdefault(rows[group], len(kinds))
    kind_of_group = np.fromiter(map(kinds.__getitem__, rows), np.int64, num_groups)
    mixes = [
        [(label, count) for label, count in np.frombuffer(row, cells.dtype).reshape(-1, 2).tolist()] for row in kinds
    ]
    return kind_of_group, mixes


def _count_classes(names: list[str], part_of: Int64Array, labels: Values) -> dict[str, dict[Any, int]]:
    codes, values = code_values(labels, "label", len(part_of))
    table = np.bincount(part_of * len(values) + codes, minlength=len(names) * len(values))
    rows = table.reshape(len(names), -1).tolist()
    return {name: dict(zip(values, row, strict=True)) for name, row in zip(names, rows, strict=True)}


def check_groups(parts: Mapping[str, Order], groups: Values, base: Order | None = None) -> dict[str, int]:
    """Check that no group is in two parts; return the number of groups in each part.

    `groups` has the group of each record of the dataset or, with `base`, of each position of that order.
    """
    codes, values = code_values(groups, "group", len(groups))
    records = None if base is None else base.at(np.arange(base.size, dtype=np.uint64))
    by_record = None if records is None else np.argsort(records, kind="stable")
    owner_of = np.full(len(values), -1, np.int64)
    num_groups = {}
    for part, (name, order) in enumerate(parts.items()):
        found_at: np.ndarray[Any, Any] = order.at(np.arange(order.size, dtype=np.uint64))
        if records is not None and by_record is not None:
            found_at = by_record[np.searchsorted(records, found_at, sorter=by_record)]
        found = codes[found_at]
        shared = np.flatnonzero(owner_of[found] >= 0)
        if len(shared):
            group = found[shared[0]]
            other = list(parts)[owner_of[group]]
            raise ValueError(
                f"group {values[group]!r} is in two parts, {other!r} and {name!r} - at position {shared[0]} of {name!r}"
            )
        distinct = np.unique(found)
        owner_of[distinct] = part
        num_groups[name] = len(distinct)
    return num_groups
