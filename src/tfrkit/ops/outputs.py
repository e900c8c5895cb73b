"""Where verbs write: nothing is replaced unasked, nothing half written is seen, no disk is filled up."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from tfrkit.errors import StorageError

# Kept free beside what is expected to be written.
_SPARE_NBYTES = 16 << 20


def require_output(path: str, *, sources: Iterable[str] = (), force: bool = False) -> None:
    """Raise `StorageError` where `path` must not be written: it is there already, or it is one of the sources.

    A folder is there already when something is in it. A source is never replaced, not even with `force`.
    """
    if not os.path.lexists(path):
        return
    for source in sources:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            raise StorageError("the output is one of the files to read", shard=path, hint="choose another name: -o")
    if force or (os.path.isdir(path) and not os.listdir(path)):
        return
    raise StorageError("the output is there already", shard=path, hint="replace it: --force (force=True)")


def require_space(path: str, nbytes: int) -> None:
    """Raise `StorageError` where the disk of `path`, which need not be there yet, has no room for so many bytes."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    if nbytes + _SPARE_NBYTES > free:
        raise StorageError(
            f"too little space, about {nbytes / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB are free", shard=path
        )
