"""Output shards written by the workers of a cluster.

Workers write into a hidden folder next to the output, on a disk that all of them see. Every try of a task has its own
folder there, so that a task may run twice at a time; the driver moves the shards of the first result to the staging
folder. Records go from the files to the files: the driver gets sizes and digests only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tfrkit.container.codecs import Compression, Level
from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.engines.base import Task, Tick
from tfrkit.errors import StorageError
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.outputs.shard import OutputThreads, Tally, Written, add_tallies
from tfrkit.passes.shard_tasks import Workers
from tfrkit.progress import Progress
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.temporaries import TemporaryFolder, move_file


class Part(Protocol):
    """The records of some output shards. It can be pickled, and names files instead of holding records."""

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, Any]:
        """Put the frames into the outputs; return their tally, and facts for the driver."""


class Made(NamedTuple):
    """Result of a job: the folder of its shards, the tally of the frames read, the shards, and facts of the part."""

    folder: str
    read: Tally
    written: list[Written]
    facts: Any


@dataclass(frozen=True)
class ShardJob:
    """Writes some shards of an output."""

    folder: str
    shards: tuple[OutShard, ...]
    part: Part
    compression: Compression
    level: Level
    queue_nbytes: int | None = None

    @property
    def path(self) -> str:
        """The first shard."""
        return os.path.join(self.folder, self.shards[0].name)

    @property
    def key(self) -> str:
        """The name of the first shard."""
        return self.shards[0].name

    def run(self, tick: Tick) -> Made:
        """Write the shards with their indexes."""
        folder = os.path.join(self.folder, secrets.token_hex(8))
        try:
            os.mkdir(folder)
        except OSError as error:
            raise explain_os_error(error, self.folder, verb="write") from None
        threads = OutputThreads(1, queue_nbytes=self.queue_nbytes)
        how: dict[str, Any] = {"compression": self.compression, "level": self.level}
        with Outputs(self.shards, threads, folder=folder, **how) as outputs:
            read, facts = self.part.feed(outputs, pass_ticks(tick))
            return Made(folder, read, outputs.finish(), facts)


class WorkerOutputs:
    """The shards of one output while workers write them. A context manager: on exit the hidden folder is removed."""

    def __init__(
        self,
        workers: Workers,
        shards: Sequence[OutShard],
        *,
        staging: Any,
        progress: Progress,
        compression: Compression,
        level: Level,
        queue_nbytes: int | None,
    ) -> None:
        self.workers = workers
        self.facts: list[Any] = []
        self._shards = shards
        self._staging = staging
        self._progress = progress
        self._how: dict[str, Any] = {"compression": compression, "level": level, "queue_nbytes": queue_nbytes}
        self._written: dict[str, Written] = {}
        try:
            self._temporary = TemporaryFolder(os.path.join(os.path.dirname(staging.folder), "workers"))
        except OSError as error:
            raise explain_os_error(error, staging.folder, verb="write") from None
        self.folder = os.path.abspath(self._temporary.path)

    def __enter__(self) -> WorkerOutputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.remove()

    def run(self, tasks: Sequence[Task]) -> list[Any]:
        """Run a round of tasks on workers that see the hidden folder; return their results in order."""
        return list(self.workers.run(tasks, self._progress.advance, sees=[self.folder]))

    def write(self, parts: Sequence[tuple[Sequence[int], Part]]) -> Tally:
        """Write the shards with these numbers from each part; return the tally of the frames read."""
        jobs = [
            ShardJob(self.folder, tuple(self._shards[number] for number in numbers), part, **self._how)
            for numbers, part in parts
        ]
        read = []
        for made in self.workers.run(jobs, self._progress.advance, sees=[self.folder]):
            read.append(made.read)
            self.facts.append(made.facts)
            for written in made.written:
                self._take(written)
        return add_tallies(read)

    def finish(self) -> list[Written]:
        """Return every shard."""
        return [self._written[shard.name] for shard in self._shards]

    def _take(self, written: Written) -> None:
        """Move a shard and its index to the staging folder."""
        name = os.path.basename(written.path)
        place = self._staging.path(name)
        try:
            os.makedirs(self._staging.path(INDEX_FOLDER), exist_ok=True)
            move_file(index_path(written.path), index_path(place))
            move_file(written.path, place)
        except FileNotFoundError:
            raise StorageError(
                "a worker wrote a shard that this machine does not see",
                shard=place,
                hint="mount the same disk at the same path on every node",
            ) from None
        except OSError as error:
            raise explain_os_error(error, place, verb="put the output in place") from None
        self._written[name] = Written(place, written.nbytes, written.tally)
        self._staging.take(place)


def pass_ticks(tick: Tick) -> Progress:
    """Return a progress callback for a task, whose totals the driver knows."""
    return _Ticks(tick)


class _Ticks:
    """A progress callback that passes on to the engine."""

    def __init__(self, tick: Tick) -> None:
        self.advance = tick

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """The driver reports the totals."""

    def end(self) -> None:
        """The driver reports the end."""
