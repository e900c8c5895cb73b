"""Durable writes: fsync of files and folders."""

from __future__ import annotations

import errno
import os

from tfrkit import _native, _platform
from tfrkit.errors import StorageError
from tfrkit.storage.base import describe_os_error

# Errors of file systems without folder sync, and of folders that cannot be opened; the disk did not fail.
_CANNOT = {
    errno.EINVAL,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EBADF,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
}
# Up to this many files are synced one by one; for more, one sync of the whole disk is faster.
_FEW_FILES = 16


def sync_folder(folder: str) -> None:
    """Make renames in a folder durable.

    Raises `StorageError` if the disk reports a failure, but not if the file system cannot sync folders.
    """
    try:
        sync_path(folder)
    except OSError as error:
        if error.errno in _CANNOT:
            return
        raise _explain(error, folder) from None


def sync_tree(root: str, name: str) -> None:
    """Make `root` and all files and folders below it durable; messages use `name` instead of `root`."""
    folders, files = [], []
    for parent, _, names in os.walk(root):
        folders.append(parent)
        files += [os.path.join(parent, one) for one in names]
    if len(files) > _FEW_FILES and _sync_disk(root, name):
        return
    for path in files:
        try:
            sync_path(path)
        except OSError as error:
            raise _explain(error, os.path.join(name, os.path.relpath(path, root))) from None
    for folder in folders:
        sync_folder(folder)


def _sync_disk(root: str, name: str) -> bool:
    """Sync the whole disk of `root`; return False if not supported."""
    descriptor = os.open(root, os.O_RDONLY | _platform.O_CLOEXEC)
    try:
        _native.sync_disk(descriptor)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise _explain(error, name) from None
    finally:
        os.close(descriptor)
    return True


def sync_path(path: str) -> None:
    """Make one file or folder durable; raises `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | _platform.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explain(error: OSError, name: str) -> StorageError:
    return StorageError(
        f"the disk does not confirm the write, {describe_os_error(error)}",
        shard=name,
        hint="the data may be lost in a power cut: check the disk, then write it again",
    )
