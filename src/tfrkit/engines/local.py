"""Run tasks in worker processes on this machine.

Each worker is a process with its own pipe. A worker that dies (killed, out of memory, a crash in a decoder) is
replaced and its task is run again, because tasks are atomic. A task whose worker dies three times stops the build.
Workers check whether their parent is alive, and exit if not.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit.engines.base import MAX_DEATHS, Task, TaskQueue, Then, Tick, report_deaths
from tfrkit.errors import Hint, Step, TfrkitError

_REPORT_SECONDS = 0.1
_LOOK_SECONDS = 1.0
# Packages that start threads when they are imported; a fork would copy their locks but not the threads.
_THREADED_PACKAGES = ("torch", "tensorflow", "jax", "grpc", "pyarrow", "obstore", "ray", "cv2", "av")


@dataclass(frozen=True)
class LocalEngine:
    """Runs tasks in `jobs` processes of this machine, or with one job in this process."""

    jobs: int
    is_local = True

    @property
    def slots(self) -> int:
        return self.jobs

    def require(
        self, *, sees: Sequence[str] = (), tokens: Sequence[tuple[str, bytes]] = (), is_local: bool = True
    ) -> None:
        """All processes of a machine see the same files."""

    def run(
        self, tasks: Iterable[Any], *, then: Then, progress: Tick, meanwhile: Iterator[None] | None = None
    ) -> Iterator[Any]:
        if self.jobs <= 1:
            return _run_here(tasks, then, progress, meanwhile)
        return _Processes(self.jobs, then, progress).run(tasks, meanwhile)


def _run_here(tasks: Iterable[Any], then: Then, progress: Tick, meanwhile: Iterator[None] | None) -> Iterator[Any]:
    for _ in meanwhile or ():
        pass
    queue = TaskQueue(tasks)
    while queue:
        task = queue.take()
        result = task.run(progress)
        queue.put_first(then(task, result))
        yield result


def choose_start_method() -> str:
    """Return how to start workers: "fork" if it is safe in this process, else "spawn".

    A forked worker starts in milliseconds and shares the items of the plan; a spawned one imports all modules again.
    """
    is_quiet = threading.active_count() == 1 and not any(name in sys.modules for name in _THREADED_PACKAGES)
    return "fork" if sys.platform == "linux" and is_quiet else "spawn"


class _Worker:
    """A worker process and its current task."""

    def __init__(self, context: Any) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, os.getpid()), daemon=True)
        try:
            self.process.start()
        except OSError as error:  # the limit of processes (ulimit -u), or of memory
            cause = (error.strerror or "").lower()
            hint = Hint(Step("use fewer workers: {jobs}", jobs=1))
            raise TfrkitError(f"cannot start a worker process, {cause}", hint=hint) from None
        theirs.close()
        self.task: Task | None = None

    def give(self, task: Task) -> None:
        self.task = task
        self.pipe.send(task)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class _Processes:
    def __init__(self, jobs: int, then: Then, progress: Tick) -> None:
        import multiprocessing

        self._context: Any = multiprocessing.get_context(choose_start_method())
        self._jobs = jobs
        self._then = then
        self._progress = progress
        self._queue = TaskQueue(())
        self._deaths: dict[str, int] = {}
        self._workers: list[_Worker] = []

    def run(self, tasks: Iterable[Any], meanwhile: Iterator[None] | None) -> Iterator[Any]:
        from multiprocessing.connection import wait

        self._queue = TaskQueue(tasks)
        steps = iter(meanwhile or ())
        has_steps = True
        try:
            while has_steps or self._queue or any(worker.task for worker in self._workers):
                self._hand_out()
                busy = [worker for worker in self._workers if worker.task is not None]
                waited_for = [worker.pipe for worker in busy] + [worker.process.sentinel for worker in busy]
                ready = wait(waited_for, timeout=0 if has_steps else None)
                if not ready and has_steps:
                    has_steps = next(steps, self) is None
                for worker in busy:
                    # Read messages first: a worker may exit after its last message.
                    if worker.pipe in ready:
                        yield from self._receive(worker)
                    elif worker.process.sentinel in ready:
                        self._bury(worker)
        finally:
            for worker in self._workers:
                worker.stop()

    def _hand_out(self) -> None:
        for worker in self._workers:
            if worker.task is None and self._queue:
                self._give(worker)
        while self._queue and len(self._workers) < self._jobs:
            self._workers.append(self._start())
            self._give(self._workers[-1])

    def _give(self, worker: _Worker) -> None:
        task = self._queue.take()
        try:
            worker.give(task)
        except OSError:  # the worker died while idle; its sentinel reports that next
            pass

    def _start(self) -> _Worker:
        if self._context.get_start_method() != "spawn":
            return _Worker(self._context)
        # A spawned process runs the user's main file again, which fails for a script without a __main__ guard.
        # Tasks do not need the main file unless a reader is defined in it.
        main = sys.modules["__main__"]
        if type(getattr(self._queue.first, "reader", None)).__module__ != "__main__":
            sys.modules["__main__"] = type(sys)("__main__")
        try:
            return _Worker(self._context)
        finally:
            sys.modules["__main__"] = main

    def _receive(self, worker: _Worker) -> Iterator[Any]:
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        if kind == "progress":
            self._progress(*content)
        elif kind == "failed":
            raise content
        else:
            task, worker.task = worker.task, None
            assert task is not None
            self._queue.put_first(self._then(task, content))
            yield content

    def _bury(self, worker: _Worker) -> None:
        worker.process.join()
        code = worker.process.exitcode
        worker.stop()
        self._workers.remove(worker)
        task = worker.task
        if task is None:
            return
        deaths = self._deaths[task.key] = self._deaths.get(task.key, 0) + 1
        if deaths >= MAX_DEATHS:
            how = f"by signal {-code} ({_name_signal(-code)})" if code is not None and code < 0 else f"with code {code}"
            raise report_deaths(task, how, deaths)
        self._queue.put_first([task])


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "?"


def _work(pipe: Any, parent: int) -> None:
    """Run the loop of a worker process."""
    # The parent handles interrupts and stops the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A forked worker would inherit the parent's handler; SIGTERM must end the worker at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    report = _Report(pipe, parent)
    while True:
        while not pipe.poll(_LOOK_SECONDS):
            report.require_parent()
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            result = task.run(report)
        except BaseException as error:
            _send_error(pipe, error)
            if not isinstance(error, Exception):
                raise
            continue
        report.flush()
        pipe.send(("done", result))


def _send_error(pipe: Any, error: BaseException) -> None:
    try:
        pipe.send(("failed", error))
    except (TypeError, AttributeError, ValueError):  # an error that cannot be sent
        pipe.send(("failed", RuntimeError(f"{type(error).__name__}: {error}")))


class _Report:
    """Adds up progress and sends it to the parent every tenth of a second."""

    def __init__(self, pipe: Any, parent: int) -> None:
        self._pipe = pipe
        self._parent = parent
        self._counts = [0, 0, 0]
        self._last = time.monotonic()

    def __call__(self, num_items: int, nbytes: int, num_bad: int) -> None:
        self._counts[0] += num_items
        self._counts[1] += nbytes
        self._counts[2] += num_bad
        if time.monotonic() - self._last >= _REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        self.require_parent()
        self._pipe.send(("progress", tuple(self._counts)))
        self._counts = [0, 0, 0]
        self._last = time.monotonic()

    def require_parent(self) -> None:
        """Exit at once if the parent process is gone."""
        if os.getppid() != self._parent:
            os._exit(1)
