"""The state of a build on disk, so that the next run of the same command resumes it.

    out/_build/
      lock                           held while a build runs
      plan.json                      the plan of the build
      inputs.tsv.gz                  size, mtime and name of each input
      token                          by which workers of a cluster recognise the folder
      scratch/                       temporary files of the source; rebuilt by each run
      sidecars/                      drafts of sidecars
      shards-<hash of the plan>/     finished shards, each with its index and a marker <shard>.done.json

A shard is done if its marker exists and its bytes match the marker's size and checksum.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import secrets
import shutil
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal, NamedTuple

from tfrkit import _platform
from tfrkit._limits import LIMITS
from tfrkit.container.index import INDEX_FOLDER
from tfrkit.errors import StorageError
from tfrkit.images.encode import ImageFact
from tfrkit.sources.base import Facts, Items
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.local import LocalWriter
from tfrkit.storage.resolve import open_reader
from tfrkit.storage.text_files import write_json

_LINES_AT_ONCE = 4096
# Staging folders locked by this process. A file lock does not exclude a second thread of the same process.
_HELD: set[str] = set()


LockedBy = Literal["build", "part", "last part"]


class PartsRunningError(StorageError):
    """Parts of a build are running."""


class BadItem(NamedTuple):
    """An item that could not be read: key, reason and hint."""

    key: str
    reason: str
    hint: str = ""


@dataclass
class ShardResult:
    """The result of writing one shard or a part of one."""

    name: str
    num_records: int = 0
    nbytes: int = 0
    nbytes_in: int = 0
    sha256: str = ""
    bad: list[BadItem] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)
    is_stored: bool = False  # in a remote store, under its final name
    etag: str = ""  # its version there

    def add(self, part: ShardResult) -> None:
        """Add the result of a part; parts are added in their order."""
        self.num_records += part.num_records
        self.nbytes += part.nbytes
        self.nbytes_in += part.nbytes_in
        self.bad += part.bad
        add_facts(self.facts, part.facts)


def add_facts(total: Facts, more: Facts) -> None:
    """Add the facts `more` of one reader to `total`."""
    for name, counts in more.items():
        total.setdefault(name, Counter()).update(counts)


class Journal:
    """The staging folder of one build."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._plan_path = os.path.join(folder, "plan.json")
        self._inputs_path = os.path.join(folder, "inputs.tsv.gz")

    @contextlib.contextmanager
    def locked(self, *, by: LockedBy = "build") -> Iterator[None]:
        """Lock the build for this process; raises `StorageError` if the lock is held already.

        Any number of processes may hold it by "part", and none at the same time by "build" or, in the moments in which
        a part begins or finishes the build, by "last part". Raises `PartsRunningError` if parts hold it.
        """
        identity = os.path.realpath(self.folder)
        if identity in _HELD:
            raise _refuse(self.folder, "this process")
        try:
            os.makedirs(self.folder, exist_ok=True)
            descriptor = _open_lock(os.path.join(self.folder, "lock"), by)
        except OSError as error:
            raise explain_os_error(error, self.folder, verb="write") from None
        _HELD.add(identity)
        try:
            yield
        finally:
            _HELD.discard(identity)
            os.close(descriptor)

    @property
    def scratch(self) -> str:
        """An empty folder for temporary files; removes the files of an earlier run."""
        folder = os.path.join(self.folder, "scratch")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return folder

    @property
    def has_scratch(self) -> bool:
        """Whether there are temporary files, which readers of tables and records need."""
        folder = os.path.join(self.folder, "scratch")
        return os.path.isdir(folder) and bool(os.listdir(folder))

    def write_token(self) -> tuple[str, bytes]:
        """Write a file by which workers on other machines recognise this folder; return its path and content."""
        path, content = os.path.abspath(os.path.join(self.folder, "token")), secrets.token_hex(16).encode()
        with LocalWriter(path) as writer:
            writer.write(content)
            writer.commit()
        return path, content

    def load_plan(self) -> dict[str, Any] | None:
        """Return the plan that is being built in this folder, or None."""
        try:
            with open(self._plan_path, encoding="utf-8", errors="surrogateescape") as file:
                content = json.load(file)
        except (OSError, ValueError, RecursionError):
            return None
        return content if isinstance(content, dict) else None

    def save_plan(self, description: dict[str, Any], items: Items) -> None:
        """Begin a build: drop the state of any other, and store the plan and the inputs."""
        self.forget()
        # Level 1, because the file is deleted at the end of the build.
        list(write_inputs(self._inputs_path, items, level=1))
        write_json(self._plan_path, description)

    def load_inputs(self) -> dict[str, tuple[int, int]]:
        """Return the size and mtime of each input when the build began."""
        return read_inputs(self._inputs_path)

    @property
    def sidecars_folder(self) -> str:
        """The folder for drafts of sidecars, so that a killed run leaves no sidecars in the dataset's folder."""
        folder = os.path.join(self.folder, "sidecars")
        os.makedirs(folder, exist_ok=True)
        return folder

    def shards_folder(self, plan_hash: str) -> str:
        """Return the folder of a plan's finished shards, and create it if needed."""
        folder = os.path.join(self.folder, f"shards-{plan_hash}")
        os.makedirs(os.path.join(folder, INDEX_FOLDER), exist_ok=True)
        return folder

    def sweep(self, plan_hash: str) -> None:
        """Remove half-written files of killed runs, which would fill the disk."""
        folder = self.shards_folder(plan_hash)
        for place in (self.folder, folder, os.path.join(folder, INDEX_FOLDER)):
            for name in os.listdir(place):
                if name.startswith(".") and name.endswith(".tmp"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(os.path.join(place, name))

    def forget(self) -> None:
        """Remove everything but the lock and the scratch folder."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._plan_path)
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.startswith("shards-") or name == "sidecars":
                shutil.rmtree(path)
            elif name not in ("lock", "scratch"):
                os.unlink(path)

    def remove(self) -> None:
        """Remove the whole staging folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_done(path: str, result: ShardResult) -> None:
    """Write the marker of a finished shard.

    Not synced: a marker lost or torn by a power failure is ignored, and the shard is written again.
    """
    with LocalWriter(f"{path}.done.json", durable=False) as writer:
        writer.write(format_done(result))
        writer.commit()


def format_done(result: ShardResult) -> bytes:
    """Return the content of a marker."""
    content = {**vars(result), "facts": {name: list(counts.items()) for name, counts in result.facts.items()}}
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"


def read_done(path: str) -> ShardResult | None:
    """Return the marker of a shard if it exists and has the size of the shard."""
    result = read_marker(path)
    try:
        return result if result is not None and os.path.getsize(path) == result.nbytes else None
    except OSError:
        return None


def read_marker(path: str) -> ShardResult | None:
    """Return the marker of a shard without checking the shard."""
    try:
        with open(f"{path}.done.json", "rb") as file:
            return parse_done(file.read())
    except OSError:
        return None


def parse_done(text: bytes) -> ShardResult | None:
    """Return the result in a marker; None if it is not one."""
    try:
        content = json.loads(text.decode("utf-8", "surrogateescape"))
        result = ShardResult(**content)
        result.bad = [BadItem(*map(str, entry)) for entry in result.bad]
        facts: dict[str, Any] = content["facts"]
        result.facts = {
            name: Counter({ImageFact(*fact): count for fact, count in counts}) for name, counts in facts.items()
        }
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return None
    return result


def drop_done(path: str) -> None:
    """Remove a shard or a part, and its marker."""
    for stale in (f"{path}.done.json", path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(stale)


def write_inputs(path: str, items: Items, *, stamps: bool = True, level: int = 6) -> Generator[None]:
    """Write the list of inputs: one line per input with size, mtime (0 without `stamps`) and name.

    Works in steps of a few milliseconds; the file appears after the last step.
    """
    # zlib, unlike the gzip module, writes no timestamp into the header: equal inputs give equal bytes.
    packer = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    with LocalWriter(path) as writer:
        for start in range(0, items.size if items.keys is not None else 0, _LINES_AT_ONCE):
            writer.write(packer.compress(_join_lines(items, start, stamps)))
            yield
        writer.write(packer.flush())
        writer.commit()


def read_inputs(path: str) -> dict[str, tuple[int, int]]:
    """Read a list of inputs: name → size and mtime. Empty if there is no readable list, or one that is too long.

    It is read to name what changed before a build is refused: that must not take the memory of the machine.
    """
    inputs: dict[str, tuple[int, int]] = {}
    try:
        with gzip.open(_open_object(path) if has_scheme(path) else path, "rb") as file:
            for line in file:
                if len(inputs) >= LIMITS.max_named_inputs:
                    return {}
                nbytes, stamp, key = line.rstrip(b"\n").split(b"\t", 2)
                inputs[os.fsdecode(_unescape(key))] = (int(nbytes), int(stamp))
    except (OSError, ValueError, EOFError, zlib.error, StorageError):
        return {}
    return inputs


def _open_object(path: str) -> io.BytesIO:
    reader = open_reader(path)
    return io.BytesIO(reader.read_at(0, reader.size or 0))


def _join_lines(items: Items, start: int, stamps: bool) -> bytes:
    """Return one block of lines of the list, from input `start` on."""
    assert items.keys is not None
    block = slice(start, start + _LINES_AT_ONCE)
    keys = [key.replace(b"\\", b"\\\\").replace(b"\n", b"\\n") for key in items.keys[block]]
    nbytes = repeat(0, len(keys)) if items.nbytes is None else items.nbytes[block].tolist()
    times = repeat(0, len(keys)) if items.stamps is None or not stamps else items.stamps[block].tolist()
    return b"".join([b"%d\t%d\t%s\n" % line for line in zip(nbytes, times, keys, strict=True)])


def _unescape(key: bytes) -> bytes:
    return re.sub(rb"\\(.)", lambda match: b"\n" if match[1] == b"n" else match[1], key)


def _open_lock(path: str, by: LockedBy) -> int:
    """Return a descriptor that holds the lock; raises `StorageError` if another process holds it.

    The lock belongs to the process, not to the open file, so workers do not inherit it: when the parent is killed,
    the next build can begin at once.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _platform.O_CLOEXEC, 0o666)
        try:
            _platform.lock_process(descriptor, shared=by == "part")
        except OSError:
            owner = _platform.read_at(descriptor, 64, 0).decode(errors="replace").strip()
            os.close(descriptor)
            if owner.endswith("part"):
                raise _refuse(os.path.dirname(path), "in parts", PartsRunningError) from None
            raise _refuse(os.path.dirname(path), f"process {owner}" if owner else "another process") from None
        # The build that held the lock before may just have removed the file; then this lock is on a deleted file.
        try:
            is_same = os.path.samestat(os.fstat(descriptor), os.stat(path))
        except FileNotFoundError:
            is_same = False
        if is_same:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}{'' if by == 'build' else ' part'}\n".encode(), 0)
            return descriptor
        os.close(descriptor)
        os.makedirs(os.path.dirname(path), exist_ok=True)


def _refuse(folder: str, owner: str, kind: type[StorageError] = StorageError) -> StorageError:
    return kind(
        f"another build into this folder is running, {owner}",
        shard=folder,
        hint="wait for it, or stop it: finished shards are kept",
    )
