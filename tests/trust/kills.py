"""Kill, terminate and interrupt every command that writes, at moments spread evenly over its run.

Moments are times, or with --by calls the calls of the main thread: Python handles signals as a function begins or
returns, so that this reaches moments which last a microsecond.

python tests/trust/kills.py [--times 100] [--by calls] [--seed N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import statistics
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from commands import BUILDS, WRITERS
from forked import NOT_IN_MAIN
from trial import Trial, run_trials

ENDS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 128 + signal.SIGTERM, signal.SIGINT: 128 + signal.SIGINT}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="how often to send each signal to each command")
    parser.add_argument("--by", choices=["times", "calls"], default="times", help="what the moments are")
    names = [number.name for number in ENDS]
    parser.add_argument("--signal", choices=names, action="append", help="only this one; may be repeated")


def list_wrong(trial: Trial, options: argparse.Namespace, chooser: random.Random) -> Iterator[tuple[str, str | None]]:
    for number in (number for number in ENDS if not options.signal or number.name in options.signal):
        if options.by == "calls":
            yield from list_wrong_calls(trial, options.times, number, chooser)
            continue
        seconds = statistics.median(trial.start().seconds for _ in range(3))
        for turn in range(options.times):
            after = seconds * (turn + chooser.random()) / options.times
            yield f"{number.name} after {after:.4f} s", find_wrong(trial, number, signal_after=(number, after))


def list_wrong_calls(
    trial: Trial, times: int, number: signal.Signals, chooser: random.Random
) -> Iterator[tuple[str, str | None]]:
    counter = CallCounter()
    trial.start(prepare=counter)
    total = counter.count
    for at in sorted(chooser.sample(range(1, total + 1), min(total, times))):
        counter = CallCounter(at, number)
        wrong = find_wrong(trial, number, prepare=counter)
        yield f"{number.name} at call {at} in {counter.place}", wrong


def find_wrong(trial: Trial, number: signal.Signals, **how: Any) -> str | None:
    """Run the command with a signal, as `how` says; return what is wrong."""
    try:
        got = trial.start(**how)
        # It came while the command was not there to handle it.
        is_outside = got.code in (-signal.SIGTERM, NOT_IN_MAIN) or "\n    def main() -> None:\n" in got.messages
        if is_outside and trial.is_clean():
            return None
        if got.code not in (trial.whole.code, ENDS[number]):
            return f"exit {got.code}: {got.messages.strip()}"
        left = trial.find_leftovers() if number != signal.SIGKILL else None
        return left or trial.find_wrong_end(got)
    except TimeoutError as error:
        return f"hangs: {error}"


class CallCounter:
    """Counts the calls of a forked process, and sends it a signal at one of them."""

    def __init__(self, at: int = 0, number: int = 0) -> None:
        self._at, self._number, self._num_calls = at, number, 0
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)  # what the process tells its parent

    @property
    def count(self) -> int:
        return int(self._shared[:20])

    @property
    def place(self) -> str:
        return self._shared[:].rstrip(b"\0").decode()

    def __call__(self) -> None:
        """Begin, in the process that is to be the command."""
        sys.setprofile(self._take)

    def _take(self, frame: FrameType, event: str, value: object) -> None:
        if event not in ("call", "c_return"):
            return
        self._num_calls += 1
        if not self._at:
            self._shared[:20] = b"%20d" % self._num_calls
        elif self._num_calls == self._at:
            sys.setprofile(None)
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}".encode()
            self._shared[: len(place)] = place
            os.kill(os.getpid(), self._number)


if __name__ == "__main__":
    sys.exit(run_trials(add_options, [*WRITERS.items(), *BUILDS.items()], list_wrong, what="signals"))
