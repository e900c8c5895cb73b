"""Shards as a set: all of them there, and each as the manifest, TFDS's metadata and its index say."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tfrkit._ahead import run_ahead
from tfrkit.batches.survey import read_json
from tfrkit.build.progress import Progress
from tfrkit.container.index import index_path, read_index
from tfrkit.container.manifest import MANIFEST_NAME, read_manifest
from tfrkit.container.shards import note_missing_shards
from tfrkit.errors import ContainerError, StaleIndexError, StorageError
from tfrkit.ops.verify_result import ShardTally, Verification, VerifyFinding
from tfrkit.orders.split_names import find_splits, read_split_lengths
from tfrkit.storage.resolve import open_reader

_INFO_NAME = "dataset_info.json"
_NUMBER = re.compile(r"-(\d{5,})-of-(\d{5,})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE_NBYTES = 1 << 20
# Notes about single files: more would hide the result.
_MAX_NAMED = 5


@dataclass(frozen=True)
class Asked:
    """What the user named: a set of shards rather than one file alone, and the folders that are meant whole."""

    is_set: bool
    folders: tuple[str, ...] = ()

    def means_all_of(self, folder: str) -> bool:
        """Is every shard in this folder meant?"""
        path = os.path.abspath(folder)
        return any(os.path.commonpath([path, asked]) == asked for asked in map(os.path.abspath, self.folders))


@dataclass
class Entry:
    """What a manifest says of one shard; None where it says nothing that can be used."""

    manifest: str
    split: str | None
    records: int | None
    nbytes: int | None
    sha256: str | None


@dataclass
class Manifests:
    """The manifests beside some shards. `content` is by path, None for one that is not there or damaged."""

    content: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    findings: list[VerifyFinding] = field(default_factory=list)

    def find(self, shard_path: str) -> tuple[str, dict[str, Any]] | None:
        """The manifest that lists a shard, and where it lies: its own, or that of its folder."""
        folder, name = os.path.split(shard_path)
        for path in (
            os.path.join(folder, "_index", f"{name}.{MANIFEST_NAME}"),
            os.path.join(folder, MANIFEST_NAME),
        ):
            content = self._load(path)
            if content is not None and name in _list_shards(content):
                return path, content
        return None

    def entry(self, shard_path: str) -> Entry | None:
        """What a manifest says of a shard."""
        found = self.find(shard_path)
        if found is None:
            return None
        path, content = found
        return read_entry(path, _list_shards(content)[os.path.basename(shard_path)])

    def _load(self, path: str) -> dict[str, Any] | None:
        if path not in self.content:
            try:
                self.content[path] = read_manifest(path)
            except (ContainerError, StorageError) as error:
                self.content[path] = None
                self.findings.append(VerifyFinding(path, None, None, error.what, "set"))
        return self.content[path]


def _list_shards(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    shards = content.get("shards")
    listed = shards if isinstance(shards, list) else []
    return {shard["name"]: shard for shard in listed if isinstance(shard, dict) and isinstance(shard.get("name"), str)}


def read_entry(path: str, shard: dict[str, Any]) -> Entry:
    """One line of a manifest, with everything left out that is not what it should be."""

    def number(key: str) -> int | None:
        value = shard.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    split, sha256 = shard.get("split"), shard.get("sha256")
    return Entry(
        path,
        split if isinstance(split, str) else None,
        number("records"),
        number("nbytes"),
        sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None,
    )


def check_sets(
    result: Verification, asked: Asked, *, sha256: bool, must_know: bool, threads: int, watch: Progress
) -> None:
    """Add what is wrong with the shards as a set; with `must_know`, shards of unknown sha256 are noted."""
    tallies = [tally for tally in result.shards if tally.path != "-"]
    manifests = Manifests()
    entries = {tally.path: manifests.entry(tally.path) for tally in tallies}
    result.add(manifests.findings)
    missing = _find_listed_missing(manifests, entries, asked)
    result.add(VerifyFinding(path, None, None, f"listed in {MANIFEST_NAME} and not there", "set") for path in missing)
    _check_numbers(result, [*entries, *missing], asked)
    for tally in tallies:
        entry = entries[tally.path]
        if entry is not None:
            result.add(_compare_entry(tally, entry))
        result.add(_check_index(tally))
    result.add(_compare_tfds([tally for tally in tallies if entries[tally.path] is None]))
    _note_unlisted(result, manifests, entries)
    if sha256:
        known = [
            (tally, entry.sha256)
            for tally in tallies
            if (entry := entries[tally.path]) is not None and entry.sha256 is not None
        ]
        if must_know and len(known) < len(tallies):
            result.notes.append(f"no sha256 is known of {len(tallies) - len(known):,} of {len(tallies):,} shards")
        # Where damage was found, the answer is known.
        _check_sha256(result, [(t, sha) for t, sha in known if t.is_readable and not t.is_damaged], threads, watch)


def _find_listed_missing(manifests: Manifests, entries: dict[str, Entry | None], asked: Asked) -> list[str]:
    """Shards of a manifest that are not there: of the splits asked for, or of all where the folder was named."""
    if not asked.is_set:
        return []
    missing = []
    for path, content in list(manifests.content.items()):
        if content is None or os.path.basename(path) != MANIFEST_NAME:
            continue
        folder = os.path.dirname(path)
        splits = {entry.split for entry in entries.values() if entry is not None and entry.manifest == path}
        for name, shard in _list_shards(content).items():
            # A name out of a file is not allowed to lead out of the folder.
            shard_path = os.path.join(folder, os.path.basename(name))
            is_asked = asked.means_all_of(folder or ".") or shard.get("split") in splits
            if is_asked and not os.path.exists(shard_path):
                missing.append(shard_path)
    return missing


def _check_numbers(result: Verification, paths: Iterable[str], asked: Asked) -> None:
    """Sets named -00000-of-00012: what is not there is missing, what was not asked for is not."""
    named = list(paths)
    wanted = {_name_of_set(clause) for clause in note_missing_shards(named)}
    if not wanted:
        return
    beside = [
        os.path.join(folder, name)
        for folder in dict.fromkeys(map(os.path.dirname, named))
        for name in _list_folder(folder)
        if _NUMBER.search(name)
    ]
    for clause in note_missing_shards([*named, *beside]):
        if _name_of_set(clause) not in wanted:
            continue
        if asked.is_set:
            what = clause.partition(" - at ")[0]
            result.add([VerifyFinding(_name_of_set(clause), None, None, f"{what} are there", "set")])
        else:
            result.notes.append(clause)


def _name_of_set(clause: str) -> str:
    return clause.partition(" - at ")[2]


def _list_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder or "."))
    except OSError:
        return []


def _compare_entry(tally: ShardTally, entry: Entry) -> Iterator[VerifyFinding]:
    def finding(what: str, expected: int, got: int) -> VerifyFinding:
        cause = f"expected {expected:,} {what} as {os.path.basename(entry.manifest)} says, got {got:,}"
        return VerifyFinding(tally.path, None, None, cause, "set")

    if entry.nbytes is not None and tally.nbytes is not None and tally.nbytes != entry.nbytes:
        yield finding("bytes", entry.nbytes, tally.nbytes)
    # Damage was named already, and the number of records behind it is a guess.
    if entry.records is not None and not tally.is_damaged and tally.num_frames != entry.records:
        yield finding("records", entry.records, tally.num_frames)


def _compare_tfds(tallies: list[ShardTally]) -> Iterator[VerifyFinding]:
    """Counts of shards against shardLengths in TFDS's dataset_info.json."""
    folders: dict[str, list[ShardTally]] = {}
    for tally in tallies:
        folders.setdefault(os.path.dirname(tally.path), []).append(tally)
    for folder, inside in folders.items():
        info = read_json(os.path.join(folder, _INFO_NAME))
        lengths = read_split_lengths(info) if isinstance(info, dict) else {}
        if not lengths:
            continue
        for split, numbers in find_splits([tally.path for tally in inside], list(lengths)).items():
            for number in numbers:
                yield from _compare_length(inside[number], lengths.get(split, []))


