"""Overhead of the loop over a cluster: empty tasks against the engine's own calls, and the memory of the driver.

    .venv-cluster/bin/python benchmarks/engines.py ray --tasks 2000 --many 100000

Prints one JSON row per measurement. Workers are two processes of this machine; Dask's scheduler runs in the driver, so
its time and memory count.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tfrkit.engines.choose import open_engine


@dataclass(frozen=True)
class Empty:
    """A task that does nothing."""

    number: int

    @property
    def path(self) -> str:
        return str(self.number)

    @property
    def key(self) -> str:
        return str(self.number)

    def run(self, tick: Any) -> int:
        return self.number


def nothing(number: int) -> int:
    return number


@contextmanager
def started(name: str) -> Iterator[Callable[[int], None]]:
    """Start an engine with two workers; yields a function that makes n calls by the engine's own means."""
    if name == "ray":
        import ray

        ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        call = ray.remote(num_cpus=1, max_retries=0)(nothing)
        yield lambda count: ray.get([call.remote(number) for number in range(count)]) and None
        ray.shutdown()
        return
    from distributed import Client, LocalCluster

    settings: dict[str, Any] = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=2, threads_per_worker=1, **settings) as cluster, Client(cluster) as client:
        yield lambda count: client.gather(client.map(nothing, range(count), pure=False)) and None


def run_ours(name: str, count: int) -> None:
    with open_engine(name) as engine:  # type: ignore[arg-type]
        tasks = map(Empty, range(count))
        done = sum(1 for _ in engine.run(tasks, then=lambda *_: (), progress=lambda *_: None))
    assert done == count


def measure(work: Callable[[], None]) -> tuple[float, float]:
    """Return the processor time of this process, and the time."""
    before, began = time.process_time(), time.monotonic()
    work()
    return time.process_time() - before, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["ray", "dask"])
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with started(options.engine) as call:
        call(50)
        run_ours(options.engine, 50)
        rows = []
        for _ in range(options.times):
            rows.append(
                (measure(lambda: call(options.tasks)), measure(lambda: run_ours(options.engine, options.tasks)))
            )
        ratios = {
            what: statistics.median(ours[place] / theirs[place] for theirs, ours in rows)
            for place, what in enumerate(("cpu", "wall"))
        }
        row: dict[str, Any] = {"engine": options.engine, "tasks": options.tasks, "ratio": ratios}
        row["seconds"] = [{"own": theirs, "ours": ours} for theirs, ours in rows]
        print(json.dumps(row), flush=True)
        if options.many:
            cpu, wall = measure(lambda: run_ours(options.engine, options.many))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(json.dumps({"engine": options.engine, "tasks": options.many, "cpu": cpu, "wall": wall, "peak": peak}))


if __name__ == "__main__":
    # Workers import the task by its name, as they do with tasks of tfrkit; of a script they would get its code.
    folder = os.path.dirname(os.path.abspath(__file__))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    import engines

    engines.main()
