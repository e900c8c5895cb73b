"""Prefetching on threads: results in order, with bounded memory."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
T = TypeVar("T")
_MAX_THREADS = 16
_MIN_NBYTES = 1 << 20  # of an input: starting threads takes longer than to read less on one


def count_cores() -> int:
    """Return the number of cores this process may use: by its affinity and its cgroup quota, rounded up."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        cores = os.cpu_count() or 1
    quota = _read_quota("/sys/fs/cgroup")
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _read_quota(root: str) -> float | None:
    """Return the CPU quota of the container's cgroup in cores; None without a limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join(Path(root, name).read_text(encoding="utf-8") for name in names).split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # missing file, or "max"
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None


def choose_threads(threads: int | None, nbytes: int | None = None) -> int:
    """Return the given number of threads, or one per core; only one for a small input of known size."""
    if threads is not None:
        return threads
    return 1 if nbytes is not None and nbytes < _MIN_NBYTES else min(_MAX_THREADS, count_cores())


def submit(executor: Executor, job: Callable[[], T]) -> Future[T]:
    """Submit a job to an executor. If no thread can be started, raise MemoryError: each thread needs a stack."""
    try:
        return executor.submit(job)
    except RuntimeError as error:
        # Python raises the same class after a shutdown; only the text differs.
        if "start new thread" not in str(error):
            raise
        raise MemoryError("out of memory, cannot start a thread") from None


def run_ahead(
    jobs: Iterator[Callable[[], T]],
    *,
    threads: int,
    max_nbytes: int | None = None,
    size_of: Callable[[T], int] = lambda result: 1,
    stop: threading.Event | None = None,
) -> Generator[T, None, None]:
    """Yield the results of `jobs` in order, computed ahead on threads; with one thread, in the caller's thread.

    At most about `max_nbytes` of results are kept, estimated from the size of the last one, but at least one job per
    thread; by default two jobs per thread. An error is raised in place of its result, an error of `jobs` itself after
    the results before it. If the consumer stops, threads end after their current jobs; a long job should check `stop`,
    which is set then.
    """
    if threads <= 1:
        try:
            for run in jobs:
                yield run()
        finally:
            if stop is not None:
                stop.set()
        return
    from concurrent.futures import ThreadPoolExecutor  # takes 20 ms

    executor = ThreadPoolExecutor(threads, thread_name_prefix="tfrkit")
    waiting: deque[Future[T]] = deque()
    most = threads + 1
    try:
        while True:
            # Finding a job may take time: a result that is ready waits for two at most.
            num_new = 0
            while len(waiting) < most and (num_new < 2 or not waiting[0].done()):
                try:
                    job = next(jobs, None)
                except Exception:
                    while waiting:
                        yield waiting.popleft().result()
                    raise
                if job is None:
                    break
                waiting.append(submit(executor, job))
                num_new += 1
            if not waiting:
                return
            result = waiting.popleft().result()
            if max_nbytes is None:
                most = 2 * threads
            else:
                most = max(threads, min(4 * threads, max_nbytes // max(1, size_of(result))))
            yield result
    finally:
        if stop is not None:
            stop.set()
        for future in waiting:
            future.cancel()
        executor.shutdown(wait=True)


def map_ahead(
    function: Callable[[Item], T], items: Iterable[Item], *, threads: int, stop: threading.Event | None = None
) -> Generator[T, None, None]:
    """Yield the result for each item in order, computed on threads; with one thread, in the caller's thread.

    Close the iterator to stop the work early; `stop` is set then, as for `run_ahead`.

    Example:
        >>> list(map_ahead(abs, [-1, 2, -3], threads=2))
        [1, 2, 3]
    """
    return run_ahead((partial(function, item) for item in items), threads=threads, stop=stop)


class Run(NamedTuple, Generic[T]):
    """Work of one thread at a time: `begin` returns an iterator over its items, whose expected total is `nbytes`."""

    begin: Callable[[], Iterator[T]]
    nbytes: int


class _BegunRun(Generic[T]):
    """A run that was begun, and its items that wait."""

    def __init__(self, run: Run[T]) -> None:
        self.iterator = run.begin()
        self.items: deque[tuple[T, int]] = deque()
        self.nbytes = 0
        self.is_busy = False
        self.is_over = False
        self.error: BaseException | None = None


class RunsAhead(Generic[T]):
    """Yields the items of runs, one run after the other, while threads advance several runs at a time.

    A thread makes about `step_nbytes` of items before it looks for other work, and at most about `max_nbytes` wait. An
    error of a run is raised after its items. No thread ever waits for the consumer, so a pass that is neither finished
    nor closed does not keep the process from ending. A forked process has none of the threads: there the consumer
    computes the rest, so a run must yield the same items each time it begins. Iterate once, on one thread; close it.
    """

    def __init__(
        self,
        runs: Sequence[Run[T]],
        *,
        threads: int,
        max_nbytes: int,
        step_nbytes: int,
        size_of: Callable[[T], int],
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor  # not worth it with one thread

        self._runs = runs
        self._threads = threads
        self._max_nbytes = max_nbytes
        self._step_nbytes = step_nbytes
        self._size_of = size_of
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="tfrkit-ahead")
        self._process_id = os.getpid()
        self._changed = threading.Condition()  # its lock protects all below
        self._begun: deque[_BegunRun[T]] = deque()
        self._num_begun = 0
        self._num_busy = 0
        self._nbytes = 0
        self._is_closed = False

    def __iter__(self) -> Iterator[T]:
        number = num_taken = 0  # the next item: its run, and its number there
        while os.getpid() == self._process_id:
            with self._changed:
                self._submit_more()
                if not self._begun:
                    return
                first = self._begun[0]
                while not first.items and not first.is_over:
                    self._changed.wait()
                if not first.items:
                    if first.error is not None:
                        raise first.error
                    self._begun.popleft()
                    number, num_taken = number + 1, 0
                    continue
                item, nbytes = first.items.popleft()
                first.nbytes -= nbytes
                self._nbytes -= nbytes
                num_taken += 1
                self._submit_more()
            yield item
        for run in self._runs[number:]:
            yield from islice(run.begin(), num_taken, None)
            num_taken = 0

    def has_next(self) -> bool:
        """Whether the next item can be taken without waiting."""
        if os.getpid() != self._process_id:
            return False
        with self._changed:
            return bool(self._begun and self._begun[0].items)

    def close(self) -> None:
        """Stop the threads and wait for them."""
        if os.getpid() == self._process_id:
            self._is_closed = True
            # Ctrl-C between taking the lock and the block that uses it leaves it taken: threads would wait forever.
            with contextlib.suppress(RuntimeError):
                while True:
                    self._changed.release()
            self._executor.shutdown(wait=True, cancel_futures=True)

    def _submit_more(self) -> None:
        """Give work to idle threads. The caller holds the lock."""
        while self._num_busy < self._threads and not self._is_closed and (chosen := self._choose()) is not None:
            chosen.is_busy = True
            self._num_busy += 1
            try:
                submit(self._executor, partial(self._advance, chosen))
            except RuntimeError:  # Python is ending
                chosen.is_busy = False
                self._num_busy -= 1
                return

    def _choose(self) -> _BegunRun[T] | None:
        """Choose the run to advance next: the first without a thread, else a new one; None if memory is full."""
        is_full = self._nbytes + self._num_busy * self._step_nbytes >= self._max_nbytes
        for at, begun in enumerate(self._begun):
            if (
                not begun.is_busy
                and not begun.is_over
                and (not is_full or (at == 0 and begun.nbytes < self._step_nbytes))
            ):
                return begun
        if self._num_begun == len(self._runs) or (is_full and self._begun):
            return None
        # If n runs are consumed at the speed of n threads, they are 1/n, 2/n, ... done at any time, and n / 2 of their
        # sizes wait. If memory does not hold that, fewer runs are begun: an even share for each would gain less.
        run = self._runs[self._num_begun]
        if len(self._begun) >= max(2, 1 + 2 * self._max_nbytes // max(1, run.nbytes)):
            return None
        self._num_begun += 1
        self._begun.append(_BegunRun(run))
        return self._begun[-1]

    def _advance(self, chosen: _BegunRun[T]) -> None:
        """Compute the next items of a run, on a thread."""
        made: list[tuple[T, int]] = []
        nbytes, is_over = 0, False
        error: BaseException | None = None
        try:
            while nbytes < self._step_nbytes and not self._is_closed:
                item = next(chosen.iterator, None)
                if item is None:
                    is_over = True
                    break
                made.append((item, self._size_of(item)))
                nbytes += made[-1][1]
        except BaseException as raised:
            is_over, error = True, raised  # the consumer raises it
            raise
        finally:
            with self._changed:
                chosen.items.extend(made)
                chosen.nbytes += nbytes
                chosen.is_busy, chosen.is_over, chosen.error = False, is_over, error
                self._nbytes += nbytes
                self._num_busy -= 1
                with contextlib.suppress(MemoryError):  # the task is queued: a thread that was started before runs it
                    self._submit_more()
                self._changed.notify_all()
