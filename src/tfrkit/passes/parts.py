"""The tasks of a verb, done by several runs of the same command that meet in a folder.

Every run makes the same list of tasks and does those whose number modulo N is its own. A list is known by a digest of
its tasks, of the state of the files that they read, and of the version of tfrkit; no results of other lists are used.

    DIGEST-I-of-N.results   results of part I, by the number of the task
    work-DIGEST             files that tasks write
    work-DIGEST.lock        held by the part that writes the output
    work-DIGEST.begun       there was no output, and a part began to write it
    work-DIGEST.done        the output is complete
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._threads import count_cores
from tfrkit._version import VERSION
from tfrkit.engines.base import Tick
from tfrkit.engines.local import LocalEngine
from tfrkit.engines.part import Part
from tfrkit.errors import Hint, OtherPartsError, StorageError, TfrkitError
from tfrkit.passes.part_results import read_results, write_results
from tfrkit.passes.shard_tasks import FileTask, Finish, Workers, map_in_order, refuse_pipes
from tfrkit.storage.inputs import stat_input
from tfrkit.storage.options import given_options
from tfrkit.storage.shared_folder import SharedFolder
from tfrkit.storage.work_folder import KeptFolder

_ENDING = ".results"
_DIGEST_LENGTH = 16


class PartWorkers(Workers):
    """This process, which does its part of each list of tasks."""

    keeps_files = True

    def __init__(self, part: Part, jobs: int | None) -> None:
        super().__init__(LocalEngine(jobs or count_cores()))
        self._part = part
        self._folder = SharedFolder(part.folder)
        self._name = ""  # of the work folder, if tasks write files

    def run(
        self, tasks: Sequence[FileTask], tick: Tick, *, sees: Iterable[str] = (), reads: Iterable[str] = ()
    ) -> Iterator[Any]:
        """Do the tasks of this part; yield all results, or raise `OtherPartsError` if some are missing."""
        paths, inputs = [task.path for task in tasks], list(reads)
        refuse_pipes(paths)
        own_files = self._folder.join("")
        digest = digest_work([*tasks], [path for path in (*paths, *inputs) if not path.startswith(own_files)])
        results = self._load(digest)
        own = range(self._part.index, len(tasks), self._part.count) if self._part.index is not None else ()
        missing = [number for number in own if number not in results]
        made: dict[int, Any] = {}
        saved = time.monotonic()
        stores = given_options([*paths, *inputs, *sees])
        found = map_in_order(self.engine, [tasks[number] for number in missing], tick, stores=stores)
        with self._told_if_finished():
            try:
                for number, result in zip(missing, found, strict=True):
                    made[number] = result
                    if time.monotonic() - saved > LIMITS.part_save_seconds:
                        self._save(digest, made)
                        saved = time.monotonic()
            finally:
                if made:
                    self._save(digest, made)
            results = {**made, **self._load(digest)}
        if len(results) < len(tasks):
            raise self._report_missing(digest, len(tasks) - len(results), len(tasks))
        return map(results.__getitem__, range(len(tasks)))

    def make_folder(self, place: str, identity: Any, *, reads: Sequence[str], is_leased: bool) -> KeptFolder:
        """Return the folder of all parts for files of this work; raise `OtherPartsError` if the output is complete."""
        self.plan_output(identity, reads=reads)
        return KeptFolder(self._folder.make(self._name))

    def plan_output(self, identity: Any, *, reads: Sequence[str]) -> None:
        self._name = f"work-{digest_work(identity, reads)}"
        self._refuse_finished()

    @contextlib.contextmanager
    def finish(self) -> Iterator[Finish]:
        """Hold the right to write the output, and note at the end that it is complete."""
        begun = f"{self._name}.begun"
        with self._folder.locked(f"{self._name}.lock"):
            self._refuse_finished()
            is_repeated = begun in self._folder.list()
            try:
                yield Finish(is_repeated, lambda: self._folder.write(begun, b""))
            except BaseException:
                if not is_repeated:  # what it had written is gone; only a kill leaves something
                    with contextlib.suppress(TfrkitError):
                        self._folder.remove_file(begun)
                raise
            self._folder.write(f"{self._name}.done", b"")
            self._folder.remove_file(begun)
            self._folder.remove(self._name)

    def _refuse_finished(self) -> None:
        if self._name and f"{self._name}.done" in self._folder.list():
            with contextlib.suppress(TfrkitError):  # if the part that wrote it was killed before it did this
                self._folder.remove(self._name)
                self._folder.remove_file(f"{self._name}.begun")
            raise OtherPartsError(
                "another part has written the output",
                shard=self._part.folder,
                hint="to do the work again, remove this folder",
            )

    @contextlib.contextmanager
    def _told_if_finished(self) -> Iterator[None]:
        """Raise `OtherPartsError` instead of an error that comes from files that the last part removed."""
        try:
            yield
        except (TfrkitError, OSError):
            self._refuse_finished()
            raise

    def _report_missing(self, digest: str, num_missing: int, num_tasks: int) -> OtherPartsError:
        others = [name for name in self._folder.list() if name.endswith(_ENDING) and not name.startswith(digest)]
        steps = ["the part that does the last one continues; if it ends before the result, run all parts again"]
        if others:
            steps.append("results of earlier steps, of other options or of changed files are there, too")
        done = f"part {self._part.part} is done" if self._part.index is not None else "the result is not complete"
        return OtherPartsError(
            f"{done}, {num_missing} of {num_tasks} tasks are missing",
            shard=self._part.folder,
            hint=Hint(*steps),
        )

    def _save(self, digest: str, made: Mapping[int, Any]) -> None:
        name = f"{digest}-{self._part.index}-of-{self._part.count}{_ENDING}"
        # Another run of this part may have saved results of other tasks; the first result of a task counts.
        kept = self._read(name) if name in self._folder.list() else {}
        self._folder.write(name, write_results({**made, **kept}))

    def _load(self, digest: str) -> dict[int, Any]:
        """Return the results of all parts so far."""
        results: dict[int, Any] = {}
        for name in self._folder.list():
            if name.startswith(digest) and name.endswith(_ENDING):
                results |= self._read(name)
        return results

    def _read(self, name: str) -> dict[int, Any]:
        try:
            found = read_results(self._folder.read(name))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise StorageError("expected results of a part, got another file", shard=self._folder.join(name))
        return found


def digest_work(work: Any, paths: Iterable[str]) -> str:
    """Return a digest of tasks, or of what describes them, and of the state of files."""
    digest = hashlib.sha256(VERSION.encode())
    _describe(work, digest.update)
    for path in paths:
        with contextlib.suppress(OSError):  # the task reports it
            digest.update(repr((path, stat_input(path))).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _describe(value: Any, write: Callable[[bytes], Any]) -> None:
    """Write a value in a form that is the same in every process; that of `pickle` depends on the order of sets."""
    kind = type(value)
    write(f"{kind.__module__}.{kind.__qualname__}(".encode())
    if isinstance(value, (str, bytes, int, float, type(None))):
        write(repr(value).encode("utf-8", "surrogateescape"))
    elif isinstance(value, (tuple, list)):
        for one in value:
            _describe(one, write)
    elif isinstance(value, (set, frozenset)):
        for text in sorted(_digest_one(one) for one in value):
            write(text)
    elif isinstance(value, Mapping):
        for text in sorted(_digest_one(item) for item in value.items()):
            write(text)
    elif isinstance(value, np.ndarray):
        write(f"{value.dtype.str}{value.shape}".encode() + value.tobytes())
    elif isinstance(value, (FunctionType, type)):
        write(f"{value.__module__}.{value.__qualname__}".encode())
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _describe(getattr(value, field.name), write)
    else:
        _describe(list(value.__reduce_ex__(4)[1:3]), write)
    write(b")")


def _digest_one(value: Any) -> bytes:
    digest = hashlib.sha256()
    _describe(value, digest.update)
    return digest.digest()
