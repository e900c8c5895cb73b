"""Input files of a build, local or in a store: their facts, whole or in pieces, and requested ahead of their use.

Objects that cannot be read raise `OSError`, as files do, so that sources report both in the same way. A store that
cannot be reached raises `StorageError`.
"""

from __future__ import annotations

import errno
import io
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar, cast

import numpy as np

from tfrkit.errors import StorageError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.folders import FolderList
from tfrkit.storage.objects import ObjectInfo, StoreFault

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tfrkit.storage.bucket import Bucket

T = TypeVar("T")

# What is requested ahead: enough to keep the requests of a store in flight, and little enough for many workers.
_AHEAD_FILES = 64
_AHEAD_NBYTES = 64 << 20
_FRACTION = 10**9
_REASONS = {"missing": (errno.ENOENT, "No such object"), "denied": (errno.EACCES, "The store refuses access")}


class _Fetched(NamedTuple):
    """An object and its first bytes, or all of them."""

    info: ObjectInfo
    data: bytes


# Requests of `read_ahead`, by address, in the order in which they are used.
_ahead: dict[str, deque[Future[_Fetched]]] = {}
# Copies of remote files on the local disk, by address.
_copies: dict[str, str] = {}


def stamp_of(info: ObjectInfo) -> int:
    """Return what changes when an object is replaced: its mtime in ns, whose fraction is a digest of its version.

    It is in the second before the mtime, because it must not be after it: stores round times down to seconds.
    """
    fraction = 0 if info.version is None else zlib.crc32(info.version.encode()) % _FRACTION
    return max(0, info.modified_ns // _FRACTION - 1) * _FRACTION + fraction


def join_stamps(root: str, stamps: Iterable[int]) -> int:
    """Return one stamp for several files below a root: the newest mtime; of objects, with all digests added up."""
    given = list(stamps)
    if not given or not has_scheme(root):
        return max(given, default=0)
    return max(given) // _FRACTION * _FRACTION + sum(given) % _FRACTION


def stat_input(path: str) -> tuple[int, int]:
    """Return the size and the stamp of a file or an object. Raises OSError."""
    if not has_scheme(path):
        info = os.stat(path)
        return info.st_size, info.st_mtime_ns
    found = _find_info(path)
    return found.nbytes, stamp_of(found)


def forget_inputs(path: str) -> None:
    """Forget what is known of the objects below a remote address: another process may have written since."""
    if has_scheme(path):
        from tfrkit.storage.bucket import forget_known

        forget_known(path)


def read_input(path: str) -> bytes:
    """Return a file or an object, whole. Raises OSError."""
    if not has_scheme(path):
        with open(path, "rb", buffering=0) as file:
            return file.read()
    fetched = _take(path)
    if fetched is None or len(fetched.data) < fetched.info.nbytes:
        fetched = _explain(path, partial(_fetch, *_split(path), None))
    return fetched.data


def open_input(path: str) -> BinaryIO:
    """Open a file or an object to read parts of it. Raises OSError."""
    path = copy_of(path)
    return cast("BinaryIO", _RemoteFile(path)) if has_scheme(path) else open(path, "rb")


def copy_of(path: str) -> str:
    """Return the local copy of a remote file that `fetch_input` made; any other path as it is."""
    return _copies.get(path, path)


def fetch_input(path: str, folder: str) -> None:
    """Copy a remote file into a local folder, for readers that seek; `copy_of` returns the copy.

    Raises OSError; `StorageError` if the disk is full.
    """
    name = os.path.join(folder, f"input{len(_copies)}{os.path.splitext(path)[1]}")
    download_object(path, name)
    _copies[path] = name


def download_object(address: str, path: str) -> None:
    """Copy one version of an object to a local path, in blocks that are requested ahead.

    Raises OSError; `StorageError` if the disk is full.
    """
    from tfrkit.storage.base import explain_os_error
    from tfrkit.storage.local import require_space
    from tfrkit.storage.remote import RemoteReader

    found = _find_info(address)
    require_space(os.path.dirname(path), found.nbytes)
    stream = RemoteReader(address, size=found.nbytes, version=found.version).stream(0, ahead="most")
    with open(path, "wb") as file:
        while piece := stream.read(max(1, found.nbytes)):
            try:
                file.write(piece)
            except OSError as error:
                raise explain_os_error(error, path, verb="write") from None


def list_tree(root: str, wants: Callable[[str], bool]) -> dict[str, FolderList]:
    """List a remote folder and those below it whose names `wants` accepts, several at a time.

    Keys are the folders below the root, "" and "a/b/". Raises `StorageError`.
    """
    bucket, key = _split(root)
    base = f"{key.rstrip('/')}/" if key else ""
    tree: dict[str, FolderList] = {}
    level = [""]
    while level:
        below: list[str] = []
        jobs = [partial(bucket.list, base + folder) for folder in level]
        for folder, (objects, folders) in zip(level, bucket.map(jobs), strict=True):
            start = len(base) + len(folder)
            inner = [one[start:] for one in folders]
            below += [folder + name for name in inner if wants(name.rstrip("/"))]
            # A name that is empty is that of the folder itself: some programs store one.
            rows = [(os.fsencode(info.key[start:]), info.nbytes, stamp_of(info)) for info in objects]
            rows += [(os.fsencode(name), 0, 0) for name in inner]
            rows = sorted(row for row in rows if row[0])
            sizes = np.array([row[1:] for row in rows], np.int64).reshape(-1, 2)
            tree[folder] = FolderList([row[0] for row in rows], *np.ascontiguousarray(sizes.T))
        level = below
    return tree


def read_ahead(
    things: Iterable[T],
    files_of: Callable[[T], Sequence[str]],
    *,
    head_nbytes: int | None = None,
    sizes: Iterable[int] | None = None,
    stamps: Iterable[int] | None = None,
) -> Iterator[T]:
    """Yield things while the objects that the next ones are read from are requested; `head_nbytes` of each, or all.

    `sizes` bounds what is in memory. An object with another stamp than the given one was replaced: reading it
    raises OSError. Local files are read when they are used.
    """
    expected: Iterable[int | None] = stamps or repeat(None)
    rows = iter(zip(things, sizes or repeat(0), expected, strict=False))
    window: deque[tuple[T, list[str], int, int | None]] = deque()
    nbytes = 0
    try:
        while True:
            while len(window) < _AHEAD_FILES and (nbytes < _AHEAD_NBYTES or not window):
                row = next(rows, None)
                if row is None:
                    break
                thing, size, stamp = row
                addresses = [path for path in files_of(thing) if has_scheme(path)]
                for address in addresses:
                    bucket, key = _split(address)
                    _ahead.setdefault(address, deque()).append(bucket.submit(partial(_fetch, bucket, key, head_nbytes)))
                window.append((thing, addresses, size, stamp))
                nbytes += size
            if not window:
                return
            thing, addresses, size, stamp = window[0]
            if addresses and stamp is not None:
                _compare(addresses, stamp)
            yield thing
            _drop(addresses)
            window.popleft()
            nbytes -= size
    finally:
        for _, addresses, _, _ in window:
            _drop(addresses)


def _drop(addresses: Iterable[str]) -> None:
    for address in addresses:
        waiting = _ahead[address]
        waiting.popleft().cancel()
        if not waiting:
            del _ahead[address]


def _compare(addresses: Sequence[str], stamp: int) -> None:
    """Let the last of some objects fail if they are not those of a stamp; one that is missing fails by itself."""
    from concurrent.futures import Future, wait

    futures = [_ahead[address][0] for address in addresses]
    wait(futures)
    if any(future.exception() is not None for future in futures):
        return
    if sum(stamp_of(future.result().info) for future in futures) % _FRACTION != stamp % _FRACTION:
        failed: Future[_Fetched] = Future()
        failed.set_exception(OSError(errno.ESTALE, "The object was replaced since it was listed", addresses[-1]))
        _ahead[addresses[-1]][0] = failed


def _take(address: str) -> _Fetched | None:
    """Return what was requested ahead of an object, or None."""
    waiting = _ahead.get(address)
    return None if waiting is None else _explain(address, waiting[0].result)


def _find_info(address: str) -> ObjectInfo:
    fetched = _take(address)
    if fetched is not None:
        return fetched.info
    bucket, key = _split(address)
    known = bucket.known.get(key)
    return known if known is not None else _explain(address, partial(bucket.head, key))


def _fetch(bucket: Bucket, key: str, head_nbytes: int | None) -> _Fetched:
    known = bucket.known.get(key)
    if head_nbytes is None or (known is not None and known.nbytes <= head_nbytes):
        data, info = bucket.read_all(key, 1 << 62)
        return _Fetched(info, data)
    from tfrkit.storage.ranges import Range

    try:
        pieces, found = bucket.read(key, Range(0, head_nbytes), None)
    except StorageError:
        found = bucket.head(key)
        if found.nbytes:
            raise
        pieces = []  # an empty object has no range
    assert found is not None
    return _Fetched(found, b"".join(pieces))


def _explain(address: str, request: Callable[[], T]) -> T:
    """Make a request; a missing object raises OSError, as a missing file does."""
    try:
        return request()
    except StoreFault as fault:
        number, reason = _REASONS.get(fault.kind, (errno.EIO, fault.what))
        raise OSError(number, reason, address) from None


def _split(address: str) -> tuple[Bucket, str]:
    from tfrkit.storage.bucket import bucket_of

    return bucket_of(address)


class _RemoteFile(io.RawIOBase):
    """A remote object as a file: the first bytes may be here already, others are requested when they are read."""

    def __init__(self, address: str) -> None:
        from tfrkit.storage.remote import RemoteReader

        self.name = address
        fetched = _take(address)
        self._head = b"" if fetched is None else fetched.data
        info = _find_info(address)
        self._size = info.nbytes
        self._reader = RemoteReader(address, size=info.nbytes, version=info.version)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        start, stop = self._at, min(self._size, self._at + len(buffer))
        if stop <= start:
            return 0
        data = self._head[start:stop] if stop <= len(self._head) else self._reader.read_at(start, stop - start)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
