"""The deep check of `verify`: the content of records, and records that are copies of others."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import run_ahead
from tfrkit._types import Record, Row, UInt64Array, Verify
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import read_list
from tfrkit.container.salvage import Salvage
from tfrkit.container.shards import Shard
from tfrkit.engines.base import Tick
from tfrkit.errors import CodecError, ContainerError, LimitError, SchemaError, StorageError
from tfrkit.images.perceptual import SIDE, has_detail, hash_copies
from tfrkit.ops.duplicates import Fingerprints, Match, describe_distance
from tfrkit.ops.verify.feature_kinds import KindCheck
from tfrkit.ops.verify.record import Judged, RecordCheck, digest
from tfrkit.ops.verify.result import FindingKind, RecordPlace, ShardTally, Verification, VerifyFinding, kind_of_error
from tfrkit.ops.verify.rules import RecordRules, describe_rules, find_rules
from tfrkit.ops.verify.shard_set import add_sidecar_findings
from tfrkit.passes.shard_tasks import Workers
from tfrkit.passes.walk import CollectPolicy, walk_streams
from tfrkit.progress import Progress
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.base import ByteSource

# Limits on the batch that one job checks.
_BATCH_NBYTES = 4 << 20
_BATCH_RECORDS = 256
_COPY_KINDS: frozenset[FindingKind] = frozenset({"duplicate", "near_duplicate", "leak"})
# Training splits come first, so that a record in two splits is reported at its copy outside training.
_FIRST_SPLITS = ("train", "training")


def check_deep(
    result: Verification,
    *,
    shape: tuple[int, ...] | None = None,
    threads: int,
    watch: Progress,
    workers: Workers | None = None,
) -> None:
    """Add findings about the content of records; raw pixels are compared with `shape`, if given.

    With `workers`, a cluster reads the shards and returns findings and hashes.
    """
    tallies = [tally for tally in result.shards if tally.is_readable]
    for tally in tallies:
        if tally.nbytes is None:
            raise StorageError("expected a file, got a pipe, which cannot be read a second time", shard=tally.path)
    with_rows = [Shard.open(tally.path) for tally in tallies if tally.holds_examples and tally.num_frames]
    rules = None
    try:
        rules = find_rules(with_rows, shape) if with_rows else None
    except LimitError as error:
        result.notes.append(f"the contents of records are not checked: {error.what}")
    for shard in with_rows:
        shard.close()
    if rules is not None:
        add_sidecar_findings(result, rules.problems)
        result.notes.append(describe_rules(rules))
    wanted = _COPY_KINDS - result.ignored
    splits = _ShardSplits([tally.path for tally in result.shards])
    wants = {"wants_copies": bool(wanted), "wants_near": bool(wanted - {"duplicate"})}
    deep = _DeepCheck(rules, **wants)
    known = {(finding.shard, finding.offset) for finding in result.findings}
    found: list[VerifyFinding] = []
    places = _Places()
    prints = Fingerprints()
    stop = threading.Event()
    # Split by split, training first: of two copies, the one that is read later is reported.
    order = [number for number in splits.order if result.shards[number].is_readable]
    checked: Iterator[Iterable[_CheckedBatch | VerifyFinding]]
    if workers is None:
        checked = (_check_shard(deep, result.shards[number], threads, stop) for number in order)
    else:
        tasks = [DeepTask(result.shards[number], rules, **wants) for number in order]
        checked = workers.run(tasks, lambda *_: None)
    watch.begin(0, sum(tally.nbytes or 0 for tally in tallies))
    try:
        for number, batches in zip(order, checked, strict=True):
            places.start_shard(result.shards[number])
            for batch in batches:
                if isinstance(batch, VerifyFinding):
                    found.append(batch)
                    continue
                found += [finding for finding in batch.findings if (finding.shard, finding.offset) not in known]
                places.add(batch.records, batch.offsets)
                prints.add(batch.digests, *batch.hashes, split=splits.rank[number])
                watch.advance(0, batch.nbytes, len(batch.findings))
    finally:
        stop.set()
        watch.end()
    position = {tally.path: number for number, tally in enumerate(result.shards)}
    result.add(sorted(found, key=lambda finding: (position[finding.shard], finding.offset or 0)))
    if wanted:
        what = "the same image" if deep.by_picture else "the same"
        result.add(_describe_match(match, places, splits, what) for match in prints.find_matches())


def _check_shard(
    deep: _DeepCheck, tally: ShardTally, threads: int, stop: threading.Event
) -> Iterator[_CheckedBatch | VerifyFinding]:
    """Check the records of a shard on threads; an error that ends it comes last, as a finding."""
    try:
        weigh = operator.attrgetter("nbytes")
        yield from run_ahead(deep.cut(tally, stop), threads=threads, max_nbytes=LIMITS.results_nbytes, size_of=weigh)
    except (StorageError, ContainerError) as error:
        yield VerifyFinding(tally.path, error.record, error.offset, error.what, kind_of_error(error))


@dataclass(frozen=True)
class DeepTask:
    """Checks the records of one shard on a worker of a cluster. The result is 73 bytes per record, and the findings."""

    tally: ShardTally
    rules: RecordRules | None
    wants_copies: bool
    wants_near: bool

    @property
    def path(self) -> str:
        """The shard."""
        return self.tally.path

    def run(self, tick: Tick) -> list[_CheckedBatch | VerifyFinding]:
        """Return the checked batches; an error that ended the check comes last, as a finding."""
        deep = _DeepCheck(self.rules, wants_copies=self.wants_copies, wants_near=self.wants_near)
        return list(_check_shard(deep, self.tally, 1, threading.Event()))


class _ShardSplits:
    """The split of each shard, from file names and metadata; `order` and `rank` put training first."""

    def __init__(self, paths: Sequence[str]) -> None:
        named = Sidecars(paths).split_names
        names = sorted(dict.fromkeys(named), key=lambda name: (name not in _FIRST_SPLITS, name is None))
        self.names = names
        self.rank = [names.index(name) for name in named]
        self.order = sorted(range(len(paths)), key=lambda number: self.rank[number])
        self._by_path = dict(zip(paths, self.rank, strict=True))

    def of(self, path: str) -> str | None:
        """Return the name of a shard's split, or None."""
        return self.names[self._by_path[path]]


