"""Prefetching on threads: results in order, with bounded memory."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Item = TypeVar("Item")
T = TypeVar("T")
_MAX_THREADS = 16


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
            words = " ".join(Path(root, name).read_text() for name in names).split()
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError, IndexError):  # missing file, or "max"
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None


def choose_threads(threads: int | None) -> int:
    """Return the given number of threads, or one per core."""
    return min(_MAX_THREADS, count_cores()) if threads is None else threads


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
) -> Generator[T, None, None]:
    """Yield the results of `jobs` in order, computed ahead on threads.

    At most about `max_nbytes` of results are kept, estimated from the size of the last one, but at least one job per
    thread; by default two jobs per thread. An error is raised in place of its result, an error of `jobs` after the
    results before it. Threads stop with the consumer.
    """
    from concurrent.futures import ThreadPoolExecutor  # not worth it with one thread

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
        for future in waiting:
            future.cancel()
        executor.shutdown(wait=True)


def map_ahead(function: Callable[[Item], T], items: Iterable[Item], *, threads: int) -> Generator[T, None, None]:
    """Yield the result for each item in order, computed on threads; with one thread, in the caller's thread.

    Close the iterator to stop the work early.

    Example:
        >>> list(map_ahead(abs, [-1, 2, -3], threads=2))
        [1, 2, 3]
    """
    if threads <= 1:
        yield from map(function, items)
    else:
        yield from run_ahead((partial(function, item) for item in items), threads=threads)
