"""How soon reading starts: the header scan, the first batch with and without an index, a resume late in an epoch.

Every start is timed in a fresh process, without its imports, with a cache folder of its own: what an earlier process
remembered does not count. Files are in the page cache.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCAN_BAR = 8e6  # records a second
FIRST_BATCH_BAR = 0.05  # seconds
RESUME_SLACK = 0.005  # what a shared machine is off from one start to the next
TRIES = 5

SCAN = """
import json, sys, time
from tfrkit import open as open_dataset
before = time.perf_counter()
count = len(open_dataset(sys.argv[1]))
print(json.dumps({"records": count, "seconds": time.perf_counter() - before}))
"""

FIRST_BATCH = """
import json, sys, time
from tfrkit import open as open_dataset
before = time.perf_counter()
ds = open_dataset(sys.argv[1])
next(iter(ds.shuffle(seed=7).batch(int(sys.argv[2]))))
print(json.dumps({"records": len(ds), "seconds": time.perf_counter() - before}))
"""

# Starts at both places take turns in one process, each in an iterator of its own.
RESUME = """
import json, sys, time
import tfrkit as tfr
batches = tfr.open(sys.argv[1]).shuffle(seed=7).batch(int(sys.argv[2]))
late = iter(batches)
for _ in range(len(batches) * 9 // 10):
    next(late)
state = late.state_dict()
late.close()
def start(state):
    before = time.perf_counter()
    iterator = iter(batches)
    if state is not None:
        iterator.load_state_dict(state)
    next(iterator)
    seconds = time.perf_counter() - before
    iterator.close()
    return seconds
turns = [(start(None), start(state)) for _ in range(int(sys.argv[3]))]
print(json.dumps({"turns": turns, "nbytes": len(json.dumps(state))}))
"""


@dataclass(frozen=True)
class Figure:
    """One line of the report."""

    title: str
    value: str
    bar: str = ""
    is_met: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return vars(self)


def measure(root: Path) -> list[dict[str, Any]]:
    """Return all figures."""
    with tempfile.TemporaryDirectory() as folder:
        figures = [measure_scan(root / "small.tfrecord")]
        for name, batch in (("tabular.tfrecord", 1024), ("images.tfrecord", 64)):
            figures += measure_first_batch(root / name, batch, Path(folder))
        figures.append(measure_resume(root / "tabular.tfrecord", 1024))
    return [figure.to_json() for figure in figures]


def run_fresh(program: str, *arguments: str | Path) -> dict[str, Any]:
    """Run a program in a fresh process with an empty cache folder."""
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, XDG_CACHE_HOME=cache)
        command = [sys.executable, "-c", program, *map(str, arguments)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def fastest(program: str, *arguments: str | Path) -> tuple[int, float]:
    """Return records and seconds of the fastest of a few starts."""
    answers = [run_fresh(program, *arguments) for _ in range(TRIES)]
    return answers[0]["records"], min(answer["seconds"] for answer in answers)


def measure_scan(path: Path) -> Figure:
    """Find all records of a file without an index."""
    records, seconds = fastest(SCAN, path)
    return Figure(
        f"header scan, {records:,} records of 200 bytes",
        f"{records / seconds / 1e6:.1f} M records/s",
        f"≥ {SCAN_BAR / 1e6:g} M records/s",
        records / seconds >= SCAN_BAR,
    )


def measure_first_batch(path: Path, batch: int, folder: Path) -> list[Figure]:
    """Read the first batch of a shuffled file, without an index and with one."""
    from tfrkit.ops.index import make_index

    records, without = fastest(FIRST_BATCH, path, batch)
    link = folder / path.name
    link.symlink_to(path.resolve())
    make_index(link)
    _, with_index = fastest(FIRST_BATCH, link, batch)
    what = f"first batch of {batch}, shuffled, {records:,} records of {path.stat().st_size / 1e9:.1f} GB"
    bar = f"< {FIRST_BATCH_BAR * 1000:.0f} ms"
    return [
        Figure(f"{what}, no index", f"{without * 1000:.0f} ms"),
        Figure(f"{what}, with an index", f"{with_index * 1000:.0f} ms", bar, with_index < FIRST_BATCH_BAR),
    ]


def measure_resume(path: Path, batch: int) -> Figure:
    """Compare the first batch after a resume at 90 % of an epoch with that of an epoch's start."""
    answer = run_fresh(RESUME, path, batch, 4 * TRIES + 1)
    start, late = (statistics.median(seconds) for seconds in zip(*answer["turns"], strict=True))
    return Figure(
        f"first batch after a resume at 90 % of an epoch, from a state of {answer['nbytes']} bytes",
        f"{late * 1000:.1f} ms, at 0 % {start * 1000:.1f} ms",
        f"as fast as a start, within {RESUME_SLACK * 1000:.0f} ms",
        late <= start + RESUME_SLACK,
    )
