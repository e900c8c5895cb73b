"""What runs tasks: the interface of engines, and the queue that all of them take tasks from.

A task is data: addresses and ranges, with a method `run`. Equal tasks do equal work, and running one twice is harmless,
so an engine may run a task again after a worker died, or a second time next to a slow worker.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, Protocol

from tfrkit.errors import Hint, Step, TfrkitError

EngineName = Literal["local", "ray", "dask"]

Tick = Callable[[int, int, int], None]
"""Callback(items, input bytes, bad items) since the last call."""

# A job ends when the workers of one task have died this many times.
MAX_DEATHS = 3


class Task(Protocol):
    """One unit of work. It can be pickled, and its result is small."""

    @property
    def path(self) -> str:
        """The file that the task is about, for messages."""

    @property
    def key(self) -> str:
        """A name that no other task of the same run has at the same time."""

    def run(self, tick: Tick) -> Any:
        """Do the work and return the result."""


Then = Callable[[Any, Any], Sequence[Any]]
"""Callback(task, result) that returns the follow-up tasks of a finished task."""


class Engine(Protocol):
    """Runs tasks somewhere."""

    @property
    def slots(self) -> int:
        """The number of tasks that run at the same time, for cutting work into pieces."""

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine, in this process or in processes that it starts."""

    def require(
        self, *, sees: Sequence[str] = (), tokens: Sequence[tuple[str, bytes]] = (), is_local: bool = True
    ) -> None:
        """Refuse workers without the paths `sees`, or without the exact content of the files `tokens`.

        Tasks that are not `is_local` use no local path, so that workers need not have the current folder.
        """

    def run(
        self, tasks: Iterable[Any], *, then: Then, progress: Tick, meanwhile: Iterator[None] | None = None
    ) -> Iterator[Any]:
        """Run tasks and their follow-up tasks; yield results as they complete.

        The small steps of `meanwhile` run in this process while workers are busy; all of them are done at the end. An
        exception of a task ends the run.
        """


class TaskQueue:
    """Pending tasks: follow-up tasks first, then the given tasks, which are created lazily."""

    def __init__(self, tasks: Iterable[Any]) -> None:
        self._given = iter(tasks)
        self._ready: deque[Any] = deque()

    def __bool__(self) -> bool:
        if not self._ready:
            self._ready.extend(islice(self._given, 1))
        return bool(self._ready)

    def take(self) -> Any:
        return self._ready.popleft()

    def put_first(self, tasks: Sequence[Any]) -> None:
        self._ready.extendleft(reversed(tasks))

    @property
    def first(self) -> Any:
        """The next task. REQUIRES: the queue is not empty."""
        return self._ready[0]


def report_deaths(task: Task, how: str, deaths: int) -> TfrkitError:
    """Return the error for a task whose workers died."""
    return TfrkitError(
        f"a worker ended {how} {deaths} times at the same task",
        shard=os.path.basename(task.path),
        hint=Hint(Step("too little memory? use fewer workers: {jobs}", jobs=1), "finished shards are kept"),
    )
