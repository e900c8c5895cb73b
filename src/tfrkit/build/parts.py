"""One part of a build, for any scheduler that starts n processes: Slurm arrays, Kubernetes jobs, cron.

All parts make the same plan. Shard k belongs to part k modulo n, and leaves a marker when it is done, as in every
build. The part that finds all shards done moves them into place. Parts may come in any order, several at a time, twice,
or again after they were killed.

    lock      held by every part while it writes; by one alone while it begins or finishes the build
    plan.json written by the first part, compared by the others
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit._threads import count_cores
from tfrkit.build.finish import draft_inputs, finish_build, place_of, recall_shards
from tfrkit.build.journal import Journal, PartsRunningError, ShardResult, read_done, read_marker
from tfrkit.build.plan import PlannedShard
from tfrkit.build.prepare import BuildOptions, Prepared, prepare
from tfrkit.build.report import Report
from tfrkit.build.session import (
    begin,
    compare_finished,
    conclude,
    describe_begun,
    made_folder,
    refuse_bad,
    refuse_plan,
    refuse_stops,
    write_shards,
)
from tfrkit.engines.local import LocalEngine
from tfrkit.engines.part import parse_part
from tfrkit.errors import StorageError
from tfrkit.outputs.target import Target
from tfrkit.progress import Progress
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.sidecars.places import MANIFEST
from tfrkit.sources.base import Source
from tfrkit.storage.temporaries import make_scratch

_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class BuildPart:
    """Part `index` of `count`; without an index, only the last step."""

    index: int | None
    count: int

    @classmethod
    def parse(cls, text: str) -> BuildPart:
        """Parse "i/n", with i from 0 to n - 1, or "finish".

        Example:
            >>> BuildPart.parse("0/4"), BuildPart.parse("finish")
            (BuildPart(index=0, count=4), BuildPart(index=None, count=1))
        """
        return cls(*parse_part(text))

    def choose(self, shards: tuple[PlannedShard, ...]) -> tuple[PlannedShard, ...]:
        """Return the shards of this part."""
        return () if self.index is None else shards[self.index :: self.count]


def carry_out_part(source: Source, target: Target, options: BuildOptions, progress: Progress) -> Report:
    """Make the shards of one part, and finish the build if no other shard is missing."""
    started = time.monotonic()
    part = BuildPart.parse(options.part or "")
    journal = Journal(target.staging)
    # Each part has a scratch folder of its own: parts share nothing but the staging folder.
    with made_folder(target), make_scratch("tfrkit-build") as scratch:
        prepared = prepare(source, target, options, scratch)
        refuse_stops(prepared, progress)
        report = _work(prepared, journal, part, progress) or _finish(prepared, journal, part)
    report.seconds = time.monotonic() - started
    report.part = options.part or ""
    return report


def _work(prepared: Prepared, journal: Journal, part: BuildPart, progress: Progress) -> Report | None:
    """Make the shards of a part; return a report if there is nothing left to do."""
    wanted = describe_begun(prepared)
    own = part.choose(prepared.plan.shards)
    while True:
        report = _find_finished(prepared, journal)
        if report is not None or part.index is None:
            return report
        _ensure_begun(prepared, journal, wanted)
        try:
            with journal.locked(by="part"):
                if journal.load_plan() != wanted:  # another part finished the build a moment ago
                    continue
                recall_shards(prepared.target, journal, prepared.plan.hash, [shard.name for shard in own])
                engine = LocalEngine(prepared.options.jobs or count_cores())
                schedule = write_shards(prepared, journal, own, engine, progress)
                refuse_bad(prepared, schedule)
                return None
        except PartsRunningError:  # another part begins or finishes the build
            time.sleep(_LOOK_SECONDS)


def _find_finished(prepared: Prepared, journal: Journal) -> Report | None:
    """Return a report if the dataset is there."""
    old = read_manifest(prepared.target.sidecar(MANIFEST))
    if old is None:
        return None
    try:
        report = compare_finished(prepared, old)
    except StorageError:
        if not prepared.options.force:
            raise
        return None
    if report is not None and os.path.isdir(journal.folder):  # of a run that was killed at its very end
        try:
            with journal.locked(by="last part"):
                journal.remove()
        except PartsRunningError:
            pass
    return report


def _ensure_begun(prepared: Prepared, journal: Journal, wanted: dict[str, Any]) -> None:
    """Write the plan, unless another part did."""
    while (begun := journal.load_plan()) != wanted:
        try:
            with journal.locked(by="last part"):
                if journal.load_plan() != wanted:
                    begin(prepared, journal, read_manifest(prepared.target.sidecar(MANIFEST)))
        except PartsRunningError:
            if begun is not None:
                raise refuse_plan(prepared, begun, journal.load_inputs()) from None
            time.sleep(_LOOK_SECONDS)


def _finish(prepared: Prepared, journal: Journal, part: BuildPart) -> Report:
    """Move all shards into place if none is missing; else report the shards of this part."""
    missing = _list_missing(prepared, journal)
    try:
        if not missing:
            # Not held by this process any more: of parts that end at the same time, the last one gets it.
            with journal.locked(by="last part"):
                if journal.load_plan() == describe_begun(prepared):
                    return _place(prepared, journal)
            report = _find_finished(prepared, journal)
            if report is not None:
                return report
    except PartsRunningError:
        pass
    if part.index is None:
        shown = f"{len(missing)} shards are missing, the first one {missing[0]}" if missing else "parts are running"
        raise StorageError(f"the build cannot be finished, {shown}", shard=prepared.target.out)
    folder = journal.shards_folder(prepared.plan.hash)
    found = {shard.name: read_done(os.path.join(folder, shard.name)) for shard in part.choose(prepared.plan.shards)}
    return report_part(prepared, part, missing, {name: result for name, result in found.items() if result is not None})


def _place(prepared: Prepared, journal: Journal) -> Report:
    plan = prepared.plan
    names = [shard.name for shard in plan.shards]
    journal.sweep(plan.hash)
    recall_shards(prepared.target, journal, plan.hash, names)
    results: dict[str, ShardResult] = {}
    for name in names:
        result = read_done(os.path.join(journal.shards_folder(plan.hash), name))
        if result is None:
            raise StorageError("a finished shard is gone", shard=name, hint="run its part again")
        results[name] = result
    for _ in draft_inputs(prepared, journal):
        pass
    report = conclude(prepared, results, 0)
    finish_build(prepared, journal, results, report, read_manifest(prepared.target.sidecar(MANIFEST)))
    return report


def _list_missing(prepared: Prepared, journal: Journal) -> list[str]:
    """Return the names of shards that are neither in the staging folder nor, after a killed last step, in place."""
    if journal.load_plan() is None:
        return [shard.name for shard in prepared.plan.shards]
    folder = journal.shards_folder(prepared.plan.hash)
    missing = []
    for shard in prepared.plan.shards:
        staged = os.path.join(folder, shard.name)
        marker = read_marker(staged)
        sizes = [
            os.path.getsize(path) for path in (staged, place_of(prepared.target, shard.name)) if os.path.isfile(path)
        ]
        if marker is None or marker.nbytes not in sizes:
            missing.append(shard.name)
    return missing


def report_part(
    prepared: Prepared, part: BuildPart, missing: Sequence[str], results: Mapping[str, ShardResult]
) -> Report:
    """Report the shards of one part, while others are missing."""
    report = prepared.new_report()
    report.missing_shards = len(missing)
    for shard in part.choose(prepared.plan.shards):
        result = results.get(shard.name)
        if result is not None:
            report.add_shard(shard.split, result.num_records, result.nbytes)
            report.written += result.num_records
    report.notes.append(
        f"{len(missing)} of {len(prepared.plan.shards)} shards are missing, the part that makes the last one finishes"
        if missing
        else "other parts are running, the last one finishes"
    )
    return report
