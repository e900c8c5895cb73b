"""A child process that runs one side's work on command, pinned to its cores.

The parent writes one JSON command a line and reads one JSON answer a line, so that sides with different thread
settings can take turns within one run. Nothing else is written to the answer channel: a side's own prints go to
standard error.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODULES = {
    "tfrkit": "tfrkit_side",
    "tensorflow": "tensorflow_side",
    "native": "native_side",
    "jpeg": "jpeg_side",
    "cp": "copy_side",
    "duckdb": "duckdb_side",
}


def main() -> None:
    """Answer commands until standard input closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    module = importlib.import_module(MODULES.get(options.side, "peers"))
    if module.__name__ == "peers":
        works = module.make_works(options.side, options.root, threads=options.threads)
    else:
        works = module.make_works(options.root, options.out, threads=options.threads)

    for line in sys.stdin:
        try:
            answer = obey(json.loads(line), works, module)
        except Exception as error:  # noqa: BLE001 - the parent tells the user and ends the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def obey(command: dict[str, Any], works: dict[str, Any], module: Any) -> dict[str, Any]:
    """Run a request of the parent and return the result."""
    if command["do"] == "list":
        return {"works": {name: list(work.ways) for name, work in works.items()}}
    if command["do"] == "digest_file":
        return {"digest": module.digest_file(command["path"], command["reader"])}
    work = works[command["work"]]
    if command["do"] == "digest":
        digest = work.digest() if work.digest else None
        return {"digest": digest, "output": str(work.output) if work.output else None, "reader": work.reader}
    if command["do"] == "note":
        return {"note": work.note() if work.note else None}
    way = work.ways[command["way"]]
    if work.prepare:
        work.prepare()
    # Left-over garbage of the previous work must not be collected on this one's time.
    gc.collect()
    gc.freeze()
    cpu_before, before = sum(os.times()[:4]), time.perf_counter()
    outcome = way()
    seconds, cpu_seconds = time.perf_counter() - before, sum(os.times()[:4]) - cpu_before
    gc.unfreeze()
    if isinstance(outcome, tuple):  # a program that timed itself: its start-up is not part of the work
        outcome, seconds = outcome
    return {"records": outcome, "seconds": seconds, "cpu_seconds": cpu_seconds}


if __name__ == "__main__":
    main()
