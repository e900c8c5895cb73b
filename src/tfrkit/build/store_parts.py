"""One part of a build into a store, for any scheduler that starts n processes. They meet in the store alone.

The plan is created by one part, by a conditional request, and compared by the others. A part stores its shards and a
marker for each. A part that finds the markers of all shards takes the lease of the output and writes the sidecars and
the manifest; if another part has the lease, it waits for the manifest. Parts may come in any order, several at a time,
twice, or again after they were killed.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from tfrkit._threads import count_cores
from tfrkit.build.finish import draft_inputs
from tfrkit.build.journal import Journal, ShardResult
from tfrkit.build.parts import BuildPart, report_part
from tfrkit.build.prepare import BuildOptions, Prepared, prepare
from tfrkit.build.report import Report
from tfrkit.build.session import (
    compare_finished,
    conclude,
    describe_begun,
    refuse_bad,
    refuse_plan,
    refuse_stops,
    write_shards,
)
from tfrkit.build.store_journal import BegunBuild, StoreJournal
from tfrkit.build.store_session import finish_in_store, make_upload, refuse_replacement
from tfrkit.engines.local import LocalEngine
from tfrkit.errors import StorageError
from tfrkit.outputs.target import Target
from tfrkit.progress import Progress
from tfrkit.sidecars.places import FEATURES, INFO
from tfrkit.sources.base import Source
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.upload import LeaseHeldError

_LOOK_SECONDS = 0.5


def carry_out_part_in_store(source: Source, target: Target, options: BuildOptions, progress: Progress) -> Report:
    """Make the shards of one part, and finish the build if no other shard is missing."""
    started = time.monotonic()
    part = BuildPart.parse(options.part or "")
    journal = StoreJournal(target)
    with make_scratch("tfrkit-build") as scratch:
        local = Journal(scratch)
        prepared = prepare(source, target, options, local.scratch)
        refuse_stops(prepared, progress)
        report = _find_finished(prepared, journal)
        if report is None and part.index is not None:
            report = _ensure_begun(prepared, journal)
            if report is None:
                _write(prepared, journal, local, part, progress)
        report = report or _finish(prepared, journal, local, part)
    report.seconds = time.monotonic() - started
    report.part = options.part or ""
    return report


def _find_finished(prepared: Prepared, journal: StoreJournal) -> Report | None:
    """Return a report if the dataset is there."""
    old = journal.load_manifest()
    if old is None:
        return None
    if prepared.options.force:
        raise refuse_replacement(prepared.target)
    journal.find_taken(())  # one listing, instead of a request for each shard
    report = compare_finished(prepared, old)
    if report is None:
        raise refuse_replacement(prepared.target)
    return report


def _ensure_begun(prepared: Prepared, journal: StoreJournal) -> Report | None:
    """Store the plan, unless another part has; return a report if other parts have finished the build meanwhile.

    The lease proves that the store supports conditional writes.
    """
    wanted = describe_begun(prepared)
    while (begun := journal.load_plan()) is None or begun.plan != wanted:
        if begun is not None and not prepared.options.force:
            raise refuse_plan(prepared, begun.plan, {})
        try:
            with journal:
                report = _find_finished(prepared, journal)
                if report is not None:
                    return report
                if journal.load_plan() == begun:
                    _begin(prepared, journal, wanted, begun)
        except LeaseHeldError:  # another part begins the build
            time.sleep(_LOOK_SECONDS)
    return None


def _begin(prepared: Prepared, journal: StoreJournal, wanted: dict[str, Any], begun: BegunBuild | None) -> None:
    target = prepared.target
    if begun is not None:
        journal.forget(begun, keep=[])
    shards = [shard.name for shard in prepared.plan.shards]
    names = [target.shard(name) for name in shards]
    names += [target.sidecar(name) for name in (FEATURES, INFO)] if not target.is_file else []
    if journal.find_taken(names):
        raise refuse_replacement(target)
    journal.save_plan(BegunBuild(wanted, shards, []))


def _write(prepared: Prepared, journal: StoreJournal, local: Journal, part: BuildPart, progress: Progress) -> None:
    """Write and store the shards of this part that are not there."""
    own = part.choose(prepared.plan.shards)
    stored = journal.load_results([shard.name for shard in own])
    missing = [shard for shard in own if shard.name not in stored]
    engine = LocalEngine(prepared.options.jobs or count_cores())
    complete = partial(make_upload, journal)
    refuse_bad(
        prepared,
        write_shards(prepared, local, missing, engine, progress, complete=complete, watch=journal.put_marker),
    )


def _finish(prepared: Prepared, journal: StoreJournal, local: Journal, part: BuildPart) -> Report:
    """Write the manifest if no shard is missing; else report the shards of this part."""
    names = [shard.name for shard in prepared.plan.shards]
    while True:
        results = journal.load_results(names)
        missing = [name for name in names if name not in results]
        if missing:
            report = _find_finished(prepared, journal)
            if report is not None:
                _tidy(journal)
                return report
            if part.index is None:
                shown = f"{len(missing)} shards are missing, the first one {missing[0]}"
                raise StorageError(f"the build cannot be finished, {shown}", shard=prepared.target.out)
            return report_part(prepared, part, missing, results)
        try:
            with journal:
                report = _find_finished(prepared, journal)
                if report is None:
                    report = _conclude(prepared, journal, local, {name: results[name] for name in names})
                return report
        except LeaseHeldError:  # another part finishes the build
            time.sleep(_LOOK_SECONDS)


def _conclude(prepared: Prepared, journal: StoreJournal, local: Journal, results: dict[str, ShardResult]) -> Report:
    for _ in draft_inputs(prepared, local):
        pass
    report = conclude(prepared, results, 0)
    finish_in_store(prepared, journal, local, results, report, [])
    return report


def _tidy(journal: StoreJournal) -> None:
    """Remove markers that were stored after another process had finished the build."""
    try:
        with journal:
            journal.remove()
    except LeaseHeldError:
        pass
