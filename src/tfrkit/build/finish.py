"""The last step of a build: move shards into place and write sidecars, the manifest last.

Every action is idempotent. If the process is killed, the next run of the same command finds the shards and finishes.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace

from tfrkit.build.journal import Journal, ShardResult, add_facts, read_marker, write_inputs
from tfrkit.build.prepare import Prepared
from tfrkit.build.report import Report, write_skipped_lines
from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.features.rename import rename_schema
from tfrkit.features.schema import Schema
from tfrkit.outputs.target import Target
from tfrkit.sidecars.carry import Carried, collect_carried
from tfrkit.sidecars.manifest import Manifest, NewDataset, NewShard, write_manifest, write_shard_table
from tfrkit.sidecars.places import INPUTS, MANIFEST, REPORT, SKIPPED, TABLE
from tfrkit.sidecars.write import make_texts
from tfrkit.sources.base import Facts
from tfrkit.storage.sync import sync_folder
from tfrkit.storage.temporaries import move_file
from tfrkit.storage.text_files import write_json, write_text


def decide_schema(prepared: Prepared, results: Mapping[str, ShardResult], paths: Iterable[str]) -> Schema:
    """Return the schema the source knows after everything was read, or infer it from the records at these paths."""
    facts: Facts = {}
    for result in results.values():
        add_facts(facts, result.facts)
    schema = prepared.scan.schema_after(facts)
    if schema is not None:
        return rename_schema(schema, prepared.options.keys)
    # Imported here: most sources know their schema.
    from tfrkit.batches.survey import find_schema

    shards = [Shard.open(path) for path in paths]
    try:
        return find_schema(shards, Policy(), from_all=True, sidecars=prepared.scan.sidecars)
    finally:
        for shard in shards:
            shard.close()


def finish_build(
    prepared: Prepared, journal: Journal, results: dict[str, ShardResult], report: Report, old: Manifest | None
) -> None:
    """Move all files into place; `old` is the manifest of the dataset that is replaced.

    REQUIRES: the generator of `draft_inputs` was run to its end.
    """
    target, plan = prepared.target, prepared.plan
    folder = journal.shards_folder(plan.hash)
    schema = decide_schema(prepared, results, [os.path.join(folder, name) for name in results])
    dataset = describe_dataset(prepared, schema, results)
    sidecars, notes = make_texts(dataset, collect_sidecars(prepared))
    report.notes += notes
    keep = {*results, *sidecars, MANIFEST}
    _remove_old(target, journal, old, keep)
    os.makedirs(os.path.join(target.folder, INDEX_FOLDER), exist_ok=True)
    for name in results:
        _move(index_path(os.path.join(folder, name)), index_path(target.shard(name)))
        _move(os.path.join(folder, name), place_of(target, name))
    *drafts, manifest = draft_sidecars(target, journal, dataset, sidecars, report)
    table = os.path.join(journal.sidecars_folder, os.path.basename(TABLE))
    if not target.is_file and write_shard_table(manifest[0], table):
        drafts.append((table, target.shard(TABLE)))
    for draft, place in [*drafts, manifest]:
        _move(draft, place)
    sync_folder(target.folder)
    journal.remove()


def draft_sidecars(
    target: Target, journal: Journal, dataset: NewDataset, sidecars: Mapping[str, str], report: Report
) -> list[tuple[str, str]]:
    """Write the sidecars to the staging folder; return their paths there and in the dataset, the manifest last.

    REQUIRES: the generator of `draft_inputs` was run to its end.
    """
    drafts = journal.sidecars_folder
    for name, text in sidecars.items():
        write_text(os.path.join(drafts, name), text)
    write_json(os.path.join(drafts, REPORT), report.to_json())
    write_text(os.path.join(drafts, SKIPPED), write_skipped_lines(report.skipped))
    write_manifest(os.path.join(drafts, MANIFEST), dataset.make_manifest([*sidecars]))
    places = [(os.path.join(drafts, INPUTS), target.inputs)]
    return places + [
        (os.path.join(drafts, name), target.sidecar(name)) for name in [*sidecars, REPORT, SKIPPED, MANIFEST]
    ]


def draft_inputs(prepared: Prepared, journal: Journal) -> Generator[None]:
    """Write the list of inputs in steps, while the shards are written."""
    path = os.path.join(journal.sidecars_folder, INPUTS)
    return write_inputs(path, prepared.scan.items, stamps=False)


def recall_shards(target: Target, journal: Journal, plan_hash: str, names: list[str]) -> None:
    """Move shards of an interrupted run back to the staging folder."""
    folder = journal.shards_folder(plan_hash)
    for name in names:
        staged, placed = os.path.join(folder, name), place_of(target, name)
        marker = read_marker(staged)
        if marker is None:
            continue
        with contextlib.suppress(FileNotFoundError):
            if not os.path.exists(staged) and os.path.getsize(placed) == marker.nbytes:
                move_file(placed, staged)
        with contextlib.suppress(FileNotFoundError):
            if not os.path.exists(index_path(staged)):
                os.replace(index_path(target.shard(name)), index_path(staged))


def collect_sidecars(prepared: Prepared) -> Carried:
    """Collect the sidecars that the source provides for the new records."""
    sidecars = prepared.scan.sidecars
    carried = Carried(is_new=True) if sidecars is None else collect_carried(sidecars)
    return replace(carried, labels={**carried.labels, **prepared.scan.label_files})


def describe_dataset(prepared: Prepared, schema: Schema, results: Mapping[str, ShardResult]) -> NewDataset:
    """Describe the dataset that was written."""
    is_file = prepared.target.is_file
    shards = [
        NewShard(shard.name, None if is_file else shard.split, result.num_records, result.nbytes, result.sha256)
        for shard in prepared.plan.shards
        for result in [results[shard.name]]
    ]
    return NewDataset(
        prepared.target.name,
        schema,
        prepared.compression,
        shards,
        prepared.plan.description,
        prepared.source.title,
        is_file=is_file,
        plan=prepared.plan.hash,
        more={"on_bad": prepared.options.on_bad},
    )


def _remove_old(target: Target, journal: Journal, old: Manifest | None, keep: set[str]) -> None:
    """Remove the replaced dataset, its manifest first, so that remaining files never look like a complete dataset.

    The list of files to remove is stored in the journal, because it cannot be made again without the manifest.
    """
    listing = os.path.join(journal.folder, "replaced.json")
    if old is not None:
        write_json(listing, target.list_files(old))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target.sidecar(MANIFEST))
    for path in _read_replaced(listing, target.folder):
        if os.path.basename(path) not in keep:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _read_replaced(listing: str, folder: str) -> list[str]:
    """Return the listed files, without those that lie outside of the output: the journal may be a forged one."""
    try:
        with open(listing, encoding="utf-8") as file:
            paths = json.load(file)
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    inside = os.path.realpath(folder)
    texts = [path for path in paths if isinstance(path, str) and "\0" not in path] if isinstance(paths, list) else []
    return [
        path
        for path in texts
        if os.path.realpath(os.path.dirname(path)) in (inside, os.path.join(inside, INDEX_FOLDER))
    ]


def _move(source: str, destination: str) -> None:
    # The file is missing if an interrupted run has already moved it.
    with contextlib.suppress(FileNotFoundError):
        move_file(source, destination)


def place_of(target: Target, name: str) -> str:
    """Return the target path of a shard; an output file that is a symbolic link is resolved."""
    path = target.shard(name)
    return os.path.realpath(path) if target.is_file else path
