"""Resolve addresses to files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tfrkit.errors import StorageError
from tfrkit.storage.addresses import find_windows_path, has_scheme, parse_remote, require_local, suggest_list
from tfrkit.storage.base import ByteReader, explain_os_error
from tfrkit.storage.local import LocalReader, LocalWriter, StdinReader
from tfrkit.storage.objects import Listing
from tfrkit.storage.options import StorageOptions, set_options

if TYPE_CHECKING:
    from tfrkit.storage.upload import RemoteWriter

Address = str | bytes | os.PathLike[str]

# Minimum similarity of a suggested name: "trian" and "train" have 0.8, "nope" and "note" have 0.75.
_NEAR = 0.78


def expand_home(path: Address) -> str:
    """Return a path as str with a leading `~` or `~name` replaced by the home folder, unless a file has that name.

    A remote address raises `RemoteAddressError`.

    Example:
        >>> expand_home(b"digits.tfrecord")
        'digits.tfrecord'
    """
    require_local(os.fsdecode(path))
    return show_address(path)


def show_address(path: Address) -> str:
    """Return a path like `expand_home`, and a remote address without its secrets, for paths that are only read."""
    text = os.fsdecode(path)
    remote = parse_remote(text)
    if remote is not None:
        return remote.address
    return os.path.expanduser(text) if text.startswith("~") and not os.path.lexists(text) else text


def open_reader(
    path: str, *, size: int | None = None, version: str | None = None, listing: Listing | None = None
) -> ByteReader:
    """Return a reader for a path or an address; `-` is standard input. A file of known `size` is opened on first use.

    A remote object must have this `version`; `listing` is the manifest that lists it, if nothing else is known of it.
    """
    if path == "-":
        return StdinReader()
    if has_scheme(path):
        from tfrkit.storage.remote import RemoteReader  # imported only for remote addresses

        return RemoteReader(path, size=size, version=version, listing=listing)
    return LocalReader(path, size=size)


def open_writer(path: str, *, make_folders: bool = False) -> LocalWriter | RemoteWriter:
    """Return a writer for one new file or object."""
    if has_scheme(path):
        from tfrkit.storage.upload import RemoteWriter  # imported only for remote addresses

        return RemoteWriter(path)
    return LocalWriter(path, make_folders=make_folders)


def expand_address(address: Address | Iterable[Address]) -> list[str]:
    """Return the paths of an address: a path, a glob, or several of these. Remote addresses are resolved, too.

    An existing path is taken literally, even with `*` or `[` in its name. Matches of a glob are sorted, so that the
    order of shards does not depend on the file system. Raises `StorageError` if nothing matches.
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
    path = show_address(address)
    if has_scheme(path):
        return _expand_remote(path)
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


def require_local_address(address: Address | Iterable[Address]) -> None:
    """Raise `RemoteAddressError` if one of some addresses is remote, for verbs that change or map files."""
    items = [address] if isinstance(address, (str, bytes, os.PathLike)) else address
    for item in items if isinstance(items, Sequence) else ():
        if isinstance(item, (str, bytes, os.PathLike)):
            require_local(os.fsdecode(item))


def use_options(address: Address | Iterable[Address], options: StorageOptions) -> None:
    """Use these options for the stores of the remote addresses among some addresses, from now on in this process."""
    items = [address] if isinstance(address, (str, bytes, os.PathLike)) else address
    for item in items if isinstance(items, Sequence) else ():
        remote = parse_remote(os.fsdecode(item))
        if remote is not None:
            set_options(remote.root, options)


def _expand_remote(address: str) -> list[str]:
    """Return the matches of a glob; whether another address is an object or a folder is found by reading it."""
    if not glob.has_magic(address):
        return [address]
    from tfrkit.storage.lookup import expand_remote_glob

    matches = expand_remote_glob(address)
    if not matches:
        raise StorageError("no object matches", shard=address, hint=suggest_list(address))
    return matches


def _is_sidecar_folder(path: str) -> bool:
    """Whether a path is a folder like `_index`, which the glob `out/*` should not match."""
    return os.path.basename(path.rstrip(os.sep)).startswith("_") and os.path.isdir(path)


def _is_file_or_lost(entry: os.DirEntry[str]) -> bool:
    """Whether this is a regular file, a link to one, or a link that leads nowhere."""
    if not entry.is_symlink():
        return entry.is_file()
    return os.path.isfile(entry.path) or not os.path.exists(entry.path)


def walk_folder(folder: str) -> list[str]:
    """Return the files below a folder, sorted; names that start with `.` or `_` are skipped.

    Linked folders are entered too, after all others, and no folder twice. A link that leads nowhere counts as a file,
    so that it is missed by its name. Raises `StorageError` for a folder that cannot be read.
    """
    found: list[str] = []
    folders = [folder]
    linked: list[str] = []
    seen: set[tuple[int, int]] = set()
    while folders or linked:
        place = folders.pop() if folders else linked.pop(0)
        try:
            state = os.stat(place)
            if (state.st_dev, state.st_ino) in seen:
                continue
            seen.add((state.st_dev, state.st_ino))
            # scandir returns the types of entries, so only links need a stat.
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name.startswith((".", "_")):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_symlink() and os.path.isdir(entry.path):
                        linked.append(entry.path)
                    elif _is_file_or_lost(entry):
                        found.append(entry.path)
        except OSError as error:
            raise explain_os_error(error, place, verb="read") from None
    return sorted(found)


def suggest_path(path: str) -> str | None:
    """Return a hint for a missing path, or None: a Windows path as Linux has it, or a similar file in its folder."""
    if hint := find_windows_path(path):
        return hint
    folder, name = os.path.split(path.rstrip("/"))
    try:
        nearest = find_near_name(name, os.listdir(folder or "."))
    except OSError:
        return None
    return None if nearest is None else f"did you mean {os.path.join(folder, nearest)}"


def find_near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar file name, or None. Suffixes are ignored at first, because most names share them.

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
    # Choose between files with the same stem, such as x.tfrecord and x.tfrecord.gz.
    return difflib.get_close_matches(name, stems[close[0]], n=1, cutoff=0)[0]


def _stem_of(name: str) -> str:
    return name.lstrip(".").partition(".")[0].lower() or name
