"""Turn planned shards into tasks: check existing shards, and write missing ones in balanced pieces."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tfrkit.build.journal import BadItem, ShardResult, read_done
from tfrkit.build.plan import PlannedShard
from tfrkit.build.task import CheckTask, JoinTask, ReadTask, ShardTask, part_path
from tfrkit.engines.base import Task
from tfrkit.sources.base import Scan
from tfrkit.storage.options import StorageOptions

# Small last pieces reduce idle time at the end.
_PIECES_PER_JOB = 8
# Cost of joining parts, which copies and hashes them again, relative to writing images unchanged.
_JOIN_SHARE = 0.15

_NO_STORES: Mapping[str, StorageOptions] = MappingProxyType({})

MakeTask = Callable[[PlannedShard, str], ShardTask]
# Wraps the task that completes a shard.
Complete = Callable[[ShardTask | JoinTask], Task]


def cut_shards(weights: Sequence[float], jobs: int) -> list[int]:
    """Return the number of parts of each shard with which `jobs` workers finish at nearly the same time.

    A shard stays whole if it finishes with the others, or later by less than joining its parts would take. Workers
    take the largest shards first, so only the last ones are cut.

    Example:
        >>> cut_shards([1.0], 2), cut_shards([1.0] * 4, 2), cut_shards([1.0] * 5, 2)
        ([16], [1, 1, 1, 1], [1, 1, 1, 1, 4])
    """
    total = sum(weights)
    num_parts = [1] * len(weights)
    if jobs < 2 or total <= 0:
        return num_parts
    busy = [0.0] * jobs  # a heap: the worker that finishes first takes the next piece
    for index in sorted(range(len(weights)), key=lambda index: -weights[index]):
        weight = weights[index]
        if busy[0] + (1 - _JOIN_SHARE) * weight > total / jobs * (1 + 1e-9):
            num_parts[index] = max(1, -(-int(weight * _PIECES_PER_JOB * jobs * 1e6) // int(total * 1e6)))
        for _ in range(num_parts[index]):
            heapq.heapreplace(busy, busy[0] + weight / num_parts[index])
    return num_parts


def make_read_tasks(scan: Scan, jobs: int, stores: Mapping[str, StorageOptions] = _NO_STORES) -> Iterator[Task]:
    """Yield tasks that read every item once and write nothing; none if the reader reads items in blocks."""
    if scan.reader.gives != "rows":
        return
    size = scan.items.size
    num_tasks = min(size, _PIECES_PER_JOB * jobs)
    for number in range(num_tasks):
        numbers = np.arange(size * number // num_tasks, size * (number + 1) // num_tasks)
        yield ReadTask(f"items {numbers[0]} to {numbers[-1]}", scan.items.take(numbers), scan.reader, stores)


@dataclass
class Schedule:
    """Schedules the tasks of a build and collects their results."""

    shards: Sequence[PlannedShard]
    folder: str
    make_task: MakeTask
    weights: dict[str, float]
    jobs: int
    may_cut: bool
    # Number of parts by shard name; if None, `cut_shards` decides.
    parts: Mapping[str, int] | None = None
    complete: Complete | None = None
    results: dict[str, ShardResult] = field(default_factory=dict)
    bad: list[tuple[BadItem, str]] = field(default_factory=list)
    num_resumed: int = 0
    _by_name: dict[str, PlannedShard] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _broken: set[str] = field(default_factory=set)

    def begin(self) -> Iterator[Task]:
        """Yield the first tasks: checks of existing shards, then missing shards from large to small."""
        self._by_name = {shard.name: shard for shard in self.shards}
        missing = {shard.name for shard in self.missing}
        yield from (CheckTask(self._path(shard)) for shard in self.shards if shard.name not in missing)
        yield from self._write(self.missing)

    def follow(self, task: Task, result: ShardResult | None) -> list[Task]:
        """Record the result of a task and return its follow-up tasks."""
        name = os.path.basename(task.path)
        if isinstance(task, CheckTask):
            if result is None:
                return list(self._write([self._by_name[name]]))
            self.num_resumed += 1
        assert result is not None
        if not isinstance(task, ShardTask) or task.num_parts == 1:
            self._take(name, result)
            return []
        if result.bad and task.on_bad == "fail":
            self._broken.add(name)
            self._note_bad(name, result)
        self._waiting[name] -= 1
        if self._waiting[name] or name in self._broken:
            return []
        return [self._complete(JoinTask(task.path, task.num_parts))]

    @cached_property
    def missing(self) -> list[PlannedShard]:
        """The shards that were not written before this run."""
        return [shard for shard in self.shards if read_done(self._path(shard)) is None]

    def _take(self, name: str, result: ShardResult) -> None:
        self._note_bad(name, result)
        if result.sha256:
            self.results[name] = result

    def _note_bad(self, name: str, result: ShardResult) -> None:
        split = self._by_name[name].split
        self.bad += [(item, split) for item in result.bad]

    def _write(self, shards: Sequence[PlannedShard]) -> Iterator[Task]:
        ordered = sorted(shards, key=lambda shard: -self.weights[shard.name])
        cuts = [1] * len(ordered)
        if self.parts is not None:
            cuts = [self.parts[shard.name] for shard in ordered]
        elif self.may_cut:
            cuts = cut_shards([self.weights[shard.name] for shard in ordered], self.jobs)
        for shard, num_parts in zip(ordered, cuts, strict=True):
            task = self.make_task(shard, self._path(shard))
            yield from self._cut(task, min(num_parts, max(1, len(shard.numbers))))

    def _cut(self, task: ShardTask, num_parts: int) -> list[Task]:
        if num_parts == 1:
            return [self._complete(task)]
        size = len(task.items)
        name = os.path.basename(task.path)
        tasks: list[Task] = []
        for part in range(num_parts):
            start, stop = size * part // num_parts, size * (part + 1) // num_parts
            if read_done(part_path(task.path, part, num_parts)) is None:
                tasks.append(task.cut(part, num_parts, start, stop))
        self._waiting[name] = len(tasks)
        return tasks or [self._complete(JoinTask(task.path, num_parts))]

    def _complete(self, task: ShardTask | JoinTask) -> Task:
        return task if self.complete is None else self.complete(task)

    def _path(self, shard: PlannedShard) -> str:
        return os.path.join(self.folder, shard.name)
