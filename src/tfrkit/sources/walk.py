"""Files below a folder, for sources that take pictures as they lie there."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from tfrkit.errors import SourceError

# Names that look like a picture's. What a file really is, its first bytes tell when it is read.
# fmt: off
IMAGE_SUFFIXES = frozenset({
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".avif",
    ".heic", ".heif",
})
# fmt: on
# Left behind by file managers; nobody means them.
_LITTER = frozenset({"thumbs.db", "desktop.ini", "ehthumbs.db", "__macosx", "@eadir", "picasa.ini"})


class FoundFile(NamedTuple):
    """A file below a root: its path from there with "/" between the parts, its size, and when it was changed."""

    key: str
    nbytes: int
    stamp: int


@dataclass
class Found:
    """Files of the wanted kind, sorted by key, and how many others there were, by a word for them."""

    files: list[FoundFile] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def require_folder(root: str, what: str) -> None:
    """Raise unless `root` is a folder, with the nearest name where there is one."""
    if os.path.isdir(root):
        return
    if os.path.exists(root):
        raise SourceError(f"expected a folder of {what}, got a file", shard=root)
    raise SourceError(f"no such folder, expected one of {what}", shard=root, hint=_nearest(root))


def find_images(root: str) -> Found:
    """Every file below `root` that may be an image, by its name; links are followed, loops are not.

    Hidden files and folders are left out, and so is what file managers leave behind. A file without a suffix may be
    an image; reading it tells.
    """
    return find_files(root, IMAGE_SUFFIXES | {""})


def find_files(root: str, suffixes: Set[str]) -> Found:
    """Every file below `root` whose name ends in one of `suffixes` (lower case, with the dot), as `find_images`."""
    found = Found()
    for key, entry in _walk(root, found):
        suffix = os.path.splitext(key)[1].lower()
        if suffix not in suffixes:
            found.ignored[suffix or "without a suffix"] += 1
            continue
        try:
            info = entry.stat()
            found.files.append(FoundFile(key, info.st_size, info.st_mtime_ns))
        except OSError:
            # A link to nowhere looks like an image by its name; reading it says what is wrong with it.
            found.files.append(FoundFile(key, 0, 0))
    found.files.sort(key=lambda file: os.fsencode(file.key))
    return found


def _walk(root: str, found: Found) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(key, entry) of every file; each real folder is entered once on any way down."""
    pending: list[tuple[str, str, tuple[tuple[int, int], ...]]] = [(root, "", (_identity(root),))]
    while pending:
        folder, prefix, above = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except PermissionError:
            raise SourceError("cannot read the folder, permission denied", shard=folder) from None
        for entry in entries:
            if entry.name.lower() in _LITTER:
                found.ignored[entry.name] += 1
            elif entry.name.startswith("."):
                found.ignored["hidden"] += 1
            elif entry.is_dir():
                identity = _identity(entry.path)
                if identity in above:
                    found.notes.append(f"{prefix}{entry.name} links back to a folder above it and was not followed")
                else:
                    pending.append((entry.path, f"{prefix}{entry.name}/", (*above, identity)))
            else:
                yield prefix + entry.name, entry


def _identity(folder: str) -> tuple[int, int]:
    info = os.stat(folder)
    return info.st_dev, info.st_ino


def _nearest(path: str) -> str | None:
    import difflib

    folder, name = os.path.split(path.rstrip("/"))
    try:
        close = difflib.get_close_matches(name, os.listdir(folder or "."), n=1)
    except OSError:
        return None
    return f"did you mean {os.path.join(folder, close[0])}" if close else None


def read_file(root: str, key: str) -> bytes:
    """All bytes of a file below a root."""
    with open(os.path.join(root, key), "rb", buffering=0) as file:
        return file.read()
