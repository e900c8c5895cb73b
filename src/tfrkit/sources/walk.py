"""Find and read files below a folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, NamedTuple, overload

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.columns import BytesColumn
from tfrkit.container.index import INDEX_FOLDER
from tfrkit.container.listed import MANIFEST
from tfrkit.errors import SourceError
from tfrkit.images.sniff import SUFFIX_FORMATS
from tfrkit.sources.base import Items, ItemsBuilder
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import describe_os_error
from tfrkit.storage.folders import FolderList, list_folder
from tfrkit.storage.git_lfs import REMEDY, describe_pointer
from tfrkit.storage.inputs import list_tree, read_input
from tfrkit.storage.lookup import can_list, is_folder, list_folders, list_names
from tfrkit.storage.resolve import suggest_path

# Suffixes of image files. The format is detected from the first bytes when a file is read.
IMAGE_SUFFIXES = frozenset(SUFFIX_FORMATS)
# Files and folders that file managers and other programs create, always ignored.
_LITTER = frozenset({b"thumbs.db", b"desktop.ini", b"ehthumbs.db", b"__macosx", b"@eadir", b"picasa.ini"})
_OWN_FOLDERS = ("_build", INDEX_FOLDER)
_SET_APART = (b".", *(name.encode() for name in _OWN_FOLDERS))


class FoundFile(NamedTuple):
    """A file below a root: its relative path with "/" as the separator, its size, and its mtime (ns)."""

    key: str
    nbytes: int
    stamp: int


class FoundFiles(Sequence[FoundFile]):
    """Files sorted by key and stored as columns: a million files take some fifty megabytes instead of three hundred."""

    def __init__(self) -> None:
        self._items = ItemsBuilder()
        self._built: Items | None = None

    def add_listed(self, folder: str, listed: FolderList, numbers: Sequence[int]) -> None:
        """Add these files of a folder, whose name ends in "/" or is empty. REQUIRES: no file was read from this yet."""
        prefix = os.fsencode(folder)
        keys = [prefix + listed.names[number] for number in numbers]
        self._items.extend(keys, listed.nbytes[numbers], listed.stamps[numbers])

    def __len__(self) -> int:
        return len(self._items)

    def each_key(self) -> Iterator[str]:
        """Iterate over the keys only."""
        keys: Iterable[bytes] = self._sorted().keys or ()
        return map(os.fsdecode, keys)

    def to_items(
        self,
        *,
        keep: np.ndarray[Any, np.dtype[np.bool_]] | None = None,
        data: BytesColumn | None = None,
        labels: Int64Array | None = None,
        splits: Int64Array | None = None,
        split_names: Sequence[str] = (),
    ) -> Items:
        """Return the files as items; `keep` selects some of the files, and `data` must follow from their names."""
        found = replace(self._sorted(), data=data, is_data_derived=True)
        items = replace(found, labels=labels, splits=splits, split_names=tuple(split_names))
        return items if keep is None or keep.all() else items.only(np.flatnonzero(keep))

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
class FilesOfKind:
    """Files of the wanted kind, sorted by key, and counts of other files by kind."""

    files: FoundFiles = field(default_factory=FoundFiles)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def require_folder(root: str, what: str) -> None:
    """Raise unless `root` is a folder; the error suggests a similar name if there is one."""
    if has_scheme(root):
        _require_remote_folder(root, what)
        return
    if os.path.isdir(root):
        return
    if os.path.exists(root):
        raise SourceError(f"expected a folder of {what}, got a file", shard=root)
    if os.path.islink(root):
        raise SourceError(f"expected a folder of {what}, got a dangling link", shard=root)
    raise SourceError(f"no such folder, expected one of {what}", shard=root, hint=suggest_path(root))


def require_file(path: str, what: str) -> None:
    """Raise unless `path` is a file on this machine; the error suggests a similar name if there is one."""
    if os.path.isfile(path):
        return
    if os.path.exists(path):
        raise SourceError(f"expected {what}, got {'a folder' if os.path.isdir(path) else 'no file'}", shard=path)
    raise SourceError(f"no such file, expected {what}", shard=path, hint=suggest_path(path))


def _require_remote_folder(root: str, what: str) -> None:
    if not can_list(root):
        raise SourceError(
            f"expected a folder of {what} in a store that lists its objects, this server does not",
            shard=root,
            hint="copy the folder here, or to s3://, gs:// or az://",
        )
    if not is_folder(root):
        raise SourceError(f"no such folder, expected one of {what}", shard=root)


def holds_outputs(folder: str, depth: int = 4) -> bool:
    """Return whether a folder holds a dataset or a build in progress, or only folders that do, up to a depth."""
    folders = list_folders(folder)
    if any(name.startswith(_OWN_FOLDERS) for name in folders):
        return True
    names = set(list_names(folder))
    if MANIFEST in names:
        return True
    if depth == 0 or not folders or not names <= set(folders):
        return False
    return all(holds_outputs(os.path.join(folder, name), depth - 1) for name in folders)


def find_images(root: str) -> FilesOfKind:
    """Find every file below `root` that may be an image, by its name; links are followed, except in loops.

    Hidden files and folders and files of file managers are left out. Files without a suffix are included, because they
    may be images.
    """
    return find_files(root, IMAGE_SUFFIXES | {""})


def find_files(root: str, suffixes: Set[str]) -> FilesOfKind:
    """Find every file below `root` with one of `suffixes` (lower case, with the dot); see `find_images`."""
    found = FilesOfKind()
    if has_scheme(root):
        tree = list_tree(root, lambda name: _name_set_apart(f"{name}/") is None)
        waiting = [_enter_folder(tree[""], "", suffixes, found)]
        while waiting:
            key = next(waiting[-1], None)
            if key is None:
                waiting.pop()
            else:
                waiting.append(_enter_folder(tree[key], key, suffixes, found))
        return found
    # A stack of folders: the subfolders that are still to be visited, and the identities of the folders above.
    pending = [(_enter_folder(_list(root, ""), "", suffixes, found), frozenset({_identity(root)}))]
    while pending:
        folders, above = pending[-1]
        key = next(folders, None)
        if key is None:
            pending.pop()
            continue
        identity = _identity(os.path.join(root, key))
        if identity in above:
            found.notes.append(f"{key[:-1]} links back to a folder above it and was not followed")
        else:
            pending.append((_enter_folder(_list(root, key), key, suffixes, found), above | {identity}))
    return found


def _list(root: str, prefix: str) -> FolderList:
    try:
        return list_folder(os.path.join(root, prefix))
    except PermissionError:
        raise SourceError("cannot read the folder, permission denied", shard=os.path.join(root, prefix)) from None


def _enter_folder(listed: FolderList, prefix: str, suffixes: Set[str], found: FilesOfKind) -> Iterator[str]:
    """Add the files of a folder and yield its subfolders, each after all files that sort before it were added."""
    chosen: list[int] = []
    is_wanted: dict[bytes, bool] = {}
    others = set(np.flatnonzero(listed.nbytes < 0).tolist())
    for number, name in enumerate(listed.names):
        is_folder = name.endswith(b"/")
        if name.startswith(_SET_APART) or name.lower().rstrip(b"/") in _LITTER:
            word = _name_set_apart(os.fsdecode(name))
            if word is not None:
                found.ignored[word] += 1
                continue
        if is_folder:
            found.files.add_listed(prefix, listed, chosen)
            chosen = []
            yield prefix + os.fsdecode(name)
            continue
        suffix = name[name.rfind(b".") :] if b"." in name else b""
        wanted = is_wanted.get(suffix)
        if wanted is None:
            wanted = is_wanted[suffix] = os.fsdecode(suffix).lower() in suffixes
        if number in others:
            # Reading a pipe could block forever.
            found.ignored["pipe or device"] += 1
        elif wanted:
            # A dangling link may have the name of an image; reading it reports the problem.
            chosen.append(number)
        else:
            found.ignored[os.fsdecode(suffix).lower() or "without a suffix"] += 1
    found.files.add_listed(prefix, listed, chosen)


def _name_set_apart(name: str) -> str | None:
    """Return the kind of an entry that is ignored because of its name; None for others."""
    bare = name.rstrip("/")
    if bare.lower().encode(errors="surrogateescape") in _LITTER:
        return bare
    if name.startswith("."):
        return "hidden"
    # A dataset may be built into a folder below its inputs.
    return f"{bare}/" if name.endswith("/") and name.startswith(_OWN_FOLDERS) else None


def _identity(folder: str) -> tuple[int, int]:
    info = os.stat(folder)
    return info.st_dev, info.st_ino


def read_file(root: str, key: str) -> bytes:
    """Read a file below a root; raises `SourceError` for a Git LFS pointer, which does not contain the data."""
    data = read_input(os.path.join(root, key))
    require_data(data)
    return data


def require_data(head: bytes) -> None:
    """Raise if the first bytes of a file are those of a Git LFS pointer."""
    pointer = describe_pointer(head)
    if pointer is not None:
        raise SourceError(f"expected data, got {pointer}; {REMEDY}")


def describe_unreadable(error: OSError, verb: str = "read") -> str:
    """Return the reason why a file cannot be read, without its path; for a dangling link, name its target."""
    path = error.filename
    target = find_dangling(path) if isinstance(error, FileNotFoundError) and isinstance(path, (str, bytes)) else None
    if target is not None:
        return describe_dangling(target)
    where = f" {path}" if isinstance(path, str) and has_scheme(path) else ""
    return f"cannot {verb}{where}, {describe_os_error(error)}"


def describe_dangling(target: str) -> str:
    """Return the error text for a dangling link."""
    return f"dangling link, to {target!r:.200}"


def find_dangling(path: str | bytes) -> str | None:
    """Return the target of a dangling link; None for any other path."""
    name = os.fsdecode(path)
    return os.readlink(name) if os.path.islink(name) and not os.path.exists(name) else None
