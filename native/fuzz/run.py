#!/usr/bin/env python3
"""Fuzz the targets under the sanitizers, one after the other, starting from the kept corpus.

native/fuzz/run.py [--seconds 30] [target ...]
native/fuzz/run.py --seconds 300 --keep     then keeps what reaches new code, if it is small

Prints executions, rate, coverage and findings of each target. New inputs, logs and the input of a finding stay in
build-fuzz. Needs clang with its sanitizers; on Debian: apt-get install clang-16 libclang-rt-16-dev llvm-16
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build-fuzz"
COMPILERS = ("clang++", *(f"clang++-{number}" for number in range(22, 13, -1)))
FLAGS = ["-std=c++20", "-O2", "-g1", "-Wall", "-Wextra", "-Inative", "-fno-sanitize-recover=undefined"]

# Targets whose input has a structure that a mutator of ours keeps.
MUTATORS = {
    "editor": "mutate_messages",
    "example": "mutate_messages",
    "tensor": "mutate_messages",
    "engine": "mutate_frames",
    "frame_copy": "mutate_frames",
    "frames": "mutate_frames",
}
# Longer inputs are slower and hit nothing else, except where a format needs them.
MAX_LENGTHS = {"jpeg": 1024, "checksums": 512, "example": 192}
# Stacks of allocations and a long memory of freed blocks take half of the time; a finding is run again with both.
FAST = ":".join(
    [
        "malloc_context_size=0",
        "quarantine_size_mb=1",
        "thread_local_quarantine_size_kb=64",
        "max_malloc_fill_size=64",
        "detect_stack_use_after_return=0",
        "detect_leaks=0",
    ]
)
MAX_KEPT_NBYTES = 256


def list_targets() -> list[str]:
    """Return the names of all targets."""
    return sorted(path.stem for path in HERE.glob("*.cc") if "FuzzOne(ByteView" in path.read_text())


def find_compiler() -> str:
    """Return a clang, the newest that there is."""
    for name in COMPILERS:
        if shutil.which(name):
            return name
    sys.exit("no clang++ found; on Debian: apt-get install clang-16 libclang-rt-16-dev llvm-16")


def build(targets: list[str], jobs: int) -> None:
    """Compile the core once for all targets, and only what changed."""
    compiler = find_compiler()
    newest_header = max(path.stat().st_mtime for path in (ROOT / "native").rglob("*.h"))
    core = [path for room in ("core", "os", "engine") for path in sorted((ROOT / "native" / room).rglob("*.cc"))]
    own = [HERE / f"{name}.cc" for name in {*targets, "driver", *MUTATORS.values()}]
    objects = {path: BUILD / "objects" / f"{path.parent.name}-{path.stem}.o" for path in [*core, *own]}

    def compile_one(path: Path) -> None:
        made = objects[path]
        if made.exists() and made.stat().st_mtime > max(path.stat().st_mtime, newest_header):
            return
        # Coverage is that of the core: new paths through a slow twin lead nowhere. Comparisons are not traced, which
        # takes a third of the time; mutators and dictionaries know what to compare with.
        watched = ["-fsanitize=fuzzer-no-link", "-fno-sanitize-coverage=trace-cmp"] if path in core else []
        sanitizers = ["-fsanitize=address,undefined", *watched] if not path.stem.startswith("mutate") else []
        subprocess.run([compiler, *FLAGS, *sanitizers, "-c", str(path), "-o", str(made)], check=True, cwd=ROOT)

    (BUILD / "objects").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, objects))
    library = BUILD / "core.a"
    library.unlink(missing_ok=True)
    subprocess.run(["ar", "rcs", library, *(objects[path] for path in core)], check=True)
    for target in targets:
        mine = [objects[HERE / f"{name}.cc"] for name in (target, "driver", MUTATORS.get(target)) if name]
        command = [compiler, "-fsanitize=fuzzer,address,undefined", *map(str, mine), str(library), "-pthread"]
        subprocess.run([*command, "-o", str(BUILD / f"fuzz_{target}")], check=True)


def fuzz(target: str, seconds: int) -> dict[str, int]:
    """Run one target and return its figures."""
    found, corpus = BUILD / "found" / target, HERE / "corpus" / target
    found.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(exist_ok=True)
    dictionary = HERE / "dictionaries" / f"{target}.txt"
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_LENGTHS.get(target, 256)}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        "-reload=0",
        "-entropic=0",
        f"-artifact_prefix={BUILD}/{target}-",
        *([f"-dict={dictionary}"] if dictionary.exists() else []),
    ]
    log = BUILD / f"{target}.log"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as file:
        code = subprocess.run(
            [str(BUILD / f"fuzz_{target}"), *options, str(found), str(corpus)],
            stderr=file,
            env={**os.environ, "ASAN_OPTIONS": FAST},
        ).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = log.read_text(errors="replace")
    executions = find_number(r"stat::number_of_executed_units:\s+(\d+)", text)
    return {
        "executions": executions,
        "rate": round(executions / cpu_seconds),
        "edges": find_number(r"cov: (\d+)", text),
        "all_edges": find_number(r"Loaded 1 modules\s+\((\d+)", text),
        "findings": int(code != 0),
    }


def find_number(pattern: str, text: str) -> int:
    """Return the last number that a pattern finds, else 0."""
    numbers = re.findall(pattern, text)
    return int(numbers[-1]) if numbers else 0


def keep(target: str) -> None:
    """Add inputs that reach new code to the kept corpus, and drop kept ones that add nothing."""
    merged = BUILD / "merged" / target
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    corpus = HERE / "corpus" / target
    command = [str(BUILD / f"fuzz_{target}"), "-merge=1", f"-max_len={MAX_KEPT_NBYTES}", str(merged), str(corpus)]
    subprocess.run([*command, str(BUILD / "found" / target)], check=True, stderr=subprocess.DEVNULL)
    for path in merged.iterdir():
        if not any(path.read_bytes() == kept.read_bytes() for kept in corpus.iterdir()):
            shutil.copy(path, corpus / path.name[:12])


def add_to_totals(target: str, executions: int) -> int:
    """Count the executions of all runs in this folder, and return their sum."""
    path = BUILD / "totals.json"
    totals = json.loads(path.read_text()) if path.exists() else {}
    totals[target] = totals.get(target, 0) + executions
    path.write_text(json.dumps(totals, indent=1, sort_keys=True))
    return sum(totals.values())


def main() -> int:
    """Fuzz the chosen targets; 1 if one has a finding."""
    known = list_targets()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--seconds", type=int, default=30, help="for each target")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at the same time")
    parser.add_argument("--keep", action="store_true", help="keep small inputs that reach new code")
    options = parser.parse_args()
    unknown = sorted(set(options.targets) - set(known))
    if unknown:
        parser.error(f"unknown target {unknown[0]}, known: {', '.join(known)}")
    targets = options.targets or known
    build(targets, options.jobs)
    num_executions = num_findings = total = 0
    print(f"{'target':<12}{'executions':>14}{'per CPU s':>12}{'edges':>8}{'of':>7}  findings", flush=True)
    for target in targets:
        figures = fuzz(target, options.seconds)
        num_executions += figures["executions"]
        num_findings += figures["findings"]
        total = add_to_totals(target, figures["executions"])
        numbers = f"{figures['executions']:>14,}{figures['rate']:>12,}{figures['edges']:>8,}{figures['all_edges']:>7,}"
        print(f"{target:<12}{numbers}  {figures['findings'] or 'none'}", flush=True)
        if figures["findings"]:
            print(f"  see {BUILD / target}.log and {BUILD / target}-*", flush=True)
        elif options.keep:
            keep(target)
    print(f"{num_executions:,} executions, {num_findings} findings; {total:,} executions in this folder so far")
    return 1 if num_findings else 0


if __name__ == "__main__":
    sys.exit(main())
