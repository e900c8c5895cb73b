"""Compute the statistics of shards in one pass; results do not depend on the number of threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import choose_threads, run_ahead
from tfrkit._types import Int64Array, OnError, Verify
from tfrkit.codec.columns import ABSENT
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.records import Finding, Policy, Read, Stretch
from tfrkit.container.shards import Shard
from tfrkit.engines.base import Tick
from tfrkit.features.infer import merge_stats
from tfrkit.ops.stats.chunks import Chunk, cut_chunks
from tfrkit.ops.stats.columns import ColumnSpec, KnownColumns, choose_kinds, make_builder
from tfrkit.ops.stats.features import (
    MAX_FINDINGS,
    DatasetSummary,
    FeatureKey,
    FeatureSummary,
    NativeColumn,
    summarize_column,
)
from tfrkit.ops.stats.numbers import summarize_ints
from tfrkit.ops.stats.picks import Picks
from tfrkit.ops.stats.samples import Picker
from tfrkit.passes.check import NOT_AN_EXAMPLE
from tfrkit.progress import Progress
from tfrkit.storage.base import ByteSource

# Chunks of a shard whose first records are surveyed to infer what features mean: the first ones, then every n-th.
_PROBED_CHUNKS = 4
_PROBED_EVERY = 16
# Up to this many features are marked one by one as not having one value per record; after that, all of them.
_MAX_RETRIES = 8

_KINDS = (None, "bytes", "float", "int64")

SketchLimits = dict[FeatureKey, int]
"""The largest hash of each feature that the shard's sketch still needs. Saves work, does not change results."""


_Run = tuple[ByteSource, int, int]
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


class _Result(NamedTuple):
    """The summary of a chunk. With `is_first` it starts a new shard, and is empty or covers the whole shard."""

    summary: DatasetSummary
    nbytes: int
    is_first: bool = False
    limits: SketchLimits | None = None