class _Places:
    """The location of every checked record, in the order of the fingerprints; 16 bytes per record."""

    def __init__(self) -> None:
        self._shards: list[tuple[int, ShardTally]] = []
        self._records: list[UInt64Array] = []
        self._offsets: list[UInt64Array] = []
        self._total = 0
        self._joined: tuple[UInt64Array, UInt64Array] | None = None

    def start_shard(self, tally: ShardTally) -> None:
        self._shards.append((self._total, tally))

    def add(self, records: UInt64Array, offsets: UInt64Array) -> None:
        self._records.append(records)
        self._offsets.append(offsets)
        self._total += len(records)

    def at(self, number: int) -> RecordPlace:
        if self._joined is None:
            self._joined = np.concatenate(self._records), np.concatenate(self._offsets)
            self._starts = np.array([start for start, _ in self._shards])
        # Empty shards have the same start as the next shard with records, which is the last one with that start.
        tally = self._shards[int(np.searchsorted(self._starts, number, side="right")) - 1][1]
        records, offsets = self._joined
        record = int(records[number])
        return RecordPlace(tally.path, record, int(offsets[number]), record <= tally.hole)


def _describe_match(match: Match, places: _Places, splits: _ShardSplits, what: str) -> VerifyFinding:
    """Turn a pair of copies into a finding. `what` names what was compared: the image, or the whole record."""
    earlier, later = places.at(match.earlier), places.at(match.later)
    one, two = splits.of(earlier.shard), splits.of(later.shard)
    is_equal = match.distance is None
    alike = f"{what} as" if is_equal else f"nearly {what} as"
    if one != two:
        kind: FindingKind = "leak"
        cause = f"in {two or 'no split'}, {alike} {earlier} in {one or 'no split'}{describe_distance(match.distance)}"
    else:
        kind = "duplicate" if is_equal else "near_duplicate"
        cause = f"{alike} {earlier}{describe_distance(match.distance)}"
    return VerifyFinding(later.shard, later.record, later.offset, cause, kind, earlier)


@dataclass
class _CheckedBatch:
    """The result of checking some records of one shard."""

    records: UInt64Array
    offsets: UInt64Array
    nbytes: int
    findings: list[VerifyFinding]
    digests: list[bytes]
    hashes: tuple[UInt64Array, UInt64Array, np.ndarray[Any, np.dtype[np.bool_]]]


