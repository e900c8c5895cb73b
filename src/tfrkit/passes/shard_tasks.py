"""Tasks over shards, one per file, on the workers of a cluster; results come in the order of the files.

A task is addresses, ranges and options, and returns a small result: counts, digests, sketches, the names of files that
it wrote. A verb cuts its work into such tasks only for a cluster: on one machine threads share the stretches of each
file, by the same functions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tfrkit.engines.base import Engine, EngineName, Tick
from tfrkit.engines.choose import check_engine, open_engine
from tfrkit.engines.part import Part
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.options import StorageOptions, given_options, use_given
from tfrkit.storage.work_folder import KeptFolder, WorkFolder


class FileTask(Protocol):
    """Work on one file. It can be pickled, and its result is small."""

    @property
    def path(self) -> str:
        """The file, for messages."""

    def run(self, tick: Tick) -> Any:
        """Do the work and return the result."""


VerbEngine = EngineName | Part
"""What runs the work of a verb: an engine by its name, or one of several runs of the same verb."""


@dataclass(frozen=True)
class OnEngine:
    """The cluster that a verb runs on, or its part. `jobs` limits the number of tasks at a time."""

    name: VerbEngine
    address: str | None = None
    jobs: int | None = None

    @contextlib.contextmanager
    def connect(self) -> Iterator[Workers]:
        """Connect to the cluster for the duration of the block, for several rounds of tasks."""
        if isinstance(self.name, Part):
            from tfrkit.passes.parts import PartWorkers

            yield PartWorkers(self.name, self.jobs)
            return
        with open_engine(self.name, address=self.address, jobs=self.jobs) as engine:
            yield Workers(engine)

    def run(self, tasks: Sequence[FileTask], tick: Tick) -> Iterator[Any]:
        """Connect and run one round of tasks; see `Workers.run`."""
        refuse_pipes(task.path for task in tasks)
        with self.connect() as workers:
            yield from workers.run(tasks, tick)


def choose_cluster(engine: VerbEngine, address: str | None, jobs: int | None = None) -> OnEngine | None:
    """Return the cluster of the options `engine` and `engine_address`; None for this machine."""
    check_engine("local" if isinstance(engine, Part) else engine, address)
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


class Finish(NamedTuple):
    """The last step of a verb. `begin` is called when the output was found free, before anything appears there.

    `is_repeated`: an earlier run began and was killed, so what is at the output is its rest, and is replaced.
    """

    is_repeated: bool = False
    begin: Callable[[], None] = lambda: None


class Workers:
    """A connected cluster."""

    keeps_files = False
    """Whether this process is one of several parts: what tasks write stays until all of them are done."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def run(
        self, tasks: Sequence[FileTask], tick: Tick, *, sees: Iterable[str] = (), reads: Iterable[str] = ()
    ) -> Iterator[Any]:
        """Yield the result of each task, in order; raise the error of the first task that failed, by this order.

        A worker that does not see the folders of the tasks' files, or the paths `sees`, is refused. `reads` are
        further files that tasks read.
        """
        paths = [task.path for task in tasks]
        refuse_pipes(paths)
        folders = {os.path.dirname(os.path.abspath(path)) for path in paths if not has_scheme(path)}
        others, inputs = list(sees), list(reads)
        seen = sorted({*filter(os.path.isdir, folders), *(path for path in others if not has_scheme(path))})
        self.engine.require(sees=seen, is_local=bool(seen))
        return map_in_order(self.engine, tasks, tick, stores=given_options([*paths, *others, *inputs]))

    def make_folder(
        self, place: str, identity: Any, *, reads: Sequence[str], is_leased: bool
    ) -> WorkFolder | KeptFolder:
        """Return a folder that all workers see, in or next to `place`.

        Parts of the same work, by its `identity` and the files that it reads, have one folder. See `WorkFolder`.
        """
        return WorkFolder(place, is_leased=is_leased)

    def plan_output(self, identity: Any, *, reads: Sequence[str]) -> None:
        """Name the output by its `identity` and the files that are read for it.

        Raises `OtherPartsError` if this process is one of several parts, and another one has written it.
        """

    @contextlib.contextmanager
    def finish(self) -> Iterator[Finish]:
        """Surround the last step, which makes the output of all results."""
        yield Finish()


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
        use_given(dict(self.stores))
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
