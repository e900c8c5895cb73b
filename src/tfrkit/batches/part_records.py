"""Payloads of selected records of a dataset, in a given order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

from tfrkit._types import Int64Array, Record, UInt64Array
from tfrkit.batches.access import Records
from tfrkit.container.records import Finding, Policy
from tfrkit.errors import ContainerError
from tfrkit.orders.order import Order, WindowShuffled

# Records per step. Out of file order, a step reads all its records from compressed files before it returns the first,
# so it has fewer.
_AT_ONCE_FORWARD = 8192
_AT_ONCE = 256


class PartRecords(Sequence[Record]):
    """Payload bytes of the rows of a part, in the order of the rows: iterate over them, or pick them by row.

    The policy decides whether damage is raised or skipped. Safe to share between threads.
    """

    def __init__(self, records: Records, order: Order, epoch: int, policy: Policy) -> None:
        self._records = records
        self._order = order
        self._epoch = epoch
        self._policy = policy

    def __iter__(self) -> Iterator[Record]:
        policy = self._policy.for_one_pass()
        order = self._order
        runs = order.runs()
        is_forward = runs is not None and all(run.step > 0 for run in runs)
        at_once = _AT_ONCE_FORWARD if is_forward else _AT_ONCE
        if isinstance(order, WindowShuffled):
            at_once = order.window
        for start in range(0, order.size, at_once):
            positions = np.arange(start, min(order.size, start + at_once), dtype=np.uint64)
            yield from self._read(order.at(positions, self._epoch), policy, is_forward)
        policy.warn_of_skipped()

    def views(self) -> Iterator[memoryview]:
        """Yield the same payloads as read-only views."""
        return map(memoryview, iter(self))

    def __len__(self) -> int:
        return self._order.size

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return self.pick(range(*index.indices(len(self))))
        return self.pick([index])[0]

    def pick(self, numbers: Iterable[int]) -> list[Record]:
        """Return the records of these rows, in the given order."""
        rows = count_from_start(np.fromiter(numbers, np.int64), len(self))
        return self._records.pick(self._order.at(rows, self._epoch).tolist())

    def _read(self, numbers: UInt64Array, policy: Policy, is_forward: bool) -> Iterator[Record]:
        records = self._records
        shards, _ = records.locate_many(numbers)
        open_shard = records.open_shard if is_forward else records.hold_shard
        accesses = [open_shard(int(shard)) for shard in np.unique(shards)]
        if any(access.table is None for access in accesses):
            yield from self._read_inflating(numbers, policy, is_forward)
            return
        for number in numbers.tolist():
            try:
                record = records[number]
            except ContainerError as error:
                _take(policy, error)
            else:
                yield record

    def _read_inflating(self, numbers: UInt64Array, policy: Policy, is_forward: bool) -> Iterator[Record]:
        """Read records in file order, because inflating is sequential, and yield them in the given order."""
        if is_forward:
            read = self._read_neighbours(numbers)
        else:
            found = np.unique(numbers)
            by_number = dict(zip(found.tolist(), self._read_neighbours(found), strict=True))
            read = (by_number[number] for number in numbers.tolist())
        for record in read:
            if isinstance(record, ContainerError):
                _take(policy, record)
            else:
                yield record

    def _read_neighbours(self, numbers: UInt64Array) -> Iterator[Record | ContainerError]:
        """Read records one by one, or many at a time if they are consecutive."""
        shards, ordinals = self._records.locate_many(numbers)
        is_next = (np.diff(ordinals) == 1) & (np.diff(shards) == 0)
        edges = [0, *(np.flatnonzero(~is_next) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(edges):
            if start < stop:
                access, first = self._records.open_shard(int(shards[start])), int(ordinals[start])
                yield from access.read_stretch(first, first + stop - start)


def _take(policy: Policy, error: ContainerError) -> None:
    policy.take(Finding.of(error), error)


def count_from_start(numbers: Int64Array, size: int) -> UInt64Array:
    """Return row numbers from the start; negative ones count from the end. Raise IndexError if one is out of range."""
    wrong = numbers[(numbers < -size) | (numbers >= size)]
    if len(wrong):
        raise IndexError(f"record {wrong[0]} of {size} does not exist")
    return np.where(numbers < 0, numbers + size, numbers).astype(np.uint64)
