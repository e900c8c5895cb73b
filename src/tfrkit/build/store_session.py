"""One run of a build into a remote store: prepare, compare with what is there, store missing shards, the manifest last.

Each shard is written to the local disk, stored under its final name and removed from the disk. A build that replaces a
dataset keeps its shards on the disk until all of them are whole, so that the old dataset stays until then.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from functools import partial

from tfrkit.build.finish import collect_sidecars, decide_schema, describe_dataset, draft_sidecars
from tfrkit.build.journal import Journal, ShardResult
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
from tfrkit.build.task import JoinTask, ShardTask
from tfrkit.build.upload_task import UploadTask, store_shard
from tfrkit.container.index import index_path
from tfrkit.engines.choose import open_engine
from tfrkit.errors import Hint, Step, StorageError
from tfrkit.outputs.target import Target
from tfrkit.progress import Progress
from tfrkit.sidecars.manifest import Manifest, add_versions
from tfrkit.sidecars.places import FEATURES, INFO, MANIFEST
from tfrkit.sidecars.write import make_texts
from tfrkit.sources.base import Source
from tfrkit.storage.local import require_space
from tfrkit.storage.options import given_options
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.unfinished import abort_uploads
from tfrkit.storage.upload import upload_file


def carry_out_in_store(source: Source, target: Target, options: BuildOptions, progress: Progress) -> Report:
    """Build into a store, or resume an earlier run. Errors about bad inputs list all of them."""
    started = time.monotonic()
    connection = open_engine(options.engine, address=options.engine_address, jobs=options.jobs)
    with connection as engine, StoreJournal(target) as journal, make_scratch("tfrkit-build") as scratch:
        local = Journal(scratch)
        prepared = prepare(source, target, options, local.scratch)
        refuse_stops(prepared, progress)
        old = journal.load_manifest()
        if old is not None and not options.force:
            journal.find_taken(())  # one listing, instead of a request for each shard
            report = compare_finished(prepared, old)
            if report is not None:
                journal.remove()
                return report
        replaces, is_held = _begin(prepared, journal, old, can_hold=engine.is_local)
        names = [shard.name for shard in prepared.plan.shards]
        stored = journal.load_results(names)
        missing = [shard for shard in prepared.plan.shards if shard.name not in stored]
        if is_held:
            require_space(scratch, int(sum(map(prepared.expected_nbytes, missing))))
        complete = None if is_held else partial(make_upload, journal, has_own_disk=not engine.is_local)
        schedule = write_shards(prepared, local, missing, engine, progress, complete=complete, watch=journal.note_done)
        if schedule.bad and options.on_bad == "fail" and not schedule.results and not stored:
            journal.remove()
        refuse_bad(prepared, schedule)
        found = {**stored, **schedule.results}
        results = {name: found[name] for name in names}
        report = conclude(prepared, results, len(stored))
        report.seconds = time.monotonic() - started
        finish_in_store(prepared, journal, local, results, report, replaces)
        return report


def clean_store(target: Target) -> list[str]:
    """Remove what unfinished builds left in an output: journal, shards, uploads. Return what was removed, in words."""
    with StoreJournal(target) as journal:
        old, begun = journal.load_manifest(), journal.load_plan()
        num_removed = 0
        if begun is not None:
            num_removed = journal.forget(begun, keep=[] if old is None else target.list_files(old))
        num_aborted = abort_uploads(target.folder)
    removed = [f"{num_removed} objects of an unfinished build"] if num_removed else []
    return removed + ([f"{num_aborted} unfinished uploads"] if num_aborted else [])


def _begin(
    prepared: Prepared, journal: StoreJournal, old: Manifest | None, *, can_hold: bool
) -> tuple[list[str], bool]:
    """Check that stored shards belong to this plan, and that nothing is overwritten.

    Return the addresses that the build replaces, and whether its shards must stay on the disk until all are whole.
    """
    target, options = prepared.target, prepared.options
    if old is not None and not can_hold:
        raise refuse_replacement(target)
    plan = describe_begun(prepared)
    begun = journal.load_plan()
    listed = [] if old is None else target.list_files(old)
    if begun is not None and begun.plan != plan:
        if not options.force:
            raise refuse_plan(prepared, begun.plan, {})
        journal.forget(begun, keep=listed)
        begun = None
    if begun is not None:
        with contextlib.suppress(StorageError):  # only tidy: parts that a killed run had sent
            abort_uploads(target.folder)
        return begun.replaces, old is not None
    shards = [shard.name for shard in prepared.plan.shards]
    names = [target.shard(name) for name in shards]
    names += [target.sidecar(name) for name in (FEATURES, INFO)] if not target.is_file else []
    taken = journal.find_taken(names)
    if taken and old is None and not options.force:
        raise StorageError(
            "an object exists that this build did not make",
            shard=taken[0],
            hint=Hint(Step("choose another place, or replace it: {force}", force=True)),
        )
    if taken and not can_hold:
        raise refuse_replacement(target)
    journal.save_plan(BegunBuild(plan, shards, listed))
    return listed, old is not None or bool(taken)


def refuse_replacement(target: Target) -> StorageError:
    """Return the error for a build by several machines that would replace a dataset in a store."""
    return StorageError(
        "a build by several machines cannot replace what is in a store, no disk holds all of it until it is whole",
        shard=target.out,
        hint="choose another folder, or remove the old one first",
    )


def make_upload(journal: StoreJournal, task: ShardTask | JoinTask, *, has_own_disk: bool = False) -> UploadTask:
    """Return the task that writes a shard and stores it."""
    name = os.path.basename(task.path)
    address = journal.target.shard(name)
    return UploadTask(task, address, given_options([address]), has_own_disk)


def _store_held(journal: StoreJournal, result: ShardResult, path: str) -> None:
    journal.note_done(store_shard(result, path, journal.target.shard(result.name)))


def finish_in_store(
    prepared: Prepared,
    journal: StoreJournal,
    local: Journal,
    results: Mapping[str, ShardResult],
    report: Report,
    replaces: list[str],
) -> None:
    """Store what is still on the disk, and the sidecars; the manifest last."""
    target = prepared.target
    folder = local.shards_folder(prepared.plan.hash)
    held = {name: path for name in results if os.path.exists(path := os.path.join(folder, name))}
    schema = decide_schema(prepared, results, [held.get(name) or target.shard(name) for name in results])
    dataset = describe_dataset(prepared, schema, results)
    sidecars, notes = make_texts(dataset, collect_sidecars(prepared))
    report.notes += notes
    journal.require_lease()
    if replaces:
        journal.delete([target.sidecar(MANIFEST)])  # first: what follows must not look like a complete dataset
    journal.run_all([partial(_store_held, journal, results[name], path) for name, path in held.items()])
    keep = {*map(target.shard, results), *map(index_path, map(target.shard, results))}
    journal.delete(address for address in replaces if address not in keep)
    *drafts, (manifest, _) = draft_sidecars(target, local, dataset, sidecars, report)
    journal.run_all([partial(upload_file, draft, place) for draft, place in drafts])
    journal.require_stored(results)
    with open(manifest, "rb") as file:
        etags = {name: result.etag for name, result in results.items()}
        journal.put_manifest(add_versions(file.read(), target.folder, etags))
    journal.remove()
