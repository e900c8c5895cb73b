"""Git LFS pointers: a few lines of text in place of a large file until `git lfs pull`."""

from __future__ import annotations

import os
import re
from typing import Final

REMEDY: Final = "fetch the data: git lfs pull"

_START: Final = b"version https://git-lfs"
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v\d+\n(?:.*\n)*?size (\d{1,20})\n")
# The format requires pointers to be smaller than this.
_MAX_NBYTES: Final = 1024


def describe_pointer(data: bytes) -> str | None:
    """Describe a pointer by the first bytes of its file; None for other files.

    Example:
        >>> describe_pointer(b"version https://git-lfs.github.com/spec/v1\\noid sha256:4d7a\\nsize 12345\\n")
        'a Git LFS pointer to 12,345 bytes that were not downloaded'
    """
    if not data.startswith(_START):
        return None
    pointer = _POINTER.match(data[:_MAX_NBYTES])
    return f"a Git LFS pointer to {int(pointer[1]):,} bytes that were not downloaded" if pointer else None


def describe_pointer_file(path: str) -> str | None:
    """Describe the pointer at `path`; None for other files, and if it is missing or unreadable."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) >= _MAX_NBYTES:
            return None
        with open(path, "rb") as file:
            return describe_pointer(file.read(_MAX_NBYTES))
    except OSError:
        return None
