"""Threads for the work of the server: the newest request first, and no work for clients that have disconnected.

Tiles on the screen are more urgent than those that were scrolled past. Equal requests in flight are computed once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from tfrkit.errors import TfrkitError

T = TypeVar("T")

_MAX_WAITING = 4096


class _Call:
    __slots__ = ("call", "future", "key", "num_readers")

    def __init__(self, key: Hashable, call: Callable[[], Any]) -> None:
        self.key = key
        self.call = call
        self.future: Future[Any] = Future()
        self.num_readers = 0


class Pool:
    """A fixed number of threads that take the newest job. Results are passed to the event loop of the caller."""

    def __init__(self, num_threads: int) -> None:
        self._jobs: list[_Call] = []
        self._by_key: dict[Hashable, _Call] = {}
        self._ready = threading.Condition()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"tfrkit-view-{number}", daemon=True)
            for number in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, call: Callable[[], T], key: Hashable = None) -> Awaitable[T]:
        """Call a function on a thread; cancelling the result drops a call that has not started.

        Calls with an equal `key` that run at the same time share one result.
        """
        return self._wait(self._put(call, key))

    async def _wait(self, job: _Call) -> Any:
        try:
            return await asyncio.wrap_future(_share(job.future))
        except asyncio.CancelledError:
            with self._ready:
                job.num_readers -= 1
                if job.num_readers == 0 and job.future.cancel():
                    self._forget(job)
            raise

    def _put(self, call: Callable[[], Any], key: Hashable) -> _Call:
        with self._ready:
            if self._is_closed:
                raise RuntimeError("the pool is closed")
            job = self._by_key.get(key) if key is not None else None
            if job is None:
                job = _Call(key, call)
                self._jobs.append(job)
                if key is not None:
                    self._by_key[key] = job
                if len(self._jobs) > _MAX_WAITING:
                    oldest = self._jobs.pop(0)
                    self._by_key.pop(oldest.key, None)
                    oldest.future.cancel()
                self._ready.notify()
            elif job in self._jobs:  # requested again: it is the newest now
                self._jobs.remove(job)
                self._jobs.append(job)
            job.num_readers += 1
            return job

    def _forget(self, job: _Call) -> None:
        if self._by_key.get(job.key) is job:
            del self._by_key[job.key]
        if job in self._jobs:
            self._jobs.remove(job)

    def _work(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._jobs or self._is_closed)
                if self._is_closed:
                    return
                job = self._jobs.pop()
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                result = job.call()
            except BaseException as error:
                self._end(job)
                job.future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                self._end(job)
                job.future.set_result(result)
                del result  # a waiting thread must not keep the last picture alive
            del job

    def _end(self, job: _Call) -> None:
        with self._ready:
            self._forget(job)

    def close(self) -> None:
        """End the threads after their current jobs; waiting jobs are cancelled."""
        with self._ready:
            self._is_closed = True
            for job in self._jobs:
                job.future.cancel()
            self._jobs.clear()
            self._ready.notify_all()
        for thread in self._threads:
            thread.join()


class Streams:
    """Threads of long answers. They must end before Python does: in the core, they would abort the process."""

    def __init__(self) -> None:
        self._running: dict[threading.Thread, threading.Event] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, run: Callable[[threading.Event], None]) -> threading.Event:
        """Call `run` on a thread; it should look at the event, which is returned."""
        stop = threading.Event()

        def work() -> None:
            try:
                run(stop)
            finally:
                with self._lock:
                    del self._running[threading.current_thread()]

        with self._lock:
            thread = threading.Thread(target=work, name="tfrkit-events", daemon=True)
            self._running[thread] = stop
            if self._is_closed:
                stop.set()
            thread.start()
        return stop

    def stop(self) -> None:
        """Ask all threads to end, also later ones."""
        with self._lock:
            self._is_closed = True
            for stop in self._running.values():
                stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the threads."""
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(seconds)


def run_watched(
    run: Callable[[], T],
    stop: threading.Event,
    *,
    interrupt: Callable[[], None],
    report: Callable[[], None],
    step_seconds: float,
) -> T | None:
    """Run a long query on a thread and report its progress; None if `stop` was set, and it was interrupted."""
    with ThreadPoolExecutor(1, thread_name_prefix="tfrkit-query") as executor:
        future = executor.submit(run)
        try:
            while not wait([future], step_seconds).done:
                if stop.is_set():
                    interrupt()
                report()
            result = future.result()
        except TfrkitError:
            if not stop.is_set():
                raise
        return None if stop.is_set() else result


def _share(future: Future[Any]) -> Future[Any]:
    """Return a future with the same result, whose cancellation does not cancel the original."""
    shared: Future[Any] = Future()

    def copy(done: Future[Any]) -> None:
        if done.cancelled():
            shared.cancel()
        elif not shared.set_running_or_notify_cancel():
            return
        elif (error := done.exception()) is not None:
            shared.set_exception(error)
        else:
            shared.set_result(done.result())

    future.add_done_callback(copy)
    return shared
