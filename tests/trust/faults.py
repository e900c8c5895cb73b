"""Let every system call of every command fail, one at a time.

python tests/trust/faults.py [--share 1.0] [--seed N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import errno
import random
import sys
from collections.abc import Iterator

from commands import BUILDS, READERS, WRITERS
from forked import Fault
from trial import Trial, run_trials

SHORT = 0
# What each call may answer, by its manual page.
ERRORS: dict[str, tuple[int, ...]] = {
    "write": (errno.EIO, errno.ENOSPC, errno.EINTR, SHORT),
    "sync": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.ENOSPC),
    "link": (errno.EIO, errno.ENOSPC),
    "open": (errno.EIO, errno.EMFILE, errno.ENOSPC, errno.EINTR),
    "map": (errno.ENOMEM, errno.ENODEV),
    "read": (errno.EIO, errno.EINTR, SHORT),
    "unlink": (errno.EIO,),
    "mkdir": (errno.EIO, errno.ENOSPC),
    "truncate": (errno.EIO, errno.ENOSPC, errno.EINTR),
}
# Calls of readers that are made to fail; a reader may make others for its cache.
READING = ("open", "map", "read")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--share", type=float, default=1.0, help="share of the failures to try")


def list_wrong(trial: Trial, options: argparse.Namespace, chooser: random.Random) -> Iterator[tuple[str, str | None]]:
    calls = READING if trial.name in READERS else tuple(ERRORS)
    for call in calls:
        for error in ERRORS[call]:
            for at in range(1, trial.whole.counts[call] + 1):
                if chooser.random() < options.share:
                    # A full disk stays full, for half of the trials; a single failure is the harder case.
                    is_lasting = error in (errno.ENOSPC, errno.EMFILE) and chooser.random() < 0.5
                    name = errno.errorcode[error] if error else "SHORT"
                    fault = Fault(call, at, error, is_lasting)
                    yield f"{call} {at}{' and all later' * is_lasting} {name}", find_wrong(trial, fault)


def find_wrong(trial: Trial, fault: Fault) -> str | None:
    try:
        return trial.find_wrong_end(trial.start(fault=fault))
    except TimeoutError as error:
        return f"hangs: {error}"


if __name__ == "__main__":
    commands = [*WRITERS.items(), *BUILDS.items(), *READERS.items()]
    sys.exit(run_trials(add_options, commands, list_wrong, what="failing calls", preload=True))
