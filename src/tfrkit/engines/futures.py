"""One loop for every cluster that runs calls and returns futures.

The loop keeps a window of calls in flight, so that a million tasks need no memory. It counts the deaths of workers by
task, runs a task again when its worker died, and ends the job when that happens too often. At the end, when there is
nothing left to hand out, tasks that run much longer than the others are run a second time elsewhere, and the first
result counts: results of equal tasks are equal. An exception of a task ends the job; running tasks may finish first.
"""

from __future__ import annotations

import contextlib
import queue
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tfrkit.engines.base import MAX_DEATHS, TaskQueue, Then, Tick, report_deaths
from tfrkit.engines.worker import Terms, WorkerReply, make_terms
from tfrkit.errors import TfrkitError

# Calls in flight per slot: one runs, the next one waits on its worker. Short tasks need more, to hide the way there.
_WINDOW = 2
_MAX_WINDOW = 32
_WINDOW_SECONDS = 0.1
_LOOK_SECONDS = 0.25
_SLOTS_SECONDS = 5.0
# A task is slow if it runs this many times as long as three quarters of the others did, of which this many are known.
_SLOW = 2.0
_MIN_KNOWN = 4
_MIN_SLOW_SECONDS = 0.5
_KEPT_SECONDS = 512
# After an error, running calls may finish for this long.
_GRACE_SECONDS = 30.0


class Death(NamedTuple):
    """Workers that died at a call, and the engine's description of the last death."""

    num_workers: int
    how: str


