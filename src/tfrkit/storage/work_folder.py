"""A temporary folder that all workers of a cluster see: hidden on a shared disk, or in the store of the output."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass

from tfrkit.errors import StorageError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.inputs import download_object, read_input
from tfrkit.storage.temporaries import TemporaryFolder
from tfrkit.storage.text_files import write_text
from tfrkit.storage.upload import upload_file, write_object

_FOLDER = "_build/workers-"


class WorkFolder:
    """A new folder next to or in `place`. A context manager: on exit the folder is removed."""

    def __init__(self, place: str, *, is_leased: bool = False) -> None:
        """Make the folder. In a store whose lease this process has, remove what killed runs left there."""
        self._temporary: TemporaryFolder | None = None
        if has_scheme(place):
            base = place.rstrip("/")
            self.path = f"{base}/{_FOLDER}{secrets.token_hex(8)}"
            if is_leased:
                bucket, key = bucket_of(f"{base}/_build")
                for folder in map(bucket.address_of, bucket.list(f"{key}/")[1]):
                    if folder.startswith(f"{base}/{_FOLDER}"):
                        remove_objects(folder.rstrip("/"))
            return
        try:
            self._temporary = TemporaryFolder(os.path.join(place, "workers"), make_folders=True)
        except OSError as error:
            raise explain_os_error(error, place, verb="write") from None
        self.path = os.path.abspath(self._temporary.path)

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            self._temporary.remove()
            return
        with contextlib.suppress(StorageError):  # the next run removes it
            remove_objects(self.path)


@dataclass(frozen=True)
class KeptFolder:
    """A folder with the interface of `WorkFolder` that stays: other processes need what is in it."""

    path: str

    def __enter__(self) -> KeptFolder:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def write_shared(path: str, text: str) -> None:
    """Write a small text file that workers read; it appears whole."""
    if has_scheme(path):
        write_object(path, text.encode("utf-8", "surrogateescape"))
    else:
        write_text(path, text)


def read_shared(path: str) -> str:
    """Read a small text file that `write_shared` wrote."""
    try:
        return read_input(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise explain_os_error(error, path, verb="read") from None


def put_shared(local: str, path: str) -> None:
    """Move a local file to a place that other workers see; it appears whole, and `local` is gone."""
    if has_scheme(path):
        upload_file(local, path)
        os.unlink(local)
    else:
        os.replace(local, path)


def take_shared(path: str, local: str) -> None:
    """Copy a file of a store to a local path."""
    try:
        download_object(path, local)
    except OSError as error:
        raise explain_os_error(error, path, verb="read") from None


def remove_objects(folder: str) -> None:
    """Delete all objects below a folder."""
    bucket, key = bucket_of(folder)
    waiting = [f"{key}/"]
    while waiting:
        objects, folders = bucket.list(waiting.pop())
        waiting += folders
        for info in objects:
            bucket.delete(info.key)
