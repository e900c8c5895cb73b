"""Cost per record and memory of every step, from 10^5 to 10^8 small records in shards of 100,000.

    python benchmarks/many_records.py                              # 10^5, 10^6, 10^7: 0.7 GB of disk
    python benchmarks/many_records.py --records 100000 100000000   # 10^8: 7 GB of disk, 1,000 shards

Needs tfrkit, NumPy and duckdb. Each step runs in a fresh process that reports its processor time, without imports, and
RssAnon, its memory without pages of mapped files. Processor time, not wall time: the bar is a cost per record within
15 % of that of the smallest size that a step takes a second for, on a machine that does other things, too. Files
are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threads import describe_machine

import tfrkit as tfr

SHARD_RECORDS = 100_000
PART = 100  # one in this many records is read by the shuffled pass, at least PART_RECORDS
PART_RECORDS = 100_000


def write(folder: str, num_records: int) -> int:
    """Write shards of three numbers a record, with an index."""
    os.makedirs(folder)
    num_shards = -(-num_records // SHARD_RECORDS)
    rng = np.random.default_rng(7)
    for shard in range(num_shards):
        start, stop = shard * SHARD_RECORDS, min(num_records, (shard + 1) * SHARD_RECORDS)
        with tfr.Writer(f"{folder}/m.tfrecord-{shard:05}-of-{num_shards:05}", index=True) as writer:
            count = stop - start
            columns = {"id": np.arange(start, stop), "label": rng.integers(0, 10, count)}
            writer.write_columns({**columns, "value": rng.random(count).astype(np.float32)})
    return num_records


def open_files(folder: str, num_records: int) -> int:
    """Open the files and count the records."""
    assert len(tfr.open(folder)) == num_records
    return 1


def read_first_batch(folder: str, num_records: int) -> int:
    """Make the first batch of a shuffle."""
    assert len(next(iter(tfr.open(folder).shuffle(1).batch(256)))["id"]) == 256
    return 1


def read_shuffled(folder: str, num_records: int) -> int:
    """Read a part of an epoch in exact shuffled order."""
    part = min(num_records, max(PART_RECORDS, num_records // PART))
    total = sum(len(batch["id"]) for batch in tfr.open(folder).shuffle(1).take(part).batch(1024))
    assert total == part
    return part


def read_all(folder: str, num_records: int) -> int:
    """Read every record in file order, in batches."""
    assert sum(len(batch["id"]) for batch in tfr.open(folder).batch(1024)) == num_records
    return num_records


def verify(folder: str, num_records: int) -> int:
    """Check every record."""
    from tfrkit import tools

    assert sum(shard.records for shard in tools.verify(folder).shards) == num_records
    return num_records


def stats(folder: str, num_records: int) -> int:
    """Compute the statistics of every feature."""
    from tfrkit import tools

    tools.stats(folder)
    return num_records


def query(folder: str, num_records: int) -> int:
    """Count and sum by label."""
    from tfrkit import tools

    asked = f"select label, count(*) as n, sum(id) as s from '{folder}/*' group by label"
    rows = list(tools.sql(asked).rows())
    assert sum(row["n"] for row in rows) == num_records
    return num_records


STEPS: dict[str, Callable[[str, int], int]] = {
    "write_columns, index": write,
    "open and count": open_files,
    "first shuffled batch": read_first_batch,
    "shuffled pass over a part": read_shuffled,
    "batches in file order": read_all,
    "verify": verify,
    "stats": stats,
    "sql group by": query,
}


def read_memory() -> int:
    """Return the memory of this process in bytes, without mapped files."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon"))


def run_step(name: str, folder: str, num_records: int) -> None:
    """Run one step in this process and print its cost."""
    import tfrkit.ops.query.query
    import tfrkit.ops.verify.verify
    import tfrkit.view.stats  # noqa: F401 - imports are not a part of the cost

    peak, is_done = [read_memory()], threading.Event()

    def watch() -> None:
        while not is_done.wait(0.02):
            peak[0] = max(peak[0], read_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    started, wall = time.process_time(), time.monotonic()
    done = STEPS[name](folder, num_records)
    cpu, wall = time.process_time() - started, time.monotonic() - wall
    is_done.set()
    watcher.join()
    print(json.dumps({"records": done, "cpu": cpu, "wall": wall, "peak": peak[0]}))


def measure(name: str, folder: Path, num_records: int) -> dict[str, float]:
    """Run one step in a fresh process."""
    command = [sys.executable, __file__, "--step", name, "--folder", str(folder), "--records", str(num_records)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measure all sizes, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--folder", type=Path, default=None, help="for the files; they are removed")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        run_step(given.step, str(given.folder), given.records[0])
        return
    print(describe_machine(), file=sys.stderr)
    lines = ["| step | records | µs of processor time per record | memory |", "| --- | ---: | ---: | ---: |"]
    found: dict[str, list[str]] = {name: [] for name in STEPS}
    for num_records in given.records:
        with tempfile.TemporaryDirectory(dir=given.folder) as place:
            for name in STEPS:
                cost = measure(name, Path(place) / "d", num_records)
                print(json.dumps({"step": name, "size": num_records, **cost}), file=sys.stderr, flush=True)
                each = f"{cost['cpu'] / cost['records'] * 1e6:,.3f}"
                if cost["records"] == 1:
                    each = f"{cost['cpu'] * 1e3:,.0f} ms in all"
                found[name].append(f"| {name} | {num_records:,} | {each} | {cost['peak'] / 1e6:,.0f} MB |")
            shutil.rmtree(Path(place) / "d", ignore_errors=True)
    print("\n".join([*lines, *(line for rows in found.values() for line in rows)]))


if __name__ == "__main__":
    main()
