"""Measure tfrkit against TensorFlow and its peers: equal results first, then times in turns.

    python benchmarks/run.py                      all rows, full data, writes benchmarks/RESULTS.md
    python benchmarks/run.py --quick              small data, two minutes: checks results, prints ratios
    python benchmarks/run.py --only gzip,sql      rows whose name contains one of these; "cost" is memory and starts,
                                                  "view" the viewer, written to benchmarks/RESULTS-view.md

Standard output carries one JSON row per measurement.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cost
import kept
import machine
import report
from bars import LIMITS, ROWS, Row
from environments import Environments, look_around
from peers import PEERS
from timing import Timing, Worker, time_in_turns

PROJECT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Make the data, check and time every row, write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data; nothing is written to RESULTS.md")
    parser.add_argument("--only", default="", help="rows whose name contains this, or one of these: gzip,sql")
    parser.add_argument("--without", action="append", default=[], metavar="SIDE", help="leave a side out")
    parser.add_argument(
        "--more",
        action="append",
        default=[],
        type=Path,
        metavar="PYTHON",
        help="an environment of peers not in this one",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cache", type=Path, default=PROJECT / ".bench")
    parser.add_argument("--results", type=Path, default=PROJECT / "benchmarks" / "RESULTS.md")
    options = parser.parse_args()

    root = options.cache / ("quick" if options.quick else "full")
    make_data_in_child(root, quick=options.quick)
    wanted = options.only.split(",")
    rows = [row for row in ROWS if any(part in row.name for part in wanted)]
    environments = look_around(options.more)
    sides = {side: python for side, python in find_sides(environments).items() if side not in options.without}
    facts = machine.describe(PEERS, environments)
    measured: list[report.Measured] = []
    # Outputs go to memory where there is some, so that a disk does not decide who encodes faster.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else options.cache) as folder:
        for threads in sorted({row.threads for row in rows}):
            measured += run_rows(
                [row for row in rows if row.threads == threads],
                sides,
                root,
                Path(folder),
                facts,
                rounds=1 if options.quick else options.rounds,
            )
    for built in root.glob("built-*"):
        shutil.rmtree(built)
    costs = cost.measure(root) if "tfrkit" in sides and any(part in "cost" for part in wanted) else None
    if costs:
        print(json.dumps(costs), flush=True)
    if any(part in "view" for part in wanted):
        quick = ["--quick"] if options.quick else []
        program = Path(__file__).with_name("view.py")
        subprocess.run([sys.executable, program, "--cache", options.cache, *quick], check=True)
    if options.quick or options.without:
        print(report.to_markdown(measured, costs, facts, command="make bench"), file=sys.stderr)
        return
    folder = root / "measured"
    for one in measured:
        kept.save_row(folder, one)
    if costs:
        kept.save_costs(folder, costs)
    table = report.to_markdown(kept.load_rows(folder), kept.load_costs(folder), facts, command="make bench")
    options.results.write_text(table)


def make_data_in_child(root: Path, *, quick: bool) -> None:
    """Make the data in a process of its own, so that this one never loads TensorFlow."""
    program = Path(__file__).with_name("make_data.py")
    subprocess.run([sys.executable, program, root, *(["--quick"] if quick else [])], check=True, stdout=sys.stderr)


def find_sides(environments: Environments) -> dict[str, str]:
    """Return the Python that each side runs in; a peer that is not installed has none and is left out."""
    sides = dict.fromkeys(("tfrkit", "tensorflow", *LIMITS), sys.executable)
    return sides | {peer: python for peer in PEERS if (python := environments.find_python(peer))}


def run_rows(
    rows: list[Row], sides: dict[str, str], root: Path, out: Path, facts: dict[str, Any], *, rounds: int
) -> list[report.Measured]:
    """Check and time rows that share a thread count."""
    threads = rows[0].threads
    wanted = {"tfrkit", *(side for row in rows for side in row.beside)}
    workers = {
        side: Worker(side, python, threads=threads, root=root, out=out)
        for side, python in sides.items()
        if side in wanted
    }
    measured = []
    for row in rows:
        present = [
            workers[side] for side in ("tfrkit", *row.beside) if side in workers and row.work in workers[side].ways
        ]
        if not present:
            continue
        sizes = check_equal(present, row, workers.get("tensorflow"))
        timings = time_in_turns(present, row.work, rounds=rounds, patience=30)
        nbytes = measure_size(root / row.file)
        for timing in timings.values():
            print(json.dumps(json_row(row, timing, nbytes, facts)), flush=True)
        notes = {worker.side: worker.ask({"do": "note", "work": row.work})["note"] for worker in present}
        measured.append(
            report.Measured(row, timings, nbytes, sizes, {side: note for side, note in notes.items() if note})
        )
    for worker in workers.values():
        worker.close()
    return measured


def measure_size(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder."""
    return (
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else path.stat().st_size
    )


def check_equal(workers: list[Worker], row: Row, reader: Worker | None) -> dict[str, int]:
    """Stop the run unless every side gets the same values; returns the sizes of what was written."""
    work, sizes = row.work, {}
    digests: dict[str, dict[str, Any]] = {}
    for worker in workers:
        answer = worker.digest(work)
        if answer["output"]:
            worker.time(work, worker.ways[work][0])
            sizes[worker.side] = measure_size(Path(answer["output"]))
            if reader is not None:
                answer = reader.ask({"do": "digest_file", "path": answer["output"], "reader": answer["reader"]})
        if answer["digest"] is not None:
            digests[worker.side] = answer["digest"]
    first = next(iter(digests), "")
    for side, digest in digests.items():
        differing = [
            name
            for name in sorted(digest.keys() | digests[first].keys())
            if not is_same(digest.get(name), digests[first].get(name), row.tolerance(side))
        ]
        if differing:
            raise SystemExit(f"{work}: {side} and {first} read different values in {differing}")
    return sizes


def is_same(one: Any, other: Any, tolerance: float) -> bool:
    """Tell whether two answers are equal or, where they are numbers, close."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(abs(a - b) <= tolerance for a, b in zip(one, other, strict=True))
    return bool(one == other)


def json_row(row: Row, timing: Timing, nbytes: int, facts: dict[str, Any]) -> dict[str, Any]:
    """Return one measurement as a flat JSON object."""
    records = timing.records
    return {
        "name": row.name,
        "side": timing.side,
        "way": timing.way,
        "threads": row.threads,
        "bytes": nbytes,
        "records": records,
        "seconds": round(timing.best, 6),
        "median_seconds": round(timing.median, 6),
        "cpu_seconds": round(min(timing.cpu_seconds), 6),
        "rounds": len(timing.seconds),
        "MB/s": round(nbytes / timing.best / 1e6, 1),
        "records/s": round(timing.rate),
        "machine": facts["machine"],
        "versions": facts["versions"],
    }


if __name__ == "__main__":
    main()
