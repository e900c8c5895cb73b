"""One remote store as this process uses it: its requests, retries, pinned versions.

There is one `Bucket` for each store and process. In a forked process the buckets of the parent are not used: clients
with threads of their own would wait forever there, so its requests go through another process (`proxy_client`).
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeVar, cast

from tfrkit._limits import LIMITS
from tfrkit.errors import RemoteAddressError, StorageError
from tfrkit.storage.addresses import Remote, parse_remote, suggest_fetch
from tfrkit.storage.objects import Body, Listing, ObjectInfo, StoreClient, StoredVersion, StoreFault, WritableClient
from tfrkit.storage.options import StorageOptions, options_of, parse_cache
from tfrkit.storage.pace import COUNTS, Gate, Pace
from tfrkit.storage.ranges import Range

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from tfrkit.storage.cache import BlockCache

T = TypeVar("T")

_MAX_PAUSE_SECONDS = 15.0
_CONNECT_TRIES = 4  # of a server that does not answer at all: mostly a wrong endpoint


class ReplacedError(StorageError):
    """The object is not the version that was requested."""


class Bucket:
    """Requests to one store: limited, repeated, pinned to a version, counted. Safe to share between threads."""

    def __init__(self, root: str, client: StoreClient, options: StorageOptions) -> None:
        self.root = root
        self.pid = os.getpid()
        self.client = client
        self.options = options
        self._gate = Gate()
        self.pace = Pace()
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        # Facts of the last listing or manifest: opening a shard then needs no request.
        self.known: dict[str, ObjectInfo] = {}
        self.texts: dict[str, bytes] = {}
        self.parsed: dict[str, object] = {}  # what a large text was parsed to, in place of the text
        self.listings: dict[str, Listing] = {}  # of objects whose version is known from a manifest only
        self.asked: dict[str, Future[bytes | None]] = {}  # small objects that were requested ahead of their use
        self.fresh: set[str] = set()  # keys just found by a glob, which need not be asked for again
        self._cache: BlockCache | None = None
        if options.cache is not None:
            from tfrkit.storage.cache import BlockCache

            self._cache = BlockCache(*parse_cache(options.cache), root)

    def address_of(self, key: str) -> str:
        """Return the address of an object, for messages."""
        return f"{self.root}/{key}" if key else self.root

    # ---- single requests ----------------------------------------------------------------------------------------

    def head(self, key: str) -> ObjectInfo:
        """Return the facts about an object. Raises `StoreFault` if it is missing or denied, else `StorageError`."""
        return self._try(key, partial(self.client.head, key))

    def read_all(self, key: str, max_nbytes: int) -> tuple[bytes, ObjectInfo]:
        """Return a small object. Raises `StoreFault` if it is missing or denied, else `StorageError`."""
        pieces, info = self._get(key, 0, None, None)
        if info.nbytes > max_nbytes:
            raise StorageError(
                f"expected at most {max_nbytes:,} bytes, got {info.nbytes:,}", shard=self.address_of(key)
            )
        data = b"".join(pieces)
        if len(data) != info.nbytes:
            raise StorageError(f"expected {info.nbytes:,} bytes, got {len(data):,}", shard=self.address_of(key))
        return data, info

    def read(
        self, key: str, where: Range, version: str | None, *, fresh: bool = False
    ) -> tuple[list[memoryview], ObjectInfo | None]:
        """Return a range of an object in pieces, from the cache or by one request, and the facts that came with it.

        `fresh` goes past the cache. A version that is not the stored one raises `StorageError`.
        """
        if self._cache is not None and version is not None:
            if not fresh:
                held = self._cache.read(key, version, where.start, where.stop)
                if held is not None:
                    COUNTS.add(cache_hits=1)
                    return [memoryview(held)], None
            pieces, info = self._get(key, where.start, where.stop, version)
            self._cache.write(key, version, where.start, pieces)
            return pieces, info
        return self._get(key, where.start, where.stop, version)

    def align(self, where: Range, size: int) -> Range:
        """Widen a range to whole blocks if they are cached, because the cache holds whole blocks only."""
        if self._cache is None:
            return where
        block = LIMITS.block_nbytes
        return Range(where.start // block * block, min(size, -(-where.stop // block) * block))

    @property
    def is_cached(self) -> bool:
        return self._cache is not None

    def list(self, folder: str) -> tuple[list[ObjectInfo], list[str]]:
        """Return the objects and the folders directly in a folder, sorted. Raises `StorageError`."""
        if not self.client.can_list:
            raise StorageError(
                "this server cannot list files",
                shard=self.address_of(folder),
                hint="give the address of each file, or a folder with a tfrkit.json",
            )
        try:
            objects, folders = self._try(folder, partial(self.client.list, folder))
        except StoreFault as fault:
            if fault.kind == "missing":  # a folder that is not there is an empty one
                raise self._miss_bucket("list") from None
            raise explain_fault(fault, self.address_of(folder)) from None
        listed = sorted(objects)
        self.known.update((info.key, info) for info in listed)
        if self.listings:
            for info in listed:
                self.listings.pop(info.key, None)
        return listed, sorted(folders)

    def _get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        """Return a range; a body that breaks off is continued at the byte reached."""
        pieces: list[memoryview] = []
        have = 0
        pinned = version

        def request() -> Body:
            nonlocal have, pinned
            try:
                got = self.client.get(key, start + have, stop, pinned)
            except StoreFault as fault:
                # Without a version the rest could be of another object than the start.
                if fault.body and pinned is not None and self.client.is_pinned:
                    pieces.extend(fault.body)
                    have += sum(map(len, fault.body))
                    COUNTS.add(resumed=1)
                    if stop is not None and start + have >= stop:
                        return Body([], ObjectInfo(key, -1, pinned))
                raise
            return got

        body = self._try(key, request, version)
        pieces.extend(body.pieces)
        nbytes = sum(map(len, pieces))
        COUNTS.add(nbytes=nbytes)
        if stop is not None and 0 <= nbytes < min(stop, body.info.nbytes) - start:
            raise StorageError(
                f"expected {min(stop, body.info.nbytes) - start:,} bytes, got {nbytes:,}", shard=self.address_of(key)
            )
        return Body(pieces, body.info)

    def _try(self, key: str, request: Callable[[], T], version: str | None = None, *, is_write: bool = False) -> T:
        """Make a request until it succeeds or is hopeless."""
        require_same_process(self)
        pause = LIMITS.retry_seconds
        fault: StoreFault | None = None
        for number in range(1, LIMITS.request_tries + 1):
            self._gate.enter()
            fault = None
            COUNTS.add(requests=1)
            try:
                return request()
            except StoreFault as found:
                fault = found
            finally:
                self._gate.leave(is_busy=fault is not None and fault.kind == "busy")
            if fault.kind in ("missing", "denied") or (is_write and fault.kind == "changed"):
                raise fault
            if fault.kind == "changed":
                raise self._explain_change(key, version)
            if fault.kind == "refused" or (fault.kind == "unreachable" and number >= _CONNECT_TRIES):
                break
            if fault.kind == "busy":
                COUNTS.add(busy=1)
            if number < LIMITS.request_tries:
                COUNTS.add(retries=1)
                time.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(_MAX_PAUSE_SECONDS, pause * 2)
        assert fault is not None
        tries = f", tried {number} times" if number > 1 else ""
        verb = "write" if is_write else "read"
        hint = None
        if fault.kind == "unreachable":
            is_web = self.root.startswith("http")
            other = "" if self.options.endpoint or is_web else "    another server: endpoint= (--endpoint)"
            hint = f"check the network{' and the address' if is_web else self._name_endpoint()}{other}"
        raise StorageError(f"cannot {verb}, {fault.what}{tries}", shard=self.address_of(key), hint=hint)

    def _explain_change(self, key: str, version: str | None) -> StorageError:
        try:
            now = self.client.head(key).version
        except StoreFault:
            now = None
        return ReplacedError(
            f"the object was replaced since it was opened, version {version} at first, {now or 'none'} now",
            shard=self.address_of(key),
            hint="another process wrote it meanwhile; run this again",
        )

    # ---- writing -------------------------------------------------------------------------------------------------

    def load(self, key: str) -> tuple[bytes, StoredVersion] | None:
        """Return a small object and its version, for `put`; None if there is none. Raises `StorageError`."""
        try:
            return self._write(key, self._writable.load)
        except StoreFault as fault:
            if fault.kind == "missing":
                return None
            raise

    def put(
        self, key: str, data: bytes, *, replaces: StoredVersion | Literal["nothing", "anything"] = "anything"
    ) -> StoredVersion | None:
        """Store a small object, whole; return None if the stored one is not what it `replaces`. Raises `StorageError`.

        The answer to a request can be lost after the object was stored. The repeated request is then refused, so
        the stored bytes are compared.
        """
        num_tries = 0

        def request(key: str) -> StoredVersion:
            nonlocal num_tries
            num_tries += 1
            return self._writable.put(key, data, replaces)

        try:
            return self._write(key, request)
        except StoreFault as fault:
            # Only an object that is to be replaced can be missing.
            if fault.kind == "missing" and not isinstance(replaces, StoredVersion):
                raise self._miss_bucket("write") from None
            stored = self.load(key) if num_tries > 1 else None
            return stored[1] if stored is not None and stored[0] == data else None

    def put_file(self, key: str, file: BinaryIO) -> StoredVersion:
        """Store a file from its start, in parts if it is large. The object appears whole. Raises `StorageError`."""
        nbytes = file.seek(0, os.SEEK_END)

        def request(key: str) -> StoredVersion:
            file.seek(0)
            return self._writable.put_file(key, file, nbytes)

        try:
            return self._write(key, request)
        except StoreFault as fault:
            if fault.kind != "missing":
                raise
            raise self._miss_bucket("write") from None

    def _miss_bucket(self, verb: str) -> StorageError:
        hint = f"check its name{self._name_endpoint()}"
        return StorageError(f"cannot {verb}, no such bucket", shard=self.root, hint=hint)

    def _name_endpoint(self) -> str:
        """Return a clause for hints: the server, if it is not that of the store itself."""
        return "" if self.options.endpoint is None else f", and the server, {self.options.endpoint}"

    def delete(self, key: str) -> None:
        """Delete an object, if there is one. Raises `StorageError`."""
        self._write(key, self._writable.delete)

    @property
    def _writable(self) -> WritableClient:
        if not hasattr(self.client, "put"):
            raise StorageError("cannot write, only s3://, gs:// and az:// are written", shard=self.root)
        return cast("WritableClient", self.client)

    def _write(self, key: str, request: Callable[[str], T]) -> T:
        """Make a request that may change an object, and forget what is known of it."""
        try:
            return self._try(key, partial(request, key), is_write=True)
        except StoreFault as fault:
            if fault.kind != "denied":
                raise
            raise StorageError(
                f"cannot write, {fault.what}",
                shard=self.address_of(key),
                hint="keys that may write there: from the environment, or profile= (--profile)",
            ) from None
        finally:
            self.known.pop(key, None)
            self.listings.pop(key, None)
            self.texts.pop(key, None)
            self.parsed.pop(key, None)
            self.asked.pop(key, None)
            self.fresh.discard(key)

    # ---- many requests -------------------------------------------------------------------------------------------

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Run a job that makes one request on a thread of this bucket."""
        require_same_process(self)
        with self._lock:
            if self._threads is None:
                from concurrent.futures import ThreadPoolExecutor

                self._threads = ThreadPoolExecutor(LIMITS.max_requests, thread_name_prefix="tfrkit-store")
        return self._threads.submit(job)

    def map(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yield the results of jobs in order, with as many requests in flight as the store allows."""
        if len(jobs) <= 1:
            for job in jobs:
                yield job()
            return
        waiting = iter(jobs)
        pending = [self.submit(job) for job in islice(waiting, 2 * LIMITS.max_requests)]
        try:
            while pending:
                yield pending.pop(0).result()
                pending += [self.submit(job) for job in islice(waiting, 1)]
        finally:
            for future in pending:
                future.cancel()


_buckets: dict[tuple[int, str, StorageOptions], Bucket] = {}
_buckets_lock = threading.Lock()
_used_by: set[int] = set()
_openers: dict[str, Callable[[Remote, StorageOptions], StoreClient]] = {}
_is_registered = False


def set_opener(scheme: str, opener: Callable[[Remote, StorageOptions], StoreClient] | None) -> None:
    """Use another client for a scheme; None restores the usual one. Tests do this."""
    with _buckets_lock:
        if opener is None:
            _openers.pop(scheme, None)
        else:
            _openers[scheme] = opener
        for key in [key for key in _buckets if key[1].startswith(f"{scheme}://")]:
            del _buckets[key]


def find_bucket(remote: Remote) -> Bucket:
    """Return the bucket of an address in this process; it makes no request."""
    global _is_registered
    options = options_of(remote.root)
    key = (os.getpid(), remote.root, options)
    with _buckets_lock:
        bucket = _buckets.get(key)
        if bucket is None:
            if not _is_registered and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_start_child)
                _is_registered = True
            bucket = _buckets[key] = Bucket(remote.root, _open_client(remote, options), options)
        return bucket


def _open_client(remote: Remote, options: StorageOptions) -> StoreClient:
    opener = _openers.get(remote.scheme)
    if opener is not None:
        return opener(remote, options)
    from tfrkit.storage import fsspec_client, obstore_client

    try:
        if remote.scheme not in obstore_client.SCHEMES:
            return fsspec_client.open_client(remote, options)
        if _used_by:
            from tfrkit.storage.proxy_client import ProxyClient

            return ProxyClient(remote, options)
        return obstore_client.open_client(remote, options)
    except ImportError as error:
        package = str(error).partition(" is not installed")[0]
        raise RemoteAddressError(
            f"{remote.scheme}:// needs {package}, which is not installed",
            shard=remote.address,
            hint=f"install it: pip install 'tfrkit[remote]'    or fetch it: {suggest_fetch(remote)}",
        ) from None


def bucket_of(address: str) -> tuple[Bucket, str]:
    """Return the bucket of a remote address, and the key in it."""
    remote = parse_remote(address)
    assert remote is not None
    return find_bucket(remote), remote.key


def forget_known(address: str) -> None:
    """Forget the listed facts of the objects below an address; makes no client."""
    remote = parse_remote(address)
    for (pid, root, _), bucket in list(_buckets.items()):
        if remote is not None and (pid, root) == (os.getpid(), remote.root):
            for key in [key for key in bucket.known if key.startswith(remote.key)]:
                del bucket.known[key]


def _start_child() -> None:
    """Forget the buckets of the parent in a forked process: their threads are not there."""
    global _buckets_lock
    _buckets_lock = threading.Lock()
    _used_by.update(pid for pid, root, _ in _buckets if root.startswith(("s3:", "gs:", "az:", "http")))
    _buckets.clear()
    COUNTS.reset()


def require_same_process(bucket: Bucket) -> None:
    """Raise if a bucket was made by the parent of this process: its client would wait forever."""
    if bucket.pid != os.getpid():
        raise StorageError("this process was forked while a remote file was read", shard=bucket.root)


def explain_fault(fault: StoreFault, address: str) -> StorageError:
    """Return the error for an object that is missing or not accessible."""
    hint = None
    if fault.kind == "denied" and address.startswith("http"):
        hint = "the server wants to know who asks: use a signed address"
    elif fault.kind == "denied":
        hint = "public data: anonymous=True (--anonymous)    keys: from the environment, or profile= (--profile)"
    return StorageError(f"cannot open, {fault.what}", shard=address, hint=hint)
