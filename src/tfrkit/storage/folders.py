"""What lies in a folder of this machine, all of it at once."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfrkit import _native
from tfrkit._types import Int64Array


class FolderList(NamedTuple):
    """What lies in a folder, sorted by name: names with "/" behind those of folders, sizes, times of change (ns).

    The size of what is neither a file nor a folder, such as a pipe, is -1.
    """

    names: list[bytes]
    nbytes: Int64Array
    stamps: Int64Array


def list_folder(path: str) -> FolderList:
    """Everything in a folder; links count as what they lead to, a dangling one as an empty file with mtime 0.

    Raises `OSError` where it cannot be read.

    Example:
        >>> list_folder("flowers").names
        [b'README.txt', b'rose/', b'tulip/']
    """
    names, nbytes, stamps = _native.list_folder(os.fsencode(path))
    listed = names.split(b"\0")
    listed.pop()
    return FolderList(listed, nbytes, stamps)
