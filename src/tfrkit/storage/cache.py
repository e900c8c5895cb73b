"""Blocks of remote objects in a local folder of bounded size, shared by processes.

    <folder>/<hash of store, key and version>/<number of the block>     block, crc32c of the block as 4 bytes
    <folder>/.size                                                      bytes in the folder, 8 bytes

A block is written under another name and renamed, so it is there as a whole or not at all, also after kill -9. It is
dropped by unlinking: a process that reads one keeps it. `.size` is changed and blocks are dropped only with a lock on
it, which the system takes back from a process that dies; what such a process wrote and did not count is found when
blocks are dropped. A block that fails its checksum is fetched again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
from collections.abc import Iterator, Sequence

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.base import explain_os_error

_SIZE = struct.Struct("<Q")
_CRC = struct.Struct("<I")
# After dropping, this much of the limit is in use: to drop a block at a time would list the folder each time.
_KEPT_SHARE = 0.9
_PART = ".part-"


class BlockCache:
    """The cache of one store. Safe to share between threads and processes."""

    def __init__(self, folder: str, max_nbytes: int, root: str) -> None:
        least = (LIMITS.stream_blocks + 1) * LIMITS.block_nbytes
        if max_nbytes < least:
            raise StorageError(
                f"cache expected at least {least / 1e6:,.0f} MB, the size of the blocks that are read ahead, "
                f"got {max_nbytes / 1e6:,.0f} MB",
                shard=folder,
            )
        self._folder = folder
        self._max_nbytes = max_nbytes
        self._root = root
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise explain_os_error(error, folder, verb="write") from None

    def read(self, key: str, version: str, start: int, stop: int) -> bytes | None:
        """Return a whole block; None if it is not here."""
        path = self._path(key, version, start)
        try:
            with open(path, "rb") as file:
                data = file.read()
            os.utime(path)  # the block used longest ago is dropped first
        except OSError:
            return None
        if len(data) != stop - start + _CRC.size:
            return None
        block = data[: -_CRC.size]
        return block if _CRC.unpack(data[-_CRC.size :])[0] == _native.crc32c(block) else None

    def write(self, key: str, version: str, start: int, pieces: Sequence[memoryview]) -> None:
        """Keep a block. A full or broken disk is no failure of the read: the block is then not kept."""
        if start % LIMITS.block_nbytes:
            return
        block = b"".join(pieces)
        path = self._path(key, version, start)
        part = f"{path}{_PART}{os.getpid()}-{id(block)}"
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(part, "wb") as file:
                file.write(block)
                file.write(_CRC.pack(_native.crc32c(block)))
            with self._lock() as size:
                self._make_room(size, len(block))
                os.replace(part, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part)

    def _path(self, key: str, version: str, start: int) -> str:
        name = hashlib.blake2b(f"{self._root}\0{key}\0{version}".encode(), digest_size=16).hexdigest()
        return os.path.join(self._folder, name, str(start // LIMITS.block_nbytes))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[int]:
        """Yield the descriptor of `.size`, locked."""
        descriptor = os.open(os.path.join(self._folder, ".size"), os.O_RDWR | os.O_CREAT | _platform.O_CLOEXEC, 0o666)
        try:
            _platform.lock_file(descriptor, wait=True)
            yield descriptor
        finally:
            os.close(descriptor)

    def _make_room(self, descriptor: int, nbytes: int) -> None:
        """Count a new block, and drop the blocks used longest ago if there is no room. The caller holds the lock."""
        stored = _platform.read_at(descriptor, _SIZE.size, 0)
        size = (_SIZE.unpack(stored)[0] if len(stored) == _SIZE.size else self._max_nbytes) + nbytes
        if size > self._max_nbytes:
            blocks = sorted(self._list_blocks())
            size = nbytes + sum(one for _, one, _ in blocks)
            for _, one, path in blocks:
                if size <= self._max_nbytes * _KEPT_SHARE:
                    break
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.dirname(path))  # of a version of which nothing is left
                size -= one
        os.pwrite(descriptor, _SIZE.pack(size), 0)

    def _list_blocks(self) -> Iterator[tuple[float, int, str]]:
        """Yield time of last use, size and path of each block; drop parts of processes that are gone."""
        with os.scandir(self._folder) as versions:
            folders = [one.path for one in versions if one.is_dir()]
        for folder in folders:
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as blocks:
                for block in blocks:
                    found = block.stat()
                    if _PART in block.name and not _is_alive(block.name.partition(_PART)[2].partition("-")[0]):
                        os.unlink(block.path)
                    elif _PART not in block.name:
                        yield found.st_mtime, found.st_size, block.path


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