class StatsReader:
    """Computes the statistics of shards, chunk by chunk."""

    def __init__(self, policy: Policy, *, names: Sequence[bytes] | None = None, has_picks: bool = False) -> None:
        self._policy = policy
        self._columns = KnownColumns(names)
        self._has_picks = has_picks
        # With "skip", damage is skipped when chunks are cut, so checksums are compared then and not when reading.
        skips = policy.on_error == "skip"
        self._cut_verify: Verify = policy.verify if skips else "none" if policy.verify == "none" else "lengths"
        self._read_verify: Verify = "none" if skips else policy.verify

    def read(
        self, shards: Sequence[Shard], *, jobs: int | None = None, progress: Progress | None = None
    ) -> Iterator[DatasetSummary]:
        """Yield the summary of each shard, in order."""
        sizes = [shard.nbytes for shard in shards]
        threads = choose_threads(jobs, None if None in sizes else sum(size or 0 for size in sizes))
        # Decompression takes longer than all the rest, and uses one thread per shard.
        by_shard = threads > 1 and sum(shard.compression != "none" for shard in shards) > 1
        work = self._list_jobs(shards, by_shard=by_shard)
        results = run_ahead(work, threads=threads, max_nbytes=LIMITS.results_nbytes, size_of=lambda one: one.nbytes)
        watch = _PassProgress(progress, shards)
        whole: DatasetSummary | None = None
        limits: SketchLimits = {}
        for result in results:
            watch.advance(result)
            if not result.is_first:
                assert whole is not None
                whole.merge(result.summary)
                limits.update(whole.list_limits())
                continue
            if whole is not None:
                yield whole
            whole, limits = result.summary, {} if result.limits is None else result.limits
        if whole is not None:
            yield whole
        watch.end()

    def _list_jobs(self, shards: Sequence[Shard], *, by_shard: bool) -> Iterator[Callable[[], _Result]]:
        for number, shard in enumerate(shards):
            if by_shard and shard.compression != "none":
                yield partial(self.read_shard, shard, number)
                continue
            limits: SketchLimits = {}
            yield partial(_Result, DatasetSummary(num_files=1), 0, is_first=True, limits=limits)
            for chunk in cut_chunks(shard, number, self._policy, self._cut_verify):
                yield partial(self._read_chunk, chunk, limits)

    def read_shard(self, shard: Shard, number: int) -> _Result:
        """Summarize a whole shard. Chunks are merged in the same way as in `read`, so that the result is the same."""
        summary = DatasetSummary(num_files=1)
        nbytes = 0
        for chunk in cut_chunks(shard, number, self._policy, self._cut_verify):
            part = self._read_chunk(chunk, summary.list_limits())
            summary.merge(part.summary)
            nbytes += part.nbytes
        return _Result(summary, nbytes, is_first=True)

    def _read_chunk(self, chunk: Chunk, limits: SketchLimits) -> _Result:
        chunk.shard.reader.check_unchanged()
        sizes = chunk.sizes
        probed = self._probe(chunk)
        summary = self._read_usual(chunk, sizes, limits)
        if summary is None:
            for part in chunk.stretches:
                _require_sound(part, _native.check_frames, self._read_verify)
            summary = self._read_closely(chunk, sizes, limits)
        for part in chunk.stretches:
            part.release()
        for found in probed:
            key = found["name"], found["is_list"]
            summary.probes[key] = merge_stats(summary.probes[key], found) if key in summary.probes else found
        return _Result(summary, chunk.nbytes)

    def _probe(self, chunk: Chunk) -> list[Any]:
        """Survey the features of the first records of a chunk; returns [] for most chunks."""
        if chunk.place >= _PROBED_CHUNKS and chunk.place % _PROBED_EVERY:
            return []
        survey = _native.Survey("sequence_example")
        first = chunk.stretches[0]
        survey.add_frames(first.data, first.start, first.stop, LIMITS.probed_records, "none")
        probed: list[Any] = [one for one in survey.features() if self._columns.wants((one["name"], one["is_list"]))]
        self._columns.learn(probed, survey.num_records)
        return probed

    def _read_usual(self, chunk: Chunk, sizes: Int64Array, limits: SketchLimits) -> DatasetSummary | None:
        """Fast path: summarize a chunk whose records have only features seen so far, else return None."""
        for number in range(_MAX_RETRIES + 2):
            version, specs, builder = self._columns.borrow()
            reads = (part.read(builder.append_frames, self._read_verify) for part in chunk.stretches)
            found = next(filter(None, reads), None)
            if found is None:
                break
            builder.finish()
            fault = found[0]
            if fault.kind not in ("missing", "length"):
                return None
            odd = specs[fault.column : fault.column + 1] if number < _MAX_RETRIES else specs
            self._columns.loosen(spec.key for spec in odd)
        else:
            return None
        columns = builder.finish()
        if builder.has_others and not self._columns.is_selected:
            return None
        self._columns.give_back(version, specs, builder)
        if not specs or _has_bare_rows(columns, sizes):
            return None
        return self._summarize(chunk, specs, columns, sizes, limits)

    def _read_closely(self, chunk: Chunk, sizes: Int64Array, limits: SketchLimits) -> DatasetSummary:
        """Slow path: summarize a chunk of records of any kind; those that are not Examples are left out and listed."""
        survey = _native.Survey("sequence_example")
        for part in chunk.stretches:
            _require_sound(part, survey.add_frames, "none")
        features: list[Any] = [one for one in survey.features() if self._columns.wants((one["name"], one["is_list"]))]
        self._columns.learn(features, survey.num_records)
        # A feature of several kinds cannot be decoded into one column.
        mixed = {(one["name"], one["is_list"]): one for one in features if sum(map(bool, one["kind_counts"][1:])) > 1}
        kinds = choose_kinds(features)
        specs = [ColumnSpec(key, kind or "bytes") for key, kind in kinds.items() if key not in mixed]
        builder = make_builder(specs)
        runs, is_other, others = _part_others(chunk, sizes, survey.shapes["other"])
        for data, start, stop in runs:
            _, _, fault = builder.append_frames(data, start, stop, 1 << 62, "none")
            assert fault is None, fault.kind
        summary = self._summarize(chunk, specs, builder.finish(), sizes[~is_other], limits, is_other)
        summary.features.update({key: _summarize_mixed(found) for key, found in mixed.items()})
        summary.probes = {(found["name"], found["is_list"]): found for found in features}
        summary.num_others = int(np.count_nonzero(is_other))
        summary.others = others
        summary.other_sizes = summarize_ints(sizes[is_other])
        return summary

    def _summarize(
        self,
        chunk: Chunk,
        specs: Sequence[ColumnSpec],
        columns: Sequence[NativeColumn],
        sizes: Int64Array,
        limits: SketchLimits,
        is_other: _Flags | None = None,
    ) -> DatasetSummary:
        summary = DatasetSummary(records=len(sizes), sizes=summarize_ints(sizes))
        for spec, column in zip(specs, columns, strict=True):
            feature = summarize_column(spec.kind, spec.key[1], column, len(sizes), limits.get(spec.key))
            if feature.present:
                summary.features[spec.key] = feature
        if self._has_picks and len(sizes):
            picker = Picker(chunk, None if is_other is None else ~is_other)
            summary.picks = Picks(picker.pick_samples(), picker.pick_examples(specs, columns, summary.features))
        return summary


