"""Output shards written by the workers of a cluster.

Workers write into a hidden folder next to the output, on a disk that all of them see. Every try of a task has its own
folder there, so that a task may run twice at a time; the driver moves the shards of the first result to the staging
folder. If the output is in a store, a worker writes to its own disk and stores its shards under their final names: they
are no dataset without a manifest. An output that replaces another goes through the disk of the driver. Records go from
the files to the files: the driver gets sizes and digests only.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tfrkit.container.codecs import Compression, Level
from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.engines.base import Tick
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.outputs.shard import OutputThreads, Tally, Written, add_tallies, take_worker_shard
from tfrkit.passes.shard_tasks import FileTask, Workers
from tfrkit.progress import Progress
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.upload import upload_file
from tfrkit.storage.work_folder import WorkFolder, take_shared


class OutputPart(Protocol):
    """The records of some output shards. It can be pickled, and names files instead of holding records."""

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, Any]:
        """Put the frames into the outputs; return their tally, and facts for the driver."""


class Made(NamedTuple):
    """Result of a job: the folder of its shards, the tally of the frames read, the shards, and facts of the part.

    `versions` are those of the stored shards and of their indexes.
    """

    folder: str
    read: Tally
    written: list[Written]
    facts: Any
    versions: Sequence[tuple[str | None, str | None]] = ()


@dataclass(frozen=True)
class ShardJob:
    """Writes some shards of an output. In a store they go to the folder `final`, or into `folder` without one."""

    folder: str
    shards: tuple[OutShard, ...]
    part: OutputPart
    compression: Compression
    level: Level
    queue_nbytes: int | None = None
    final: str | None = None

    @property
    def path(self) -> str:
        """The first shard."""
        return os.path.join(self.folder, self.shards[0].name)

    def run(self, tick: Tick) -> Made:
        """Write the shards with their indexes."""
        folder = os.path.join(self.folder, secrets.token_hex(8))
        if has_scheme(self.folder):
            with make_scratch("tfrkit-shard") as scratch:
                return _store(self._write(scratch, tick), self.final or folder)
        try:
            os.mkdir(folder)
        except OSError as error:
            raise explain_os_error(error, self.folder, verb="write") from None
        return self._write(folder, tick)

    def _write(self, folder: str, tick: Tick) -> Made:
        threads = OutputThreads(1, queue_nbytes=self.queue_nbytes)
        how: dict[str, Any] = {"compression": self.compression, "level": self.level}
        with Outputs(self.shards, threads, folder=folder, **how) as outputs:
            read, facts = self.part.feed(outputs, Ticks(tick))
            return Made(folder, read, outputs.finish(), facts)


def _store(made: Made, folder: str) -> Made:
    """Store the shards of a job in a folder, each with its index, and return them with their addresses."""
    places = [f"{folder.rstrip('/')}/{os.path.basename(written.path)}" for written in made.written]
    versions = [
        (upload_file(written.path, place), upload_file(index_path(written.path), index_path(place)))
        for written, place in zip(made.written, places, strict=True)
    ]
    stored = [replace(written, path=place) for written, place in zip(made.written, places, strict=True)]
    return made._replace(folder=folder, written=stored, versions=versions)


class WorkerOutputs:
    """The shards of one output while workers write them. A context manager: on exit the hidden folder is removed."""

    def __init__(
        self,
        workers: Workers,
        shards: Sequence[OutShard],
        *,
        sources: Sequence[str],
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
        self._final: str | None = None
        place = os.path.dirname(staging.folder)
        is_remote = has_scheme(staging.target.out)
        if is_remote:
            place, self._final = staging.target.folder, staging.share_folder()
        self._folder = WorkFolder(place, is_leased=is_remote and not staging.target.is_file)
        self.folder = self._folder.path
        self._sees = [self.folder, *dict.fromkeys(path for path in sources if has_scheme(path))]

    def __enter__(self) -> WorkerOutputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.__exit__()

    def run(self, tasks: Sequence[FileTask]) -> list[Any]:
        """Run a round of tasks on workers that see the hidden folder; return their results in order."""
        return list(self.workers.run(tasks, self._progress.advance, sees=self._sees))

    def write(self, parts: Sequence[tuple[Sequence[int], OutputPart]]) -> Tally:
        """Write the shards with these numbers from each part; return the tally of the frames read."""
        jobs = [
            ShardJob(
                self.folder, tuple(self._shards[number] for number in numbers), part, **self._how, final=self._final
            )
            for numbers, part in parts
        ]
        read = []
        for made in self.workers.run(jobs, self._progress.advance, sees=self._sees):
            read.append(made.read)
            self.facts.append(made.facts)
            if has_scheme(self.folder):
                for written, versions in zip(made.written, made.versions, strict=True):
                    self._take_stored(written, versions)
            else:
                for written in made.written:
                    self._take(written)
        return add_tallies(read)

    def finish(self) -> list[Written]:
        """Return every shard."""
        return [self._written[shard.name] for shard in self._shards]

    def _take_stored(self, written: Written, versions: tuple[str | None, str | None]) -> None:
        """Note a shard that is in the store under its final name, or copy it to the staging folder."""
        name = os.path.basename(written.path)
        place = self._staging.path(name)
        self._written[name] = Written(place, written.nbytes, written.tally)
        if self._final is not None:
            self._staging.note_stored(name, *versions)
            return
        os.makedirs(self._staging.path(INDEX_FOLDER), exist_ok=True)
        take_shared(index_path(written.path), index_path(place))
        take_shared(written.path, place)
        self._staging.take(place)

    def _take(self, written: Written) -> None:
        """Move a shard and its index to the staging folder."""
        name = os.path.basename(written.path)
        place = self._staging.path(name)
        take_worker_shard(written.path, place)
        self._written[name] = Written(place, written.nbytes, written.tally)
        self._staging.take(place)


class Ticks:
    """A progress callback for a task, which passes on to the engine."""

    def __init__(self, tick: Tick) -> None:
        self.advance = tick

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """The driver reports the totals."""

    def end(self) -> None:
        """The driver reports the end."""
