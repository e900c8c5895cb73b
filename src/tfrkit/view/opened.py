"""A dataset opened for viewing: records by number, damage between them, first records while others are counted."""

from __future__ import annotations

import bisect
import hashlib
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, Record, Row
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.survey import Surveyed, find_schema
from tfrkit.codec.decode import Decoder
from tfrkit.container.faults import copy_readable, list_damage
from tfrkit.container.names import title_files
from tfrkit.container.records import SAMPLED_SEARCH_NBYTES, Finding, Policy, find_hole, read_records
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import (
    CodecError,
    CompressionError,
    ContainerError,
    CorruptRecordError,
    StorageError,
    TfrkitError,
    TruncatedShardError,
    WireError,
)
from tfrkit.features.schema import Schema
from tfrkit.passes.check import NOT_AN_EXAMPLE, check_stretch, cut_shard
from tfrkit.sidecars.class_names import ClassNames
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.resolve import open_reader

# Records read from the front while the others are counted.
_FRONT_RECORDS = 4096
_FRONT_NBYTES = 64 << 20
# Records to start with: the first schema is inferred from them, and they fill a screen.
_FIRST_RECORDS = 64
_CLOSE_SECONDS = 10.0
_UNCOUNTED = (CorruptRecordError, TruncatedShardError, CompressionError)


class Place(NamedTuple):
    """The place of a record: number of its shard, number in that shard, and byte of its frame."""

    shard: int
    ordinal: int
    offset: int


