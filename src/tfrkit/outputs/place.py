"""Where verbs write: nothing is replaced unasked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from tfrkit.errors import StorageError
from tfrkit.storage.base import describe_os_error


class MadeFolders:
    """Folders made for an output; those of one that did not come go again."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, folder: str) -> None:
        """Make a folder and those above it that are missing; raises `StorageError`, and then none is left."""
        missing = []
        path = os.path.abspath(folder)
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        try:
            for path in reversed(missing):
                os.mkdir(path)
                self._made.append(path)
        except OSError as error:
            self.remove()
            reason = "it is a file" if isinstance(error, FileExistsError) else describe_os_error(error)
            raise StorageError(f"cannot make a folder, {reason}", shard=path) from None

    def keep(self) -> None:
        """The output is there."""
        self._made.clear()

    def remove(self) -> None:
        """Take away what was made and not kept; a folder that somebody else uses by now stays."""
        while self._made:
            with contextlib.suppress(OSError):
                os.rmdir(self._made[-1])
            self._made.pop()


def require_output(path: str, *, sources: Iterable[str] = (), force: bool = False) -> None:
    """Raise `StorageError` where `path` must not be written: it is there already, or it is one of the sources.

    A folder is there already when something is in it. A source is never replaced, not even with `force`.
    """
    if not os.path.lexists(path):
        return
    for source in sources:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            raise StorageError("the output is one of the files to read", shard=path, hint="choose another output")
    if force or (os.path.isdir(path) and not os.listdir(path)):
        return
    raise StorageError("the output is there already", shard=path, hint="replace it: force=True")