def _compare_length(tally: ShardTally, lengths: list[int]) -> Iterator[VerifyFinding]:
    match = _NUMBER.search(os.path.basename(tally.path))
    if match is None or not lengths:
        return
    number, total = int(match[1]), int(match[2])
    if total != len(lengths):
        cause = f"expected one of {len(lengths)} shards as {_INFO_NAME} says, got one of {total}"
        yield VerifyFinding(tally.path, None, None, cause, "set")
    elif number < total and not tally.is_damaged and tally.num_frames != lengths[number]:
        cause = f"expected {lengths[number]:,} records as {_INFO_NAME} says, got {tally.num_frames:,}"
        yield VerifyFinding(tally.path, None, None, cause, "set")


def _check_index(tally: ShardTally) -> Iterator[VerifyFinding]:
    """An index that somebody made and that no longer fits: no reader uses it."""
    if tally.is_damaged or not tally.is_readable or tally.nbytes is None:
        return
    reader = open_reader(tally.path)
    try:
        index = read_index(index_path(tally.path), shard=reader)
    except FileNotFoundError:
        return
    except (StaleIndexError, StorageError) as error:
        yield VerifyFinding(tally.path, None, None, error.what, "index")
        return
    finally:
        reader.close()
    if index.num_records != tally.num_frames:
        cause = f"index lists {index.num_records:,} records, expected {tally.num_frames:,}"
        yield VerifyFinding(tally.path, None, None, cause, "index")


def _note_unlisted(result: Verification, manifests: Manifests, entries: dict[str, Entry | None]) -> None:
    """Shards that lie beside a manifest which does not know them."""
    strangers = [
        path
        for path, entry in entries.items()
        if entry is None and manifests.content.get(os.path.join(os.path.dirname(path), MANIFEST_NAME)) is not None
    ]
    for path in strangers[:_MAX_NAMED]:
        result.notes.append(f"not listed in {MANIFEST_NAME} beside it - at {path}")
    if len(strangers) > _MAX_NAMED:
        result.notes.append(f"not listed in {MANIFEST_NAME} beside them: {len(strangers) - _MAX_NAMED} more")


def _check_sha256(result: Verification, known: list[tuple[ShardTally, str]], threads: int, watch: Progress) -> None:
    watch.begin(0, sum(tally.nbytes or 0 for tally, _ in known))
    jobs: Iterator[Callable[[], str]] = (partial(hash_shard, tally.path) for tally, _ in known)
    hashed = run_ahead(jobs, threads=threads, max_nbytes=1 << 20, size_of=len)
    try:
        for (tally, sha256), found in zip(known, hashed, strict=True):
            if found != sha256:
                cause = f"sha256 expected {sha256[:16]}... as {MANIFEST_NAME} says, got {found[:16]}..."
                result.add([VerifyFinding(tally.path, None, None, cause, "set")])
            watch.advance(0, tally.nbytes or 0, 0)
    finally:
        watch.end()


def hash_shard(path: str) -> str:
    """The sha256 of a file as it is stored."""
    digest = hashlib.sha256()
    reader = open_reader(path)
    try:
        offset = 0
        while piece := reader.read_at(offset, _PIECE_NBYTES):
            digest.update(piece)
            offset += len(piece)
    finally:
        reader.close()
    return digest.hexdigest()
