"""A folder in which processes of several machines meet: on a disk that all of them see, or in a store."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from tfrkit import _platform
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.inputs import forget_inputs, read_input
from tfrkit.storage.local import LocalWriter
from tfrkit.storage.lookup import list_names
from tfrkit.storage.temporaries import remove_tree
from tfrkit.storage.upload import Lease, LeaseHeldError, delete_objects, write_object
from tfrkit.storage.work_folder import remove_objects

_LOOK_SECONDS = 0.5


class SharedFolder:
    """Small files, inner folders and locks in a folder, which is made when it is first written to."""

    def __init__(self, path: str) -> None:
        self._is_remote = has_scheme(path)
        self.path = path.rstrip("/") if self._is_remote else os.path.abspath(path)

    def join(self, name: str) -> str:
        """Return the path of a name in the folder."""
        return f"{self.path}/{name}" if self._is_remote else os.path.join(self.path, name)

    def list(self) -> list[str]:
        """Return the names of the files, sorted."""
        try:
            return list_names(self.path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise explain_os_error(error, self.path, verb="read") from None

    def read(self, name: str) -> bytes:
        """Return a file as it is now."""
        forget_inputs(self.join(name))
        try:
            return read_input(self.join(name))
        except OSError as error:
            raise explain_os_error(error, self.join(name), verb="read") from None

    def write(self, name: str, data: bytes) -> None:
        """Write a file, which appears whole and replaces one of that name."""
        if self._is_remote:
            write_object(self.join(name), data)
            return
        self.make("")
        with LocalWriter(self.join(name)) as writer:
            writer.write(data)
            writer.commit()

    def make(self, name: str) -> str:
        """Make an inner folder unless it is there, and return its path; a store needs none."""
        if not self._is_remote:
            try:
                os.makedirs(self.join(name), exist_ok=True)
            except OSError as error:
                raise explain_os_error(error, self.join(name), verb="write") from None
        return self.join(name)

    def remove_file(self, name: str) -> None:
        """Remove a file, if it is there."""
        if self._is_remote:
            delete_objects([self.join(name)])
            return
        try:
            os.unlink(self.join(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise explain_os_error(error, self.join(name), verb="remove") from None

    def remove(self, name: str) -> None:
        """Remove an inner folder with all that is in it."""
        if self._is_remote:
            remove_objects(self.join(name))
        else:
            remove_tree(self.join(name))

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Wait for a lock, and hold it; the lock of a dead process is free."""
        if self._is_remote:
            with self._take_lease(name):
                yield
            return
        self.make("")
        try:
            descriptor = os.open(self.join(name), os.O_RDWR | os.O_CREAT | _platform.O_CLOEXEC, 0o666)
        except OSError as error:
            raise explain_os_error(error, self.join(name), verb="write") from None
        try:
            try:
                _platform.lock_file(descriptor, wait=True)
            except OSError as error:
                raise explain_os_error(error, self.join(name), verb="lock") from None
            yield
        finally:
            os.close(descriptor)

    def _take_lease(self, name: str) -> Lease:
        bucket, key = bucket_of(self.path)
        while True:
            try:
                return Lease(bucket, f"{key}/", name)
            except LeaseHeldError:
                time.sleep(_LOOK_SECONDS)
