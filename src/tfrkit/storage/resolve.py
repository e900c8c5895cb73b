"""From an address to files."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterable

from tfrkit.errors import StorageError
from tfrkit.storage.addresses import require_local
from tfrkit.storage.base import ByteReader
from tfrkit.storage.local import LocalReader, LocalWriter, StdinReader

Address = str | bytes | os.PathLike[str]

# Minimum similarity of a typo: "trian" and "train" are at 0.8, "nope" and "note"
# at 0.75.
_NEAR = 0.78


def expand_home(path: Address) -> str:
    """A path for the system: leading `~` and `~name` are home folders, unless a file has that name.

    An address of another machine raises `RemoteAddressError`.

    Example:
        >>> expand_home(b"digits.tfrecord")
        'digits.tfrecord'
    """
    text = os.fsdecode(path)
    require_local(text)
    return os.path.expanduser(text) if text.startswith("~") and not os.path.lexists(text) else text


def open_reader(path: str, *, size: int | None = None) -> ByteReader:
    """The bytes at an address; `-` is standard input. A file of known `size` is opened on first use."""
    return StdinReader() if path == "-" else LocalReader(path, size=size)


def open_writer(path: str, *, make_folders: bool = False) -> LocalWriter:
    """A writer for one new shard."""
    return LocalWriter(path, make_folders=make_folders)


def expand_address(address: Address | Iterable[Address]) -> list[str]:
    """Paths of an address: a path, a glob, or several of these.

    A path that exists is taken literally, also with `*` or `[` in its name. Globs are sorted, so the order
    of shards does not depend on the file system. Raises `StorageError` if nothing matches.
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
    path = expand_home(address)
    if not path:
        raise StorageError("expected a path, got an empty one")
    if path == "-" or os.path.lexists(path):
        return [path]
    if not glob.has_magic(path):
        raise StorageError("cannot open, no such file or directory", shard=path, hint=suggest_path(path))
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
        # Unreadable folders are skipped; scandir returns the type of entries, so that no stat is needed.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.startswith((".", "_")):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    found.append(entry.path)
    return sorted(found)


def suggest_path(path: str) -> str | None:
    """A hint for a missing path: a file with a similar name next to it, or None."""
    folder, name = os.path.split(path.rstrip("/"))
    try:
        nearest = find_near_name(name, os.listdir(folder or "."))
    except OSError:
        return None
    return None if nearest is None else f"did you mean {os.path.join(folder, nearest)}"


def find_near_name(name: str, names: Iterable[str]) -> str | None:
    """The most similar file name, compared without suffixes, which most names share.

    Example:
        >>> find_near_name("trian.tfrecord", ["z.tfrecord", "train.tfrecord"])
        'train.tfrecord'
        >>> find_near_name("nope.tfrecord", ["z.tfrecord"]) is None
        True
    """
    import difflib

    stems: dict[str, list[str]] = {}
    for other in names:
        stems.setdefault(_stem_of(other), []).append(other)
    wanted = _stem_of(name)
    close = difflib.get_close_matches(wanted, stems, n=1, cutoff=_NEAR)
    if not close:
        return None
    # Of x.tfrecord and x.tfrecord.gz, the more similar one.
    return difflib.get_close_matches(name, stems[close[0]], n=1, cutoff=0)[0]


def _stem_of(name: str) -> str:
    return name.lstrip(".").partition(".")[0].lower() or name
