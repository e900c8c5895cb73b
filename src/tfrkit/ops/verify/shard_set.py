"""Check shards as a set: none is missing, and each agrees with the manifest, TFDS's metadata and its index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._threads import map_ahead, run_ahead
from tfrkit.container.index import index_path, read_index
from tfrkit.container.locate import scan_frames
from tfrkit.container.names import SET_NUMBER, find_incomplete_sets
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.engines.base import Tick
from tfrkit.errors import StaleIndexError, StorageError
from tfrkit.ops.verify.result import ShardTally, Verification, VerifyFinding
from tfrkit.passes.shard_tasks import Workers
from tfrkit.progress import Progress
from tfrkit.sidecars.places import INFO, MANIFEST
from tfrkit.sidecars.read import SidecarProblem, Sidecars
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.digest import hash_file
from tfrkit.storage.lookup import is_file, list_names
from tfrkit.storage.resolve import open_reader

# Limit on notes about single files: more would hide the result.
_MAX_NAMED = 5


@dataclass(frozen=True)
class Asked:
    """The request of the user: a set of shards or a single file, and the folders given as a whole."""

    is_set: bool
    folders: tuple[str, ...] = ()

    def means_all_of(self, folder: str) -> bool:
        """Did the user ask for every shard in this folder?"""
        if has_scheme(folder):
            return any(f"{folder}/".startswith(f"{asked.rstrip('/')}/") for asked in self.folders)
        path = os.path.abspath(folder)
        asked = [os.path.abspath(one) for one in self.folders if not has_scheme(one)]
        return any(os.path.commonpath([path, one]) == one for one in asked)


def check_sets(
    result: Verification,
    sidecars: Sidecars,
    asked: Asked,
    *,
    sha256: bool,
    must_know: bool,
    threads: int,
    watch: Progress,
    workers: Workers | None = None,
) -> None:
    """Check the shards as a set and add the findings; `must_know` adds a note on shards without a known sha256.

    With `workers`, a cluster computes the sha256.
    """
    tallies = [tally for tally in result.shards if tally.path != "-"]
    missing = _find_listed_missing(sidecars, asked)
    result.add(VerifyFinding(path, None, None, f"listed in {MANIFEST} but missing", "set") for path in missing)
    _check_numbers(result, [*sidecars.paths, *missing], asked)
    # Indexes in a store wait for their answers, those on a disk are quick.
    is_remote = any(has_scheme(tally.path) for tally in tallies)
    checked = map_ahead(_check_index, tallies, threads=LIMITS.stream_blocks if is_remote else 1)
    for number, (tally, found) in enumerate(zip(tallies, checked, strict=True)):
        result.add(_compare_entry(tally, sidecars, number))
        result.add(found)
    result.add(_compare_tfds(tallies, sidecars))
    add_sidecar_findings(result, sidecars.check())
    _note_unlisted(result, sidecars)
    if sha256:
        known = [
            (tally, entry.sha256)
            for number, tally in enumerate(tallies)
            if (entry := sidecars.entry(number)) is not None and entry.sha256 is not None
        ]
        if must_know and len(known) < len(tallies):
            result.notes.append(f"no sha256 is known of {len(tallies) - len(known):,} of {len(tallies):,} shards")
        # A damaged shard is a finding already.
        sound = [(tally, sha) for tally, sha in known if tally.is_readable and not tally.is_damaged]
        _check_sha256(result, sound, threads, watch, workers)


def add_sidecar_findings(result: Verification, problems: Iterable[SidecarProblem]) -> None:
    """Add a finding for each problem with a sidecar, except for shards and for files that have a finding already."""
    known = {tally.path for tally in result.shards} | {finding.shard for finding in result.findings}
    result.add(VerifyFinding(path, None, None, what, "set") for path, what in problems if path not in known)


def _find_listed_missing(sidecars: Sidecars, asked: Asked) -> list[str]:
    """List missing shards of manifests: of the splits being checked, or of all splits if the folder was given."""
    if not asked.is_set:
        return []
    missing = []
    for folder in sidecars.folders:
        manifest = sidecars.folder_manifest(folder)
        if manifest is None:
            continue
        is_whole = asked.means_all_of(folder or ".")
        listed = [number for number, other in enumerate(sidecars.manifests) if other is manifest]
        splits = {entry.split for number in listed if (entry := sidecars.entry(number)) is not None}
        for name, entry in manifest.entries.items():
            path = os.path.join(folder, name)
            if (is_whole or entry.split in splits) and not (is_file(path) or os.path.exists(path)):
                missing.append(path)
    return missing


def _check_numbers(result: Verification, paths: Iterable[str], asked: Asked) -> None:
    """Check that sets named -00000-of-00012 are complete on disk, even if only some of their shards are checked."""
    named = list(paths)
    wanted = {found.name for found in find_incomplete_sets(named)}
    if not wanted:
        return
    beside = [
        os.path.join(folder, name)
        for folder in dict.fromkeys(map(os.path.dirname, named))
        for name in _list_folder(folder)
        if SET_NUMBER.search(name)
    ]
    for found in find_incomplete_sets([*named, *beside]):
        if found.name not in wanted:
            continue
        if asked.is_set:
            cause = f"{len(found.numbers)} of {found.total} shards are there, missing {found.describe_missing()}"
            result.add([VerifyFinding(found.name, None, None, cause, "set")])
        else:
            result.notes.append(str(found))


def _list_folder(folder: str) -> list[str]:
    try:
        return list_names(folder)
    except (OSError, StorageError):
        return []


def _compare_entry(tally: ShardTally, sidecars: Sidecars, number: int) -> Iterator[VerifyFinding]:
    manifest = sidecars.manifests[number]
    entry = None if manifest is None else sidecars.entry(number)
    if manifest is None or entry is None:
        return

    def finding(what: str, expected: int, got: int) -> VerifyFinding:
        cause = f"expected {expected:,} {what} as {os.path.basename(manifest.path)} says, got {got:,}"
        return VerifyFinding(tally.path, None, None, cause, "set")

    if entry.nbytes is not None and tally.nbytes is not None and tally.nbytes != entry.nbytes:
        yield finding("bytes", entry.nbytes, tally.nbytes)
    # Damage is a finding already, and the number of records after it is a guess.
    if entry.records is not None and not tally.is_damaged and tally.num_frames != entry.records:
        yield finding("records", entry.records, tally.num_frames)


def _compare_tfds(tallies: list[ShardTally], sidecars: Sidecars) -> Iterator[VerifyFinding]:
    """Compare the counts of shards that no manifest lists with shardLengths in TFDS's dataset_info.json."""
    for number, tally in enumerate(tallies):
        lengths = sidecars.tfds_lengths(number) if sidecars.manifests[number] is None else {}
        split = sidecars.split_names[number] if lengths else None
        if split is not None:
            yield from _compare_length(tally, list(lengths.get(split, [])))