@dataclass(frozen=True)
class StatsTask:
    """Computes the statistics of one shard; `number` is its number among all shards, which decides on picks."""

    path: str
    number: int
    names: tuple[bytes, ...] | None
    on_error: OnError
    has_picks: bool

    def run(self, tick: Tick) -> tuple[DatasetSummary, list[Finding]]:
        """Return the summary of the shard, and its skipped damage."""
        policy = Policy("all", self.on_error)
        with contextlib.closing(Shard.open(self.path)) as shard:
            result = StatsReader(policy, names=self.names, has_picks=self.has_picks).read_shard(shard, self.number)
        summary = result.summary
        tick(summary.records + summary.num_others, result.nbytes, summary.num_others)
        return summary, list(policy.findings.values())


def _require_sound(part: Stretch, read: Read, verify: Verify) -> None:
    found = part.read(read, verify)
    if found is not None:
        raise found[1]


def _has_bare_rows(columns: Sequence[NativeColumn], sizes: Int64Array) -> bool:
    """Is there a record that is not empty and has none of the features?"""
    is_bare = sizes > 0
    for _, _, _, presence, _ in columns:
        if presence is None:
            return False
        is_bare &= presence == ABSENT
    return bool(is_bare.any())


def _part_others(chunk: Chunk, sizes: Int64Array, num_others: int) -> tuple[list[_Run], _Flags, list[Finding]]:
    """Return the runs of Examples, flags of the records that are not Examples, and findings for the first of these."""
    runs: list[_Run] = []
    is_other = np.full(len(sizes), num_others == len(sizes))
    others: list[Finding] = []
    before = 0
    for part in chunk.stretches if num_others else ():
        # If no record is an Example, only those to be listed have to be found.
        most = part.num_frames if num_others < len(sizes) else max(0, MAX_FINDINGS - len(others))
        _, found, *_ = _native.find_others(part.data, part.start, part.stop, most, "none")
        start = part.start
        for record, offset in found:
            is_other[before + record] = True
            if len(others) < MAX_FINDINGS:
                where = part.offset + offset - part.start
                others.append(Finding(chunk.shard.name, part.record + record, where, NOT_AN_EXAMPLE))
            runs.append((part.data, start, offset))
            start = offset + FRAME_OVERHEAD + int(sizes[before + record])
        runs.append((part.data, start, part.stop))
        before += part.num_frames
    if num_others == 0:
        runs = [(part.data, part.start, part.stop) for part in chunk.stretches]
    elif num_others == len(sizes):
        runs = []
    return [run for run in runs if run[1] < run[2]], is_other, others


def _summarize_mixed(found: dict[str, Any]) -> FeatureSummary:
    summary = FeatureSummary(present=found["present"], unset=found["num_unset"])
    counts = zip(_KINDS, found["kind_counts"], strict=True)
    summary.kinds.update({kind: count for kind, count in counts if kind is not None and count})
    return summary


class _PassProgress:
    """Reports the progress of a pass, with the number of records estimated from the first chunk."""

    def __init__(self, progress: Progress | None, shards: Sequence[Shard]) -> None:
        self._progress = progress
        self._total = sum(shard.nbytes or 0 for shard in shards)
        self._has_begun = False

    def advance(self, result: _Result) -> None:
        num_records = result.summary.records + result.summary.num_others
        if self._progress is None or num_records == 0:
            return
        if not self._has_begun:
            self._has_begun = True
            about = round(num_records * self._total / max(1, result.nbytes))
            self._progress.begin(max(num_records, about), self._total)
        self._progress.advance(num_records, result.nbytes, result.summary.num_others)

    def end(self) -> None:
        if self._progress is not None and self._has_begun:
            self._progress.end()
