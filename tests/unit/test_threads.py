from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tfrkit import _threads
from tfrkit._threads import Run, RunsAhead, run_ahead


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "100\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n"}, None),
    ],
)
def test_limit_of_the_control_group_is_read(tmp_path: Path, files: dict[str, str], wanted: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _threads._read_quota(str(tmp_path)) == wanted


def test_cores_are_no_more_than_the_control_group_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for quota, wanted in ((None, 8), (0.2, 1), (2.5, 3), (64.0, 8)):
        monkeypatch.setattr(_threads, "_read_quota", lambda root: quota)  # noqa: B023
        assert _threads.count_cores() == wanted


def test_results_before_an_error_of_the_jobs_are_given_first() -> None:
    def jobs() -> Iterator[Callable[[], int]]:
        yield from (partial(int, number) for number in range(5))
        raise ValueError("no job")

    results = run_ahead(jobs(), threads=2)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no job"):
        next(results)


def count_runs(sizes: list[int], log: list[str] | None = None) -> list[Run[int]]:
    """Runs of numbers: run k yields k * 1000, k * 1000 + 1, ..."""

    def begin(run: int, size: int) -> Iterator[int]:
        for at in range(size):
            if log is not None:
                log.append(threading.current_thread().name)
            yield run * 1000 + at

    return [Run(partial(begin, run, size), size) for run, size in enumerate(sizes)]


def run_ahead_of(runs: list[Run[int]], *, threads: int = 3, max_nbytes: int = 50) -> RunsAhead[int]:
    return RunsAhead(runs, threads=threads, max_nbytes=max_nbytes, step_nbytes=4, size_of=lambda item: 1)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 0, 7], [30, 1, 0, 200, 3, 3, 3], [5] * 40])
def test_runs_ahead_come_in_order_for_any_number_of_threads(sizes: list[int], threads: int) -> None:
    for max_nbytes in (1, 10, 1000):
        with closing(run_ahead_of(count_runs(sizes), threads=threads, max_nbytes=max_nbytes)) as ahead:
            assert list(ahead) == [run * 1000 + at for run, size in enumerate(sizes) for at in range(size)]


def test_no_more_items_wait_than_memory_allows() -> None:
    made: list[str] = []
    with closing(run_ahead_of(count_runs([100] * 10, made), threads=4, max_nbytes=40)) as ahead:
        for num_taken, _ in enumerate(ahead, 1):
            assert len(made) - num_taken <= 40 + 4 * 4
    assert len(made) == 1000


def test_several_runs_advance_at_a_time() -> None:
    """Each run waits until all four have begun."""
    together = threading.Barrier(4)

    def begin(run: int) -> Iterator[int]:
        together.wait(timeout=30)
        yield run

    with closing(run_ahead_of([Run(partial(begin, run), 1) for run in range(4)], threads=4)) as ahead:
        assert list(ahead) == [0, 1, 2, 3]


def test_error_of_a_run_is_raised_after_its_items_and_those_before() -> None:
    def fail() -> Iterator[int]:
        yield 5000
        raise ValueError("no more")

    runs = [*count_runs([20, 20]), Run(fail, 1), *count_runs([3])]
    taken = []
    with closing(run_ahead_of(runs)) as ahead, pytest.raises(ValueError, match="no more"):
        for item in ahead:
            taken.append(item)
    assert taken == [*range(20), *range(1000, 1020), 5000]


def test_closed_runs_leave_no_thread(new_threads: Callable[[], list[str]]) -> None:
    ahead = run_ahead_of(count_runs([100_000] * 5))
    assert next(iter(ahead)) == 0
    ahead.close()
    assert new_threads() == []


def run_python(code: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_process_computes_the_rest_itself() -> None:
    code = """
import os, warnings
warnings.simplefilter("ignore")  # of threads in a process that forks
from tfrkit import _threads
runs = [_threads.Run(lambda run=run: iter(range(run, run + 30)), 30) for run in (0, 1000, 2000)]
ahead = _threads.RunsAhead(runs, threads=3, max_nbytes=20, step_nbytes=4, size_of=lambda item: 1)
items = iter(ahead)
print([next(items) for _ in range(40)], flush=True)
child = os.fork()
if child != 0:
    os.waitpid(child, 0)
print(list(items), flush=True)
ahead.close()
if child == 0:
    os._exit(0)
"""
    taken, rest = [*range(30), *range(1000, 1010)], [*range(1010, 1030), *range(2000, 2030)]
    status, out, err = run_python(code)
    assert (status, out.splitlines(), err) == (0, [str(taken), str(rest), str(rest)], "")


def test_process_ends_while_a_pass_is_neither_finished_nor_closed() -> None:
    code = """
from tfrkit import _threads
runs = [_threads.Run(lambda: iter(range(10**9)), 1)] * 9
ahead = _threads.RunsAhead(runs, threads=3, max_nbytes=10, step_nbytes=4, size_of=lambda item: 1 << 20)
items = iter(ahead)
print(next(items))
"""
    assert run_python(code) == (0, "0\n", "")


def test_close_after_an_interrupt_that_left_the_lock_taken_does_not_wait_forever() -> None:
    started, goes_on = threading.Event(), threading.Event()

    def make() -> Iterator[bytes]:
        started.set()
        assert goes_on.wait(60)
        yield b"x"

    ahead = RunsAhead([Run(make, 1)], threads=1, max_nbytes=10, step_nbytes=1, size_of=len)
    with ahead._changed:
        ahead._submit_more()
    assert started.wait(60)
    ahead._changed.acquire()  # as Ctrl-C leaves it, right after the lock was taken
    goes_on.set()
    ahead.close()
