"""Steps in Python on threads: batches are read in order by one reader, finished in parallel, and returned in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from tfrkit._threads import run_ahead
from tfrkit.batches.collate import size_batch
from tfrkit.codec.decode import Batch

Finished = tuple[Batch, int]
"""A batch and the row of the epoch where it ends."""

Job = Callable[[], Finished] | Finished
"""Finishes one batch that was read, or is a finished one."""

# Bytes of batches per task of a thread, large enough that the cost of passing tasks between threads is small.
_GROUP_NBYTES = 1 << 20
_MAX_GROUP = 16


def run_steps(jobs: Iterator[Job], *, threads: int, num_batches: int | None, ahead_nbytes: int) -> Iterator[Finished]:
    """Yield the result of every job in order. Jobs are taken on the caller's thread and run on `threads`, or there too.

    A thread gets several small batches at a time; `num_batches` is their number if known. An error of a job, or of the
    reader that makes the jobs, is raised after the batches before it.
    """
    if threads == 1 or num_batches in (0, 1):
        for job in jobs:
            yield job() if callable(job) else job
        return
    most = _MAX_GROUP if num_batches is None else min(_MAX_GROUP, num_batches // threads)
    group_size = 1  # the first groups, so that the first batch does not wait for others

    def take_groups() -> Iterator[Callable[[], list[Finished]]]:
        while True:
            taken: list[Job] = []
            try:
                taken.extend(islice(jobs, group_size))
            except Exception:
                yield partial(_run_group, taken)
                raise
            if not taken:
                return
            yield partial(_run_group, taken)

    failed = None
    try:
        for made in run_ahead(take_groups(), threads=threads, max_nbytes=ahead_nbytes, size_of=_size_group):
            if made:
                nbytes = size_batch(made[-1][0])
                group_size = max(1, min(most, _GROUP_NBYTES // max(1, nbytes)))
            yield from made
    except _JobError as error:
        failed = error
    if failed is not None:
        yield from failed.made
        try:
            raise failed.error
        finally:
            failed = None  # its traceback refers to this frame: a cycle would keep the batches


class _JobError(Exception):
    """The error of a job, and the batches of its group before it."""

    def __init__(self, made: list[Finished], error: Exception) -> None:
        self.made = made
        self.error = error


def _run_group(jobs: list[Job]) -> list[Finished]:
    made: list[Finished] = []
    for job in jobs:
        try:
            made.append(job() if callable(job) else job)
        except Exception as error:  # noqa: BLE001  (raised by the caller, in its place)
            raise _JobError(made, error) from None
    return made


def _size_group(made: list[Finished]) -> int:
    return sum(size_batch(batch) for batch, _ in made)
