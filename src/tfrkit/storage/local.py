"""Files on this machine, and pipes."""

from __future__ import annotations

import io
import mmap
import os
import secrets
import stat
import sys
from typing import BinaryIO

from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteSource

_PAGE = mmap.ALLOCATIONGRANULARITY


def explain_os_error(error: OSError, name: str) -> StorageError:
    """Turn an operating system's refusal into one sentence with the path in it."""
    reason = (error.strerror or str(error)).lower()
    return StorageError(f"cannot open, {reason}", shard=name)


class LocalReader:
    """A regular file, mapped: reading it costs no copy and no system call.

    A mapped file that another program shortens would kill the process on access, so readers call
    `check_unchanged` before each stretch they touch.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        try:
            self._file: BinaryIO = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise explain_os_error(error, path) from None
        try:
            info = os.fstat(self._file.fileno())
            self._map = None
            if stat.S_ISREG(info.st_mode):
                self.size: int | None = info.st_size
                if info.st_size > 0:
                    self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            elif stat.S_ISDIR(info.st_mode):
                raise StorageError("expected a file, got a folder", shard=path)
            else:
                self.size = None
        except OSError as error:
            self._file.close()
            raise explain_os_error(error, path) from None
        except StorageError:
            self._file.close()
            raise

    def span(self) -> ByteSource | None:
        if self.size is None:
            return None
        return self._map if self._map is not None else b""

    def read_at(self, offset: int, nbytes: int) -> bytes:
        if self.size is None:
            raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=self.name)
        pieces = []
        while nbytes > 0:
            piece = os.pread(self._file.fileno(), nbytes, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            nbytes -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read(self, nbytes: int) -> bytes:
        return self._file.read(nbytes) or b""

    def check_unchanged(self) -> None:
        if self._map is not None and self.size is not None and self._map.size() < self.size:
            raise StorageError(
                f"the file became shorter while it was read, {self.size} bytes at first, {self._map.size()} now",
                shard=self.name,
            )

    def descriptor(self) -> int:
        return self._file.fileno() if self._map is not None else -1

    def release(self, start: int, stop: int) -> None:
        first = -(-start // _PAGE) * _PAGE
        last = stop // _PAGE * _PAGE
        if self._map is not None and last > first:
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)

    def close(self) -> None:
        # A map with live views refuses to close; it goes with the last of them.
        self._map = None
        self._file.close()


class StdinReader:
    """Standard input, as `-`."""

    name = "-"
    size: int | None = None

    def __init__(self) -> None:
        self._file = io.FileIO(sys.stdin.fileno(), "rb", closefd=False)

    def span(self) -> ByteSource | None:
        return None

    def read_at(self, offset: int, nbytes: int) -> bytes:
        raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=self.name)

    def read(self, nbytes: int) -> bytes:
        return self._file.read(nbytes) or b""

    def descriptor(self) -> int:
        return -1

    def check_unchanged(self) -> None:
        return None

    def release(self, start: int, stop: int) -> None:
        return None

    def close(self) -> None:
        return None


class LocalWriter:
    """A file that appears whole: written under a hidden temporary name, synced, then renamed."""

    def __init__(self, path: str) -> None:
        self.name = path
        folder, base = os.path.split(path)
        self._folder = folder or "."
        # The dot keeps `train*` from matching a file that is still being written.
        self._temporary = os.path.join(self._folder, f".{base}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        if os.path.isdir(path):
            raise StorageError("expected a file, got a folder", shard=path)
        try:
            descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StorageError(f"cannot write, {reason}", shard=path) from None
        self._file: io.FileIO | None = io.FileIO(descriptor, "wb")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._file is None:
            raise ValueError(f"write to a finished file - at {self.name}")
        view = memoryview(data).cast("B")
        try:
            while len(view):
                view = view[self._file.write(view) :]
        except OSError as error:
            self._fail(error)

    def commit(self) -> None:
        if self._file is None:
            return
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._temporary, self.name)
        except OSError as error:
            self._fail(error)
        self._file = None
        self._sync_folder()

    def discard(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        try:
            os.unlink(self._temporary)
        except FileNotFoundError:
            pass

    def _fail(self, error: OSError) -> None:
        self.discard()
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"cannot write, {reason}, nothing was left behind", shard=self.name) from None

    def _sync_folder(self) -> None:
        # Without this the rename itself may be lost in a power cut. Some file systems refuse it.
        try:
            descriptor = os.open(self._folder, os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(descriptor)
        except OSError:
            pass
        finally:
            os.close(descriptor)
