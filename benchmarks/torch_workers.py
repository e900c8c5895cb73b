"""PyTorch: threads of one process against worker processes, and tensors against arrays.

    python benchmarks/torch_workers.py                      # 1 M Examples of 20 numbers in a temporary folder
    python benchmarks/torch_workers.py --rows 200000 --threads 1 2 --out torch.md

Needs tfrkit and PyTorch. Ways are measured by turns, and the best of some passes counts. `processor` is the time of all
processes together. `first batch` is the time from `iter` to the first batch: for workers it holds their start.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from threads import describe_machine, parse_options, write_shards

import tfrkit as tfr


class Found(NamedTuple):
    rate: float  # rows per second
    used: float  # processor seconds per row, of this process and its workers
    taken: float  # processor seconds of the thread that takes batches, for each of them
    first: float  # seconds until the first batch


def use_processor() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def time_pass(make: Callable[[], Iterable[Any]]) -> Found:
    batches = make()
    used, taken, started = use_processor(), time.thread_time(), time.perf_counter()
    num_rows = num_batches = 0
    first = 0.0
    for batch in batches:
        first = first or time.perf_counter() - started
        num_rows += len(batch["i0"])
        num_batches += 1
    seconds, taken = time.perf_counter() - started, time.thread_time() - taken
    del batch, batches
    return Found(num_rows / seconds, (use_processor() - used) / num_rows, taken / num_batches, first)


def measure(ways: dict[str, Callable[[], Iterable[Any]]], rounds: int) -> dict[str, Found]:
    """The best of each figure over some rounds, in each of which every way has its turn."""
    found: dict[str, list[Found]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, make in ways.items():
            found[name].append(time_pass(make))
    return {
        name: Found(max(one.rate for one in passes), *(min(one[k] for one in passes) for k in (1, 2, 3)))
        for name, passes in found.items()
    }


def list_ways(paths: list[str], size: int, count: int) -> dict[str, Callable[[], Iterable[Any]]]:
    def open_batches(threads: int | None = count) -> Any:
        return tfr.open(paths).shuffle(seed=1).batch(size, threads=threads)

    def with_workers(context: str) -> Iterable[Any]:
        return open_batches(None).to_torch(num_workers=count, multiprocessing_context=context)

    return {
        f"arrays, {count} threads": open_batches,
        f"to_torch(), {count} threads": lambda: open_batches().to_torch(),
        f"to_torch(num_workers={count}), forked": lambda: with_workers("fork"),
        f"to_torch(num_workers={count}), spawned": lambda: with_workers("spawn"),
    }


def main() -> None:
    options = parse_options(__doc__, rows=1_000_000)
    with tempfile.TemporaryDirectory(prefix="tfrkit-torch-") as folder:
        write_shards(Path(folder), options.rows, num_shards=max(options.threads))
        paths = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
        lines = [
            "# PyTorch: threads against worker processes",
            "",
            f"{options.rows:,} Examples of 20 numbers, shuffled, batches of {options.batch}. {describe_machine()}, "
            f"PyTorch {torch.__version__}. Made by `benchmarks/torch_workers.py`.",
            "",
            "| way | M rows/s | processor, µs/row | taking thread, µs/batch | first batch, s |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        print("\n".join(lines))
        for count in options.threads:
            for name, found in measure(list_ways(paths, options.batch, count), options.rounds).items():
                lines.append(
                    f"| {name} | {found.rate / 1e6:.2f} | {found.used * 1e6:.2f} | {found.taken * 1e6:.0f} "
                    f"| {found.first:.3f} |"
                )
                print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
