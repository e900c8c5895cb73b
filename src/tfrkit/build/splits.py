"""Assignment of records to splits.

Ratios, counts, strata and groups are computed as in `Dataset.split`, so splits at build time and at read time agree.
This module applies them to the items of a source, and adds list files and splits that the source itself defines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.errors import SourceError
from tfrkit.orders.group_split import split_grouped
from tfrkit.orders.order import Order, Whole, derive_key, permute
from tfrkit.orders.split import split_order, split_stratified
from tfrkit.orders.split_names import require_split_names
from tfrkit.sources.base import Items, Problem
from tfrkit.storage.resolve import expand_home

SplitSize = float | int | str | os.PathLike[str] | None
"""A ratio (float), a count (int), the path of a list of names (str), or None for the rest."""

Groups = np.ndarray[Any, Any]
"""The group of each item: numbers, or names as objects."""

REST = "train"


@dataclass
class Assignment:
    """The item numbers of each split in ascending order, with notes and problems."""

    splits: dict[str, Int64Array]
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    num_left_out: int = 0


def assign_splits(
    items: Items,
    sizes: Mapping[str, SplitSize] | None,
    *,
    seed: int,
    stratify: bool = False,
    groups: Groups | None = None,
) -> Assignment:
    """Assign each item to one split; with list files an item may be in none.

    The remainder goes to `train`. Without sizes the splits are those of the source, or all items go to `train`.
    """
    require_split_names([*(sizes or {}), *items.split_names])
    if sizes and items.splits is not None:
        raise ValueError(
            f"splits expected from one place, got {', '.join(sizes)} in addition to those of the source: "
            f"{', '.join(items.split_names)}"
        )
    if items.splits is not None:
        return _take_given(items)
    if not sizes:
        return Assignment({REST: np.arange(items.size, dtype=np.int64)})
    lists = {name: expand_home(size) for name, size in sizes.items() if isinstance(size, str | os.PathLike)}
    shares = {name: size for name, size in sizes.items() if not isinstance(size, str | os.PathLike)}
    assignment = _take_listed(items, lists)
    taken = np.zeros(items.size, bool)
    for numbers in assignment.splits.values():
        taken[numbers] = True
    rest = np.flatnonzero(~taken)
    if shares:
        _cut_shares(items, rest, shares, assignment, seed=seed, stratify=stratify, groups=groups)
    elif REST not in sizes:
        assignment.splits[REST] = rest
    elif len(rest):
        assignment.num_left_out = len(rest)
        assignment.notes.append(f"{len(rest)} found files are in no list and were left out")
    return assignment


def order_split(name: str, numbers: Int64Array, seed: int) -> Int64Array:
    """Shuffle the items of a split. The order depends only on their number, the seed and the name of the split."""
    positions = np.arange(len(numbers), dtype=np.uint64)
    return numbers[permute(len(numbers), derive_key(f"build {name}", seed), positions)]


def group_by_pattern(items: Items, pattern: str) -> tuple[Groups, list[Problem]]:
    """Group items by the match of a regular expression in their keys; a key without a match is a problem.

    The value is the capture group named `group`, else the first capture group, else the whole match.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"group expected a regular expression, got {pattern!r}, {error}") from None
    problems = []
    groups = np.full(items.size, "", object)
    for number in range(items.size):
        match = compiled.search(items.key(number))
        if match is None:
            problems.append(Problem(items.key(number), f"group {pattern!r} does not match", blocking=True))
        else:
            value = match["group"] if "group" in compiled.groupindex else match[min(1, compiled.groups)]
            groups[number] = value or ""
    return groups, problems


def _take_given(items: Items) -> Assignment:
    assert items.splits is not None
    splits = {name: np.flatnonzero(items.splits == index) for index, name in enumerate(items.split_names)}
    left_out = int((items.splits < 0).sum())
    notes = [f"{left_out} found files are in no split and were left out"] if left_out else []
    return Assignment(splits, notes, num_left_out=left_out)


def _take_listed(items: Items, lists: Mapping[str, str]) -> Assignment:
    assignment = Assignment({})
    if not lists:
        return assignment
    if items.keys is None:
        raise ValueError(f"list file {next(iter(lists.values()))!r} expected a source with file names, got rows")
    by_name: dict[str, list[int]] = {}
    for number in range(items.size):
        for name in _names_of(items.key(number)):
            by_name.setdefault(name, []).append(number)
    owner: dict[int, str] = {}
    for split, path in lists.items():
        chosen = []
        for line in _read_list(path):
            found = by_name.get(line, [])
            if len(found) != 1:
                reason = "matches no file that was found" if not found else f"matches {len(found)} files"
                assignment.problems.append(Problem(line, f"{reason} - in {path}", blocking=True, input=None))
            elif found[0] in owner:
                reason = f"is in split {owner[found[0]]!r} and in {split!r}"
                assignment.problems.append(Problem(line, f"{reason} - in {path}", blocking=True, input=None))
            else:
                owner[found[0]] = split
                chosen.append(found[0])
        assignment.splits[split] = np.array(sorted(chosen), np.int64)
    return assignment


def _names_of(key: str) -> set[str]:
    """Return the names of an item in a list file: its path, its file name, and both without the suffix."""
    base = key.rpartition("/")[2]
    return {key, base, os.path.splitext(key)[0], os.path.splitext(base)[0]}


def _read_list(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise SourceError(
            f"expected a ratio, a count or a list of names, got {path!r}, {(error.strerror or '').lower()}"
        ) from None
    return [line for line in lines if line]


def _cut_shares(
    items: Items,
    rest: Int64Array,
    shares: Mapping[str, float | int | None],
    assignment: Assignment,
    *,
    seed: int,
    stratify: bool,
    groups: Groups | None,
) -> None:
    parts = _add_rest(shares, len(rest))
    labels = None
    if stratify:
        if items.labels is None:
            raise ValueError("stratify expected a source with one class per record, got one without classes")
        labels = items.labels[rest]
    whole = Whole(len(rest))
    orders: Mapping[str, Order]
    if groups is not None:
        grouped = split_grouped(whole, parts, groups[rest], seed, labels)
        assignment.notes += grouped.describe()
        orders = grouped.parts
    elif labels is not None:
        orders = split_stratified(whole, parts, labels, seed)
    else:
        orders = split_order(whole, parts, seed)
    for name, order in orders.items():
        positions = order.at(np.arange(order.size, dtype=np.uint64)).astype(np.int64)
        assignment.splits[name] = np.sort(rest[positions])


def _add_rest(shares: Mapping[str, float | int | None], size: int) -> dict[str, float | int | None]:
    """Add `train` to the shares if they leave a remainder."""
    parts = dict(shares)
    if None in parts.values() or REST in parts:
        return parts
    ratios = sum(value for value in parts.values() if isinstance(value, float))
    counts = sum(value for value in parts.values() if isinstance(value, int))
    has_ratios = any(isinstance(value, float) for value in parts.values())
    leaves = ratios < 1 - 1e-9 if has_ratios else counts < size
    return {REST: None, **parts} if leaves else parts
