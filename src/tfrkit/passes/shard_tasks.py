"""Tasks over shards, one per file, on the workers of a cluster; results come in the order of the files.

A task is addresses, ranges and options, and returns a small result: counts, digests, sketches, the names of files that
it wrote. A verb cuts its work into such tasks only for a cluster: on one machine threads share the stretches of each
file, by the same functions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tfrkit.engines.base import Engine, Tick
from tfrkit.engines.choose import EngineName, check_engine, open_engine
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.options import StorageOptions, given_options, set_options


class FileTask(Protocol):
    """Work on one file. It can be pickled, and its result is small."""

    @property
    def path(self) -> str:
        """The file, for messages."""

    def run(self, tick: Tick) -> Any:
        """Do the work and return the result."""


@dataclass(frozen=True)
class OnEngine:
    """The cluster that a verb runs on. `jobs` limits the number of tasks at a time."""

    name: EngineName
    address: str | None = None
    jobs: int | None = None

    @contextlib.contextmanager
    def connect(self) -> Iterator[Workers]:
        """Connect to the cluster for the duration of the block, for several rounds of tasks."""
        with open_engine(self.name, address=self.address, jobs=self.jobs) as engine:
            yield Workers(engine)

    def run(self, tasks: Sequence[FileTask], tick: Tick) -> Iterator[Any]:
        """Connect and run one round of tasks; see `Workers.run`."""
        refuse_pipes(task.path for task in tasks)
        with self.connect() as workers:
            yield from workers.run(tasks, tick)


def choose_cluster(engine: EngineName, address: str | None, jobs: int | None = None) -> OnEngine | None:
    """Return the cluster of the options `engine` and `engine_address`; None for this machine."""
    check_engine(engine, address)
    return None if engine == "local" else OnEngine(engine, address, jobs)


@contextlib.contextmanager
def connect_if(cluster: OnEngine | None) -> Iterator[Workers | None]:
    """Connect to a cluster for the duration of the block; None for this machine."""
    if cluster is None:
        yield None
        return
    with cluster.connect() as workers:
        yield workers


def refuse_pipes(paths: Iterable[str]) -> None:
    """Raise `StorageError` if one of the inputs is a pipe."""
    if "-" in paths:
        raise StorageError("expected a file, got a pipe, which workers of a cluster cannot read", shard="-")


@dataclass(frozen=True)
class Workers:
    """A connected cluster."""

    engine: Engine

    def run(self, tasks: Sequence[FileTask], tick: Tick, *, sees: Iterable[str] = ()) -> Iterator[Any]:
        """Yield the result of each task, in order; raise the error of the first task that failed, by this order.

        A worker that does not see the folders of the tasks' files, or the paths `sees`, is refused. Addresses among
        them are those of stores that tasks use.
        """
        paths = [task.path for task in tasks]
        refuse_pipes(paths)
        folders = {os.path.dirname(os.path.abspath(path)) for path in paths if not has_scheme(path)}
        others = list(sees)
        seen = sorted({*filter(os.path.isdir, folders), *(path for path in others if not has_scheme(path))})
        self.engine.require(sees=seen, is_local=bool(seen))
        return map_in_order(self.engine, tasks, tick, stores=given_options([*paths, *others]))


@dataclass(frozen=True)
class _Numbered:
    """A task with its place, whose error is a result: errors are raised in the order of the files.

    `stores` are the options of remote stores in the process that made the task.
    """

    number: int
    task: FileTask
    stores: tuple[tuple[str, StorageOptions], ...] = ()

    @property
    def path(self) -> str:
        return self.task.path

    @property
    def key(self) -> str:
        return str(self.number)

    def run(self, tick: Tick) -> tuple[int, Any, TfrkitError | None]:
        for root, options in self.stores:
            set_options(root, options)
        try:
            return self.number, self.task.run(tick), None
        except TfrkitError as error:
            return self.number, None, error


def map_in_order(
    engine: Engine, tasks: Iterable[FileTask], tick: Tick, *, stores: dict[str, StorageOptions] | None = None
) -> Iterator[Any]:
    """Run tasks on an engine; yield results in the order of the tasks, each as soon as those before it are there."""
    known = tuple((stores or {}).items())
    numbered = (_Numbered(number, task, known) for number, task in enumerate(tasks))
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
