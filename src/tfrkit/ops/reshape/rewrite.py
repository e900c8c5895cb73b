"""The engine of the reshape verbs: copies records into a set of shards, all or nothing.

A verb plans the shards (`OutShard`) and feeds frames to them. Everything else is shared: paths, the refusal to replace
files without force, threads, indexes, sidecars, and the comparison of records read and written.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tfrkit.batches.survey import find_schema
from tfrkit.container.codecs import Compression, Level
from tfrkit.container.records import Policy
from tfrkit.errors import ContainerError, StorageError
from tfrkit.features.schema import Schema
from tfrkit.ops.reshape.on_workers import WorkerOutputs
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.outputs.dataset import Staging, open_staging
from tfrkit.outputs.shard import OutputThreads, Tally, Written, add_tallies
from tfrkit.outputs.target import Target
from tfrkit.passes.frame_sources import FrameSources
from tfrkit.passes.shard_tasks import Finish, Workers
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import Carried
from tfrkit.sidecars.manifest import NewDataset, NewShard, write_manifest
from tfrkit.sidecars.places import MANIFEST
from tfrkit.sidecars.write import make_texts
from tfrkit.storage.text_files import write_text

if TYPE_CHECKING:
    from tfrkit.outputs.remote import RemoteStaging

STDOUT = "-"


@dataclass(frozen=True)
class WriteOptions:
    """Options of a verb: compression (None: that of the source), level, force, threads."""

    compression: Compression | None = None
    level: Level = "default"
    force: bool = False
    jobs: int | None = None
    progress: Progress = field(default_factory=Quiet)

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs expected from 1 up, got {self.jobs}")

    def choose_compression(self, sources: FrameSources, target: Target | None) -> Compression:
        """Return the requested compression, else that of the output's suffix, else that of the sources."""
        suffix = None if target is None else target.suffix_compression
        return self.compression or suffix or sources.compression


@dataclass
class WrittenFile:
    """One file of an output."""

    path: str
    split: str | None
    records: int
    nbytes: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: path, split, records, nbytes."""
        return {"path": self.path, "split": self.split, "records": self.records, "nbytes": self.nbytes}


class FileCounts:
    """Record counts of a result, summed over its `files`."""

    files: list[Any]

    @property
    def records(self) -> int:
        """Number of records in all files."""
        return sum(file.records for file in self.files)

    @property
    def splits(self) -> dict[str, int]:
        """Number of records in each split."""
        counts: dict[str, int] = {}
        for file in self.files:
            if file.split is not None:
                counts[file.split] = counts.get(file.split, 0) + file.records
        return counts


@dataclass
class Rewritten(FileCounts):
    """Report of a reshape verb.

    Attributes:
        output: The output address.
        records: Number of records in all files.
        nbytes: Size of all files.
        compression: Compression of the files.
        seed: The seed used; None if nothing was random.
        files: Each file with its split (or None), records and size.
        notes: Notes for the user.
    """

    output: str
    compression: Compression
    seed: int | None = None
    files: list[WrittenFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """Size of all files."""
        return sum(file.nbytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: output, records, nbytes, compression, seed, splits, files, notes."""
        return {
            "output": self.output,
            "records": self.records,
            "nbytes": self.nbytes,
            "compression": self.compression,
            "seed": self.seed,
            "splits": self.splits,
            "files": [file.to_json() for file in self.files],
            "notes": self.notes,
        }


Feed = Callable[[Outputs], Tally]
"""Puts frames into the outputs and returns the tally of the frames read."""

FeedOnWorkers = Callable[[WorkerOutputs], Tally]
"""Lets workers write the outputs and returns the tally of the frames read."""


