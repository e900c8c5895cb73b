from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

from tfrkit._threads import count_cores
from tfrkit.build.journal import ShardResult
from tfrkit.engines import local
from tfrkit.engines.local import LocalEngine, choose_start_method
from tfrkit.errors import SourceError, TfrkitError


@dataclass(frozen=True)
class Write:
    path: str

    @property
    def key(self):
        return os.path.basename(self.path)

    def run(self, tick):
        with open(self.path, "a") as file:
            file.write(f"{os.getpid()}\n")
        tick(2, 10, 1)
        return ShardResult(os.path.basename(self.path))


@dataclass(frozen=True)
class DieUntil(Write):
    """Kills its worker the first `times` times."""

    times: int

    def run(self, tick):
        result = super().run(tick)
        with open(self.path) as file:
            if len(file.readlines()) <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return result


@dataclass(frozen=True)
class Fail:
    path: str
    key = "x"

    def run(self, tick):
        raise SourceError("broken on purpose", shard=self.path)


@dataclass(frozen=True)
class Unsendable:
    path: str
    key = "x"

    def run(self, tick):
        error = RuntimeError("odd")
        error.lock = threading.Lock()
        raise error


def run(tasks, jobs, then=lambda task, result: []):
    seen = []
    results = list(LocalEngine(jobs).run(tasks, then=then, progress=lambda *counts: seen.append(counts)))
    return results, [sum(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_is_done_and_progress_adds_up(tmp_path, jobs):
    results, counts = run([Write(str(tmp_path / str(n))) for n in range(7)], jobs)
    assert sorted(result.name for result in results) == list("0123456")
    assert counts == [14, 70, 7]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("num_tasks", [0, 5])
def test_meanwhile_steps_all_run_alongside_the_tasks(tmp_path, jobs, num_tasks):
    taken = []

    def steps():
        for number in range(300):
            taken.append(number)
            yield

    tasks = [Write(str(tmp_path / str(n))) for n in range(num_tasks)]
    results = LocalEngine(jobs).run(tasks, then=lambda *_: [], progress=lambda *_: None, meanwhile=steps())
    assert len(list(results)) == num_tasks
    assert taken == list(range(300))


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_that_follow_are_done_too(tmp_path, jobs):
    def then(task, result):
        return [Write(task.path + "+")] if not task.path.endswith("+") else []

    results, _ = run([Write(str(tmp_path / str(n))) for n in range(3)], jobs, then)
    assert sorted(result.name for result in results) == ["0", "0+", "1", "1+", "2", "2+"]


def test_workers_are_other_processes(tmp_path):
    run([Write(str(tmp_path / "x")), Write(str(tmp_path / "y"))], 2)
    pids = {(tmp_path / name).read_text().strip() for name in "xy"}
    assert str(os.getpid()) not in pids


def test_killed_worker_is_replaced_and_its_task_done_again(tmp_path):
    tasks = [DieUntil(str(tmp_path / "x"), 2), *(Write(str(tmp_path / str(n))) for n in range(5))]
    results, _ = run(tasks, 2)
    assert len(results) == 6
    assert len((tmp_path / "x").read_text().splitlines()) == 3


def test_task_that_kills_every_worker_stops_the_build(tmp_path):
    with pytest.raises(TfrkitError, match=r"a worker ended by signal 9 \(SIGKILL\) 3 times at the same task - at x"):
        run([DieUntil(str(tmp_path / "x"), 99)], 2)


@pytest.mark.parametrize("jobs", [1, 2])
def test_error_of_a_task_is_raised_as_it_is(tmp_path, jobs):
    with pytest.raises(SourceError, match="broken on purpose - at x"):
        run([Fail("x")], jobs)


def test_error_that_does_not_pickle_is_sent_as_text():
    with pytest.raises(RuntimeError, match="RuntimeError: odd"):
        run([Unsendable("x")], 2)


def test_no_worker_outlives_the_run(tmp_path):
    import multiprocessing

    run([Write(str(tmp_path / str(n))) for n in range(4)], 2)
    assert multiprocessing.active_children() == []


def test_threads_in_this_process_mean_no_fork():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert choose_start_method() == "spawn"
    finally:
        end.set()
        thread.join()


def test_packages_with_threads_of_their_own_mean_no_fork(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert choose_start_method() == "spawn"


def test_spawned_workers_do_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "choose_start_method", lambda: "spawn")
    results, counts = run([Write(str(tmp_path / str(n))) for n in range(3)], 2)
    assert len(results) == 3
    assert counts == [6, 30, 3]


def test_script_without_a_main_guard_may_build_with_spawned_workers(tmp_path):
    """A spawned process imports the main file again; with a bare call in it that would start builds without end."""
    script = tmp_path / "script.py"
    script.write_text(
        "import threading, time\n"
        "import tfrkit as tfr\n"
        "threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
        f"report = tfr.build([{{'x': i}} for i in range(10)], {str(tmp_path / 'out')!r}, shards=3, jobs=2)\n"
        "print(report.written)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


def test_processors_are_counted():
    assert count_cores() >= 1
