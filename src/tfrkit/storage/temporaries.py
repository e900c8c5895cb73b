"""Hidden temporary files and folders next to an output: their names, locks, and removal if abandoned.

    .NAME.PID-HEX.tfrkit.tmp     a locked file to become NAME; or a folder
    .NAME.PID-HEX.tfrkit.lock    the lock of such a folder

A writer holds a lock (flock) on its temporary until it is in place. The system releases the lock when the process ends,
however it ends, so a temporary whose lock is free has no writer. The process id is only informative: it may be reused
or belong to another container. Locks of a network disk may be local to one machine; there a temporary is removed only
by the machine that made it, and only until its next boot: the first 8 digits of HEX identify the boot. On a file system
without locks the name lacks `.tfrkit`, and the temporary is never removed automatically.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
from functools import cache

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.base import describe_os_error

_NAME = re.compile(r"\..*\.\d+-([0-9a-f]{8})[0-9a-f]{8}\.tfrkit\.(tmp|lock)", re.DOTALL)
_FOLDER_LOCK = "lock"
_UNKNOWN_START = "0" * 8
# A name has at most 255 bytes; about 40 are added.
_MAX_BASE_NBYTES = 200
_COPY_NBYTES = 1 << 20

# Files made here and not yet placed or removed, locks of folders too, with the process that made each. A name is noted
# before its file exists: Ctrl-C may come between any two steps, before a caller knows the file or while it is removed.
_held: dict[str, int] = {}

# Earliest time of the next sweep of each folder, by the monotonic clock.
_next_sweeps: dict[str, float] = {}


class MadeFolders:
    """Folders made for an output; removed again unless they are kept."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, folder: str) -> None:
        """Make a folder and its missing parents. On failure, remove them again and raise `StorageError`."""
        missing = []
        path = os.path.abspath(folder)
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        try:
            for path in reversed(missing):
                try:
                    os.mkdir(path)
                except FileExistsError:
                    if os.path.isdir(path):
                        continue  # another process was faster
                    raise
                self._made.append(path)
        except OSError as error:
            self.remove()
            reason = "it is a file" if isinstance(error, FileExistsError) else describe_os_error(error)
            raise StorageError(f"cannot make a folder, {reason}", shard=path) from None

    def keep(self) -> None:
        """Keep the folders; call it when the output is in place."""
        self._made.clear()

    def remove(self) -> None:
        """Remove the folders unless they were kept; a folder that is not empty stays."""
        while self._made:
            with contextlib.suppress(OSError):
                os.rmdir(self._made[-1])
            self._made.pop()


class TemporaryFile:
    """A new, empty, hidden file next to `target`, open for writing. Raises `OSError`.

    Abandoned temporaries in the same folder are removed first. `make_folders` makes missing folders; they are removed
    again unless the temporary is placed or `made.keep` is called.
    """

    _ENDING = "tmp"

    def __init__(self, target: str, *, make_folders: bool = False) -> None:
        folder = os.path.dirname(target)
        self.made = MadeFolders()
        if make_folders:
            self.made.make(folder)
        try:
            sweep_folder(folder)
            self.path, self.descriptor = _create_locked(target, self._ENDING)
        except BaseException:  # Ctrl-C meanwhile, too
            self.made.remove()
            raise
        self._process = os.getpid()

    def place(self, target: str) -> None:
        """Rename the file to `target`, replacing an existing file, and close the descriptor."""
        # Rename before the lock is released, so that other processes never see it as abandoned.
        os.replace(self.path, target)
        self.made.keep()
        _held.pop(self.path, None)
        self._close()

    def remove(self) -> None:
        """Close and remove the file; no effect after it was placed or removed.

        A forked process only closes its copy of the descriptor: the file belongs to its parent.
        """
        if self.descriptor < 0:
            return
        if self._process == os.getpid():
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            _held.pop(self.path, None)
            self.made.remove()
        self._close()

    def _close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        with contextlib.suppress(OSError):  # already synced, or no longer needed
            os.close(descriptor)


class TemporaryFolder(TemporaryFile):
    """A new, empty, hidden folder next to `target`, with a lock file. Raises `OSError`.

    As a context manager it returns its path; leaving the context removes it unless it was placed.
    """

    _ENDING = _FOLDER_LOCK

    def __init__(self, target: str, *, make_folders: bool = False) -> None:
        super().__init__(target, make_folders=make_folders)
        self._lock_path, self.path = self.path, os.path.splitext(self.path)[0] + ".tmp"
        try:
            os.mkdir(self.path)
        except OSError:
            self._release()
            self.made.remove()
            raise

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def place(self, target: str) -> None:
        """Rename the folder to `target`, which must be missing or an empty folder."""
        os.rename(self.path, target)
        self.made.keep()
        self._release()

    def remove(self) -> None:
        """Remove the folder with its contents; no effect after it was placed or removed."""
        try:
            self._remove()
        except BaseException:  # Ctrl-C meanwhile
            self._remove()
            raise

    def _remove(self) -> None:
        if self.descriptor < 0:
            return
        if self._process != os.getpid():
            self._close()
            return
        remove_tree(self.path)
        if os.path.lexists(self.path):
            # Listing the folder may need a descriptor, so free ours. If the folder still remains, its lock is free now,
            # and the next writer in this place removes it.
            self._close()
            remove_tree(self.path)
        if not os.path.lexists(self.path):
            self._release()
        self.made.remove()

    def _release(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._lock_path)
        _held.pop(self._lock_path, None)
        self._close()


def make_scratch(name: str) -> TemporaryFolder:
    """Make a temporary folder in TMPDIR; the caller removes it.

    Raises `StorageError` if it cannot be created.
    """
    folder = tempfile.gettempdir()
    try:
        return TemporaryFolder(os.path.join(folder, name))
    except OSError as error:
        raise StorageError(
            f"cannot write, {describe_os_error(error)}", shard=folder, hint="name another folder: TMPDIR=/path"
        ) from None


