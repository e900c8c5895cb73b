"""Measure tfrkit against TensorFlow and its peers: equal results first, then times in turns.

    python benchmarks/run.py                      all rows, full data, writes benchmarks/RESULTS.md
    python benchmarks/run.py --quick              small data, under a minute: checks results, prints ratios
    python benchmarks/run.py --only columns_gzip  rows whose name contains this

Standard output carries one JSON row per measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cost
import machine
import report
from bars import ROWS, Row
from peers import PEERS, version_of
from timing import Timing, Worker, time_in_turns

PROJECT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Make the data, check and time every row, write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data; nothing is written to RESULTS.md")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--without", action="append", default=[], metavar="SIDE", help="leave a side out")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cache", type=Path, default=PROJECT / ".bench")
    parser.add_argument("--results", type=Path, default=PROJECT / "benchmarks" / "RESULTS.md")
    options = parser.parse_args()

    root = options.cache / ("quick" if options.quick else "full")
    make_data_in_child(root, quick=options.quick)
    rows = [row for row in ROWS if options.only in row.name]
    sides = [side for side in ("tfrkit", "tensorflow", "native", *PEERS) if side not in options.without]
    sides = [side for side in sides if side not in PEERS or version_of(side)]
    facts = machine.describe(PEERS)
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
    costs = None if options.only or "tfrkit" not in sides else cost.measure(root)
    if costs:
        print(json.dumps(costs), flush=True)
    table = report.to_markdown(measured, costs, facts, command="make bench")
    if options.quick or options.only or options.without:
        print(table, file=sys.stderr)
    else:
        options.results.write_text(table)


def make_data_in_child(root: Path, *, quick: bool) -> None:
    """Make the data in a process of its own, so that this one never loads TensorFlow."""
    size = "QUICK" if quick else "FULL"
    code = f"import data, pathlib, sys; data.make_data(pathlib.Path(sys.argv[1]), data.{size})"
    subprocess.run([sys.executable, "-c", code, str(root)], check=True, cwd=Path(__file__).parent, stdout=sys.stderr)


def run_rows(
    rows: list[Row], sides: list[str], root: Path, out: Path, facts: dict[str, Any], *, rounds: int
) -> list[report.Measured]:
    """Check and time rows that share a thread count."""
    threads = rows[0].threads
    wanted = {"tfrkit", *(side for row in rows for side in row.beside)}
    workers = {side: Worker(side, threads=threads, root=root, out=out) for side in sides if side in wanted}
    measured = []
    for row in rows:
        present = [
            workers[side] for side in ("tfrkit", *row.beside) if side in workers and row.work in workers[side].ways
        ]
        if not present:
            continue
        sizes = check_equal(present, row.work, workers.get("tensorflow"))
        timings = time_in_turns(present, row.work, rounds=rounds, patience=30)
        nbytes = (root / row.file).stat().st_size
        for timing in timings.values():
            print(json.dumps(json_row(row, timing, nbytes, facts)), flush=True)
        measured.append(report.Measured(row, timings, nbytes, sizes))
    for worker in workers.values():
        worker.close()
    return measured


def check_equal(workers: list[Worker], work: str, reader: Worker | None) -> dict[str, int]:
    """Stop the run unless every side gets the same values; returns the sizes of written files."""
    digests, sizes = {}, {}
    for worker in workers:
        if worker.side == "native":
            continue
        answer = worker.ask({"do": "digest", "work": work})
        if answer["output"]:
            worker.time(work, worker.ways[work][0])
            sizes[worker.side] = Path(answer["output"]).stat().st_size
            if reader is not None:
                answer = reader.ask({"do": "digest_file", "path": answer["output"]})
        if answer["digest"] is not None:
            digests[worker.side] = answer["digest"]
    first = next(iter(digests), None)
    for side, digest in digests.items():
        if digest != digests[first]:
            differing = sorted(
                name for name in digest.keys() | digests[first].keys() if digest.get(name) != digests[first].get(name)
            )
            raise SystemExit(f"{work}: {side} and {first} read different values in {differing}")
    return sizes


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