class Cluster(Protocol):
    """What the loop needs of an engine."""

    def count_slots(self) -> int:
        """Return how many calls can run now; it changes when a cluster grows or shrinks."""

    def dump(self, task: Any) -> bytes:
        """Pickle a task."""

    def prepare(self, terms: Terms) -> None:
        """Make the function that is called, which is the same for all tasks of a run; see `make_entry`."""

    def submit(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        """Submit calls and return their futures, which are hashable."""

    def submit_elsewhere(self, payload: bytes, futures: Sequence[Any]) -> Any:
        """Submit a call, preferably to a worker that runs none of these futures."""

    def wait(self, seconds: float) -> Sequence[Any]:
        """Return the futures that are done since the last call; wait at most `seconds` for the first one."""

    def take(self, future: Any) -> tuple[Any, ...]:
        """Return the answer of a future that is done, or raise its exception."""

    def cancel(self, future: Any) -> None:
        """Stop a call if the engine can."""

    def explain(self, error: BaseException) -> Death | None:
        """Return the deaths that an exception of a future stands for; None if it is not about the engine."""

    def now(self) -> float:
        """Return the time in seconds."""


@dataclass
class FuturesEngine:
    """Runs tasks on a cluster, at most `jobs` at a time if given."""

    cluster: Cluster
    jobs: int | None = None
    terms: Terms = field(default_factory=make_terms)
    is_local = False

    @property
    def slots(self) -> int:
        return min(max(1, self.cluster.count_slots()), self.jobs or sys.maxsize)

    def require(
        self, *, sees: Sequence[str] = (), tokens: Sequence[tuple[str, bytes]] = (), is_local: bool = True
    ) -> None:
        self.terms = make_terms(sees=sees, tokens=tokens, is_local=is_local)

    def run(
        self, tasks: Iterable[Any], *, then: Then, progress: Tick, meanwhile: Iterator[None] | None = None
    ) -> Iterator[Any]:
        return _Loop(self, then, progress).run(tasks, meanwhile)


@dataclass(eq=False)
class _Pending:
    """A task that is handed out, with its calls in flight."""

    task: Any
    payload: bytes
    deaths: int = 0
    submitted: float = 0.0
    calls: list[_Call] = field(default_factory=list)


@dataclass(eq=False)
class _Call:
    job: _Pending
    future: Any
    # None while the call waits for a worker.
    started: float | None = None


class _Loop:
    def __init__(self, engine: FuturesEngine, then: Then, progress: Tick) -> None:
        self._engine = engine
        self._cluster = engine.cluster
        self._cluster.prepare(engine.terms)
        self._then = then
        self._progress = progress
        self._queue = TaskQueue(())
        self._again: deque[_Pending] = deque()
        self._calls: dict[Any, _Call] = {}
        self._waiting: deque[_Call] = deque()
        self._num_started = 0
        self._seconds: deque[float] = deque(maxlen=_KEPT_SECONDS)
        self._slots = 1
        self._slots_known_until = float("-inf")
        self._error: BaseException | None = None

    def run(self, tasks: Iterable[Any], meanwhile: Iterator[None] | None) -> Iterator[Any]:
        self._queue = TaskQueue(tasks)
        steps = iter(meanwhile or ())
        has_steps = True
        try:
            while True:
                if self._error is None:
                    self._hand_out()
                    self._repeat_slow()
                else:
                    self._give_up()
                if not self._calls and not has_steps:
                    break
                done = self._cluster.wait(0 if has_steps else _LOOK_SECONDS)
                for future in done:
                    yield from self._receive(future)
                if not done and has_steps:
                    has_steps = self._error is None and next(steps, self) is None
            if self._error is not None:
                raise self._error
        finally:
            for future in list(self._calls):
                self._cluster.cancel(future)

    def _hand_out(self) -> None:
        now = self._cluster.now()
        if now >= self._slots_known_until:
            self._slots = self._engine.slots
            self._slots_known_until = now + _SLOTS_SECONDS
        window = min(self._slots * self._window(), self._engine.jobs or sys.maxsize)
        if window > _WINDOW * self._slots and len(self._calls) > window // 2:
            return  # short tasks are submitted many at a time, which takes most engines less time
        jobs: list[_Pending] = []
        while len(self._calls) + len(jobs) < window and (self._again or self._queue):
            jobs.append(self._again.popleft() if self._again else self._make_job(self._queue.take()))
        if jobs:
            futures = self._cluster.submit([job.payload for job in jobs])
            for job, future in zip(jobs, futures, strict=True):
                self._note_call(job, future)

    def _make_job(self, task: Any) -> _Pending:
        return _Pending(task, self._cluster.dump(task))

    def _window(self) -> int:
        if not self._seconds:
            return _WINDOW
        mean = sum(self._seconds) / len(self._seconds)
        return max(_WINDOW, min(_MAX_WINDOW, int(_WINDOW_SECONDS / max(mean, 1e-6))))

    def _note_call(self, job: _Pending, future: Any) -> None:
        job.submitted = self._cluster.now()
        call = _Call(job, future)
        job.calls.append(call)
        self._calls[future] = call
        self._waiting.append(call)
        self._note_starts()

    def _note_starts(self) -> None:
        """Engines run calls in the order in which they got them: as many as there are slots run, the others wait."""
        while self._waiting and self._num_started < self._slots:
            call = self._waiting.popleft()
            if call.future in self._calls:
                call.started = self._cluster.now()
                self._num_started += 1

    def _forget(self, call: _Call) -> None:
        del self._calls[call.future]
        call.job.calls.remove(call)
        self._num_started -= call.started is not None
        self._note_starts()

    def _receive(self, future: Any) -> Iterator[Any]:
        call = self._calls.get(future)
        if call is None:  # canceled: another call of the same task was faster
            return
        job = call.job
        self._forget(call)
        try:
            answer = WorkerReply(*self._cluster.take(future))
        except BaseException as error:
            death = self._cluster.explain(error)
            if death is None:
                raise
            self._bury(job, death)
            return
        if answer.kind != "done":
            self._fail(answer.content if answer.kind == "failed" else _refuse(answer.content))
            return
        for other in list(job.calls):
            self._forget(other)
            self._cluster.cancel(other.future)
        self._seconds.append(answer.seconds)
        self._progress(*answer.counts)
        self._queue.put_first(self._then(job.task, answer.content))
        yield answer.content

    def _bury(self, job: _Pending, death: Death) -> None:
        job.deaths += death.num_workers
        self._slots_known_until = float("-inf")
        if job.deaths >= MAX_DEATHS:
            self._fail(report_deaths(job.task, f"({death.how})", job.deaths))
        elif not job.calls:
            self._again.append(job)

    def _repeat_slow(self) -> None:
        if self._again or self._queue or len(self._seconds) < _MIN_KNOWN or len(self._calls) >= _WINDOW * self._slots:
            return
        limit = self._slow_seconds()
        now = self._cluster.now()
        for call in list(self._calls.values()):
            is_slow = call.started is not None and now - call.started > limit
            # A copy that died is made again, but not at once.
            if is_slow and len(call.job.calls) == 1 and now - call.job.submitted > limit:
                self._note_call(call.job, self._cluster.submit_elsewhere(call.job.payload, [call.future]))

    def _slow_seconds(self) -> float:
        ordered = sorted(self._seconds)
        return max(_MIN_SLOW_SECONDS, _SLOW * ordered[len(ordered) * 3 // 4])

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error

    def _give_up(self) -> None:
        """Cancel calls that wait, and those that are slow; the others finish and their results count."""
        now = self._cluster.now()
        limit = max(_GRACE_SECONDS, self._slow_seconds() if self._seconds else 0.0)
        for call in list(self._calls.values())[::-1]:  # those that wait first, so that none of them seems to start
            if call.started is None or now - call.started > limit:
                self._forget(call)
                self._cluster.cancel(call.future)


def drain(done: queue.SimpleQueue[Any], seconds: float) -> list[Any]:
    """Take everything from a queue; wait at most `seconds` for the first entry."""
    taken: list[Any] = []
    with contextlib.suppress(queue.Empty):
        taken.append(done.get(timeout=seconds) if seconds > 0 else done.get_nowait())
        while True:
            taken.append(done.get_nowait())
    return taken


def _refuse(reason: str) -> TfrkitError:
    return TfrkitError(
        f"a worker was refused: {reason}",
        hint="install the same wheel of tfrkit on every node, and mount the same folders at the same paths",
    )


def make_entry(terms: Terms, pickler: str) -> Callable[[bytes], tuple[Any, ...]]:
    """Return the function that a cluster calls with a pickled task.

    It is pickled with its code, as a function of a script is, so that a worker without tfrkit answers with a sentence.
    """
    plain = tuple(terms)

    def enter(payload: bytes) -> tuple[Any, ...]:
        try:
            from tfrkit.engines.worker import run_call
        except ImportError as error:
            import os
            import socket

            return ("refused", f"{socket.gethostname()}, process {os.getpid()}: {error}")
        return run_call(plain, payload, pickler)

    enter.__module__ = "__main__"
    return enter
