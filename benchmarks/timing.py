"""Taking turns: child processes, one per side and thread count, timed A B A B within one run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SLOW_SECONDS = 30  # what takes longer is warm after it was checked, and is timed once


@dataclass
class Timing:
    """The times one side took for one work."""

    side: str
    way: str
    records: int
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)  # of all its threads; shows how busy the machine was

    @property
    def best(self) -> float:
        """Shortest time: the one least disturbed by the rest of the machine."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Middle time."""
        return statistics.median(self.seconds)

    @property
    def cores(self) -> float:
        """Cores that were busy at the shortest time."""
        return self.cpu_seconds[self.seconds.index(self.best)] / self.best

    @property
    def rate(self) -> float:
        """Records a second at the shortest time."""
        return self.records / self.best


class Worker:
    """A running side; see worker.py."""

    def __init__(self, side: str, python: str, *, threads: int, root: Path, out: Path) -> None:
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="")
        self.side = side
        self.threads = threads
        self._process = subprocess.Popen(
            [
                python,
                str(HERE / "worker.py"),
                "--side",
                side,
                "--threads",
                str(threads),
                "--root",
                str(root),
                "--out",
                str(out),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.slow_works: set[str] = set()

    @cached_property
    def ways(self) -> dict[str, list[str]]:
        """The ways of each work. Asked for late, so that several sides can start at the same time."""
        ways: dict[str, list[str]] = self.ask({"do": "list"})["works"]
        return ways

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the {self.side} process ended with {self._process.wait()} while doing {command}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"{self.side} failed: {answer['error']} - at {command}")
        return answer

    def digest(self, work: str) -> dict[str, Any]:
        """Do the work once and return what came out."""
        before = time.monotonic()
        answer = self.ask({"do": "digest", "work": work})
        if time.monotonic() - before > SLOW_SECONDS:
            self.slow_works.add(work)
        return answer

    def time(self, work: str, way: str) -> dict[str, Any]:
        """Do the work once."""
        answer = self.ask({"do": "time", "work": work, "way": way})
        if answer["seconds"] > SLOW_SECONDS:
            self.slow_works.add(work)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def pick_way(worker: Worker, work: str, *, tries: int) -> str:
    """Return the fastest way of a side, each tried a few times: the first one fills caches and traces functions.

    Ways are compared by CPU time where there is one core: it says the same as the clock and minds other work less.
    """
    ways = worker.ways[work]
    if len(ways) == 1:
        if work not in worker.slow_works:
            worker.time(work, ways[0])
        return ways[0]
    measure = "cpu_seconds" if worker.threads == 1 else "seconds"
    tried = {way: min(worker.time(work, way)[measure] for _ in range(tries)) for way in ways}
    return min(tried, key=lambda way: tried[way])


def time_in_turns(workers: list[Worker], work: str, *, rounds: int, patience: float) -> dict[str, Timing]:
    """Time every side in turns until ``rounds`` are done or ``patience`` seconds are spent (two rounds at least).

    A side that needs minutes is timed once: disturbances are short in comparison.
    """
    timings = {worker.side: Timing(worker.side, pick_way(worker, work, tries=min(rounds, 2)), 0) for worker in workers}
    spent = 0.0
    for round_number in range(rounds):
        if round_number >= 2 and spent > patience:
            break
        for worker in workers:
            timing = timings[worker.side]
            if timing.seconds and timing.seconds[-1] > SLOW_SECONDS:
                continue
            answer = worker.time(work, timing.way)
            timing.records = answer["records"]
            timing.seconds.append(answer["seconds"])
            timing.cpu_seconds.append(answer["cpu_seconds"])
            spent += answer["seconds"]
    return timings
