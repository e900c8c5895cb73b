"""TensorFlow's file functions, `tf.gfile` and `tf.io.gfile`, for the local file system."""

from __future__ import annotations

import functools
import glob as globbing
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tfrkit.compat.arguments import also_called
from tfrkit.compat.graph import deferrable
from tfrkit.compat.namespace import Namespace
from tfrkit.compat.op_errors import AlreadyExistsError, UnimplementedError, explain_storage_error
from tfrkit.compat.opened_file import OpenedFile
from tfrkit.compat.record_io import to_path
from tfrkit.compat.tensor import Tensor, to_bytes, to_tensor, wrap


def _explaining(function: Callable[..., Any]) -> Callable[..., Any]:
    """Raise TensorFlow's errors instead of the operating system's."""

    @functools.wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        try:
            return function(*values, **options)
        except OSError as error:
            raise explain_storage_error(error) from None

    return call


def _local(path: Any) -> str:
    found = to_path(path)
    if "://" in found:
        raise UnimplementedError(None, None, f"expected a local path, got a remote address - at {found}")
    return found


@_explaining
def open_file(name: Any, mode: str = "r") -> OpenedFile:
    """Open a file, for text or bytes depending on the mode."""
    return OpenedFile(_local(name), mode)


def exists(path: Any) -> bool:
    """Whether a file or a folder exists."""
    return os.path.exists(_local(path))


def isdir(path: Any) -> bool:
    """Whether the path is a folder."""
    return os.path.isdir(_local(path))


@_explaining
def listdir(path: Any) -> list[str]:
    """List the names in a folder, sorted."""
    return sorted(os.listdir(_local(path)))


def glob(pattern: Any) -> list[str]:
    """List paths that match a pattern or one of several, sorted."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return sorted(path for one in patterns for path in globbing.glob(_local(one)))


@_explaining
def makedirs(path: Any) -> None:
    """Make a folder and its missing parents."""
    os.makedirs(_local(path), exist_ok=True)


@_explaining
def mkdir(path: Any) -> None:
    """Make a folder."""
    os.mkdir(_local(path))


@_explaining
def remove(path: Any) -> None:
    """Remove a file."""
    os.remove(_local(path))


@_explaining
def rmtree(path: Any) -> None:
    """Remove a folder and everything in it."""
    shutil.rmtree(_local(path))


@_explaining
def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    _require_free(dst, overwrite)
    shutil.copyfile(_local(src), _local(dst))


@_explaining
def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Move a file or a folder."""
    _require_free(dst, overwrite)
    os.replace(_local(src), _local(dst))


def _require_free(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(_local(path)):
        raise AlreadyExistsError(None, None, f"file exists - at {_local(path)}")


class FileStatistics(NamedTuple):
    """Size and modification time of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


@_explaining
def stat(path: Any) -> FileStatistics:
    """Return size and modification time of a file or a folder."""
    found = os.stat(_local(path))
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(_local(path)))


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk the folders below a folder, like `os.walk`."""
    return os.walk(_local(top), topdown, onerror)


def join(path: Any, *paths: Any) -> str:
    """Join the parts of a path."""
    return os.path.join(to_path(path), *[to_path(part) for part in paths])


@deferrable
def matching_files(pattern: Any, name: Any = None) -> Tensor:
    """List paths that match a pattern or one of several, sorted, as a string tensor."""
    patterns = to_tensor(pattern).reshape(-1).tolist()
    return to_tensor([path.encode() for path in glob(patterns)], "string")


@deferrable
def read_file(filename: Any, name: Any = None) -> Tensor:
    """Read all bytes of a file as one string."""
    with open_file(filename, "rb") as file:
        return wrap(file.read())


@_explaining
def write_file(filename: Any, contents: Any, name: Any = None) -> None:
    """Write one string to a file; its folder is made if missing."""
    os.makedirs(os.path.dirname(_local(filename)) or ".", exist_ok=True)
    with open(_local(filename), "wb") as file:
        file.write(to_bytes(contents, "contents"))


_OF_FILE = also_called(filename="path")
_OF_FOLDER = also_called(dirname="path")

GFILE_1 = Namespace(
    "tf.gfile",
    Copy=also_called(oldpath="src", newpath="dst")(copy),
    DeleteRecursively=_OF_FOLDER(rmtree),
    Exists=_OF_FILE(exists),
    FastGFile=open_file,
    GFile=open_file,
    Glob=also_called(filename="pattern")(glob),
    IsDirectory=_OF_FOLDER(isdir),
    ListDirectory=_OF_FOLDER(listdir),
    MakeDirs=_OF_FOLDER(makedirs),
    MkDir=_OF_FOLDER(mkdir),
    Open=open_file,
    Remove=_OF_FILE(remove),
    Rename=also_called(oldname="src", newname="dst")(rename),
    Stat=_OF_FILE(stat),
    Walk=also_called(in_order="topdown")(walk),
)
GFILE_2 = Namespace(
    "tf.io.gfile",
    GFile=open_file,
    copy=copy,
    exists=exists,
    glob=glob,
    isdir=isdir,
    join=join,
    listdir=listdir,
    makedirs=makedirs,
    mkdir=mkdir,
    remove=remove,
    rename=rename,
    rmtree=rmtree,
    stat=stat,
    walk=walk,
)
