"""One run of a build: prepare, compare with existing files, write missing shards, and move them into place."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from tfrkit._threads import count_cores
from tfrkit.build.changes import describe_changes, describe_input_changes
from tfrkit.build.finish import draft_inputs, finish_build, recall_shards
from tfrkit.build.frame_task import FrameTask, count_parts
from tfrkit.build.journal import BadItem, Journal, ShardResult, add_facts, read_inputs
from tfrkit.build.plan import PlannedShard, digest_stamps
from tfrkit.build.prepare import BuildOptions, Prepared, prepare
from tfrkit.build.report import Report, Skipped, refuse
from tfrkit.build.schedule import Complete, Schedule, make_read_tasks
from tfrkit.build.task import ShardTask
from tfrkit.engines.base import Engine
from tfrkit.engines.choose import open_engine
from tfrkit.engines.local import LocalEngine
from tfrkit.errors import ContainerError, Hint, SourceError, Step, StorageError
from tfrkit.outputs.dataset import refuse_other_shards
from tfrkit.outputs.target import Target
from tfrkit.progress import Progress
from tfrkit.sidecars.manifest import MADE_BY, Manifest, read_manifest
from tfrkit.sidecars.places import FEATURES, INFO, MANIFEST
from tfrkit.sources.base import Facts, Problem, Source
from tfrkit.storage.local import require_space
from tfrkit.storage.lookup import is_file, measure_file, read_time
from tfrkit.storage.temporaries import make_scratch

# Add a note if the records are this many times as large as their inputs.
_NOTED_GROWTH = 4
# Image encoding: its description, and smaller alternatives.
_SMALLER: dict[str, tuple[str, list[str]]] = {"raw": ("raw pixels", ["png", "jpeg"]), "png": ("PNG", ["jpeg"])}


def preview(source: Source, target: Target, options: BuildOptions, progress: Progress) -> Report:
    """Do a dry run and return its report."""
    started = time.monotonic()
    with make_scratch("tfrkit-build") as scratch:
        prepared = prepare(source, target, options, scratch)
        report = prepared.new_report()
        report.is_dry = True
        bad, facts = _read_all(prepared, progress)
        report.problems = prepared.problems + bad
        report.notes += prepared.scan.notes_after(facts)
        for shard in prepared.plan.shards:
            report.add_shard(shard.split, len(shard.numbers), int(prepared.expected_nbytes(shard)))
        report.notes += _note_growth(prepared, report)
    report.seconds = time.monotonic() - started
    return report


def _read_all(prepared: Prepared, progress: Progress) -> tuple[list[Problem], Facts]:
    """Read every item; return the bad inputs and the facts found."""
    jobs = prepared.options.jobs or count_cores()
    items = prepared.scan.items
    progress.begin(items.size, None if items.nbytes is None else int(items.nbytes.sum()))
    found: list[Problem] = []
    facts: Facts = {}
    try:
        tasks = make_read_tasks(prepared.scan, jobs, prepared.stores)
        for result in LocalEngine(jobs).run(tasks, then=lambda *_: (), progress=progress.advance):
            if result is not None:
                found += [_to_problem(item) for item in result.bad]
                add_facts(facts, result.facts)
    finally:
        progress.end()
    return sorted(found, key=lambda problem: problem.key), facts


def carry_out(source: Source, target: Target, options: BuildOptions, progress: Progress) -> Report:
    """Build, or resume an earlier run. Errors about bad inputs list all of them."""
    started = time.monotonic()
    journal = Journal(target.staging)
    connection = open_engine(options.engine, address=options.engine_address, jobs=options.jobs)
    # The engine first: if it cannot be reached, nothing is scanned.
    with connection as engine, made_folder(target), journal.locked():
        try:
            prepared = prepare(source, target, options, journal.scratch)
            refuse_stops(prepared, progress)
            old = _read_old(prepared)
            if old is not None and not options.force:
                report = compare_finished(prepared, old)
                if report is not None:
                    journal.remove()
                    return report
            begin(prepared, journal, old)
        except BaseException:
            shutil.rmtree(os.path.join(journal.folder, "scratch"), ignore_errors=True)
            if journal.load_plan() is None:
                journal.remove()
            raise
        schedule = write_shards(prepared, journal, prepared.plan.shards, engine, progress)
        if schedule.bad and options.on_bad == "fail" and not schedule.results:
            journal.remove()
        refuse_bad(prepared, schedule)
        report = conclude(prepared, schedule.results, schedule.num_resumed)
        report.seconds = time.monotonic() - started
        finish_build(prepared, journal, schedule.results, report, old)
        return report


def refuse_stops(prepared: Prepared, progress: Progress) -> None:
    """Raise if problems found by the scan prevent the build, or nothing is left to write."""
    if prepared.stops:
        # Nothing will be written, but everything is read, so that all problems are reported together.
        bad, _ = _read_all(prepared, progress)
        raise refuse([*prepared.stops, *bad], found=prepared.scan.num_inputs)
    if not prepared.plan.num_records:
        raise refuse(prepared.problems, found=prepared.scan.num_inputs, can_skip=False)


@contextlib.contextmanager
def made_folder(target: Target) -> Iterator[None]:
    """Create the output folder if needed; remove it again if the build failed and left it empty."""
    was_there = os.path.isdir(target.folder)
    target.require_writable()
    try:
        yield
    finally:
        if not was_there:
            with contextlib.suppress(OSError):
                os.rmdir(target.folder)


def _read_old(prepared: Prepared) -> Manifest | None:
    """Return the manifest of the dataset in the output folder. With `force`, one that cannot be used is replaced."""
    target = prepared.target
    try:
        return read_manifest(target.sidecar(MANIFEST))
    except ContainerError as error:
        if not prepared.options.force:
            raise error.replace(hint=Hint(Step("replace the dataset: {force}", force=True))) from None
    if not target.is_file:
        # Without the manifest it is not known which other shards belong to the dataset.
        refuse_other_shards(target.folder, {os.path.join(target.folder, shard.name) for shard in prepared.plan.shards})
    return None


def compare_finished(prepared: Prepared, old: Manifest) -> Report | None:
    """Return a report if the finished dataset is the requested one, None if shards are missing; raise otherwise."""
    target, items = prepared.target, prepared.scan.items
    since = read_time(target.sidecar(MANIFEST))
    changes = []
    if old.content.get("plan") != prepared.plan.hash:
        changes = describe_changes(old.content.get("recipe") or {}, prepared.plan.description)
    if old.changed_by:
        changes.append(f"its records were changed since: tfr {', tfr '.join(dict.fromkeys(old.changed_by))}")
    if prepared.scan.stamp > since:
        changes.append(f"{prepared.source.title} was changed after the dataset was built")
    if changes or (items.stamps is not None and int(items.stamps.max()) > since):
        changes += describe_input_changes(read_inputs(target.inputs), items, since=since)
    if changes:
        raise StorageError(
            "a finished dataset exists, made from other inputs or options",
            shard=target.out,
            hint=Hint(*changes, Step("replace it: {force}", force=True), gap="\n  "),
        )
    report = prepared.new_report()
    for shard in prepared.plan.shards:
        path, entry = target.shard(shard.name), old.entries.get(shard.name)
        if entry is None or not is_file(path) or measure_file(path) != entry.nbytes:
            return None
        report.add_shard(shard.split, entry.records or 0, entry.nbytes or 0)
        report.written += entry.records or 0
    report.already_there = True
    return report


def describe_begun(prepared: Prepared) -> dict[str, Any]:
    """Describe the plan as it is stored when a build begins: everything that must not change until it ends."""
    return {
        "hash": prepared.plan.hash,
        "made_by": MADE_BY,
        "stamps": digest_stamps(prepared.scan),
        "description": prepared.plan.description,
    }


def begin(prepared: Prepared, journal: Journal, old: Manifest | None) -> None:
    """Check that staged files belong to this plan, that nothing is overwritten, and that there is space."""
    target, plan = prepared.target, prepared.plan
    wanted = describe_begun(prepared)
    begun = journal.load_plan()
    if begun is not None and begun != wanted:
        if not prepared.options.force:
            raise refuse_plan(prepared, begun, journal.load_inputs())
        begun = None
    if begun is None:
        _require_free_names(prepared, old)
        # Checked before the plan is written, so that a build that cannot begin leaves no files.
        _require_space(prepared, journal)
        journal.save_plan(wanted, prepared.scan.items)
    else:
        journal.sweep(plan.hash)
        recall_shards(target, journal, plan.hash, [shard.name for shard in plan.shards])
        _require_space(prepared, journal)


def refuse_plan(prepared: Prepared, begun: Mapping[str, Any], inputs: Mapping[str, tuple[int, int]]) -> StorageError:
    """Return the error for an unfinished build with another plan, which had these inputs."""
    changes = describe_changes(begun.get("description") or {}, prepared.plan.description)
    if begun.get("made_by") != MADE_BY:
        changes.append(f"made by was {begun.get('made_by')}, is {MADE_BY}")
    changes += describe_input_changes(inputs, prepared.scan.items)
    return StorageError(
        "an unfinished build exists, started with other inputs or options",
        shard=prepared.target.out,
        hint=Hint(*changes, Step("start over: {force}", force=True), gap="\n  "),
    )


def _require_free_names(prepared: Prepared, old: Manifest | None) -> None:
    if prepared.options.force or old is not None:
        return
    target = prepared.target
    names = [target.shard(shard.name) for shard in prepared.plan.shards]
    names += [target.sidecar(name) for name in (FEATURES, INFO)] if not target.is_file else []
    taken = [name for name in names if os.path.lexists(name)]
    if taken:
        raise StorageError(
            "a file exists that this build did not make",
            shard=taken[0],
            hint=Hint(Step("choose another place, or replace it: {force}", force=True)),
        )


def _require_space(prepared: Prepared, journal: Journal) -> None:
    """Raise if the disk has no space for the missing shards."""
    if prepared.estimate.is_guess or prepared.compression != "none":
        return
    folder = journal.shards_folder(prepared.plan.hash)
    left = [shard for shard in prepared.plan.shards if not os.path.exists(os.path.join(folder, shard.name))]
    needed = int(sum(prepared.expected_nbytes(shard) for shard in left))
    require_space(prepared.target.folder, needed)


def write_shards(
    prepared: Prepared,
    journal: Journal,
    shards: Sequence[PlannedShard],
    engine: Engine,
    progress: Progress,
    *,
    complete: Complete | None = None,
    watch: Callable[[ShardResult | None], None] = lambda result: None,
) -> Schedule:
    """Write these shards of the plan to the staging folder, unless they are there; draft the list of inputs.

    `complete` wraps the task that completes a shard; `watch` is called with the result of each task, and may raise.
    """
    plan, options = prepared.plan, prepared.options

    # Threads in this process write frames as fast as worker processes, which take as long to start as to write.
    # A compressed shard is compressed by one thread, so writing several shards at once in workers is faster.
    gives_frames = prepared.scan.reader.gives == "frames" and prepared.compression == "none"
    jobs = engine.slots
    threads = jobs if engine.is_local else 1
    if gives_frames and engine.is_local:
        engine = LocalEngine(1)
    if not engine.is_local:
        # Readers find their inputs and spooled tables by path. Into a store, workers write on disks of their own.
        inputs = [os.path.abspath(prepared.source.title)] if os.path.exists(prepared.source.title) else []
        is_shared = complete is None or journal.has_scratch
        tokens = [journal.write_token()] if is_shared else []
        engine.require(sees=inputs, tokens=tokens, is_local=bool(inputs or tokens))

    def make_task(shard: PlannedShard, path: str) -> ShardTask:
        return (partial(FrameTask, threads=threads) if gives_frames else ShardTask)(
            path=path,
            items=prepared.scan.items.take(shard.numbers),
            reader=prepared.scan.reader,
            compression=prepared.compression,
            level=options.level,
            floats=prepared.scan.floats,
            keys=options.keys,
            on_bad=options.on_bad,
            stores=prepared.stores,
        )

    is_cut = gives_frames and (engine.is_local or complete is None)
    weights = {shard.name: _weigh(prepared, shard) for shard in shards}
    schedule = Schedule(
        shards,
        journal.shards_folder(plan.hash),
        make_task,
        weights,
        jobs,
        # A compressed shard is never cut: it is one stream, and its bytes would depend on the cuts.
        may_cut=prepared.compression == "none" and (engine.is_local or complete is None),
        parts={shard.name: count_parts(prepared.expected_nbytes(shard)) for shard in shards} if is_cut else None,
        complete=complete,
    )
    numbers = [shard.numbers for shard in schedule.missing]
    nbytes = prepared.scan.items.nbytes
    progress.begin(sum(map(len, numbers)), None if nbytes is None else int(sum(nbytes[n].sum() for n in numbers)))
    listing = draft_inputs(prepared, journal)
    try:
        steps = engine.run(schedule.begin(), then=schedule.follow, progress=progress.advance, meanwhile=listing)
        for result in steps:
            watch(result)
    except BaseException as error:
        listing.close()
        journal.sweep(plan.hash)
        if isinstance(error, StorageError):
            resume = "finished shards are kept: the same command resumes"
            error.hint = resume if error.hint is None else Hint(error.hint, resume)
        raise
    finally:
        progress.end()
    return schedule


def refuse_bad(prepared: Prepared, schedule: Schedule) -> None:
    """Raise if there are bad inputs and they fail the build."""
    if schedule.bad and prepared.options.on_bad == "fail":
        problems = [_to_problem(item) for item, _ in sorted(schedule.bad)]
        raise refuse(problems, found=prepared.scan.num_inputs, is_begun=bool(schedule.results))


def conclude(prepared: Prepared, results: Mapping[str, ShardResult], num_resumed: int) -> Report:
    """Return the report of a build whose shards are all written."""
    splits = {shard.name: shard.split for shard in prepared.plan.shards}
    bad = sorted((item, splits[name]) for name, result in results.items() for item in result.bad)
    report = prepared.new_report()
    report.skipped += [Skipped(item.key, item.reason, split, hint=item.hint) for item, split in bad]
    report.resumed = num_resumed
    facts: Facts = {}
    for shard in prepared.plan.shards:
        result = results[shard.name]
        report.add_shard(shard.split, result.num_records, result.nbytes)
        report.written += result.num_records
        add_facts(facts, result.facts)
    report.notes += prepared.scan.notes_after(facts)
    report.notes += _note_growth(prepared, report)
    if not report.written:
        first = bad[0][0]
        raise SourceError(
            f"nothing was written, all {prepared.scan.num_inputs} inputs are bad, "
            f"the first one: {first.key}: {first.reason}",
            shard=prepared.source.title,
            hint=first.hint or None,
        )
    return report


def _note_growth(prepared: Prepared, report: Report) -> list[str]:
    """Return a note if re-encoded images take several times the space of their files."""
    images: Any = getattr(prepared.source, "images", None)
    stored_as = "keep" if images is None else images.stored_as
    if stored_as not in _SMALLER or not report.nbytes_in:
        return []
    factor = report.nbytes_out / report.nbytes_in
    if factor < _NOTED_GROWTH:
        return []
    form, smaller = _SMALLER[stored_as]
    first, *others = (Step("{encode}", encode=word) for word in smaller)
    what = Step(
        f"records are {factor:.0f} times as large as the inputs, with images as {form}; smaller: {{encode}}",
        **first.arguments,
    )
    return [Hint(what, *others, gap=" or ")]


def _to_problem(item: BadItem) -> Problem:
    return Problem(item.key, item.reason, hint=item.hint)


def _weigh(prepared: Prepared, shard: PlannedShard) -> float:
    """Estimate the work of a shard: its bytes, plus a constant per record."""
    nbytes = prepared.scan.items.nbytes
    size = float(nbytes[shard.numbers].sum()) if nbytes is not None else prepared.expected_nbytes(shard)
    return size + 1000.0 * len(shard.numbers)
