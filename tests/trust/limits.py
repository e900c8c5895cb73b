"""Give every command little memory, few open files, small files, few processes, and a folder it cannot write to.

python tests/trust/limits.py [--share 1.0] [--seed N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import codecs
import functools
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from commands import BUILDS, READERS, WRITERS
from trial import Trial, run_trials

MB = 1 << 20
NOBODY = 65534
LIMITS: dict[str, tuple[int, tuple[int, ...]]] = {
    "address space": (resource.RLIMIT_AS, tuple(MB * size for size in (250, 300, 350, 400, 500, 600, 800, 1200, 2000))),
    "open files": (resource.RLIMIT_NOFILE, (32, 64, 256, 1024)),
    "file size": (resource.RLIMIT_FSIZE, (1000, 4096, 16384)),
    "processes": (resource.RLIMIT_NPROC, (1, 2, 4)),
}


def set_limit(limit: int, value: int) -> None:
    if limit == resource.RLIMIT_NPROC:
        # Root has no such limit.
        for path in [Path.cwd(), *Path.cwd().rglob("*")]:
            path.chmod(0o777)
        become_nobody()
    resource.setrlimit(limit, (value, value))


def become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def forbid_writing() -> None:
    for path in [Path.cwd(), *(path for path in Path.cwd().rglob("*") if path.is_dir())]:
        path.chmod(0o555)
    become_nobody()


def allow_writing(folder: Path) -> None:
    for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        path.chmod(0o755)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=float, default=1.0, help="share of the limits to try")


def list_wrong(trial: Trial, options: argparse.Namespace, chooser: random.Random) -> Iterator[tuple[str, str | None]]:
    trials: list[tuple[str, Callable[[], None]]] = [
        (f"{name} {value}", functools.partial(set_limit, limit, value))
        for name, (limit, values) in LIMITS.items()
        for value in values
    ]
    if trial.name in READERS:  # their output is a file here, which is no limit of a pipe or a terminal
        trials = [(name, prepare) for name, prepare in trials if not name.startswith("file size")]
    for name, prepare in [*trials, ("read-only folder", forbid_writing)]:
        if chooser.random() < options.share:
            yield name, find_wrong(trial, prepare)


def find_wrong(trial: Trial, prepare: Callable[[], None]) -> str | None:
    try:
        got = trial.start(prepare=prepare)
        allow_writing(trial.folder)
        return trial.find_wrong_end(got)
    except TimeoutError as error:
        return f"hangs: {error}"


# Another user may not be allowed to read the interpreter's files: what is loaded late is loaded here.
for name in ("utf-8-sig", "cp437", "latin-1", "idna"):
    codecs.lookup(name)

if __name__ == "__main__":
    commands = [*WRITERS.items(), *BUILDS.items(), *READERS.items()]
    sys.exit(run_trials(add_options, commands, list_wrong, what="runs under a limit"))
