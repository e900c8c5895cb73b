"""Output paths of verbs: nothing is replaced without `force`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tfrkit.errors import Hint, Step, StorageError


def require_output(path: str, *, sources: Iterable[str] = (), force: bool = False) -> None:
    """Raise `StorageError` if `path` must not be written: it exists, or it is one of the sources.

    An empty folder does not count as existing. A source is never replaced, not even with `force`.
    """
    if not os.path.lexists(path):
        return
    for source in sources:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            raise StorageError("the output is one of the files to read", shard=path, hint="choose another output")
    if force or (os.path.isdir(path) and not os.listdir(path)):
        return
    raise StorageError("the output is there already", shard=path, hint=Hint(Step("replace it: {force}", force=True)))
