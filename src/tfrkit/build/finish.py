"""The last step: shards take their places, metadata is written beside them, and the manifest makes it a dataset.

Every action here can be done twice, and the manifest comes last. Killed in between, the next run of the same command
finds the shards where they are and does the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator
from typing import Any

from tfrkit.build.journal import Journal, ShardResult, add_facts, read_marker, write_inputs_by_steps
from tfrkit.build.prepare import Prepared, rename_schema
from tfrkit.build.report import Report, write_skipped_lines
from tfrkit.build.target import Target
from tfrkit.build.tfds_files import make_tfds_files
from tfrkit.container.index import index_path
from tfrkit.container.manifest import MANIFEST_NAME, write_json, write_manifest, write_text
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.sources.base import Facts
from tfrkit.storage.sync import sync_folder
from tfrkit.storage.temporaries import move_file

INPUTS_NAME = "inputs.tsv.gz"


def decide_schema(prepared: Prepared, results: dict[str, ShardResult], folder: str) -> Schema:
    """What the records hold: as the source says after everything was read, or read off the records."""
    facts: Facts = {}
    for result in results.values():
        add_facts(facts, result.facts)
    schema = prepared.scan.schema_after(facts)
    if schema is not None:
        return rename_schema(schema, prepared.options.keys)
    # Imported here: most sources know their schema.
    from tfrkit.batches.survey import find_schema

    shards = [Shard.open(os.path.join(folder, name)) for name in results]
    try:
        return find_schema(shards, Policy())
    finally:
        for shard in shards:
            shard.close()


def finish_build(
    prepared: Prepared, journal: Journal, results: dict[str, ShardResult], report: Report, old: dict[str, Any] | None
) -> None:
    """Put everything in place; `old` is the manifest of the dataset this one replaces.

    REQUIRES: the steps of `draft_inputs` were taken.
    """
    target, plan = prepared.target, prepared.plan
    folder = journal.shards_folder(plan.hash)
    schema = decide_schema(prepared, results, folder)
    papers = _write_papers(prepared, schema, results, report)
    keep = {*results, *papers, MANIFEST_NAME}
    _remove_old(target, journal, old, keep)
    os.makedirs(os.path.join(target.folder, "_index"), exist_ok=True)
    for name in results:
        _move(index_path(os.path.join(folder, name)), index_path(target.shard(name)))
        _move(os.path.join(folder, name), _place_of(target, name))
    drafts = journal.papers_folder
    for name, text in papers.items():
        write_text(os.path.join(drafts, name), text)
    write_json(os.path.join(drafts, "report.json"), report.to_json())
    write_text(os.path.join(drafts, "skipped.jsonl"), write_skipped_lines(report.skipped))
    write_manifest(os.path.join(drafts, MANIFEST_NAME), _make_manifest(prepared, schema, results, sorted(papers)))
    _move(os.path.join(drafts, INPUTS_NAME), inputs_path(target))
    for name in [*papers, "report.json", "skipped.jsonl", MANIFEST_NAME]:
        _move(os.path.join(drafts, name), target.paper(name))
    sync_folder(target.folder)
    journal.remove()


def draft_inputs(prepared: Prepared, journal: Journal) -> Generator[None]:
    """Write the list of inputs in steps, while others write the shards."""
    path = os.path.join(journal.papers_folder, INPUTS_NAME)
    return write_inputs_by_steps(path, prepared.scan.items, stamps=False)


def recall_shards(target: Target, journal: Journal, plan_hash: str, names: list[str]) -> None:
    """Take back shards that a run put in place before it was stopped, to where the next one looks for them."""
    folder = journal.shards_folder(plan_hash)
    for name in names:
        staged, placed = os.path.join(folder, name), _place_of(target, name)
        marker = read_marker(staged)
        if marker is None:
            continue
        with contextlib.suppress(FileNotFoundError):
            if not os.path.exists(staged) and os.path.getsize(placed) == marker.nbytes:
                move_file(placed, staged)
        with contextlib.suppress(FileNotFoundError):
            if not os.path.exists(index_path(staged)):
                os.replace(index_path(target.shard(name)), index_path(staged))


def list_outputs(target: Target, manifest: dict[str, Any]) -> list[str]:
    """Every file of a dataset but its manifest, by its manifest."""
    paths = []
    for shard in manifest.get("shards", []):
        path = target.shard(os.path.basename(str(shard["name"])))
        paths += [path, index_path(path)]
    names = [*manifest.get("files", []), "report.json", "skipped.jsonl"]
    return [*paths, *(target.paper(os.path.basename(str(name))) for name in names), inputs_path(target)]


def _write_papers(
    prepared: Prepared, schema: Schema, results: dict[str, ShardResult], report: Report
) -> dict[str, str]:
    """Files beside the shards, by name: labels, and what TFDS needs."""
    papers = dict(prepared.scan.label_files)
    if prepared.target.is_file:
        return papers
    if prepared.compression != "none":
        report.notes.append(f"TFDS reads no shards compressed with {prepared.compression}; its metadata was left out")
        return papers
    splits: dict[str, list[ShardResult]] = {}
    for shard in prepared.plan.shards:
        splits.setdefault(shard.split, []).append(results[shard.name])
    try:
        features, info, labels, notes = make_tfds_files(
            prepared.target.name,
            schema,
            splits,
            description=f"Built by tfrkit from {prepared.source.kind} {prepared.source.title}",
        )
    except SchemaError as error:
        report.notes.append(f"TFDS: {error.what}; its metadata was left out")
        return papers
    report.notes += notes
    papers |= labels
    papers["features.json"] = json.dumps(features, indent=2, ensure_ascii=False) + "\n"
    papers["dataset_info.json"] = json.dumps(info, indent=2, ensure_ascii=False) + "\n"
    return papers


def _make_manifest(
    prepared: Prepared, schema: Schema, results: dict[str, ShardResult], files: list[str]
) -> dict[str, Any]:
    description = prepared.plan.description
    shards = []
    splits: dict[str, dict[str, int]] = {}
    for shard in prepared.plan.shards:
        result = results[shard.name]
        shards.append(
            {
                "name": shard.name,
                "split": shard.split,
                "records": result.num_records,
                "nbytes": result.nbytes,
                "sha256": result.sha256,
            }
        )
        split = splits.setdefault(shard.split, {"records": 0, "shards": 0, "nbytes": 0})
        split["records"] += result.num_records
        split["shards"] += 1
        split["nbytes"] += result.nbytes
    return {
        "name": prepared.target.name,
        "plan": prepared.plan.hash,
        "made_by": prepared.made_by,
        "path": prepared.source.title,
        "on_bad": prepared.options.on_bad,
        "recipe": description,
        "schema": to_json(schema),
        "splits": splits,
        "shards": shards,
        "files": files,
    }


def _remove_old(target: Target, journal: Journal, old: dict[str, Any] | None, keep: set[str]) -> None:
    """Take the replaced dataset away: its manifest first, so that what is left never looks whole.

    The list of what is to go is kept until the end, because without its manifest nobody knows it any more.
    """
    listing = os.path.join(journal.folder, "replaced.json")
    if old is not None:
        write_json(listing, list_outputs(target, old))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target.paper(MANIFEST_NAME))
    try:
        with open(listing, encoding="utf-8") as file:
            paths = json.load(file)
    except FileNotFoundError:
        return
    for path in paths:
        if os.path.basename(path) not in keep:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def inputs_path(target: Target) -> str:
    """Where the list of inputs lies."""
    return target.paper(INPUTS_NAME) if target.is_file else os.path.join(target.folder, "_index", INPUTS_NAME)


def _move(source: str, destination: str) -> None:
    # Moved by a run that was stopped just after.
    with contextlib.suppress(FileNotFoundError):
        move_file(source, destination)


def _place_of(target: Target, name: str) -> str:
    """Where the bytes of a shard go: through a link that is named as the output the file it names is written."""
    path = target.shard(name)
    return os.path.realpath(path) if target.is_file else path
