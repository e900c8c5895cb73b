"""The source `tfrecord`: copies the records of TFRecord files, byte for byte, to other shards.

Nothing is decoded. Both checksums of every record are verified when it is read, in any order.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.container.faults import copy_readable
from tfrkit.container.locate import load_frames, scan_frames_once
from tfrkit.container.names import note_missing_shards
from tfrkit.container.records import Policy, read_records
from tfrkit.container.seekable import SeekableInflate
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import ContainerError, SourceError
from tfrkit.sidecars.read import Sidecars
from tfrkit.sidecars.same_classes import require_same_classes
from tfrkit.sources.base import Items, RecordReader, Scan, fingerprint_file
from tfrkit.sources.split_files import FileSplits
from tfrkit.storage.memory import MemoryReader
from tfrkit.storage.resolve import require_local_address

# Maximum number of shards that a reader keeps open.
_MAX_OPEN = 64


@dataclass(frozen=True)
class TFRecords:
    """TFRecord files with any kind of record and any compression.

    Attributes:
        path: A file, a glob, a folder, or a list of these.
        split_names: Keep records in their splits, which come from the manifest, TFDS's metadata or file names.
        incomplete: Continue if shards of a set are missing.
    """

    path: str | Sequence[str]
    _: KW_ONLY
    split_names: bool = False
    incomplete: bool = False

    kind = "tfrecord"

    @property
    def title(self) -> str:
        """The path or paths, for messages."""
        return os.fspath(self.path) if isinstance(self.path, (str, os.PathLike)) else ", ".join(map(str, self.path))

    def options(self) -> dict[str, Any]:
        """Return every option that affects the output; `incomplete` does not if the shards are the same."""
        return {"path": self.title, "split_names": self.split_names}

    def scan(self, scratch: str) -> Scan:
        """Find every record by the header of its frame."""
        require_local_address(self.path)
        paths = find_shards(self.path, incomplete="ignore" if self.incomplete else "refuse")
        notes = [f"the set is not complete: {missing}" for missing in note_missing_shards(paths)]
        offsets: list[Int64Array] = []
        stops: list[Int64Array] = []
        counts = []
        fingerprints = []
        stamp = 0
        for path in paths:
            index = _find_frames(path)
            starts = np.asarray(index.offsets, np.int64)
            offsets.append(starts)
            stops.append(np.append(starts[1:], index.inflated_size)[: len(starts)])
            counts.append(index.num_records)
            fingerprint, changed = fingerprint_file(path)
            fingerprints.append(fingerprint)
            stamp = max(stamp, changed)
        table = np.stack([np.concatenate(offsets), np.concatenate(stops)]) if paths else np.empty((2, 0), np.int64)
        np.save(os.path.join(scratch, "frames.npy"), table)
        sidecars = Sidecars(paths)
        require_same_classes([sidecars])
        split = FileSplits(sidecars.paths, sidecars.split_names, sidecars.splits, keep=self.split_names)
        splits = None if split.numbers is None else np.repeat(split.numbers, counts).astype(np.int64)
        notes += split.notes
        notes.append(f"records, unchanged: {sum(counts)} of {len(paths)} file{'' if len(paths) == 1 else 's'}")
        items = Items(sum(counts), nbytes=table[1] - table[0], splits=splits, split_names=split.names)
        return Scan(
            looked_for=f"records in {self.title}",
            items=items,
            reader=CopyReader(scratch, paths, counts),
            schema=None,
            notes=notes,
            order="source",
            fingerprint=" ".join(fingerprints),
            stamp=stamp,
            sidecars=sidecars,
        )


def _find_frames(path: str) -> Any:
    with contextlib.closing(Shard.open(path)) as shard:
        if shard.nbytes is None:
            raise SourceError("expected a file, got a pipe, which can be read only once", shard=path)
        return load_frames(shard, Policy()) or scan_frames_once(shard, Policy())


class CopyReader(RecordReader):
    """Reads records by number."""

    def __init__(self, scratch: str, paths: Iterable[str], counts: Sequence[int]) -> None:
        self._scratch = scratch
        self._paths = tuple(paths)
        self._starts = np.cumsum([0, *counts])
        self._frames: Any = None
        self._open: dict[int, SeekableInflate] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_frames": None, "_open": {}}

    def read_records(self, numbers: Int64Array) -> Sequence[bytes]:
        """Return the payloads of these records, in this order, after verifying both checksums."""
        if not len(numbers):
            return []
        if self._frames is None:
            self._frames = np.load(os.path.join(self._scratch, "frames.npy"), mmap_mode="r")
        shards = np.searchsorted(self._starts, numbers, side="right") - 1
        starts, stops = self._frames[:, numbers]
        # Adjacent records are read together.
        is_next = (shards[1:] == shards[:-1]) & (starts[1:] == stops[:-1])
        firsts = np.flatnonzero(np.append(True, ~is_next))
        lasts = np.append(firsts[1:], len(numbers)) - 1
        pieces = [
            self._open_shard(int(shards[first])).read_at(int(starts[first]), int(stops[last] - starts[first]))
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]
        # Frames follow each other without gaps, so the concatenated pieces are a shard and are checked like one.
        try:
            gathered = Shard(MemoryReader(b"".join(pieces)))
            records = [record for some in read_records(gathered, Policy()) for record in some]
        except ContainerError as error:
            raise self._locate(error, numbers) from None
        if len(records) != len(numbers):
            raise SourceError(
                f"expected {len(numbers)} records, got {len(records)}, the file changed while it was read"
            )
        return records

    def _open_shard(self, shard: int) -> SeekableInflate:
        opened = self._open.get(shard)
        if opened is None:
            if len(self._open) >= _MAX_OPEN:
                self._open.pop(next(iter(self._open))).close()
            found = Shard.open(self._paths[shard])
            opened = self._open[shard] = SeekableInflate(found.reader, found.compression)
        return opened

    def _locate(self, error: ContainerError, numbers: Int64Array) -> ContainerError:
        """Return the error with the file and the place in it where the record was read."""
        number = int(numbers[error.record or 0])
        shard = int(np.searchsorted(self._starts, number, side="right")) - 1
        return error.replace(
            shard=self._paths[shard],
            record=number - int(self._starts[shard]),
            offset=int(self._frames[0, number]),
            hint=copy_readable(self._paths[shard]),
        )