def move_file(source: str, target: str) -> None:
    """Move a file to `target`, which may be on another disk; an existing file or link is replaced."""
    try:
        os.replace(source, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    _copy_file(source, target)
    os.unlink(source)


def link_file(source: str, target: str) -> None:
    """Give a file a second name, or copy it to a disk where that is not possible."""
    try:
        os.link(source, target)
    except OSError as error:
        if isinstance(error, (FileNotFoundError, FileExistsError)):
            raise
        _copy_file(source, target)


def _copy_file(source: str, target: str) -> None:
    temporary = TemporaryFile(target)
    try:
        with open(source, "rb") as file:
            while piece := memoryview(file.read(_COPY_NBYTES)):
                while piece:
                    piece = piece[os.write(temporary.descriptor, piece) :]
        os.fsync(temporary.descriptor)
        temporary.place(target)
    finally:
        temporary.remove()


def remove_tree(path: str) -> None:
    """Remove a folder and as much of its contents as possible, even if few descriptors are left."""
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    # Try again by path, which needs one descriptor at a time instead of three.
    for parent, folders, files in os.walk(path, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(parent, name))
        for name in folders:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(parent, name))
    with contextlib.suppress(OSError):
        os.rmdir(path)


def remove_held() -> None:
    """Remove all temporaries of this process; call it when an interrupted command has ended, and nothing writes."""
    for path in [path for path, process in list(_held.items()) if process == os.getpid()]:
        if path.endswith(f".{_FOLDER_LOCK}"):
            remove_tree(os.path.splitext(path)[0] + ".tmp")
        with contextlib.suppress(OSError):
            os.unlink(path)
        _held.pop(path, None)


def sweep_folder(folder: str) -> None:
    """Remove abandoned temporaries in a folder.

    Rate-limited, so that even with a hundred thousand shards in one folder it takes at most 1 % of the time.
    """
    folder = folder or "."
    started = time.monotonic()
    if started < _next_sweeps.get(folder, 0.0):
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return  # missing or not readable
    for name in names:
        found = _NAME.fullmatch(name) if name.startswith(".") else None
        if found is not None:
            with contextlib.suppress(OSError):
                _remove_abandoned(os.path.join(folder, name), found[1], is_lock=found[2] == _FOLDER_LOCK)
    if len(_next_sweeps) > 1000:
        _next_sweeps.clear()
    stopped = time.monotonic()
    _next_sweeps[folder] = stopped + (stopped - started) / LIMITS.sweep_share


def _remove_abandoned(path: str, start: str, *, is_lock: bool) -> None:
    """Remove a temporary file, or a lock file and its folder, if the lock is free. May raise `OSError`."""
    flags = os.O_RDWR | _platform.O_NONBLOCK | _platform.O_CLOEXEC | _platform.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except IsADirectoryError:
        _remove_folder_without_lock(path, start)
        return
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        if not _is_ours(descriptor, start):
            return
        _platform.lock_file(descriptor, wait=False)
        if not _is_at(descriptor, path):
            return  # another process just placed or removed it
        if is_lock:
            folder = os.path.splitext(path)[0] + ".tmp"
            remove_tree(folder)
            if os.path.lexists(folder):
                return
        os.unlink(path)
    finally:
        os.close(descriptor)


def _remove_folder_without_lock(path: str, start: str) -> None:
    """Remove a folder whose lock file is gone: a worker made it again after its process was killed and it was removed.

    A folder in use has its lock file from before it is made until after it is gone.
    """
    descriptor = os.open(path, os.O_RDONLY | _platform.O_CLOEXEC | _platform.O_NOFOLLOW)
    try:
        is_ours = _is_ours(descriptor, start)
    finally:
        os.close(descriptor)
    if is_ours and not os.path.lexists(f"{os.path.splitext(path)[0]}.{_FOLDER_LOCK}"):
        remove_tree(path)


def _is_ours(descriptor: int, start: str) -> bool:
    """Whether locks and folders of other machines cannot be meant: a local disk, or a name of this machine."""
    return _native.is_local_disk(descriptor) or start == _name_start() != _UNKNOWN_START


def _create_locked(target: str, ending: str) -> tuple[str, int]:
    """Create a hidden file next to `target`, locked and open for writing; return its path and descriptor."""
    folder, base = os.path.split(target)
    if len(os.fsencode(base)) > _MAX_BASE_NBYTES:
        base = os.fsencode(base)[:_MAX_BASE_NBYTES].decode("utf-8", "ignore")
    kind = f".tfrkit.{ending}"
    while True:
        name = f".{base}.{os.getpid()}-{_name_start()}{secrets.token_hex(4)}{kind}"
        path = os.path.join(folder, name)
        _held[path] = os.getpid()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _platform.O_CLOEXEC, 0o666)
        except OSError:
            del _held[path]
            raise
        if not kind.startswith(".tfrkit"):
            return path, descriptor
        try:
            _platform.lock_file(descriptor, wait=False)
            if _is_at(descriptor, path):
                return path, descriptor
        except BlockingIOError:
            pass  # a sweep in another process locked the file first and removes it
        except OSError:
            # Without locks an abandoned file cannot be detected, so choose a name that a sweep ignores.
            os.unlink(path)
            kind = f".{ending}"
        del _held[path]
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


@cache
def _name_start() -> str:
    """Return 8 hex digits that identify this boot of the machine; the same in all containers."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return hashlib.blake2b(file.read(), digest_size=4).hexdigest()
    except OSError:
        return _UNKNOWN_START
