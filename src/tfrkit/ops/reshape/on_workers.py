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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from tfrkit.container.codecs import Compression, Level
from tfrkit.container.index import index_path
from tfrkit.engines.base import Tick
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.outputs.shard import OutputThreads, Tally, Written, add_tallies, take_worker_shard
from tfrkit.outputs.target import Target
from tfrkit.passes.shard_tasks import FileTask, Workers
from tfrkit.progress import Progress
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.upload import upload_file
from tfrkit.storage.work_folder import take_shared


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
        target: Target,
        recipe: Any,
        stage: Callable[[], Any],
        progress: Progress,
        compression: Compression,
        level: Level,
        queue_nbytes: int | None,
    ) -> None:
        self.workers = workers
        self.facts: list[Any] = []
        self._shards = shards
        self._sources = sources
        self._stage = stage
        self._progress = progress
        self._how: dict[str, Any] = {"compression": compression, "level": level, "queue_nbytes": queue_nbytes}
        self._made: list[Made] = []
        self._final: str | None = None
        is_remote = has_scheme(target.out)
        # Parts make the staging folder when the shards of all of them are there.
        self.staging: Any = None if workers.keeps_files else stage()
        place = target.folder if is_remote or self.staging is None else os.path.dirname(self.staging.folder)
        if is_remote and self.staging is not None:
            self._final = self.staging.share_folder()
        self._folder = workers.make_folder(
            place,
            (target.out, recipe, shards, self._how),
            reads=sources,
            is_leased=is_remote and not target.is_file,
        )
        self.folder = self._folder.path

    def __enter__(self) -> WorkerOutputs:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.__exit__()

    def run(self, tasks: Sequence[FileTask]) -> list[Any]:
        """Run a round of tasks on workers that see the hidden folder; return their results in order."""
        return list(self._run(tasks))

    def _run(self, tasks: Sequence[FileTask]) -> Iterator[Any]:
        return self.workers.run(tasks, self._progress.advance, sees=[self.folder], reads=self._sources)

    def write(self, parts: Sequence[tuple[Sequence[int], OutputPart]]) -> Tally:
        """Write the shards with these numbers from each part; return the tally of the frames read."""
        jobs = [
            ShardJob(
                self.folder, tuple(self._shards[number] for number in numbers), part, **self._how, final=self._final
            )
            for numbers, part in parts
        ]
        for made in self._run(jobs):
            self.facts.append(made.facts)
            self._made.append(made)
        return add_tallies([made.read for made in self._made])

    def finish(self) -> list[Written]:
        """Put every shard into the staging folder and return it."""
        if self.staging is None:
            self.staging = self._stage()
        written: dict[str, Written] = {}
        for made in self._made:
            for number, shard in enumerate(made.written):
                name = os.path.basename(shard.path)
                place = self.staging.path(name)
                written[name] = Written(place, shard.nbytes, shard.tally)
                if self._final is not None:
                    self.staging.note_stored(name, *made.versions[number])
                else:
                    self._take(shard.path, place)
        return [written[shard.name] for shard in self._shards]

    def _take(self, path: str, place: str) -> None:
        """Bring a shard and its index to the staging folder."""
        if has_scheme(path):
            os.makedirs(os.path.dirname(index_path(place)), exist_ok=True)
            take_shared(index_path(path), index_path(place))
            take_shared(path, place)
        else:
            take_worker_shard(path, place, keep=self.workers.keeps_files)
        self.staging.take(place)


class Ticks:
    """A progress callback for a task, which passes on to the engine."""

    def __init__(self, tick: Tick) -> None:
        self.advance = tick

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """The driver reports the totals."""

    def end(self) -> None:
        """The driver reports the end."""
