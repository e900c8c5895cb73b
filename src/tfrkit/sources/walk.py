"""Files below a folder, for sources that take pictures as they lie there."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, overload

from tfrkit.errors import SourceError
from tfrkit.sources.base import Items, ItemsBuilder

# Names that look like a picture's. What a file really is, its first bytes tell when it is read.
# fmt: off
IMAGE_SUFFIXES = frozenset({
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".avif",
    ".heic", ".heif",
})
# fmt: on
# Left behind by file managers; nobody means them.
_LITTER = frozenset({"thumbs.db", "desktop.ini", "ehthumbs.db", "__macosx", "@eadir", "picasa.ini"})
# A dataset may be built into a folder below its inputs.
_OWN_FOLDERS = ("_build", "_index")


class FoundFile(NamedTuple):
    """A file below a root: its path from there with "/" between the parts, its size, and when it was changed."""

    key: str
    nbytes: int
    stamp: int


class FoundFiles(Sequence[FoundFile]):
    """Files sorted by key, kept as columns: a folder of a million takes some fifty megabytes and not three hundred."""

    def __init__(self) -> None:
        self._items = ItemsBuilder()
        self._built: Items | None = None

    def add(self, file: FoundFile) -> None:
        """One more file, in whatever order, before any is looked at."""
        self._items.add(file.key, nbytes=file.nbytes, stamp=file.stamp)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> FoundFile: ...
    @overload
    def __getitem__(self, index: slice) -> list[FoundFile]: ...
    def __getitem__(self, index: int | slice) -> FoundFile | list[FoundFile]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        items = self._sorted()
        number = range(len(self))[index]
        nbytes = 0 if items.nbytes is None else int(items.nbytes[number])
        stamp = 0 if items.stamps is None else int(items.stamps[number])
        return FoundFile(items.key(number), nbytes, stamp)

    def __iter__(self) -> Iterator[FoundFile]:
        items = self._sorted()
        nbytes = repeat(0) if items.nbytes is None else items.nbytes.tolist()
        stamps = repeat(0) if items.stamps is None else items.stamps.tolist()
        keys: Iterable[bytes] = () if items.keys is None else items.keys
        return map(FoundFile, map(os.fsdecode, keys), nbytes, stamps)

    def _sorted(self) -> Items:
        if self._built is None:
            self._built = self._items.build()
        return self._built


@dataclass
class Found:
    """Files of the wanted kind, sorted by key, and how many others there were, by a word for them."""

    files: FoundFiles = field(default_factory=FoundFiles)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def require_folder(root: str, what: str) -> None:
    """Raise unless `root` is a folder, with the nearest name where there is one."""
    if os.path.isdir(root):
        return
    if os.path.exists(root):
        raise SourceError(f"expected a folder of {what}, got a file", shard=root)
    if os.path.islink(root):
        raise SourceError(f"expected a folder of {what}, got a link that leads nowhere", shard=root)
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
    for key in _walk(root, found):
        suffix = os.path.splitext(key)[1].lower()
        if suffix not in suffixes:
            found.ignored[suffix or "without a suffix"] += 1
            continue
        try:
            info = os.stat(os.path.join(root, key))
            if not stat.S_ISREG(info.st_mode):
                # A pipe would be waited for without end.
                found.ignored["pipe or device"] += 1
                continue
            found.files.add(FoundFile(key, info.st_size, info.st_mtime_ns))
        except OSError:
            # A link to nowhere looks like an image by its name; reading it says what is wrong with it.
            found.files.add(FoundFile(key, 0, 0))
    return found


def _walk(root: str, found: Found) -> Iterator[str]:
    """Keys of every file, sorted; each real folder is entered once on any way down."""
    identity = _identity(root)
    # Folders on the way down: what is still to come in each, and which real folders lie above.
    pending = [(iter(_list_folder(root, "", found)), frozenset({identity}))]
    while pending:
        names, above = pending[-1]
        key = next(names, None)
        if key is None:
            pending.pop()
        elif not key.endswith("/"):
            yield key
        else:
            identity = _identity(os.path.join(root, key))
            if identity in above:
                found.notes.append(f"{key[:-1]} links back to a folder above it and was not followed")
            else:
                pending.append((iter(_list_folder(root, key, found)), above | {identity}))


def _list_folder(root: str, prefix: str, found: Found) -> list[str]:
    """Keys of what lies in a folder, with "/" behind those of folders, so that sorting puts whole keys in order."""
    names = []
    try:
        with os.scandir(os.path.join(root, prefix)) as entries:
            for entry in entries:
                if entry.name.lower() in _LITTER:
                    found.ignored[entry.name] += 1
                elif entry.name.startswith("."):
                    found.ignored["hidden"] += 1
                elif entry.name.startswith(_OWN_FOLDERS) and _is_folder(entry):
                    found.ignored[f"{entry.name}/"] += 1
                else:
                    names.append(f"{prefix}{entry.name}/" if _is_folder(entry) else prefix + entry.name)
    except PermissionError:
        raise SourceError("cannot read the folder, permission denied", shard=os.path.join(root, prefix)) from None
    names.sort(key=os.fsencode)
    return names


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link to itself; reading it says what is wrong with it


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
