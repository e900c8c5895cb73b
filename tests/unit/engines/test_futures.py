"""The loop against a cluster with a virtual clock: everything happens at known times, and nothing sleeps."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import pytest

from tfrkit.engines.futures import Death, FuturesEngine
from tfrkit.engines.worker import WorkerReply
from tfrkit.errors import SourceError, TfrkitError


@dataclass(frozen=True)
class Work:
    key: str
    seconds: float = 1.0

    @property
    def path(self):
        return f"out/{self.key}"


class WorkerDied(Exception):
    pass


@dataclass(eq=False)
class Future:
    task: Work
    avoid: list
    worker: int = -1
    started: float = -1
    answer: Any = None


@dataclass
class VirtualCluster:
    """Workers that take calls in order. `plays`: what happens at (task, attempt), or at every attempt of a task."""

    num_workers: int = 2
    plays: dict = field(default_factory=dict)
    time: float = 0.0
    stopped: set = field(default_factory=set)
    submitted: list = field(default_factory=list)
    canceled: list = field(default_factory=list)
    most_in_flight: int = 0

    def __post_init__(self):
        self._free = list(range(self.num_workers))
        self._waiting: list[Future] = []
        self._events: list = []
        self._attempts: dict[str, int] = {}
        self._in_flight = 0

    def count_slots(self):
        return self.num_workers

    def dump(self, task):
        return task

    def prepare(self, terms):
        self.terms = terms

    def submit(self, payloads):
        return [self._submit(payload, []) for payload in payloads]

    def submit_elsewhere(self, payload, futures):
        return self._submit(payload, futures)

    def _submit(self, payload, avoid):
        future = Future(payload, [call.worker for call in avoid])
        self.submitted.append(payload.key)
        self._waiting.append(future)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        self._start()
        return future

    def _start(self):
        while self._waiting and self._free:
            future, worker = self._waiting.pop(0), self._free.pop(0)
            task = future.task
            attempt = self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
            play = self.plays.get((task.key, attempt), self.plays.get(task.key, {}))
            future.worker, future.started = worker, self.time
            future.answer = play.get(
                "answer", WorkerReply("done", task.key, (1, 10, 0), play.get("seconds", task.seconds))
            )
            seconds = play.get("seconds", task.seconds)
            if worker not in self.stopped and seconds is not None:
                heapq.heappush(self._events, (self.time + seconds, len(self.submitted), id(future), future))

    def wait(self, seconds):
        until = self.time + seconds
        if not self._events or self._events[0][0] > until:
            self.time = until
            return []
        self.time = self._events[0][0]
        done = []
        while self._events and self._events[0][0] <= self.time:
            future = heapq.heappop(self._events)[-1]
            self._free.append(future.worker)
            self._in_flight -= 1
            done.append(future)
        self._start()
        return done

    def take(self, future):
        if isinstance(future.answer, Exception):
            raise future.answer
        return future.answer

    def cancel(self, future):
        self.canceled.append(future.task.key)
        if future in self._waiting:
            self._waiting.remove(future)
        self._in_flight -= 1

    def explain(self, error):
        return Death(1, str(error)) if isinstance(error, WorkerDied) else None

    def now(self):
        return self.time


def run(cluster, tasks, then=lambda task, result: (), meanwhile=None, jobs=None):
    counts = []
    engine = FuturesEngine(cluster, jobs)
    results = list(engine.run(tasks, then=then, progress=lambda *more: counts.append(more), meanwhile=meanwhile))
    return results, [sum(column) for column in zip(*counts, strict=True)]


def works(count, seconds=1.0):
    return [Work(f"w{number}", seconds) for number in range(count)]


def test_every_task_is_done_once_and_progress_adds_up():
    cluster = VirtualCluster(num_workers=3)
    results, counts = run(cluster, works(20))
    assert sorted(results) == sorted(f"w{n}" for n in range(20))
    assert cluster.submitted == [f"w{n}" for n in range(20)]
    assert counts == [20, 200, 0]
    assert cluster.time == 7.0


def test_window_is_two_calls_per_slot_and_tasks_are_made_lazily():
    cluster = VirtualCluster(num_workers=3)
    made = []

    def tasks():
        for task in works(1000):
            made.append(task)
            assert len(made) <= len(cluster.submitted) + 6
            yield task

    run(cluster, tasks())
    assert cluster.most_in_flight == 6


def test_window_grows_for_short_tasks():
    cluster = VirtualCluster(num_workers=2)
    run(cluster, works(500, seconds=0.001))
    assert cluster.most_in_flight == 64


def test_jobs_limit_the_calls_in_flight():
    cluster = VirtualCluster(num_workers=8)
    run(cluster, works(50), jobs=3)
    assert cluster.most_in_flight == 3


def test_no_tasks_give_no_results():
    assert run(VirtualCluster(), []) == ([], [])


def test_steps_meanwhile_all_run():
    taken = []

    def steps():
        for number in range(300):
            taken.append(number)
            yield

    run(VirtualCluster(), works(3), meanwhile=steps())
    assert taken == list(range(300))


def test_follow_up_tasks_are_done_before_the_next_ones():
    cluster = VirtualCluster(num_workers=1)

    def then(task, result):
        return [Work(task.key + "+")] if not task.key.endswith("+") else ()

    results, _ = run(cluster, works(4), then)
    assert sorted(results) == ["w0", "w0+", "w1", "w1+", "w2", "w2+", "w3", "w3+"]
    assert cluster.submitted.index("w0+") < cluster.submitted.index("w3")


def test_task_of_a_dead_worker_is_submitted_again():
    died = {"answer": WorkerDied("node gone")}
    cluster = VirtualCluster(plays={("w1", 1): died, ("w1", 2): died})
    results, _ = run(cluster, works(6))
    assert sorted(results) == [f"w{n}" for n in range(6)]
    assert cluster.submitted.count("w1") == 3
    assert len(cluster.submitted) == 8


def test_deaths_are_counted_by_task():
    """Each of twenty tasks loses a worker twice: none of them three times."""
    died = {"answer": WorkerDied("node gone")}
    cluster = VirtualCluster(plays={(f"w{n}", attempt): died for n in range(20) for attempt in (1, 2)})
    results, _ = run(cluster, works(20))
    assert len(results) == 20
    assert len(cluster.submitted) == 60


def test_third_death_at_a_task_ends_the_job_and_names_shard_and_cause():
    cluster = VirtualCluster(plays={"w1": {"answer": WorkerDied("out of memory")}})
    with pytest.raises(TfrkitError, match=r"a worker ended \(out of memory\) 3 times at the same task - at w1"):
        run(cluster, works(100))
    assert cluster.submitted.count("w1") == 3


def test_error_of_a_task_ends_the_job_after_running_tasks_finish():
    cluster = VirtualCluster(
        num_workers=3,
        plays={"w1": {"answer": WorkerReply("failed", SourceError("broken", shard="w1")), "seconds": 0.5}},
    )
    finished = []

    def then(task, result):
        finished.append(result)
        return ()

    with pytest.raises(SourceError, match="broken - at w1"):
        run(cluster, works(100), then)
    # w0 and w2 ran, and w3 began on the worker of w1; the others waited.
    assert finished == ["w0", "w2", "w3"]
    assert len(cluster.submitted) == 6
    assert sorted(cluster.canceled) == ["w4", "w5"]


def test_refused_worker_ends_the_job_by_name():
    refused = WorkerReply("refused", "node7, process 12: tfrkit 0.0.9, expected 0.1.0 as on the driver")
    with pytest.raises(TfrkitError, match=r"a worker was refused: node7, process 12: tfrkit 0\.0\.9"):
        run(VirtualCluster(plays={"w0": {"answer": refused}}), works(3))


def test_error_of_the_engine_itself_is_raised_and_all_calls_are_canceled():
    cluster = VirtualCluster(plays={"w0": {"answer": RuntimeError("engine broke"), "seconds": 0.5}})
    with pytest.raises(RuntimeError, match="engine broke"):
        run(cluster, works(50))
    assert sorted(cluster.canceled) == ["w1", "w2", "w3"]


def test_straggler_is_run_again_and_the_first_result_counts():
    cluster = VirtualCluster(num_workers=2, plays={("w3", 1): {"seconds": None}})
    results, counts = run(cluster, works(12))
    assert sorted(results) == sorted(f"w{n}" for n in range(12))
    assert cluster.submitted.count("w3") == 2
    assert cluster.canceled == ["w3"]
    assert counts[0] == 12
    # 11 tasks on the other worker, and the copy.
    assert cluster.time <= 14


def test_stopped_worker_costs_its_share_and_little_more():
    whole = VirtualCluster(num_workers=3)
    run(whole, works(60))
    cluster = VirtualCluster(num_workers=3, stopped={1})
    results, _ = run(cluster, works(60))
    assert len(results) == 60
    assert cluster.time <= 1.5 * whole.time + 3


def test_no_copy_while_tasks_are_left_or_times_are_even():
    cluster = VirtualCluster(num_workers=4, plays={f"w{n}": {"seconds": 1.9} for n in range(0, 40, 7)})
    run(cluster, works(40))
    assert len(cluster.submitted) == 40


def test_slow_copy_loses_against_the_first_call():
    cluster = VirtualCluster(num_workers=2, plays={("w0", 1): {"seconds": 9.0}, ("w0", 2): {"seconds": 50.0}})
    results, _ = run(cluster, works(8))
    assert results.count("w0") == 1
    assert cluster.time == 9.0
    assert cluster.canceled == ["w0"]


def test_death_of_a_copy_leaves_the_first_call_running():
    cluster = VirtualCluster(
        num_workers=2,
        plays={("w0", 1): {"seconds": 12.0}, ("w0", 2): {"answer": WorkerDied("gone"), "seconds": 0.1}},
    )
    results, _ = run(cluster, works(8))
    assert results.count("w0") == 1