@dataclass
class Rewrite:
    """One run of a verb: its sources and options."""

    verb: str
    sources: FrameSources
    carried: Carried
    options: WriteOptions
    recipe: Mapping[str, Any]
    """Options of the verb that affect records, for the manifest."""
    seed: int | None = None
    notes: list[str] = field(default_factory=list)
    edit_schema: Callable[[Schema], Schema] | None = None
    """Returns the schema after edits of features. If set, records differ, so only their number is compared."""
    queue_nbytes: int | None = None
    """Output that waits to be written; None is the default."""
    expected_nbytes: int | None = None
    """Size of the output, if it differs from that of the sources."""
    scratch_nbytes: int = 0
    """Additional space needed while writing."""
    workers: Workers | None = None
    """The cluster that writes; None is this machine."""

    def run(
        self,
        target: Target,
        name: str,
        shards: Sequence[OutShard],
        feed: Feed,
        *,
        on_workers: FeedOnWorkers | None = None,
    ) -> Rewritten:
        """Write `shards` of the dataset `name` to a target, all of them or none."""
        compression = self.options.choose_compression(self.sources, target)
        final = {shard.name: target.shard(shard.name) if not target.is_file else target.out for shard in shards}
        with contextlib.ExitStack() as stack:

            def stage() -> Staging | RemoteStaging:
                ending = Finish() if self.workers is None else stack.enter_context(self.workers.finish())
                force = self.options.force or ending.is_repeated
                staging = open_staging(target, [*final], sources=self.sources.paths, force=force)
                stack.enter_context(staging)
                staging.require_space(self._expect_nbytes(compression))
                ending.begin()
                return staging

            if self.workers is None or on_workers is None:
                staging = stage()
                # A store's shards are written to a folder of this machine first, whose disk may fill up.
                show = staging.final if isinstance(staging, Staging) else staging.path
                written = self._write(shards, feed, staging.folder, compression, final=show, then=staging.take)
            else:
                outputs = self._open_outputs(self.workers, target, shards, stage, compression)
                written, staging = self._write_through(lambda: outputs, on_workers), outputs.staging
            results = [
                NewShard(shard.name, shard.split, made.tally.num_records, made.nbytes)
                for shard, made in zip(shards, written, strict=True)
            ]
            sidecars = self._write_sidecars(target, name, results, staging.folder, compression)
            staging.commit(sidecars)
        made_files = [
            WrittenFile(final[shard.name], shard.split, result.num_records, result.nbytes)
            for shard, result in zip(shards, results, strict=True)
        ]
        return Rewritten(
            target.out, compression, self.seed, made_files, [*self.sources.notes, *self.carried.notes, *self.notes]
        )

    def run_to_stdout(self, feed: Feed) -> Rewritten:
        """Write one shard to standard output."""
        if sys.stdout.isatty():
            raise StorageError("standard output expected a file or a pipe, got a terminal", shard=STDOUT)
        compression = self.options.choose_compression(self.sources, None)
        shard = OutShard("<stdout>")
        sys.stdout.flush()
        [made] = self._write([shard], feed, "", compression, descriptor=sys.stdout.fileno())
        file = WrittenFile(STDOUT, None, made.tally.num_records, made.nbytes)
        return Rewritten(STDOUT, compression, self.seed, [file], self.notes)

    def _write(
        self,
        shards: Sequence[OutShard],
        feed: Feed,
        folder: str,
        compression: Compression,
        *,
        final: Callable[[str], str] | None = None,
        descriptor: int | None = None,
        then: Callable[[str], None] | None = None,
    ) -> list[Written]:
        threads, level = OutputThreads(self.options.jobs, queue_nbytes=self.queue_nbytes), self.options.level
        how: dict[str, Any] = {"compression": compression, "level": level, "descriptor": descriptor}
        return self._write_through(
            partial(Outputs, shards, threads, folder=folder, final=final, then=then, **how), feed
        )

    def _open_outputs(
        self,
        workers: Workers,
        target: Target,
        shards: Sequence[OutShard],
        stage: Callable[[], Any],
        compression: Compression,
    ) -> WorkerOutputs:
        return WorkerOutputs(
            workers,
            shards,
            sources=self.sources.paths,
            target=target,
            recipe=(self.verb, self.recipe),
            stage=stage,
            progress=self.options.progress,
            compression=compression,
            level=self.options.level,
            queue_nbytes=self.queue_nbytes,
        )

    def _write_through(self, open_outputs: Callable[[], Any], feed: Callable[[Any], Tally]) -> list[Written]:
        """Write all records to the outputs; raise unless those written are those read."""
        try:
            with open_outputs() as outputs:
                read = feed(outputs)
                written: list[Written] = outputs.finish()
        finally:
            self.options.progress.end()
        self._compare(read, add_tallies([made.tally for made in written]))
        return written

    def _compare(self, read: Tally, written: Tally) -> None:
        """Raise unless the records written are the records read, in any order."""
        if read.num_records != written.num_records:
            raise ContainerError(
                f"{self.verb} read {read.num_records} records and wrote {written.num_records}, nothing was kept",
                hint="this is a bug of tfrkit: report it with the command",
            )
        if self.edit_schema is None and read != written:
            raise ContainerError(
                f"{self.verb} wrote other records than it read, digest {written.digest:#018x} against "
                f"{read.digest:#018x}, nothing was kept",
                hint="this is a bug of tfrkit: report it with the command",
            )

    def _expect_nbytes(self, compression: Compression) -> int:
        """Return the space needed while writing."""
        needed = self.expected_nbytes
        if needed is None:
            # The size is unknown in advance if the compression changes.
            needed = self.sources.known_nbytes if compression == "none" else 0
            if compression == self.sources.compression != "none":
                needed = self.sources.stored_nbytes
        return needed + self.scratch_nbytes

    def _write_sidecars(
        self,
        target: Target,
        name: str,
        shards: Sequence[NewShard],
        folder: str,
        compression: Compression,
    ) -> list[str]:
        """Write the sidecars into the staging folder; return their names."""
        if self.sources.is_pipe:
            return []
        schema = find_schema(self.sources.shards, Policy(), sidecars=self.sources.sidecars)
        if self.edit_schema is not None:
            schema = self.edit_schema(schema)
        dataset = NewDataset(
            name,
            schema,
            compression,
            list(shards),
            {"source": self.verb, "options": dict(self.recipe)},
            ", ".join(self.sources.paths[:3]) + (" and more" if len(self.sources.paths) > 3 else ""),
            is_file=target.is_file,
        )
        texts, notes = make_texts(dataset, self.carried, is_edited=self.edit_schema is not None)
        self.notes += notes
        for file, text in texts.items():
            write_text(os.path.join(folder, file), text)
        write_manifest(os.path.join(folder, MANIFEST), dataset.make_manifest([*texts]))
        return [*texts, MANIFEST]
