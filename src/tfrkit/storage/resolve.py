"""From what a user types to the files it means."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable

from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteReader, ByteWriter
from tfrkit.storage.local import LocalReader, LocalWriter, StdinReader

Address = str | bytes | os.PathLike[str]


def open_reader(path: str, *, size: int | None = None) -> ByteReader:
    """The bytes at an address; `-` is standard input. A file of a known `size` is opened when it is first used."""
    return StdinReader() if path == "-" else LocalReader(path, size=size)


def open_writer(path: str) -> ByteWriter:
    """A place for the bytes of one new shard."""
    return LocalWriter(path)


def expand_address(address: Address | Iterable[Address]) -> list[str]:
    """Paths of files and folders an address stands for: a path, a glob, or several of these.

    A path that exists is taken literally, also with `*` or `[` in its name. Globs are sorted, so the order
    of shards does not depend on the file system. Raises `StorageError` where nothing is meant by it.
    """
    if not isinstance(address, (str, bytes, os.PathLike)):
        if hasattr(address, "read"):
            raise TypeError(
                f"expected a path, a glob, a folder or a list of these, got an open file ({type(address).__name__})\n"
                "  give its name: tfrkit.open(file.name)"
            )
        if not isinstance(address, Iterable):
            raise TypeError(f"expected a path, a glob, a folder or a list of these, got {type(address).__name__}")
        paths = [path for item in address for path in expand_address(item)]
        if not paths:
            raise StorageError("expected at least one path, got an empty list")
        return paths
    path = os.fsdecode(address)
    if not path:
        raise StorageError("expected a path, got an empty one")
    if "://" in path:
        raise StorageError(f"cannot open, no storage for {path.split('://')[0]}:// addresses", shard=path)
    if path == "-" or os.path.lexists(path):
        return [path]
    if not glob.has_magic(path):
        raise StorageError("cannot open, no such file or directory", shard=path, hint=_nearby(path))
    matches = sorted(match for match in glob.glob(path, recursive=True) if not _is_sidecar_folder(match))
    if not matches:
        folder = os.path.dirname(path) or "."
        raise StorageError("no file matches", shard=path, hint=f"list what is there: ls {folder}")
    return matches


def _is_sidecar_folder(path: str) -> bool:
    """`out/*` means the shards of out, not its `_index` folder."""
    return os.path.basename(path.rstrip(os.sep)).startswith("_") and os.path.isdir(path)


def walk_folder(folder: str) -> list[str]:
    """Regular files below a folder, sorted, without hidden ones and those in `_` folders."""
    found = []
    waiting = [folder]
    while waiting:
        # What cannot be listed is passed over; a folder tells the kind of its entries, so that none is looked at.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    found.append(entry.path)
    return sorted(found)


def _nearby(path: str) -> str | None:
    import difflib

    folder = os.path.dirname(path) or "."
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    close = difflib.get_close_matches(os.path.basename(path), names, n=1)
    return f"did you mean {os.path.join(os.path.dirname(path), close[0])}" if close else None
