"""Shards in remote stores: read by ranges that are pinned to one version of the object."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.addresses import Remote, parse_remote
from tfrkit.storage.base import Ahead, ByteReader, ByteSource
from tfrkit.storage.bucket import Bucket, ReplacedError, explain_fault, find_bucket
from tfrkit.storage.forking import renew_lock_after_fork
from tfrkit.storage.lookup import hash_text
from tfrkit.storage.objects import Listing, ObjectInfo, StoreFault
from tfrkit.storage.pace import COUNTS
from tfrkit.storage.ranges import Range, coalesce, cut_range

if TYPE_CHECKING:
    from concurrent.futures import Future

# The first bytes are read when a shard is opened, and again to compare its index.
_HEAD_NBYTES = 4 << 10


class RemoteReader:
    """An object in a store.

    All bytes are of one version, which is known from a listing or found by the first request; an object that is
    replaced meanwhile raises `StorageError`. There is no span: streams and ranges hold the bytes they return, so
    nothing can be dropped under a reader.
    """

    is_remote = True

    def __init__(
        self, address: str, *, size: int | None = None, version: str | None = None, listing: Listing | None = None
    ) -> None:
        """Read the object at an address; without a size its facts are requested, unless a listing had them."""
        remote = parse_remote(address)
        assert remote is not None
        self._remote: Remote = remote
        self.name = remote.address
        self._lock = threading.Lock()
        renew_lock_after_fork(self)
        self._head = b""
        self._bucket: Bucket | None = None
        self._pid = 0
        self._stream: RemoteStream | None = None
        self._begun: RemoteStream | None = None  # from byte 0, requested before somebody reads it
        self._find_next: Callable[[], ByteReader | None] | None = None
        if size is None:
            info = self.bucket.known.get(remote.key) or _find_object(self.bucket, remote.key)
            size, version, listing = info.nbytes, info.version, self.bucket.listings.get(remote.key)
        self.listing = listing
        self.size: int | None = size
        self.version = version

    @property
    def bucket(self) -> Bucket:
        """The store as this process uses it; raises in a forked process that cannot use it."""
        if self._bucket is None or self._pid != os.getpid():
            self._bucket, self._pid = find_bucket(self._remote), os.getpid()
        return self._bucket

    def span(self) -> ByteSource | None:
        return None

    def descriptor(self) -> int:
        return -1

    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self.read_ranges([(offset, offset + nbytes)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]], *, fresh: bool = False) -> list[bytes]:
        """Return the bytes of several ranges [start, stop), cut at the end of the object; requested together.

        Ranges that are close become one request. `fresh` goes past the cache, and counts the bytes as fetched again.
        """
        wanted = self._clip(ranges)
        if fresh:
            COUNTS.add(fetched_again=1)
        elif wanted and wanted[0].start == 0:
            first, rest = wanted[0], ranges[1:]
            if first.stop <= len(self._head):
                return [self._head[: first.stop], *(self.read_ranges(rest) if rest else ())]
            begun = self._peek_begun()
            found = None if begun is None else begun.peek(first.stop)
            if found is not None:
                data = self._distribute([first], [first], [found], keeps_head=True)
                return [*data, *(self.read_ranges(rest) if rest else ())]
        parts = self._plan(wanted, is_many=len(wanted) > LIMITS.first_requests)
        bodies = list(self.bucket.map([partial(self._request, part, fresh=fresh) for part in parts]))
        return self._distribute(wanted, parts, bodies, keeps_head=not fresh)

    def _clip(self, ranges: Sequence[tuple[int, int]]) -> list[Range]:
        size = self.size or 0
        return [Range(min(start, size), min(stop, size)) for start, stop in ranges]

    def _plan(self, wanted: Sequence[Range], *, is_many: bool) -> list[Range]:
        """Return the requests for some ranges."""
        filled = [one for one in wanted if one.start < one.stop]
        if self.bucket.is_cached:
            filled = [self.bucket.align(one, self.size or 0) for one in filled]
        parts: list[Range] = []
        gap = LIMITS.gap_nbytes if is_many else LIMITS.wide_gap_nbytes
        for joined, _ in coalesce(filled, gap, LIMITS.block_nbytes):
            parts += cut_range(joined, in_blocks=self.bucket.is_cached)
        return parts

    def _distribute(
        self, wanted: Sequence[Range], parts: Sequence[Range], bodies: Sequence[list[memoryview]], *, keeps_head: bool
    ) -> list[bytes]:
        """Return the wanted ranges out of the bodies of requests."""
        found = [_cut(one, parts, bodies) for one in wanted]
        for one, data in zip(wanted, found, strict=True):
            if len(data) != one.stop - one.start:
                raise StorageError(f"expected {one.stop - one.start} bytes, got {len(data)}", shard=self.name)
        if keeps_head and wanted and wanted[0].start == 0 and len(found[0]) <= _HEAD_NBYTES:
            self._head = found[0]
        return found

    def _request(self, where: Range, *, fresh: bool = False) -> list[memoryview]:
        """Return the bytes of one range by one request, of the pinned version; the first request pins it."""
        version = self.version
        try:
            pieces, info = self.bucket.read(self._remote.key, where, version, fresh=fresh)
        except StoreFault as fault:
            raise explain_fault(fault, self.name) from None
        except ReplacedError:
            if not self._was_copied(version):
                raise
            return self._request(where, fresh=fresh)
        if info is not None:
            self._pin(info)
        return pieces

    def _was_copied(self, version: str | None) -> bool:
        """Whether another version than that of the manifest may be used: nothing was read, the manifest is the same.

        Then the shard does not belong to another dataset: it was copied to its place again, which gave it another
        version. Its size and checksums are compared as ever.
        """
        with self._lock:
            if self.version != version:
                return True  # another thread found that out
            if self.listing is None:
                return False
            try:
                text, _ = self.bucket.read_all(self.listing.key, LIMITS.max_text_nbytes)
            except StoreFault:
                return False
            if hash_text(text) != self.listing.digest:
                return False
            self.version = self.listing = None
            return True

    def _pin(self, info: ObjectInfo) -> None:
        self.listing = None
        if info.version is not None and self.version is None:
            with self._lock:
                self.version = self.version or info.version
        if info.version != self.version:
            raise StorageError(
                f"the object was replaced since it was opened, version {self.version} at first, {info.version} now",
                shard=self.name,
                hint="another process wrote it meanwhile; run this again",
            )
        if info.nbytes not in (-1, self.size):
            raise StorageError(
                f"the object has another size than listed, {self.size} bytes listed, {info.nbytes} now", shard=self.name
            )

    def stream(self, start: int, *, fresh: bool = False, ahead: Ahead = "more") -> RemoteStream:
        if fresh:
            COUNTS.add(fetched_again=1)
        elif start == 0 and ahead != "none":
            with self._lock:
                begun, self._begun = self._peek_begun(), None
            if begun is not None:
                return begun
        return RemoteStream(self, start, fresh=fresh, ahead=ahead)

    def lead_to(self, find_next: Callable[[], ByteReader | None] | None) -> None:
        self._find_next = find_next

    def begin(self, *, whole: bool = True) -> None:
        self._begin("most", self.bucket.pace.stream_blocks) if whole else self._begin("more", 1)

    def find_next(self) -> RemoteReader | None:
        """Return the remote reader of the file after this one, if one was named."""
        following = None if self._find_next is None else self._find_next()
        return following if isinstance(following, RemoteReader) else None

    def _begin(self, ahead: Ahead, num_blocks: int) -> RemoteStream:
        """Request the first blocks, at most `num_blocks` at a time; return the stream that will have them."""
        with self._lock:
            begun = self._peek_begun()
            if begun is None:
                begun = self._begun = RemoteStream(self, 0, ahead=ahead)
        begun.request_ahead(num_blocks)
        return begun

    def _peek_begun(self) -> RemoteStream | None:
        """Return the stream that was begun. One of the parent of a forked process never gets its bytes."""
        begun = self._begun
        return begun if begun is not None and begun.pid == os.getpid() else None

    def drop_begun(self) -> None:
        """Cancel what was requested ahead."""
        with self._lock:
            begun, self._begun = self._peek_begun(), None
        if begun is not None:
            begun.close()

    def read(self, nbytes: int) -> bytes:
        if self._stream is None:
            self._stream = self.stream(0)
        return bytes(self._stream.read(nbytes))

    def check_unchanged(self) -> None:
        return None  # every request compares the version

    def release(self, start: int, stop: int) -> None:
        return None

    def park(self) -> None:
        return None

    def close(self) -> None:
        self._stream = None
        self.drop_begun()


def open_start(address: str, nbytes: int) -> tuple[bytes, RemoteReader] | None:
    """Return the first bytes of an object by one request, and a reader of its version; None if there is none."""
    remote = parse_remote(address)
    assert remote is not None
    try:
        pieces, info = find_bucket(remote).read(remote.key, Range(0, nbytes), None)
    except StoreFault:
        return None
    assert info is not None
    return b"".join(pieces), RemoteReader(address, size=info.nbytes, version=info.version)


def read_many(wanted: Sequence[tuple[ByteReader, Sequence[tuple[int, int]]]]) -> list[list[bytes]]:
    """Return ranges of several readers, like `read_ranges` of each; those of remote readers are requested together."""
    remote = [(reader, reader._clip(ranges)) for reader, ranges in wanted if isinstance(reader, RemoteReader)]
    is_many = sum(len(ranges) for _, ranges in remote) > LIMITS.first_requests
    plans = [(reader, ranges, reader._plan(ranges, is_many=is_many)) for reader, ranges in remote]
    jobs = [partial(reader._request, part) for reader, _, parts in plans for part in parts]
    # The threads of one store serve all: a job knows its own.
    bodies = iter(list(plans[0][0].bucket.map(jobs)) if plans else [])
    found = iter([
        reader._distribute(ranges, parts, [next(bodies) for _ in parts], keeps_head=False)
        for reader, ranges, parts in plans
    ])  # fmt: skip
    return [
        next(found) if isinstance(reader, RemoteReader) else reader.read_ranges(ranges) for reader, ranges in wanted
    ]


class RemoteStream:
    """The bytes of an object from a position on, in blocks that are requested ahead. Use it from one thread.

    When all of the object is requested, the start of the one that is read after it is (`RemoteReader.lead_to`).
    """

    def __init__(self, reader: RemoteReader, start: int, *, fresh: bool = False, ahead: Ahead = "more") -> None:
        self._reader = reader
        self._is_ahead = ahead != "none"
        self._fresh = fresh
        self._next = start  # of the next request
        self._size = reader.size or 0
        self.pid = os.getpid()
        self._pending: deque[tuple[int, Future[list[memoryview]]]] = deque()  # with the start of each
        self._pieces: deque[memoryview] = deque()
        self._led: list[RemoteReader] = []  # those whose start was requested, because all of this one is
        self._num_blocks = 1  # to request ahead
        self._block_nbytes = LIMITS.first_block_nbytes
        if ahead == "most":
            self._num_blocks, self._block_nbytes = reader.bucket.pace.stream_blocks, LIMITS.block_nbytes

    def read(self, nbytes: int) -> memoryview:
        """Return the next bytes, at most `nbytes`; an empty view at the end. The view holds its bytes."""
        while not self._pieces:
            if not self._pending:
                self.request_ahead(self._num_blocks)
                if not self._pending:
                    return memoryview(b"")
            if self.pid != os.getpid():
                raise StorageError("this process was forked while a remote file was read", shard=self._reader.name)
            begun = time.monotonic()
            self._pieces.extend(piece for piece in self._pending.popleft()[1].result() if len(piece))
            # The more was read, the more will be: a reader of the first records should not fetch the file.
            if self._is_ahead:
                pace = self._reader.bucket.pace
                pace.note_wait(time.monotonic() - begun)
                self._num_blocks = min(2 * self._num_blocks, pace.stream_blocks)
                self.request_ahead(self._num_blocks)
        piece = self._pieces[0]
        if len(piece) <= nbytes:
            return self._pieces.popleft()
        self._pieces[0] = piece[nbytes:]
        return piece[:nbytes]

    def peek(self, nbytes: int) -> list[memoryview] | None:
        """Return the first bytes, which stay to be read; None if they are not in the first block."""
        if not self._pending or self._pending[0][0] != 0:
            return None
        pieces = self._pending[0][1].result()
        return pieces if sum(map(len, pieces)) >= nbytes else None

    def find_requested(self, start: int) -> Future[list[memoryview]] | None:
        """Return the request for the block at a position, if it was made."""
        return next((future for at, future in self._pending if at == start), None)

    def request_ahead(self, num_blocks: int) -> None:
        """Request the next blocks, so that `num_blocks` are in flight, those of the next files included."""
        self._request_blocks(num_blocks)
        reader, left = self._reader, num_blocks - len(self._pending)
        is_all = self._next >= self._size and self._is_ahead
        # Files after this one, as long as all of the one before is requested.
        while is_all and left > 0 and (following := reader.find_next()) is not None:
            begun = following._begin("more", 0)
            begun._num_blocks, begun._block_nbytes = self._num_blocks, self._block_nbytes
            begun._request_blocks(left)
            if following not in self._led:
                self._led.append(following)
            reader, left = following, left - max(1, len(begun._pending))
            is_all = begun._next >= begun._size

    def _request_blocks(self, num_blocks: int) -> None:
        bucket = self._reader.bucket
        while len(self._pending) < num_blocks and self._next < self._size:
            stop = min(self._size, self._next + self._block_nbytes)
            if bucket.is_cached or self._block_nbytes == LIMITS.block_nbytes:
                # On the grid of blocks, which the cache needs.
                stop = min(self._size, (self._next // LIMITS.block_nbytes + 1) * LIMITS.block_nbytes)
            where = Range(self._next, stop)
            if bucket.is_cached:
                where = bucket.align(where, self._size)
            begun = None if self._is_ahead or self._fresh else self._reader._peek_begun()
            known = None if begun is None else begun.find_requested(self._next)
            if known is not None:
                self._pending.append((self._next, known))
                self._next += sum(map(len, known.result()))
                continue
            skipped = self._next - where.start
            job = partial(_request_from, self._reader, where, skipped, self._fresh)
            self._pending.append((self._next, bucket.submit(job)))
            self._next = where.stop
            self._block_nbytes = min(2 * self._block_nbytes, LIMITS.block_nbytes)

    def close(self) -> None:
        """Cancel the requests that did not start yet."""
        self.__del__()
        self._pending.clear()
        self._pieces.clear()
        self._next = self._size

    def __del__(self) -> None:
        # A stream that is left before its end: neither it nor the next files are read on.
        pending = getattr(self, "_pending", ())
        for _, future in pending:
            future.cancel()
        for following in self._led if pending else ():
            following.drop_begun()


def _request_from(reader: RemoteReader, where: Range, skipped: int, fresh: bool) -> list[memoryview]:
    begun = time.monotonic()
    pieces = reader._request(where, fresh=fresh)
    reader.bucket.pace.note_request(where.stop - where.start, time.monotonic() - begun)
    while skipped and pieces:
        first, rest = pieces[0], pieces[1:]
        pieces = [first[skipped:], *rest] if len(first) > skipped else rest
        skipped = max(0, skipped - len(first))
    return pieces


def _cut(wanted: Range, parts: Sequence[Range], bodies: Sequence[Sequence[memoryview]]) -> bytes:
    """Return a range out of the bodies of requests, which together contain it."""
    from bisect import bisect_right

    if wanted.start >= wanted.stop:
        return b""
    found: list[memoryview] = []
    at = max(0, bisect_right(parts, Range(wanted.start, 1 << 62)) - 1)
    position = wanted.start
    while position < wanted.stop and at < len(parts):
        offset = parts[at].start
        for piece in bodies[at]:
            low, high = max(position, offset), min(wanted.stop, offset + len(piece))
            if low < high:
                found.append(piece[low - offset : high - offset])
                position = high
            offset += len(piece)
        at += 1
    return bytes(found[0]) if len(found) == 1 else b"".join(found)


def _find_object(bucket: Bucket, key: str) -> ObjectInfo:
    try:
        return bucket.head(key)
    except StoreFault as fault:
        raise explain_fault(fault, bucket.address_of(key)) from None
