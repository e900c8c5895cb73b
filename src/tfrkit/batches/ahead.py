"""Work done ahead of who asks for it: on threads, in order, within a bound of memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
_MAX_THREADS = 16


def count_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def choose_threads(threads: int | None) -> int:
    """As many as asked for, or one for each core."""
    return min(_MAX_THREADS, count_cores()) if threads is None else threads


def run_ahead(
    jobs: Iterator[Callable[[], T]], *, threads: int, max_nbytes: int, size_of: Callable[[T], int]
) -> Iterator[T]:
    """Yield the results of `jobs` in their order, with some of them worked on ahead.

    At most `max_nbytes` of results wait, judged by the size of the last one; one job for each thread always may.
    An error comes when its turn comes. A consumer that stops, however it does, stops the threads.
    """
    from concurrent.futures import ThreadPoolExecutor  # whoever reads on one thread does not pay for it

    executor = ThreadPoolExecutor(threads, thread_name_prefix="tfrkit")
    waiting: deque[Future[T]] = deque()
    most = threads + 1
    try:
        while True:
            while len(waiting) < most and (job := next(jobs, None)) is not None:
                waiting.append(executor.submit(job))
            if not waiting:
                return
            result = waiting.popleft().result()
            nbytes = max(1, size_of(result))
            most = max(threads, min(4 * threads, max_nbytes // nbytes))
            yield result
    finally:
        for future in waiting:
            future.cancel()
        executor.shutdown(wait=True)
