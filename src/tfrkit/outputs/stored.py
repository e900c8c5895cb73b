"""Exported files and folders in a remote store: written to the local disk, and stored when they are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial

from tfrkit.errors import StorageError
from tfrkit.outputs.staging import StagedFile, StagedFolder
from tfrkit.outputs.target import exists_already
from tfrkit.storage.addresses import has_scheme, normalize_address
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.lookup import find_object
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.upload import upload_file


def open_folder(path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> StagedFolder:
    """Return a folder of new files, local or remote; see `StagedFolder`."""
    kind = StoredFolder if has_scheme(path) else StagedFolder
    return kind(path, sources=sources, force=force, nbytes=nbytes)


def open_file(path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> StagedFile:
    """Return one new file, local or remote; see `StagedFile`."""
    kind = StoredFile if has_scheme(path) else StagedFile
    return kind(path, sources=sources, force=force, nbytes=nbytes)


def require_free(address: str, *, sources: Sequence[str], force: bool) -> None:
    """Raise `StorageError` if an object must not be written: it exists and `force` was not given, or it is read."""
    if address in map(normalize_address, sources):
        raise StorageError("the output is one of the files to read", shard=address, hint="choose another output")
    if not force and find_object(address):
        raise exists_already(address)


class StoredFile(StagedFile):
    """The remote form of `StagedFile`."""

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        require_free(path, sources=sources, force=force)
        self._address = path
        self._scratch = make_scratch("tfrkit-output")
        self._local = os.path.join(self._scratch.path, os.path.basename(path))
        try:
            super().__init__(self._local, sources=(), force=False, nbytes=nbytes)
        except BaseException:
            self._scratch.remove()
            raise

    def commit(self) -> None:
        super().commit()
        upload_file(self._local, self._address)
        self._scratch.remove()

    def discard(self) -> None:
        super().discard()
        self._scratch.remove()


class StoredFolder(StagedFolder):
    """The remote form of `StagedFolder`. If a file cannot be stored, those before it are deleted in a new folder."""

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        self._bucket, key = bucket_of(path)
        self._key = key.rstrip("/")
        inside = f"{self._bucket.address_of(self._key)}/"
        for source in map(normalize_address, sources):
            if source.startswith(inside):
                raise StorageError("the output holds the files to read", shard=path, hint="choose another folder")
        self._is_new = not any(map(bool, self._bucket.list(f"{self._key}/" if self._key else "")))
        if not self._is_new and not force:
            raise exists_already(path)
        self._scratch = make_scratch("tfrkit-output")
        self._local = os.path.join(self._scratch.path, "out")
        try:
            super().__init__(self._local, sources=(), force=False, nbytes=nbytes)
        except BaseException:
            self._scratch.remove()
            raise
        self.name = path

    def commit(self) -> None:
        super().commit()
        names = sorted(
            os.path.relpath(os.path.join(folder, name), self._local)
            for folder, _, inside in os.walk(self._local)
            for name in inside
        )
        places = {name: self._bucket.address_of(f"{self._key}/{name}" if self._key else name) for name in names}
        jobs = [partial(upload_file, os.path.join(self._local, name), place) for name, place in places.items()]
        try:
            for _ in self._bucket.map(jobs):
                pass
        except BaseException:
            for name in names if self._is_new else ():
                with contextlib.suppress(StorageError):
                    self._bucket.delete(f"{self._key}/{name}" if self._key else name)
            raise
        finally:
            self._scratch.remove()

    def discard(self) -> None:
        super().discard()
        self._scratch.remove()
