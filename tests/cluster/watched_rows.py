"""A source whose reads are slow and leave traces, so that tests can kill the worker that reads, and count repeats.

Workers of a cluster import this module, so it lies on PYTHONPATH.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from tfrkit.sources.base import Items, RowReader, Scan


@dataclass(frozen=True)
class WatchedRows:
    """Rows of a number and a text. Each read of a worker takes `seconds`, and appends the number to `traces`/<pid>."""

    size: int
    traces: str
    seconds: float = 0.0
    # The row at which every worker kills itself.
    deadly: int = -1
    kind = "watched-rows"
    title = "rows"

    def options(self) -> dict[str, Any]:
        return {"size": self.size}

    def scan(self, scratch: str) -> Scan:
        os.makedirs(self.traces, exist_ok=True)
        reader = WatchedReader(self.traces, self.seconds, self.deadly)
        return Scan("rows", Items(self.size), reader, None, order="seeded")


class WatchedReader(RowReader):
    def __init__(self, traces: str, seconds: float, deadly: int) -> None:
        self._traces, self._seconds, self._deadly = traces, seconds, deadly
        self._planner = os.getpid()

    def read(self, item: Any) -> dict[str, Any]:
        if os.getpid() == self._planner:  # a sample, for the sizes of shards; or a build in this process
            return self._make(item.number)
        with open(os.path.join(self._traces, str(os.getpid())), "a") as file:
            file.write(f"{item.number}\n")
        if item.number == self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._seconds:
            time.sleep(self._seconds)
        return self._make(item.number)

    @staticmethod
    def _make(number: int) -> dict[str, Any]:
        return {"x": number, "text": f"row {number}" * (number % 7)}

    def take_facts(self) -> dict[str, Any]:
        return {}


def read_traces(folder: str) -> dict[int, list[int]]:
    """Return the numbers that each process has read, by its id."""
    traces = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, name)) as file:
            traces[int(name)] = [int(line) for line in file.read().split()]
    return traces
