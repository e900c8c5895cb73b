"""How batches of columns grow with threads, against separate processes: what one machine gives and what it allows.

    python benchmarks/threads.py                      # 2 M Examples of 20 numbers in a temporary folder
    python benchmarks/threads.py --rows 200000 --threads 1 2 --out threads.md

Needs tfrkit and NumPy, nothing else. Every way of reading is first held against one thread: the same rows in the same
batches. `python` is the processor time of the thread that takes the batches, for each of them: what is done one batch
at a time, whatever the number of threads.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tfrkit as tfr

NUM_COLUMNS = 20
ORDERS = ("file order", "shuffled")


def write_shards(folder: Path, num_rows: int, num_shards: int) -> None:
    rng = np.random.default_rng(7)
    share = num_rows // num_shards
    for shard in range(num_shards):
        columns: dict[str, Any] = {f"i{k}": rng.integers(0, 1 << (4 * k + 3), share) for k in range(NUM_COLUMNS // 2)}
        columns |= {f"f{k}": rng.random(share).astype(np.float32) for k in range(NUM_COLUMNS // 2)}
        columns["i0"] = np.arange(shard * share, (shard + 1) * share)
        with tfr.Writer(folder / f"bench-{shard:05}.tfrecord") as writer:
            writer.write_columns(columns)


def open_batches(paths: list[str], order: str, size: int, threads: int) -> Any:
    ds = tfr.open(paths)
    return (ds if order == "file order" else ds.shuffle(seed=1)).batch(size, threads=threads)


def digest(batches: Any) -> str:
    """A name for all values of a pass, batch by batch."""
    state = hashlib.blake2b(digest_size=8)
    for batch in batches:
        for name, column in batch.items():
            state.update(name.encode() + column.tobytes())
    return state.hexdigest()


def read(batches: Any) -> tuple[int, int]:
    num_rows = num_batches = 0
    for batch in batches:
        num_rows += len(batch["i0"])
        num_batches += 1
    return num_rows, num_batches


def time_threads(paths: list[str], order: str, size: int, threads: int, rounds: int) -> tuple[float, float]:
    """Rows a second, and seconds of the taking thread for each batch; the best of some passes."""
    batches = open_batches(paths, order, size, threads)
    read(batches)  # pages are mapped in, shards are located
    found = []
    for _ in range(rounds):
        started, used = time.perf_counter(), time.thread_time()
        num_rows, num_batches = read(batches)
        used = time.thread_time() - used
        found.append((num_rows / (time.perf_counter() - started), used / num_batches))
    return max(rate for rate, _ in found), min(used for _, used in found)


def _work(paths: list[str], order: str, size: int, barrier: Any, results: Any) -> None:
    batches = open_batches(paths, order, size, threads=1)
    read(batches)
    barrier.wait()
    started = time.time()
    num_rows, _ = read(batches)
    results.put((started, time.time(), num_rows))


def time_processes(paths: list[str], order: str, size: int, count: int, rounds: int) -> float:
    """Rows a second of `count` processes, each with its own shards and one thread."""
    context = multiprocessing.get_context("spawn")
    rates = []
    for _ in range(rounds):
        barrier, results = context.Barrier(count), context.Queue()
        workers = [
            context.Process(target=_work, args=(paths[number::count], order, size, barrier, results))
            for number in range(count)
        ]
        for worker in workers:
            worker.start()
        found = [results.get() for _ in workers]
        for worker in workers:
            worker.join()
        seconds = max(stop for _, stop, _ in found) - min(start for start, _, _ in found)
        rates.append(sum(num_rows for _, _, num_rows in found) / seconds)
    return max(rates)


class Row(NamedTuple):
    """Rows per second of one number of threads, of as many processes, and seconds of the taking thread per batch."""

    threads: int
    rate: float
    allowed: float
    used: float


def measure(paths: list[str], order: str, options: argparse.Namespace) -> Iterator[Row]:
    """Measure each number of threads, after its batches were compared with those of one."""
    wanted = digest(open_batches(paths, order, options.batch, 1))
    for threads in options.threads:
        if digest(open_batches(paths, order, options.batch, threads)) != wanted:
            raise SystemExit(f"{order}, {threads} threads: other batches than one thread gives")
        rate, used = time_threads(paths, order, options.batch, threads, options.rounds)
        allowed = time_processes(paths, order, options.batch, threads, max(1, options.rounds // 2))
        yield Row(threads, rate, allowed, used)


def format_rows(order: str, rows: Iterable[Row]) -> Iterator[str]:
    """Lines of a Markdown table."""
    heads = ("M rows/s", ": one thread", ": row before", "processes, M rows/s", ": processes", "python, µs/batch")
    yield f"| {order}, threads | " + " | ".join(heads) + " |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    first = before = None
    for threads, rate, allowed, used in rows:
        first, before = first or rate, before or rate
        yield (
            f"| {threads} | {rate / 1e6:.2f} | {rate / first:.2f} | {rate / before:.2f} | {allowed / 1e6:.2f} "
            f"| {rate / allowed:.2f} | {used * 1e6:.0f} |"
        )
        before = rate


def describe_machine() -> str:
    names = [line.split(":", 1)[1].strip() for line in _read_lines("/proc/cpuinfo") if line.startswith("model name")]
    name = statistics.mode(names) if names else platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores of {name}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"


def _read_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def parse_options(description: str | None, *, rows: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=rows)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path, help="also write the tables here")
    return parser.parse_args()


def main() -> None:
    options = parse_options(__doc__, rows=2_000_000)
    num_shards = max(options.threads)
    with tempfile.TemporaryDirectory(prefix="tfrkit-threads-") as folder:
        write_shards(Path(folder), options.rows, num_shards)
        paths = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
        lines = [
            "# Threads against processes",
            "",
            f"{options.rows:,} Examples of {NUM_COLUMNS} numbers in {num_shards} shards, batches of {options.batch}, "
            f"checksums on, page cache. {describe_machine()}. Made by `benchmarks/threads.py`.",
        ]
        for line in lines:
            print(line)
        for order in ORDERS:
            for line in chain([""], format_rows(order, measure(paths, order, options))):
                print(line, flush=True)
                lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
