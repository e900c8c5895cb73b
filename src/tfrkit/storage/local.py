"""Files on this machine, and pipes."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
import sys
import threading
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Self

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.addresses import refuse_windows_drive
from tfrkit.storage.base import NO_SPACE_HINT, ByteSource, LocalRanges, explain_os_error
from tfrkit.storage.forking import renew_lock_after_fork
from tfrkit.storage.sync import sync_folder
from tfrkit.storage.temporaries import TemporaryFile

# Writeback is started each time this many bytes were written.
_SEND_NBYTES = 8 << 20


class _Identity(NamedTuple):
    """Identifies a file and its version: a modified or replaced file has another identity."""

    device: int
    inode: int
    size: int
    changed_ns: int


def _check_size(name: str, identity: _Identity, info: os.stat_result) -> None:
    """Raise if an open file was truncated."""
    # A replaced file is harmless: the old file stays complete while it is mapped.
    if (info.st_dev, info.st_ino) == identity[:2] and info.st_size < identity.size:
        raise StorageError(
            f"the file became shorter while it was read, {identity.size} bytes at first, {info.st_size} now",
            shard=name,
        )


def _check_map(name: str, identity: _Identity, is_torn: bool) -> bool:
    """Raise if a mapped file was truncated; called by the core after a suspicious read.

    Returns whether the file was written to since it was mapped.
    """
    is_changed = False
    with contextlib.suppress(OSError):  # a removed file stays complete while it is mapped
        info = os.stat(name)
        _check_size(name, identity, info)
        is_changed = (info.st_dev, info.st_ino) == identity[:2] and info.st_mtime_ns != identity.changed_ns
    if is_torn:
        raise StorageError("the file cannot be read any more, a part of it was lost while it was read", shard=name)
    return is_changed


class LocalReader(LocalRanges):
    """A regular file, mapped: reads need no copy and no system call. A named pipe is read sequentially.

    The file is open only while it is in use, so a dataset may have more shards than the limit of open files: `park`
    closes the file until the next use. If the file is truncated while the core reads its map, `StorageError` is raised;
    if Python code then reads the missing bytes of a view, the process is killed.
    """

    def __init__(self, path: str, *, size: int | None = None) -> None:
        """Open the file, or open it on first use if `size` is given."""
        self.name = path
        self.size = size
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None
        self._map: _native.FileMap | None = None
        self._identity: _Identity | None = None
        renew_lock_after_fork(self)
        if size is None:
            self._open()

    def _open(self) -> BinaryIO:
        """Return the open file, reopened if parked. Call it with the lock held, or from __init__."""
        if self._file is not None:
            return self._file
        try:
            file: BinaryIO = open(self.name, "rb", buffering=0)  # noqa: SIM115 - closed by park and close
        except OSError as error:
            raise explain_os_error(error, self.name) from None
        info = os.fstat(file.fileno())
        identity = _Identity(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
        if self._identity is None and self.size in (None, identity.size):
            self._identity = identity
            self.size = info.st_size if stat.S_ISREG(info.st_mode) else None
        elif identity != self._identity:
            file.close()
            is_as_large = info.st_size == self.size
            how = "with the same size" if is_as_large else f"{self.size} bytes at first, {info.st_size} now"
            raise StorageError(
                f"the file changed since it was opened, {how}",
                shard=self.name,
                hint="another process changed it meanwhile; run this again",
            )
        self._file = file
        return file

    def span(self) -> ByteSource | None:
        if self.size is None:
            return None
        if self.size == 0:
            return b""
        with self._lock:
            if self._map is None:
                file = self._open()
                assert self._identity is not None
                try:
                    self._map = _native.FileMap(
                        file.fileno(), self.size, partial(_check_map, self.name, self._identity)
                    )
                except (OSError, ValueError) as error:  # ValueError: it was truncated just now
                    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                        raise MemoryError(f"out of memory, cannot map {self.size} bytes - at {self.name}") from None
                    raise StorageError(f"cannot map, {str(error).lower()}", shard=self.name) from None
            return self._map

    def descriptor(self) -> int:
        if not self.size:
            return -1
        with self._lock:
            return self._open().fileno()

    def read_at(self, offset: int, nbytes: int) -> bytes:
        if self.size is None:
            raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=self.name)
        pieces = []
        with self._lock:
            descriptor = self._open().fileno()
            while nbytes > 0:
                try:
                    piece = _platform.read_at(descriptor, nbytes, offset)
                except OSError as error:
                    raise explain_os_error(error, self.name, verb="read") from None
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                nbytes -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read(self, nbytes: int) -> bytes:
        file = self._open()
        try:
            return file.read(nbytes) or b""
        except OSError as error:
            raise explain_os_error(error, self.name, verb="read") from None

    def check_unchanged(self) -> None:
        if self.size is None or self._identity is None:
            return
        # With the lock held: a descriptor closed by another thread may be reused for another file.
        with self._lock:
            try:
                info = os.stat(self.name) if self._file is None else os.fstat(self._file.fileno())
            except FileNotFoundError:
                return  # a removed file stays complete while it is mapped
        if info.st_size < self._identity.size:
            _check_size(self.name, self._identity, info)

    def release(self, start: int, stop: int) -> None:
        mapped = self._map
        if mapped is not None:
            mapped.release(start, stop)

    def park(self) -> None:
        # A pipe cannot be reopened. A map is freed with its last view.
        if self.size is not None:
            self.close()

    def close(self) -> None:
        with self._lock:
            # Drop the reference first, then close: a process forked in between must not find a closed file.
            self._map = None
            file, self._file = self._file, None
            if file is not None:
                file.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


class StdinReader(LocalRanges):
    """Standard input, as `-`."""

    name = "-"
    size: int | None = None

    def __init__(self) -> None:
        self._file = io.FileIO(sys.stdin.fileno(), "rb", closefd=False)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=self.name)

    def read(self, nbytes: int) -> bytes:
        try:
            return self._file.read(nbytes) or b""
        except OSError as error:
            raise explain_os_error(error, "standard input", verb="read") from None

    def close(self) -> None:
        return None


class LocalWriter:
    """Writes a file atomically: under a hidden temporary name, synced, then renamed.

    Leaving the context without `commit` discards the file. If the path is a link, its target is written, even if the
    target does not exist yet. `make_folders` makes missing folders; they are removed again if the file is discarded.
    Without `durable` nothing is synced: after a power cut the file may be missing or incomplete.
    """

    def __init__(self, path: str, *, make_folders: bool = False, durable: bool = True) -> None:
        self.name = path
        self._durable = durable
        require_file_place(path)
        self._target = os.path.realpath(path)
        try:
            self._temporary: TemporaryFile | None = TemporaryFile(self._target, make_folders=make_folders)
        except OSError as error:
            raise explain_os_error(error, path, verb="write") from None
        self._num_written = self._num_sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    @property
    def descriptor(self) -> int:
        """The descriptor of the temporary file; raises ValueError after `commit` or `discard`."""
        if self._temporary is None:
            raise ValueError(f"write to a finished file - at {self.name}")
        return self._temporary.descriptor

    def write(self, data: bytes | bytearray | memoryview) -> None:
        descriptor = self.descriptor
        view = memoryview(data).cast("B")
        try:
            while len(view):
                num_bytes = os.write(descriptor, view)
                self._num_written += num_bytes
                view = view[num_bytes:]
            if self._num_written - self._num_sent >= _SEND_NBYTES:
                self._send_ahead(descriptor)
        except OSError as error:
            self._fail(error)

    def _send_ahead(self, descriptor: int) -> None:
        """Start writeback early, so that the sync at the end has to wait for the last part only."""
        if hasattr(os, "posix_fadvise"):
            # Linux starts writeback of pages marked as not needed, and keeps them until it is done.
            start, stop = self._num_sent, self._num_written
            os.posix_fadvise(descriptor, start, stop - start, os.POSIX_FADV_DONTNEED)
        self._num_sent = self._num_written

    def commit(self) -> None:
        if self._temporary is None:
            return
        try:
            if self._durable:
                os.fsync(self._temporary.descriptor)
            self._temporary.place(self._target)
        except OSError as error:
            self._fail(error)
        self._temporary = None
        if self._durable:
            sync_folder(os.path.dirname(self._target) or ".")

    def discard(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            temporary.remove()

    def _fail(self, error: OSError) -> None:
        self.discard()
        raise explain_os_error(error, self.name, verb="write", more=", no partial file was left") from None


class NamedFile(io.FileIO):
    """A file that adds its name to errors: `StorageError` on writes, `OSError` on reads.

    Without it, only the error of a failed open contains the name.
    """

    def __init__(self, file: str | int, mode: str, *, shown: str, closefd: bool = True) -> None:
        super().__init__(file, mode, closefd=closefd)
        self._shown = shown

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise  # the reader closed the pipe; the disk did not fail
        except OSError as error:
            raise explain_os_error(error, self._shown, verb="write") from None

    def readinto(self, buffer: Any, /) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._shown) from None

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._shown) from None


def open_to_read(path: str) -> io.BufferedReader:
    """Open a file like `open(path, "rb")`, but errors on reads also contain the file name."""
    return io.BufferedReader(NamedFile(path, "rb", shown=path))


def require_file_place(path: str) -> None:
    """Raise `StorageError` if the path is a folder, a pipe, a device or one of Windows."""
    refuse_windows_drive(path)
    if os.path.isdir(path):
        raise StorageError("expected a file, got a folder", shard=path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise StorageError("expected a file, got a pipe or a device, which cannot be replaced", shard=path)


def require_space(path: str, nbytes: int) -> None:
    """Raise `StorageError` if the disk of `path`, which need not exist, has too little space for `nbytes`."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    size, _, free = shutil.disk_usage(folder)
    needed = nbytes + LIMITS.spare_nbytes
    # Folders that are on no disk, such as /proc, and some network disks have size 0: writing shows what they take.
    if size and needed > free:
        raise StorageError(
            f"too little space, about {needed / 1e6:,.0f} MB are needed "
            f"({LIMITS.spare_nbytes / 1e6:,.0f} of them to spare) and {free / 1e6:,.0f} MB are free",
            shard=path,
            hint=NO_SPACE_HINT,
        )