@dataclass
class _Read:
    """Some records of one shard: `rows` if they are decoded, `records` if their bytes are compared.

    `kinds` lists features of an unexpected kind, each as the position of the record and the cause.
    """

    first: int
    offsets: UInt64Array
    nbytes: int
    rows: list[Row | str] = field(default_factory=list)
    kinds: list[tuple[int, str]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


class _DeepCheck:
    """Reads records in batches, and makes jobs that check the batches on any thread."""

    def __init__(self, rules: RecordRules | None, *, wants_copies: bool, wants_near: bool) -> None:
        has_features = rules is not None and len(rules.schema) > 0
        self._rules = rules if has_features else None
        self._decoder = Decoder(rules.schema) if rules is not None and has_features else None
        self._kinds = KindCheck(rules.known, list(rules.schema)) if rules is not None else None
        self._wants_copies = wants_copies
        is_picture = self._rules is not None and self._rules.image is not None
        # A single image does not identify a sequence.
        self.by_picture = is_picture and self._rules is not None and self._rules.schema.kind == "example"
        self._wants_near = wants_near and self.by_picture
        self._threads = threading.local()

    def cut(self, tally: ShardTally, stop: threading.Event) -> Iterator[Callable[[], _CheckedBatch]]:
        """Yield jobs that check the records of a shard, in order, and a last one for records that did not decode."""
        decoder = self._decoder if tally.holds_examples else None
        policy = CollectPolicy()
        builder: _native.ColumnBuilder | None = None

        def decode(data: ByteSource, start: int, end: int, most: int, verify: Verify) -> Any:
            nonlocal builder
            if decoder is None:
                return _native.check_frames(data, start, end, most, verify)
            builder = decoder.new_builder()
            return builder.append_frames(data, start, end, most, verify)

        with contextlib.closing(Shard.open(tally.path)) as shard:
            parts = Salvage(shard, policy, columns=decoder.column_names if decoder is not None else ())
            for part in walk_streams(parts, decode, _BATCH_RECORDS, _BATCH_NBYTES):
                place = part.data, part.start, part.stop, part.num_frames
                offsets = _native.index_frames(*place, "none")[0]
                read = _Read(part.record, offsets + np.uint64(part.offset - part.start), part.nbytes)
                if decoder is not None and builder is not None:
                    read.rows = _decode_rows(decoder, builder, part.data, offsets, part.stop)
                if self._kinds is not None and tally.holds_examples:
                    read.kinds = list(self._kinds.find(part.data, offsets, part.stop))
                if self._wants_copies and not (decoder is not None and self.by_picture):
                    read.records = read_list(*place, "none")[0]
                yield partial(self._judge, tally.path, read)
                if stop.is_set():
                    break
        # Damaged frames are listed already.
        found = [one for one, error in policy.listed if isinstance(error, (CodecError, SchemaError))]
        if found:
            nothing = np.empty(0, np.uint64)
            listed = [VerifyFinding(one.shard, one.record, one.offset, one.cause, "schema") for one in found]
            yield partial(_CheckedBatch, nothing, nothing, 0, listed, [], _hash([]))

    def _judge(self, path: str, read: _Read) -> _CheckedBatch:
        check = self._get_check()
        num_records = len(read.offsets)
        judged = [Judged() for _ in range(num_records)]
        for number, row in enumerate(read.rows):
            if isinstance(row, str):
                judged[number].problems.append(("schema", row))
            elif check is not None:
                judged[number] = check.judge(row)
        for number, cause in read.kinds:
            judged[number].problems.append(("schema", cause))
        for number, record in enumerate(read.records):
            judged[number].digest = digest(record)
        findings = [
            VerifyFinding(path, read.first + number, int(read.offsets[number]), cause, kind)
            for number, one in enumerate(judged)
            for kind, cause in one.problems
        ]
        return _CheckedBatch(
            np.arange(read.first, read.first + num_records, dtype=np.uint64),
            read.offsets,
            read.nbytes,
            findings,
            [one.digest for one in judged],
            _hash(judged),
        )

    def _get_check(self) -> RecordCheck | None:
        """Return the checker of this thread, or None without rules."""
        if self._rules is None:
            return None
        check: RecordCheck | None = getattr(self._threads, "check", None)
        if check is None:
            check = self._threads.check = RecordCheck(self._rules, wants_copy=self._wants_near)
        return check


def _decode_rows(
    decoder: Decoder, builder: _native.ColumnBuilder, data: ByteSource, offsets: UInt64Array, stop: int
) -> list[Row | str]:
    """Decode rows. A row that fails (because of a damaged serialized tensor, say) becomes its error message."""
    try:
        return list(decoder.rows(decoder.take_batch(builder), len(offsets)))
    except (CodecError, SchemaError):
        pass
    rows: list[Row | str] = []
    for offset in offsets.tolist():
        alone = decoder.new_builder()
        alone.append_frames(data, offset, stop, 1, "none")
        try:
            rows += decoder.rows(decoder.take_batch(alone), 1)
        except (CodecError, SchemaError) as error:
            rows.append(error.what)
    return rows


def _hash(judged: list[Judged]) -> tuple[UInt64Array, UInt64Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Compute short and long perceptual hashes, and flags for records whose image has enough detail to compare."""
    short, long = np.zeros(len(judged), np.uint64), np.zeros((len(judged), 4), np.uint64)
    is_hashed = np.zeros(len(judged), np.bool_)
    numbers = np.array([number for number, one in enumerate(judged) if one.copy is not None], np.int64)
    if not len(numbers):
        return short, long, is_hashed
    copies = np.empty((len(numbers), SIDE, SIDE), np.uint8)
    for place, number in enumerate(numbers.tolist()):
        copies[place] = judged[number].copy
    is_hashed[numbers] = has_detail(copies)
    short[numbers], long[numbers] = hash_copies(copies)
    return short, long, is_hashed
