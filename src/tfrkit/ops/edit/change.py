"""Change a dataset in place or as a copy: the plan of each shard, and the report.

For each shard, a verb (edit, append, dedupe) supplies new frames or keeps the file unchanged. `ops/edit/write.py`
writes the result for all verbs.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit.container.compression import Compression
from tfrkit.container.shards import find_shards
from tfrkit.errors import Hint, RemoteAddressError, Step, StorageError, UnfinishedChangeError, misuse
from tfrkit.ops.reshape.rewrite import FileCounts
from tfrkit.passes.frame_sources import FrameSources, PartsOf, deal_frames, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.storage import transaction
from tfrkit.storage.addresses import has_scheme, parse_remote
from tfrkit.storage.lookup import measure_file
from tfrkit.storage.resolve import Address, show_address
from tfrkit.storage.temporaries import sweep_folder

Put = Callable[[Any], None]
"""Takes whole frames of a shard."""


@dataclass(frozen=True)
class ChangeOptions:
    """Options of a change. The target is `output`, the files themselves (`in_place`), or nothing (`dry_run`)."""

    output: str | None = None
    in_place: bool = False
    dry_run: bool = False
    force: bool = False
    incomplete: bool = False
    jobs: int | None = None
    progress: Progress = field(default_factory=Quiet)

    def __post_init__(self) -> None:
        if self.output is not None and self.in_place:
            raise ValueError("expected either an output or in place, got both")
        if self.output is None and not self.in_place and not self.dry_run:
            raise misuse(
                "expected a place for the result, got none",
                Step("write a copy: {output}", output=...),
                Step("change the files themselves: {in_place}", in_place=True),
                Step("see what would change: {dry_run}", dry_run=True),
            )
        if self.output == "-":
            raise ValueError("output expected a file or a folder, got standard output")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs expected from 1 up, got {self.jobs}")


@dataclass
class ShardWork:
    """The change of one shard.

    Attributes:
        name: New file name.
        split: The split of the shard, or None.
        source: Current path; None for a new shard.
        compression: Compression of the file.
        num_records: New number of records.
        feed: Writes the frames, and updates `changed`, `dropped` and `added`; None if the file does not change.
    """

    name: str
    split: str | None
    source: str | None
    compression: Compression
    num_records: int
    feed: Callable[[Put], None] | None = None
    changed: int = 0
    dropped: int = 0
    added: int = 0
    expected_nbytes: int = 0
    """Approximate size of a new shard."""

    @property
    def nbytes(self) -> int:
        """Approximate size after the change."""
        return self.expected_nbytes + (0 if self.source is None else measure_file(self.source))

    @property
    def is_touched(self) -> bool:
        """Whether its records change."""
        return bool(self.changed or self.dropped or self.added)


@dataclass
class ChangedFile:
    """One file of a changed dataset, and how many of its records were changed, dropped and added."""

    path: str
    split: str | None
    records: int
    changed: int
    dropped: int
    added: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: path, split, records, changed, dropped, added."""
        return dict(vars(self))