class Opened:
    """A dataset, its records and its damage. Safe to share between threads.

    An item is a record number, or -1 - k for the k-th broken place. Positions count items in file order.
    """

    def __init__(self, paths: Sequence[str], number: int = 0) -> None:
        self.number = number
        self.paths = find_shards(list(paths), incomplete="warn")
        shards = Shard.open_all(path for path in self.paths if path != "-")
        pipes = ["-"] * ("-" in self.paths) + [shard.name for shard in shards if shard.nbytes is None]
        if pipes:
            raise StorageError(
                "expected a file, got a pipe, which can be read only once", shard=pipes[0], hint="save it first"
            )
        self.name = title_files(self.paths)
        self.stamp = _stamp_files(self.paths)
        self._set = ShardSet(shards, Policy())
        self.sidecars = self._set.sidecars
        is_quick = self._set.known_count is not None or self._set.is_quick
        self.schema = self._set.schema if is_quick else self._guess_schema()
        self.names = ClassNames.of_schema(self.schema, self.sidecars.class_file)
        self.kind = self.schema.kind
        self._decoders: dict[tuple[str, ...] | None, Decoder] = {}
        self._front: list[Record] = []
        self._lock = threading.Condition()
        self._is_counted = False
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failure: TfrkitError | None = None
        """Why the records cannot be counted."""
        self.broken: list[Finding] = []
        """Damaged places without a record, in file order."""
        self._broken_at: list[int] = []  # records before each
        self._broken_in: dict[str, tuple[int, list[int]]] = {}  # by shard: number of the first, offsets of all
        self.flawed: dict[int, Finding] = {}
        """Records known to be damaged, by number."""
        self._is_checked = False
        if is_quick:
            self._count()
        else:
            for target in (self._count, self._read_front):
                self._threads.append(threading.Thread(target=target, name=f"tfrkit{target.__name__}", daemon=True))
                self._threads[-1].start()
            front = self._threads[-1]
            # A screen of tiles is enough to start with.
            while front.is_alive() and len(self._front) < _FIRST_RECORDS and not self._is_counted:
                front.join(0.01)

    def _guess_schema(self) -> Schema:
        """Infer a schema from the first records, until all are counted: a sample of a large file takes seconds."""
        if self._set.known_schema is not None:
            return self._set.schema
        surveyed = Surveyed()
        lenient = Policy("all", "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
        surveyed.add_shard(self._set.shards[0], lenient, max_records=_FIRST_RECORDS)
        return self.sidecars.refine(surveyed.counts.infer())

    def _infer_schema(self) -> None:
        surveyed = Surveyed(stop=self._stop)
        self.schema = find_schema(self._set.shards, self._set.policy, sidecars=self.sidecars, surveyed=surveyed)
        self.sidecars.warn()

    @property
    def shard_set(self) -> ShardSet:
        """The shards whose records are numbered: all of them if they are counted, without the broken ones."""
        return self._set

    # ---- counting ------------------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether all records are counted."""
        return self._is_counted

    @property
    def num_records(self) -> int:
        """Records known so far."""
        return len(self._set.records) if self._is_counted else len(self._front)

    @property
    def num_items(self) -> int:
        """Records and broken places known so far."""
        return self.num_records + len(self.broken)

    def wait(self, seconds: float) -> bool:
        """Wait until all records are counted; return whether they are."""
        with self._lock:
            return self._lock.wait_for(lambda: self._is_counted, seconds)

    def require_complete(self) -> None:
        """Wait until all records are counted; raise if they cannot be."""
        with self._lock:
            self._lock.wait_for(lambda: self._is_counted or self.failure is not None or self._stop.is_set())
        if not self._is_counted and self.failure is None:
            raise StorageError("the viewer is ending")
        if self.failure is not None:
            raise self.failure

    def _count(self) -> None:
        try:
            try:
                if self._stop.is_set():
                    return
                _ = len(self._set.records)
                found = self._set
            except _UNCOUNTED:
                # Damaged headers: only reading shows which frames are sound. Their numbers count sound records.
                policy = Policy("all", "skip")
                found = ShardSet(self._set.shards, policy, self.schema)
                _ = len(found.records)
                self._place_damage(found, list(policy.findings.values()))
        except InterruptedError:
            return  # closed
        except TfrkitError as error:
            self.failure = error
            found = self._set
        if self.failure is None and found is self._set and self._threads:
            try:
                self._infer_schema()
            except InterruptedError:
                return
        with self._lock:
            self._set = found
            self._decoders = {}
            self._is_counted = self.failure is None
            self._lock.notify_all()
        if self._is_counted:
            self._front = []

    def _place_damage(self, found: ShardSet, findings: list[Finding]) -> None:
        starts = found.records.find_starts()
        shards = {name: number for number, name in enumerate(found.files)}
        findings.sort(key=lambda finding: (shards[finding.shard], finding.record, finding.offset))
        seen: dict[str, int] = {}
        for finding in findings:
            before = seen.get(finding.shard, 0)
            seen[finding.shard] = before + 1
            shard = shards[finding.shard]
            # Numbers in a finding count broken places of its shard as records.
            place = starts[shard] + max(0, finding.record - before)
            self._broken_at.append(min(place, starts[shard + 1]))
            self._broken_in.setdefault(finding.shard, (len(self.broken), []))[1].append(finding.offset)
            self.broken.append(finding)

    def _read_front(self) -> None:
        nbytes = 0
        try:
            for records in read_records(self._set.shards[0], Policy("none", "skip")):
                self._front += records
                nbytes += sum(map(len, records))
                if (
                    len(self._front) >= _FRONT_RECORDS
                    or nbytes >= _FRONT_NBYTES
                    or self._is_counted
                    or self._stop.is_set()
                ):
                    break
        except TfrkitError:
            return  # counting reports it
        if self._is_counted:
            self._front = []

    # ---- positions -----------------------------------------------------------------------------------------------

    def item_at(self, position: int) -> int:
        """Return the item at a position of the whole dataset."""
        if not 0 <= position < self.num_items:
            raise IndexError(f"position expected below {self.num_items}, got {position}")
        if not self.broken:
            return position
        places = [at + number for number, at in enumerate(self._broken_at)]
        before = bisect.bisect_left(places, position)
        is_broken = before < len(places) and places[before] == position
        return -1 - before if is_broken else position - before

    def position_of(self, item: int) -> int:
        """Return the position of an item in the whole dataset."""
        if item < 0:
            return self._broken_at[-1 - item] - 1 - item
        return item + bisect.bisect_right(self._broken_at, item)

    def find_item(self, shard: str, ordinal: int, offset: int) -> int | None:
        """Return the item at a place of a file, as other passes count it; None if it is not known."""
        if shard not in self.paths or not self.is_complete:
            return None
        first, offsets = self._broken_in.get(shard, (0, []))
        before = bisect.bisect_left(offsets, offset)
        if before < len(offsets) and offsets[before] == offset:
            return -1 - first - before
        starts, number = self._set.records.find_starts(), self.paths.index(shard)
        item = starts[number] + ordinal - before
        return item if item < starts[number + 1] else None

    # ---- records -------------------------------------------------------------------------------------------------

    def locate(self, record: int) -> Place:
        """Find a record in its files."""
        self.require(record)
        if not self._is_counted:
            return Place(0, record, sum(len(one) + 16 for one in self._front[:record]))
        shards, ordinals = self._set.records.locate_many(np.array([record], np.uint64))
        shard, ordinal = int(shards[0]), int(ordinals[0])
        return Place(shard, ordinal, self._set.records.open_shard(shard).offset_of(ordinal))

    def require(self, record: int) -> None:
        """Raise IndexError if there is no record with this number, or it is not counted yet."""
        if not 0 <= record < self.num_records:
            more = "" if self.is_complete else ", more are being counted"
            raise IndexError(f"record {record} of {self.num_records}{more}")

    def read(self, record: int) -> Record:
        """Read the payload of a record; raise the error of its damage."""
        self.require(record)
        front = [] if self._is_counted else self._front
        if record < len(front):
            return front[record]
        return self._set.records[record]

    def read_sound(self, record: int) -> Record:
        """Read the payload of a record; raise the error of its damage, also if it is no Example as the others are."""
        payload = self.read(record)
        if self.kind != "raw" and _native.find_others(_frame(payload), 0, len(payload) + 16, 1, "none")[1]:
            place = self.locate(record)
            shard = self.paths[place.shard]
            raise WireError(NOT_AN_EXAMPLE, shard=shard, record=place.ordinal, offset=place.offset, fault="wire")
        return payload

    def read_row(self, record: int, names: Sequence[str] | None = None) -> Row:
        """Decode a record, or some of its features; features outside the schema are ignored."""
        key = None if names is None else tuple(names)
        decoder = self._decoders.get(key)
        if decoder is None:
            schema = self.schema if names is None else self.schema.select(list(names))
            decoder = self._decoders[key] = Decoder(schema)
        builder = decoder.new_row_builder()
        front = [] if self._is_counted else self._front
        self.require(record)
        if record < len(front):
            fault = builder.append_record(front[record])
            if fault is not None:
                raise CodecError("record does not decode", shard=self.paths[0], record=record)
        else:
            self._set.records.decode_into(builder, record, decoder.column_names)
        row: Row = builder.finish()[0]
        return row

    def read_others(self, record: int) -> tuple[Row, Schema]:
        """Decode the features of a record that the schema lacks, with their own schema."""
        payload = self.read(record)
        surveyed = Surveyed()
        surveyed.survey.add_frames(_frame(payload), 0, len(payload) + 16, 1, "none")
        found = surveyed.counts.infer().schema
        others = [] if found.kind != self.kind else [name for name in found.names if name not in self.schema]
        if not others:
            return {}, found
        own = found.select(others)
        builder = Decoder(own).new_row_builder()
        builder.append_record(payload)
        row: Row = builder.finish()[0]
        return row, own

    def read_bytes(self, shard: int, offset: int, nbytes: int) -> bytes:
        """Read inflated bytes of a shard; fewer at its end or at damage of its compression."""
        access = self._set.records.open_shard(shard)
        try:
            return access.read_bytes(offset, nbytes)
        except (ContainerError, StorageError):
            return b""

    def measure_frame(self, record: int) -> int:
        """Return the bytes of a record with its frame."""
        return len(self.read(record)) + 16

    # ---- damage --------------------------------------------------------------------------------------------------

    def find_damage(self, item: int, error: TfrkitError | None = None) -> Finding | None:
        """Return the known damage of an item, or the damage that a reading error describes."""
        if item < 0:
            return self.broken[-1 - item]
        if isinstance(error, (ContainerError, WireError)):
            place = self.locate(item)
            shard = self.paths[place.shard]
            # As in every other pass, a broken place counts as one record.
            record = place.ordinal + bisect.bisect_left(self._broken_in.get(shard, (0, []))[1], place.offset)
            finding = Finding.of(error, shard=shard, record=record, offset=place.offset)
            self.flawed.setdefault(item, finding)
        return self.flawed.get(item)

    def is_certain(self, finding: Finding) -> bool:
        """Return whether the record number of a finding is certain: no bytes before it may hold several records."""
        return finding.record <= find_hole(one for one in self.broken if one.shard == finding.shard)

    def check(self, on_step: Any, stop: threading.Event) -> Int64Array:
        """Check every checksum, and that records are Examples if most are; return the damaged items in file order.

        `on_step` is called with new damage (item, finding) and the number of records checked.
        """
        self.require_complete()
        known = self.list_damage().tolist()
        on_step([(item, self.find_damage(item)) for item in known], self.num_records if self._is_checked else 0)
        num_done = 0
        for shard in () if self._is_checked else self._set.shards:
            for stretch in cut_shard(shard):
                checked = check_stretch(stretch, parse=self.kind != "raw", stop=stop)
                if stop.is_set():
                    return self.list_damage()
                findings = [*(finding for finding, _ in checked.damage), *checked.others]
                places = [(self.find_item(one.shard, one.record, one.offset), one) for one in findings]
                found = [
                    (item, one) for item, one in places if item is not None and item >= 0 and item not in self.flawed
                ]
                self.flawed.update(found)
                num_done += checked.num_frames + len(checked.damage)
                on_step(found, num_done)
        self._is_checked = True
        return self.list_damage()

    def list_damage(self) -> Int64Array:
        """Return the damaged items known so far, in file order."""
        broken = (-1 - number for number in range(len(self.broken)))
        return np.array(sorted([*broken, *self.flawed], key=self.position_of), np.int64)

    # ---- splits --------------------------------------------------------------------------------------------------

    def find_split(self, record: int) -> str | None:
        """Return the split of a record, or None."""
        if not self.sidecars.splits:
            return None
        shard = self.locate(record).shard
        return next((name for name, shards in self.sidecars.splits.items() if shard in shards), None)

    def list_splits(self) -> dict[str, list[tuple[int, int]]]:
        """Return the ranges of records of each split."""
        if not self.sidecars.splits or not self.is_complete:
            return {}
        starts = self._set.records.find_starts()
        return {
            name: [(starts[shard], starts[shard + 1]) for shard in shards]
            for name, shards in self.sidecars.splits.items()
        }

    def list_files(self) -> list[dict[str, Any]]:
        """Describe the shards."""
        counts = self._set.records.count_by_shard() if self.is_complete else [None] * len(self.paths)
        return [
            {
                "number": number,
                "name": os.path.basename(shard.name),
                "bytes": shard.nbytes,
                "compression": shard.compression,
                "records": count,
            }
            for number, (shard, count) in enumerate(zip(self._set.shards, counts, strict=True))
        ]

    def stop(self) -> None:
        """Ask the threads to end."""
        self._stop.set()
        self._set.records.stop_count()
        with self._lock:
            self._lock.notify_all()

    def close(self) -> None:
        """End the threads and close the files."""
        self.stop()
        # A thread that is in the core when Python ends would end the process with an error.
        for thread in self._threads:
            thread.join(_CLOSE_SECONDS)
        self._set.close()


def to_json_damage(opened: Opened, finding: Finding) -> dict[str, Any]:
    """Return damage as the page shows it."""
    shards = {name: number for number, name in enumerate(opened.paths)}
    return {
        "shard": shards.get(finding.shard),
        "file": os.path.basename(finding.shard),
        "record": finding.record,
        "record_certain": opened.is_certain(finding),
        "offset": finding.offset,
        "cause": finding.cause,
        "kind": finding.kind,
        "hint": list_damage(finding.shard) if finding.kind == "wire" else copy_readable(finding.shard),
    }


def _frame(payload: bytes) -> bytes:
    """Return a payload as a frame without checksums."""
    return len(payload).to_bytes(8, "little") + bytes(4) + payload + bytes(4)


def _stamp_files(paths: Sequence[str]) -> str:
    """Return a short text that changes with the files, for addresses that a browser may cache."""
    digest = hashlib.sha256()
    for path in paths:
        if has_scheme(path):
            digest.update(f"{path}\0{open_reader(path).version}\n".encode("utf-8", "surrogateescape"))
            continue
        found = os.stat(path)
        digest.update(
            f"{os.path.abspath(path)}\0{found.st_size}\0{found.st_mtime_ns}\n".encode("utf-8", "surrogateescape")
        )
    return digest.hexdigest()[:12]
