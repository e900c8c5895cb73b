"""Kill, terminate and interrupt every command that writes, at moments spread evenly over its run.

python tests/trust/kills.py [--times 100] [--seed N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
from collections.abc import Iterator

from commands import BUILDS, WRITERS
from forked import BEFORE_MAIN
from trial import Trial, run_trials

ENDS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGINT: 128 + signal.SIGINT}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="how often to send each signal to each command")
    names = [number.name for number in ENDS]
    parser.add_argument("--signal", choices=names, action="append", help="only this one; may be repeated")


def list_wrong(trial: Trial, options: argparse.Namespace, chooser: random.Random) -> Iterator[tuple[str, str | None]]:
    seconds = statistics.median(trial.start().seconds for _ in range(3))
    for number in (number for number in ENDS if not options.signal or number.name in options.signal):
        for turn in range(options.times):
            after = seconds * (turn + chooser.random()) / options.times
            yield f"{number.name} after {after:.4f} s", find_wrong(trial, number, after)


def find_wrong(trial: Trial, number: signal.Signals, after: float) -> str | None:
    try:
        got = trial.start(signal_after=(number, after))
        # It came before the command was there to handle it.
        is_early = got.code in (-signal.SIGTERM, BEFORE_MAIN) or "\n    def main() -> None:\n" in got.messages
        if is_early and trial.is_untouched():
            return None
        if got.code not in (trial.whole.code, ENDS[number]):
            return f"exit {got.code}: {got.messages.strip()}"
        left = trial.find_leftovers() if number != signal.SIGKILL else None
        return left or trial.find_wrong_end(got)
    except TimeoutError as error:
        return f"hangs: {error}"


if __name__ == "__main__":
    sys.exit(run_trials(add_options, [*WRITERS.items(), *BUILDS.items()], list_wrong, what="signals"))
