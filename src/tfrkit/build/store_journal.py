"""The state of a build in a remote store, so that the next run of the same command resumes it, on any machine.

    out/_build/
      lease.json           held while a build runs
      plan.json            the plan, the names of its shards, and the files that it replaces
      <shard>.done.json    a marker for each shard that is stored, with its version

Stores cannot rename, so shards have their final names from the start; the manifest makes the dataset. A shard is done
if its marker exists and the store has an object of its size and version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from tfrkit.build.journal import ShardResult, format_done, parse_done
from tfrkit.container.index import index_path
from tfrkit.errors import StorageError
from tfrkit.outputs.target import Target
from tfrkit.sidecars.manifest import Manifest, make_shard_table, read_manifest
from tfrkit.sidecars.places import MANIFEST, TABLE
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.objects import ObjectInfo
from tfrkit.storage.upload import Lease

_PLAN = "plan.json"
_DONE = ".done.json"


@dataclass(frozen=True)
class BegunBuild:
    """The stored plan of a build: its description, the names of its shards, and the addresses that it replaces."""

    plan: dict[str, Any]
    shards: list[str]
    replaces: list[str]


class StoreJournal:
    """The journal of one build in a store. As a context manager it holds the lease of the output.

    Entering raises `LeaseHeldError` if another process has the lease, and `StorageError` if the store ignores
    conditions of requests.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._bucket, key = bucket_of(target.staging)
        self._folder = f"{key}/"
        base = key.rpartition("/")[0]
        name = self._folder.removeprefix(f"{base}/") if base else self._folder
        self._lease_place = (f"{base}/" if base else "", f"{name}lease.json")
        self._lease: Lease | None = None

    def __enter__(self) -> Self:
        self._lease = Lease(self._bucket, *self._lease_place)
        return self

    def __exit__(self, *error: object) -> None:
        assert self._lease is not None
        self._lease.__exit__(*error)
        self._lease = None

    def require_lease(self) -> None:
        """Raise if another process took the output over, because this one seemed dead. REQUIRES: the lease is held."""
        assert self._lease is not None
        self._lease.require()

    def load_manifest(self) -> Manifest | None:
        """Return the manifest of the dataset that is there."""
        place = self.target.sidecar(MANIFEST)
        self._bucket.texts.pop(bucket_of(place)[1], None)  # an older one may be remembered
        return read_manifest(place)

    def load_plan(self) -> BegunBuild | None:
        """Return the build that was begun and not finished, or None."""
        stored = self._bucket.load(f"{self._folder}{_PLAN}")
        if stored is None:
            return None
        try:
            content = json.loads(stored[0])
            return BegunBuild(content["plan"], list(content["shards"]), list(content["replaces"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return BegunBuild({}, [], [])

    def save_plan(self, begun: BegunBuild) -> None:
        """Begin a build. Raises `StorageError` if another process began one."""
        text = json.dumps(vars(begun)).encode()
        if self._bucket.put(f"{self._folder}{_PLAN}", text, replaces="nothing") is None:
            raise StorageError("another process began a build meanwhile", shard=self.target.out)

    def note_done(self, result: ShardResult | None) -> None:
        """Mark a shard as done, if the result is that of a stored shard. Raises `StorageError` if the lease is lost.

        Only the process that has the lease does this: a worker that outlives it leaves no marker.
        """
        self.require_lease()
        self.put_marker(result)

    def put_marker(self, result: ShardResult | None) -> None:
        """Mark a shard as done, if the result is that of a stored shard, for one of several parts of a build."""
        if result is not None and result.is_stored:
            self._bucket.put(f"{self._folder}{result.name}{_DONE}", format_done(result))

    def find_taken(self, addresses: Iterable[str]) -> list[str]:
        """Return those of some addresses in the output folder that exist, by one listing."""
        stored = {self._bucket.address_of(key) for key in self._list(self.target.folder)}
        return [address for address in addresses if address in stored]

    def load_results(self, names: Sequence[str]) -> dict[str, ShardResult]:
        """Return the results of the shards that are done, by name."""
        listed = self._bucket.list(self._folder)[0]
        markers = {info.key[len(self._folder) :] for info in listed}
        marked = [name for name in names if f"{name}{_DONE}" in markers]
        if not marked:
            return {}
        stored = self._list(self.target.folder)
        indexes = self._list(index_path(self.target.shard("x")).rpartition("/")[0])
        jobs = [partial(self._bucket.load, f"{self._folder}{name}{_DONE}") for name in marked]
        results: dict[str, ShardResult] = {}
        for name, loaded in zip(marked, self._bucket.map(jobs), strict=True):
            result = None if loaded is None else parse_done(loaded[0])
            info = stored.get(bucket_of(self.target.shard(name))[1])
            has_index = bucket_of(index_path(self.target.shard(name)))[1] in indexes
            if result is not None and has_index and info is not None and is_same(info, result):
                results[name] = result
        return results

    def require_stored(self, results: Mapping[str, ShardResult]) -> None:
        """Raise if a shard is not in the store as this build stored it."""
        stored = self._list(self.target.folder)
        for name, result in results.items():
            info = stored.get(bucket_of(self.target.shard(name))[1])
            if info is None or not is_same(info, result):
                what = "removed" if info is None else "replaced"
                raise StorageError(
                    f"another process {what} a shard while this one wrote",
                    shard=self.target.shard(name),
                    hint="run this again when nothing else writes there",
                )

    def put_manifest(self, text: bytes) -> None:
        """Complete the dataset. Raises `StorageError` if another manifest is there."""
        self.require_lease()
        place = self.target.sidecar(MANIFEST)
        key = bucket_of(place)[1]
        table = make_shard_table(text)
        if table is not None:
            self._bucket.put(bucket_of(self.target.shard(TABLE))[1], table)
        if self._bucket.put(key, text, replaces="nothing") is None:
            there = self._bucket.load(key)
            if there is None or there[0] != text:
                raise StorageError("another process wrote its manifest first, ours was not stored", shard=place)

    def delete(self, addresses: Iterable[str]) -> None:
        """Delete objects of the output; those that are not there are no error."""
        self.run_all([partial(self._bucket.delete, bucket_of(address)[1]) for address in addresses])

    def run_all(self, jobs: Sequence[Callable[[], object]]) -> None:
        """Run jobs that each make requests to the store, several at a time."""
        for _ in self._bucket.map(jobs):
            pass

    def remove(self) -> None:
        """Remove everything but the lease, the plan last: without it the markers belong to nothing."""
        keys = [info.key for info in self._bucket.list(self._folder)[0]]
        names = [key for key in keys if key.endswith(_DONE)]
        if names or f"{self._folder}{_PLAN}" in keys:
            self.delete(map(self._bucket.address_of, names))
            self._bucket.delete(f"{self._folder}{_PLAN}")

    def forget(self, begun: BegunBuild, keep: Iterable[str]) -> int:
        """Remove an unfinished build: its shards with their indexes, except addresses to `keep`, and its journal.

        Return the number of removed objects without the journal.
        """
        shards = [self.target.shard(name) for name in begun.shards]
        mine = {*shards, *map(index_path, shards)} - set(keep)
        there = sorted(mine & {*map(self._bucket.address_of, self._list_all())})
        self.delete(there)
        self.remove()
        return len(there)

    def _list_all(self) -> Iterable[str]:
        yield from self._list(self.target.folder)
        yield from self._list(index_path(self.target.shard("x")).rpartition("/")[0])

    def _list(self, folder: str) -> dict[str, ObjectInfo]:
        key = bucket_of(folder)[1].rstrip("/")
        return {info.key: info for info in self._bucket.list(f"{key}/" if key else "")[0]}


def is_same(info: ObjectInfo, result: ShardResult) -> bool:
    """Whether a stored object is the one that a result describes; a version that one of them lacks is not compared."""
    return info.nbytes == result.nbytes and (not result.etag or info.version is None or info.version == result.etag)
