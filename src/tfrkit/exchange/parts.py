"""A dataset whose shards are written by the tasks of another program: all of them appear, or none.

Tasks write into a hidden folder next to the output, which all of them see. Each try of a task writes a file of its own,
so that a task may run twice; the program passes on the results of those that count. Everything here is plain data:
`begin`, the tasks and `commit` may run in different processes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrkit.batches.survey import find_schema
from tfrkit.codec.coerce import Floats
from tfrkit.container.codecs import Compression
from tfrkit.container.names import name_shard
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import StorageError
from tfrkit.outputs.dataset import Staging
from tfrkit.outputs.shard import take_worker_shard
from tfrkit.outputs.target import Target, name_dataset, require_output
from tfrkit.sidecars.manifest import NewDataset, NewShard, write_manifest
from tfrkit.sidecars.places import MANIFEST
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.temporaries import remove_tree
from tfrkit.writer import Writer


class WrittenPart(NamedTuple):
    """A file written by a task; parts become shards in the order of `number`."""

    number: int
    path: str
    num_records: int


@dataclass(frozen=True)
class PartsOutput:
    """The folder to write, and the hidden folder of the tasks."""

    out: str
    folder: str
    compression: Compression
    floats: Floats
    force: bool

    @classmethod
    def begin(cls, out: str, *, compression: Compression, floats: Floats, force: bool) -> PartsOutput:
        """Make the hidden folder. Raises `StorageError` if the output must not be written."""
        if has_scheme(out):
            raise StorageError("expected a folder that all workers see, got a remote address", shard=out)
        out = os.path.abspath(out)
        if Target(out).is_file:
            raise StorageError("expected a folder to write, got the name of a file", shard=out)
        require_output(out, force=force)
        folder = os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.{secrets.token_hex(8)}.parts")
        try:
            os.makedirs(folder)
        except OSError as error:
            raise explain_os_error(error, out, verb="write") from None
        return cls(out, folder, compression, floats, force)

    def write(self, number: int, tables: Iterable[Any]) -> WrittenPart | None:
        """Write Arrow tables as one file; None if they have no rows."""
        path = os.path.join(self.folder, f"{number}-{secrets.token_hex(8)}.tfrecord")
        with Writer(path, compression=self.compression, floats=self.floats, index=True) as writer:
            for table in tables:
                if table.num_rows:
                    writer.write_columns(table)
            if not writer.num_records:
                writer.discard()
                return None
        return WrittenPart(number, path, writer.num_records)

    def commit(self, parts: Sequence[WrittenPart], program: str) -> None:
        """Move the files into place, with a manifest; no rows are one empty shard."""
        ordered = sorted(parts)
        if not ordered:
            empty = os.path.join(self.folder, "empty.tfrecord")
            with Writer(empty, compression=self.compression, index=True):
                pass
            ordered = [WrittenPart(0, empty, 0)]
        name = name_dataset(self.out)
        names = [name_shard(f"{name}.tfrecord", number, len(ordered)) for number in range(len(ordered))]
        with Staging(Target(self.out, as_file=False), names, sources=(), force=self.force) as staging:
            shards = []
            for part, shard in zip(ordered, names, strict=True):
                take_worker_shard(part.path, staging.path(shard))
                nbytes = os.path.getsize(staging.path(shard))
                shards.append(NewShard(shard, None, part.num_records, nbytes))
            schema = find_schema(Shard.open_all([staging.path(shard) for shard in names]), Policy())
            made = NewDataset(name, schema, self.compression, shards, {"source": program, "options": {}}, program)
            write_manifest(staging.path(MANIFEST), made.make_manifest([]))
            staging.commit([MANIFEST])
        self.abort()

    def abort(self) -> None:
        """Remove everything that tasks wrote."""
        remove_tree(self.folder)
