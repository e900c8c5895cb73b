"""tfrkit's verbs on whole datasets: query, statistics, checking, shuffling, converting."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import data
from tool_questions import (
    MEMORY,
    SHUFFLED,
    Figures,
    digest_figures,
    digest_groups,
    link_sources,
    print_query,
)
from work import Answer, Work, digest_unordered_files

from tfrkit import tools


def make_works(root: Path, out: Path, *, threads: int) -> dict[str, Work]:
    """Return what tfrkit's verbs do here, by the name of the work."""
    sizes = data.sizes_of(root)
    tabular, images, packed = root / "tabular.tfrecord", root / "images.tfrecord", root / "packed.tfrecord"
    query = partial(run_query, tabular, threads)
    statistics = partial(run_stats, tabular, threads)
    converted = out / "tfrkit.tfrecord.gz"
    shuffled = root / "built-tfrkit"
    return {
        "sql_tabular": Work(
            {"tfr.sql": lambda: len(query()) and sizes.tabular},
            lambda: digest_groups((row["int_0"], row["n"], row["mean"]) for row in query()),
        ),
        "stats_tabular": Work({"tools.stats": lambda: int(statistics().records)}, lambda: digest_stats(statistics())),
        "verify_large": Work({"tfr.verify": partial(check, images, threads)}),
        "shuffle_file": Work(
            {f"tfr shuffle --memory {MEMORY}": partial(mix, root, shuffled, SHUFFLED * sizes.images)},
            partial(digest_shuffled, root, shuffled),
            prepare=partial(shutil.rmtree, shuffled, ignore_errors=True),
            note=lambda: f"peak memory {peak_megabytes:,.0f} MB",
        ),
        "convert_gzip": Work(
            {"tools.convert, compression='gzip'": partial(pack, packed, converted, threads, sizes.packed)},
            output=converted,
        ),
    }


def run_query(path: Path, threads: int) -> list[dict[str, object]]:
    """Count and average by group."""
    return list(tools.sql(print_query(str(path)), jobs=threads))


def run_stats(path: Path, threads: int) -> Any:
    """Take all statistics of all features."""
    return tools.stats(path, jobs=threads)


def digest_stats(found: Any) -> Answer:
    """Digest what both sides compute: every figure of every feature."""
    columns = {}
    for feature in found.features:
        if (feature["present"], feature["values"]) != (found.records, found.records):
            raise ValueError(f"expected one value of {feature['name']} in every record")
        numbers = feature["numbers"] or feature["sizes"]
        columns[feature["name"]] = Figures(
            numbers["min"],
            numbers["max"],
            numbers["mean"],
            numbers["std"],
            numbers.get("zeros", 0),
            list(numbers["quantiles"].values()),
            [one["count"] for one in numbers["histogram"]],
            feature["distinct"],
            [(one["value"], one["count"]) for one in feature["top"]],
        )
    return digest_figures(columns, found.records)


def check(path: Path, threads: int) -> int:
    """Check every frame and parse every record."""
    result = tools.verify(path, jobs=threads)
    assert result.ok
    return int(result.records)


peak_megabytes = 0.0  # of the largest process that shuffled

# Linux counts what the parent held when it forked as the child's own peak, and a process that has loaded a benchmark
# holds more than a shuffle. So the command is started by an interpreter that has loaded nothing.
_MEASURE = """
import os, resource, sys
status = os.spawnv(os.P_WAIT, sys.argv[1], sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def mix(root: Path, target: Path, count: int) -> int:
    """Shuffle two files of 2 GB within a bound of memory, as a program, start-up included."""
    global peak_megabytes
    program = str(Path(sys.executable).with_name("tfr"))
    command = [program, "shuffle", *map(str, link_sources(root)), "-o", str(target), "--memory", MEMORY, "--seed", "3"]
    peak_megabytes = max(peak_megabytes, run_measured(command))
    return count


def run_measured(command: list[str]) -> float:
    """Run a command to its end; its peak memory in megabytes."""
    measuring = [sys.executable, "-I", "-S", "-c", _MEASURE, *command]
    done = subprocess.run(measuring, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1]) * 1024 / 1e6


def digest_shuffled(root: Path, target: Path) -> Answer:
    """Compare the records before and after, in any order; they must be the same ones."""
    shutil.rmtree(target, ignore_errors=True)
    mix(root, target, 0)
    before, after = (
        digest_unordered_files(link_sources(root)),
        digest_unordered_files(sorted(target.glob("*.tfrecord*"))),
    )
    if before != after:
        raise ValueError(f"shuffle gave other records: {before} before, {after} after")
    return {}


def pack(source: Path, target: Path, threads: int, count: int) -> int:
    """Compress a file."""
    tools.convert(source, target, compression="gzip", jobs=threads, force=True)
    return count
