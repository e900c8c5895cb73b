"""Tasks over shards, one per file, on the workers of a cluster; results come in the order of the files.

A task is an address and options, and returns a small result. A verb cuts its work into such tasks only for a cluster:
on one machine threads share the stretches of each file, by the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit.engines.base import Engine, Task, Tick
from tfrkit.engines.choose import EngineName, open_engine
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.storage.addresses import has_scheme


@dataclass(frozen=True)
class OnEngine:
    """The cluster that a verb runs on. `jobs` limits the number of tasks at a time."""

    name: EngineName
    address: str | None = None
    jobs: int | None = None

    def run(self, tasks: Sequence[Task], tick: Tick) -> Iterator[Any]:
        """Yield the result of each task, in order; raise the error of the first task that failed, by this order."""
        for task in tasks:
            if task.path == "-":
                raise StorageError("expected a file, got a pipe, which workers of a cluster cannot read", shard="-")
        with open_engine(self.name, address=self.address, jobs=self.jobs) as engine:
            folders = {os.path.dirname(os.path.abspath(task.path)) for task in tasks if not has_scheme(task.path)}
            engine.require(sees=sorted(filter(os.path.isdir, folders)))
            yield from map_in_order(engine, tasks, tick)


@dataclass(frozen=True)
class _Numbered:
    """A task with its place, whose error is a result: errors are raised in the order of the files."""

    number: int
    task: Task

    @property
    def path(self) -> str:
        return self.task.path

    @property
    def key(self) -> str:
        return str(self.number)

    def run(self, tick: Tick) -> tuple[int, Any, TfrkitError | None]:
        try:
            return self.number, self.task.run(tick), None
        except TfrkitError as error:
            return self.number, None, error


def map_in_order(engine: Engine, tasks: Sequence[Task], tick: Tick) -> Iterator[Any]:
    """Run tasks on an engine; yield results in the order of the tasks, each as soon as those before it are there."""
    numbered = (_Numbered(number, task) for number, task in enumerate(tasks))
    waiting: dict[int, tuple[Any, TfrkitError | None]] = {}
    following = 0
    for number, result, error in engine.run(numbered, then=lambda *_: (), progress=tick):
        waiting[number] = result, error
        while following in waiting:
            result, error = waiting.pop(following)
            if error is not None:
                raise error
            yield result
            following += 1
