"""Write to remote stores: objects appear whole, and a folder has one writer at a time.

    FOLDER/_build/lease.json     who writes the folder, renewed every 30 s; removed at the end

Stores have no locks. A lease is an object that only one process can create, by a conditional request. It saves work;
what is stored stays right without it, because the manifest is created last, and only if there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Self

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.bucket import Bucket, bucket_of
from tfrkit.storage.objects import StoredVersion

LEASE = "_build/lease.json"


class RemoteWriter:
    """One new object. It is written to an unnamed local file, and appears in the store, whole, on `commit`."""

    def __init__(self, address: str) -> None:
        self._bucket, self._key = bucket_of(address)
        self.name = self._bucket.address_of(self._key)
        if not self._key or self._key.endswith("/"):
            raise StorageError("expected the name of an object to write, got a folder", shard=self.name)
        # Without a name nothing is left of it, however this process ends.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by commit or discard

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self.discard()
            raise explain_os_error(error, self.name, verb="write", more=", nothing was stored") from None

    def commit(self) -> None:
        if self._file.closed:
            return
        try:
            self._bucket.put_file(self._key, self._file)
        finally:
            self._file.close()

    def discard(self) -> None:
        self._file.close()


def write_object(address: str, data: bytes) -> None:
    """Store a small object, whole; an existing one is replaced. Raises `StorageError`."""
    bucket, key = bucket_of(address)
    bucket.put(key, data)


def upload_file(path: str, address: str) -> str | None:
    """Store a local file as an object, whole, and return its version. Raises `StorageError`."""
    bucket, key = bucket_of(address)
    try:
        with open(path, "rb") as file:
            return bucket.put_file(key, file).etag
    except OSError as error:
        raise explain_os_error(error, path, verb="read") from None


def delete_objects(addresses: Sequence[str]) -> None:
    """Delete objects that exist, with one listing for each folder. Raises `StorageError`."""
    for folder in dict.fromkeys(address.rpartition("/")[0] for address in addresses):
        bucket, key = bucket_of(folder)
        stored = {info.key for info in bucket.list(f"{key}/")[0]}
        for address in addresses:
            name = f"{key}/{address.rpartition('/')[2]}"
            if address.rpartition("/")[0] == folder and name in stored:
                bucket.delete(name)


class LeaseHeldError(StorageError):
    """Another process has the lease of a folder."""


class Lease:
    """The right to write a folder of a store. A context manager: it is renewed by a thread until the exit.

    Raises `StorageError` if another process has it, or if the store ignores conditions, so that two processes could
    have it. A lease of a process of this machine that is dead, or one that was not renewed for two minutes, is taken
    over.
    """

    def __init__(self, bucket: Bucket, folder: str, mark: str = LEASE) -> None:
        """Take the lease of a folder ("" or "a/b/"); `mark` is the name of its object in the folder."""
        self._bucket = bucket
        self._key = f"{folder}{mark}"
        self._place = bucket.address_of(folder.rstrip("/"))
        self._owner = secrets.token_hex(16)
        self._ended = threading.Event()
        self._is_lost = False
        self._version = self._take()
        self._thread = threading.Thread(target=self._renew, name="tfrkit-lease", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if not self._is_lost:
            with contextlib.suppress(StorageError):
                self._bucket.delete(self._key)

    def require(self) -> None:
        """Raise if another process took the lease over, because this one seemed dead."""
        if self._is_lost:
            raise StorageError("another process took over the writing of this folder", shard=self._place)

    def _take(self) -> StoredVersion:
        for _ in range(3):
            version = self._bucket.put(self._key, self._make_text(), replaces="nothing")
            if version is not None:
                self._probe()
                return version
            stored = self._bucket.load(self._key)
            if stored is None:
                continue  # it ended meanwhile
            text, known = stored
            self._require_dead(text)
            version = self._bucket.put(self._key, self._make_text(), replaces=known)
            if version is not None:
                return version
        raise self._refuse("")

    def _probe(self) -> None:
        """Raise if the store creates an object that is there already."""
        if self._bucket.put(self._key, self._make_text(), replaces="nothing") is None:
            return
        self._bucket.delete(self._key)
        raise StorageError(
            "this store ignores conditions of requests (If-None-Match), so two processes could write the same folder",
            shard=self._place,
            hint="write to a local folder and copy it there",
        )

    def _make_text(self) -> bytes:
        # The number makes each text another one: an answer that was lost is recognized by it.
        facts = {"owner": self._owner, "host": socket.gethostname(), "pid": os.getpid(), "boot": _read_boot()}
        return json.dumps({**facts, "renewed": time.time(), "number": secrets.token_hex(4)}).encode()

    def _require_dead(self, text: bytes) -> None:
        try:
            other = json.loads(text)
            boot = _read_boot()
            is_here = boot != "" and (other["host"], other["boot"]) == (socket.gethostname(), boot)
            age = time.time() - float(other["renewed"])
            holder = f"process {other['pid']} of {other['host']}"
            is_dead = is_here and not os.path.exists(f"/proc/{int(other['pid'])}")
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # not a lease of ours
        if not is_dead and age < LIMITS.lease_seconds:
            raise self._refuse(f", {holder}")

    def _refuse(self, who: str) -> LeaseHeldError:
        return LeaseHeldError(
            f"another process writes this folder{who}",
            shard=self._place,
            hint=f"wait until it is done; if it is dead, its claim ends after {LIMITS.lease_seconds:.0f} seconds",
        )

    def _renew(self) -> None:
        while not self._ended.wait(LIMITS.lease_seconds / 4):
            with contextlib.suppress(StorageError):  # tried again at the next turn
                version = self._bucket.put(self._key, self._make_text(), replaces=self._version)
                if version is None:
                    self._is_lost = True
                    return
                self._version = version


def _read_boot() -> str:
    """Return what identifies this start of the machine: process numbers start again with it."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        return file.read().strip()
    return ""
