"""List a local folder."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrkit import _native
from tfrkit._types import Int64Array


class FolderList(NamedTuple):
    """Entries of a folder, sorted by name: names (folders end with "/"), sizes, mtimes (ns).

    The size is -1 for entries that are neither files nor folders, such as pipes.
    """

    names: list[bytes]
    nbytes: Int64Array
    stamps: Int64Array


def list_folder(path: str) -> FolderList:
    """List a folder; links are followed, a dangling link is listed as an empty file with mtime 0.

    Raises `OSError` if the folder cannot be read.

    Example:
        >>> list_folder("flowers").names
        [b'README.txt', b'rose/', b'tulip/']
    """
    names, nbytes, stamps = _native.list_folder(os.fsencode(path))
    listed = names.split(b"\0")
    listed.pop()
    return FolderList(listed, nbytes, stamps)
