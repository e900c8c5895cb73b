"""tfrkit's verbs on whole datasets: query, statistics, checking, shuffling, converting."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import data
from tool_questions import MEMORY, SHUFFLED, STAT_FEATURES, digest_groups, digest_moments, link_sources, print_query
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
        "stats_tabular": Work(
            {"tools.stats": lambda: int(statistics().records)}, lambda: digest_stats(statistics().features)
        ),
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
    return list(tools.sql(print_query(str(path)), threads=threads))


def run_stats(path: Path, threads: int) -> Any:
    """Take all statistics of all features."""
    return tools.stats(path, jobs=threads)


def digest_stats(features: list[dict[str, object]]) -> Answer:
    """Digest what both sides compute."""
    numbers: dict[str, Any] = {str(feature["name"]): feature["numbers"] for feature in features}
    return digest_moments(
        {name: (numbers[name]["min"], numbers[name]["max"], numbers[name]["mean"]) for name in STAT_FEATURES}
    )


def check(path: Path, threads: int) -> int:
    """Check every frame and parse every record."""
    result = tools.verify(path, jobs=threads)
    assert result.ok
    return int(result.records)


peak_megabytes = 0.0  # of the largest process that shuffled


def mix(root: Path, target: Path, count: int) -> int:
    """Shuffle two files of 2 GB within a bound of memory, as a program, start-up included."""
    global peak_megabytes
    program = str(Path(sys.executable).with_name("tfr"))
    command = [program, "shuffle", *map(str, link_sources(root)), "-o", str(target), "--memory", MEMORY, "--seed", "3"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    peak_megabytes = max(peak_megabytes, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)
    return count


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
