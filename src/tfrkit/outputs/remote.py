"""Outputs in remote stores: shards and indexes first, then sidecars, the manifest last and only if there is none.

Stores cannot rename. Files are written to a local scratch folder and uploaded under their final names. Into an empty
folder each shard is uploaded, and removed from the disk, as soon as it is whole; an output that replaces another is
held on the disk until all of it is there, so that a failure leaves the old one as it was.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Sequence

from tfrkit.container.index import index_path
from tfrkit.container.names import is_shard_name
from tfrkit.errors import ContainerError, Hint, Step, StorageError
from tfrkit.outputs.target import Target
from tfrkit.sidecars.manifest import Manifest, add_versions, make_shard_table, read_manifest
from tfrkit.sidecars.places import MANIFEST, TABLE, list_own
from tfrkit.storage.addresses import normalize_address
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.local import require_space
from tfrkit.storage.objects import ObjectInfo, StoredVersion
from tfrkit.storage.temporaries import TemporaryFolder
from tfrkit.storage.upload import LEASE, Lease, delete_objects


class RemoteStaging:
    """The remote form of `Staging`, with the same interface."""

    def __init__(self, target: Target, names: Sequence[str], *, sources: Iterable[str], force: bool) -> None:
        self.target = target
        self._names = list(names)
        self._done: dict[str, str | None] = {}  # version of each uploaded object, by key
        self._is_shared = False
        self._stack = contextlib.ExitStack()
        self._bucket, key = bucket_of(target.out)
        self._base = f"{key.rpartition('/')[0]}/" if target.is_file else f"{key.rstrip('/')}/"
        self._base = self._base.lstrip("/")
        self._old: Manifest | None = None
        try:
            if not target.is_file:
                # First: what is there must not change while it is looked at.
                self._lease: Lease | None = self._stack.enter_context(Lease(self._bucket, self._base))
            else:
                self._lease = None
            self._is_fresh = self._require_output([path for path in sources if path != "-"], force)
            temporary = TemporaryFolder(os.path.join(tempfile.gettempdir(), "tfrkit-output"))
            self._stack.callback(temporary.remove)
            self.folder = temporary.path
        except OSError as error:
            self._stack.close()
            raise explain_os_error(error, tempfile.gettempdir(), verb="write") from None
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> RemoteStaging:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._is_fresh:
            shards = [self.final(name) for name in self._names] if self._is_shared else []
            # Other processes may have stored some that they did not report.
            for key in {*self._done, *(self._key_of(path) for shard in shards for path in (shard, index_path(shard)))}:
                with contextlib.suppress(StorageError):
                    self._bucket.delete(key)
        self._stack.close()

    def path(self, name: str) -> str:
        """Return the scratch path of a file."""
        return os.path.join(self.folder, name)

    def final(self, name: str) -> str:
        """Return the address of a shard."""
        return self.target.out if self.target.is_file else self.target.shard(name)

    def share_folder(self) -> str | None:
        """Return the folder where other processes may store shards; None if the output is held until it is whole."""
        self._is_shared = self._is_fresh and not self.target.is_file
        return self.target.folder if self._is_shared else None

    def note_stored(self, name: str, version: str | None, index_version: str | None) -> None:
        """Take a shard that another process stored under its final name, with its index."""
        self._done[self._key_of(self.final(name))] = version
        self._done[self._key_of(index_path(self.final(name)))] = index_version

    def require_space(self, nbytes: int) -> None:
        """Raise if the scratch folder has too little space; into an empty folder one shard is there at a time."""
        require_space(self.folder, 0 if self._is_fresh and not self.target.is_file else nbytes)

    def take(self, path: str) -> None:
        """Upload a shard that is whole, with its index, and remove it from the disk, unless the output is held back."""
        if self._is_fresh and not self.target.is_file:
            self._upload_shard(os.path.basename(path))

    def commit(self, sidecars: Sequence[str]) -> None:
        """Upload what was not yet: shards, their indexes, the named sidecars, the manifest last."""
        if self.target.is_file:
            self._commit_file(sidecars)
            return
        if not self._is_fresh:
            self._remove_old(sidecars)
        for name in self._names:
            self._upload_shard(name)
        self._require_unchanged()
        for name in sidecars:
            if name != MANIFEST:
                self._upload(self.path(name), self.target.sidecar(name))
        if MANIFEST in sidecars:
            self._require_lease()
            place = self.target.sidecar(MANIFEST)
            with open(self.path(MANIFEST), "rb") as file:
                text = add_versions(file.read(), self.target.out, self._etags)
            table = make_shard_table(text)
            if table is not None:
                self._bucket.put(self._key_of(self.target.shard(TABLE)), table)
            if self._bucket.put(self._key_of(place), text, replaces="nothing") is None:
                raise StorageError("another process wrote its manifest first, ours was not stored", shard=place)

    @property
    def _etags(self) -> dict[str, str | None]:
        return {name: self._done[self._key_of(self.final(name))] for name in self._names}

    def _commit_file(self, sidecars: Sequence[str]) -> None:
        [name] = self._names
        delete_objects(list_own(self.target.out))  # they describe the object that is replaced
        for sidecar in sidecars:
            if sidecar != MANIFEST:
                self._upload(self.path(sidecar), self.target.sidecar(sidecar))
        self._upload(index_path(self.path(name)), index_path(self.target.out))
        manifest = self._put_manifest_of_file() if MANIFEST in sidecars else None
        # In one step: it completes the output.
        self._upload(self.path(name), self.target.out)
        if manifest is not None:
            # Again, with the version that the object got. Without it, after a kill, only the size is compared.
            text, version = manifest
            key = self._key_of(self.target.sidecar(MANIFEST))
            self._bucket.put(key, add_versions(text, self.target.folder, self._etags), replaces=version)

    def _put_manifest_of_file(self) -> tuple[bytes, StoredVersion]:
        with open(self.path(MANIFEST), "rb") as file:
            text = file.read()
        key = self._key_of(self.target.sidecar(MANIFEST))
        version = self._bucket.put(key, text)
        assert version is not None
        self._done[key] = version.etag
        return text, version

    def _upload_shard(self, name: str) -> None:
        if self._key_of(self.final(name)) in self._done:
            return
        self._upload(self.path(name), self.final(name))
        self._upload(index_path(self.path(name)), index_path(self.final(name)))

    def _upload(self, path: str, address: str) -> None:
        self._require_lease()
        try:
            with open(path, "rb") as file:
                self._done[self._key_of(address)] = self._bucket.put_file(self._key_of(address), file).etag
            os.unlink(path)
        except OSError as error:
            raise explain_os_error(error, path, verb="read") from None

    def _require_lease(self) -> None:
        if self._lease is not None:
            self._lease.require()

    def _require_unchanged(self) -> None:
        """Raise if another process replaced a shard since it was uploaded."""
        stored = {info.key: info for info in self._bucket.list(self._base)[0]}
        for name in self._names:
            key = self._key_of(self.final(name))
            info, etag = stored.get(key), self._done[key]
            if info is None or (etag is not None and info.version is not None and info.version != etag):
                what = "removed" if info is None else "replaced"
                raise StorageError(f"another process {what} a shard while this one wrote", shard=self.final(name))

    def _remove_old(self, sidecars: Sequence[str]) -> None:
        """Remove the old manifest, then the old files that are not replaced."""
        self._bucket.delete(self._key_of(self.target.sidecar(MANIFEST)))
        new = {*map(self.final, self._names), *map(self.target.sidecar, sidecars)}
        new |= {index_path(self.final(name)) for name in self._names}
        if self._old is not None:
            delete_objects([path for path in self.target.list_files(self._old) if path not in new])

    def _require_output(self, sources: Sequence[str], force: bool) -> bool:
        """Raise if the output must not be written; return whether there is nothing yet."""
        out = self.target.out
        places = [normalize_address(source) for source in sources]
        if self.target.is_file:
            if normalize_address(out) in places:
                raise StorageError("the output is one of the files to read", shard=out, hint="choose another output")
            stored = {info.key for info in self._bucket.list(self._base)[0]}
            is_there = self._key_of(out) in stored
        else:
            for place in places:
                if place.startswith(f"{out.rstrip('/')}/"):
                    raise StorageError(
                        f"the output is a folder to read from, it holds {place}",
                        shard=out,
                        hint="choose another folder",
                    )
            objects, folders = self._bucket.list(self._base)
            is_there = bool(objects) or any(one != f"{self._base}{os.path.dirname(LEASE)}/" for one in folders)
            if is_there and force:
                self._look_at_old(objects)
        if is_there and not force:
            raise StorageError(
                "the output is there already", shard=out, hint=Hint(Step("replace it: {force}", force=True))
            )
        return not is_there

    def _look_at_old(self, objects: Sequence[ObjectInfo]) -> None:
        place = self.target.sidecar(MANIFEST)
        self._bucket.texts.pop(self._key_of(place), None)  # an older one may be remembered
        with contextlib.suppress(ContainerError):
            self._old = read_manifest(place)
        known = {*map(self.final, self._names), *(self.target.list_files(self._old) if self._old is not None else ())}
        for info in objects:
            address, name = self._bucket.address_of(info.key), info.key.rpartition("/")[2]
            if address not in known and is_shard_name(name):
                raise StorageError(
                    "the folder has another shard, which would become part of the dataset",
                    shard=address,
                    hint="choose another folder, or remove it",
                )

    def _key_of(self, address: str) -> str:
        return bucket_of(address)[1]