def _compare_length(tally: ShardTally, lengths: list[int]) -> Iterator[VerifyFinding]:
    match = SET_NUMBER.search(os.path.basename(tally.path))
    if match is None or not lengths:
        return
    number, total = int(match[1]), int(match[2])
    if total != len(lengths):
        cause = f"expected one of {len(lengths)} shards as {INFO} says, got one of {total}"
        yield VerifyFinding(tally.path, None, None, cause, "set")
    elif number < total and not tally.is_damaged and tally.num_frames != lengths[number]:
        cause = f"expected {lengths[number]:,} records as {INFO} says, got {tally.num_frames:,}"
        yield VerifyFinding(tally.path, None, None, cause, "set")


def _check_index(tally: ShardTally) -> list[VerifyFinding]:
    """Report an index that does not match its shard; readers ignore such an index."""
    if tally.is_damaged or not tally.is_readable or tally.nbytes is None:
        return []
    reader = open_reader(tally.path)
    try:
        index = read_index(index_path(tally.path), shard=reader)
    except FileNotFoundError:
        return []
    except (StaleIndexError, StorageError) as error:
        return [VerifyFinding(tally.path, None, None, error.what, "index")]
    finally:
        reader.close()
    cause = None
    if index.num_records != tally.num_frames:
        cause = f"index lists {index.num_records:,} records, expected {tally.num_frames:,}"
    elif index.compression == "none" and not has_scheme(tally.path):
        # A forged index may lead into a payload that holds a whole frame. Headers cost little here; inflating again and
        # a request for each would not.
        with contextlib.closing(Shard.open(tally.path)) as shard:
            wrong = np.flatnonzero(index.offsets != scan_frames(shard, Policy()).offsets)
        if wrong.size:
            cause = f"index lists another place than the one of record {int(wrong[0]):,}"
    return [] if cause is None else [VerifyFinding(tally.path, None, None, cause, "index")]


def _note_unlisted(result: Verification, sidecars: Sidecars) -> None:
    """Add notes on shards that the manifest of their folder does not list."""
    unlisted = [
        path
        for path, manifest in zip(sidecars.paths, sidecars.manifests, strict=True)
        if manifest is None and sidecars.folder_manifest(os.path.dirname(path)) is not None
    ]
    for path in unlisted[:_MAX_NAMED]:
        result.notes.append(f"not listed in {MANIFEST} next to it - at {path}")
    if len(unlisted) > _MAX_NAMED:
        result.notes.append(f"not listed in {MANIFEST} next to them: {len(unlisted) - _MAX_NAMED} more")


@dataclass(frozen=True)
class HashTask:
    """Computes the sha256 of one file."""

    path: str

    def run(self, tick: Tick) -> str:
        """Return the sha256 in hex."""
        return hash_file(self.path)


def _check_sha256(
    result: Verification, known: list[tuple[ShardTally, str]], threads: int, watch: Progress, workers: Workers | None
) -> None:
    watch.begin(0, sum(tally.nbytes or 0 for tally, _ in known))
    hashed: Iterator[str]
    if workers is None:
        jobs: Iterator[Callable[[], str]] = (partial(hash_file, tally.path) for tally, _ in known)
        hashed = run_ahead(jobs, threads=threads, max_nbytes=1 << 20, size_of=len)
    else:
        hashed = workers.run([HashTask(tally.path) for tally, _ in known], lambda *_: None)
    try:
        for (tally, sha256), found in zip(known, hashed, strict=True):
            if found != sha256:
                cause = f"sha256 expected {sha256[:16]}... as {MANIFEST} says, got {found[:16]}..."
                result.add([VerifyFinding(tally.path, None, None, cause, "set")])
            watch.advance(0, tally.nbytes or 0, 0)
    finally:
        watch.end()