@dataclass
class Changed(FileCounts):
    """Report of a change, done or planned.

    Attributes:
        output: Path of the result.
        is_written: False if nothing was written: nothing to do, or a dry run.
        files: The files of the result.
        notes: Notes for the user.
    """

    output: str
    is_written: bool = True
    files: list[ChangedFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Number of changed records."""
        return sum(file.changed for file in self.files)

    @property
    def dropped(self) -> int:
        """Number of dropped records."""
        return sum(file.dropped for file in self.files)

    @property
    def added(self) -> int:
        """Number of added records."""
        return sum(file.added for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: output, written, records, changed, dropped, added, splits, files, notes."""
        return {
            "output": self.output,
            "written": self.is_written,
            "records": self.records,
            "changed": self.changed,
            "dropped": self.dropped,
            "added": self.added,
            "splits": self.splits,
            "files": [file.to_json() for file in self.files],
            "notes": self.notes,
        }


@contextlib.contextmanager
def open_to_change(address: Address | Iterable[Address], options: ChangeOptions) -> Iterator[FrameSources]:
    """Open the shards of an address, all in one folder. With `in_place`, first roll back an interrupted change."""
    notes = []
    if options.in_place:
        _refuse_store(address)
    if options.in_place and restore_change(address):
        notes.append("an interrupted change was undone first")
    with open_sources(address, incomplete=options.incomplete) as sources:
        sources.require_files("a change")
        folders = sources.sidecars.folders
        if len(folders) > 1:
            raise StorageError(
                f"expected shards of one folder, got {len(folders)}: {', '.join(folders[:3])}",
                hint="change them folder by folder",
            )
        for path in sources.paths if options.in_place else ():
            if os.path.islink(path):
                raise StorageError(
                    f"in place expected a file, got a link to {os.path.realpath(path)}",
                    shard=path,
                    hint=Hint(Step("change that one, or write a copy: {output}", output=...)),
                )
        sources.notes += notes
        yield sources


def _refuse_store(address: Address | Iterable[Address]) -> None:
    """Raise for a remote address: stores cannot replace several objects in one step."""
    items = [address] if isinstance(address, (str, bytes, os.PathLike)) else address
    for item in items if isinstance(items, Sequence) else ():
        remote = parse_remote(os.fsdecode(item))
        if remote is not None:
            raise RemoteAddressError(
                f"in place expected a local path, got a remote address ({remote.scheme}://)",
                shard=remote.address,
                hint=Hint(Step("write a copy to another address: {output}", output=...)),
            )


def names_folder(address: Address | Iterable[Address], sources: FrameSources) -> bool:
    """Whether an address, of these shards, is the name of a folder."""
    if not isinstance(address, (str, os.PathLike)):
        return False
    path = show_address(address)
    if not has_scheme(path):
        return os.path.isdir(path)
    return not glob.has_magic(path) and path.rstrip("/") not in sources.paths


def restore_change(address: Address | Iterable[Address]) -> bool:
    """Roll back an interrupted change in the folders of an address; return whether there was one."""
    if isinstance(address, Iterator):
        raise TypeError("expected a path, a glob, a folder or a list of these, got an iterator")
    was_restored = False
    while True:
        try:
            paths = find_shards(address)
        except UnfinishedChangeError as error:
            transaction.restore(error.shard or ".")
            was_restored = True
        else:
            break
    for folder in {os.path.dirname(path) for path in paths if not has_scheme(path)}:
        sweep_folder(folder)  # what is left of a process that was killed after its change was complete
    return was_restored


def keep_all(sources: FrameSources) -> list[ShardWork]:
    """Return a plan that keeps every shard unchanged."""
    return [
        ShardWork(os.path.basename(path), split, path, shard.compression, count.num_records)
        for path, split, shard, count in zip(
            sources.paths, sources.sidecars.split_names, sources.shards, sources.counts, strict=True
        )
    ]


def feed_shard(
    sources: FrameSources, number: int, progress: Progress, parts_of: PartsOf | None = None
) -> Callable[[Put], None]:
    """Return a function that feeds the frames of a shard: all, or those that `parts_of` assigns to part 0."""

    def feed(put: Put) -> None:
        one = FrameSources([sources.paths[number]], [sources.shards[number]], _counts=[sources.counts[number]])
        deal_frames(one, parts_of, 1, lambda _, frames: put(frames), progress)

    return feed


def list_changed(works: Iterable[ShardWork], place: str, *, is_file: bool = False) -> list[ChangedFile]:
    """Return the files of a result; `place` is its folder, or with `is_file` the file."""
    return [
        ChangedFile(
            place if is_file else os.path.join(place, work.name),
            work.split,
            work.num_records,
            work.changed,
            work.dropped,
            work.added,
        )
        for work in works
    ]
