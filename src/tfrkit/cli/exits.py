"""The exit codes of `tfr` and their meanings: the help and the manual list them from here."""

from __future__ import annotations

import signal
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of a command."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code

    DONE = 0, "done"
    FOUND = 1, "found something"
    USAGE = 2, "wrong usage"
    FAILED = 3, "could not finish"
    # A shell reports a program ended by a signal as 128 plus the signal's number.
    INTERRUPTED = 128 + signal.SIGINT, "interrupted"
    TERMINATED = 128 + signal.SIGTERM, "terminated"


def list_codes(last: ExitCode = ExitCode.TERMINATED) -> str:
    """Return the codes up to `last` in one line.

    Example:
        >>> list_codes(ExitCode.USAGE)
        '0 done, 1 found something, 2 wrong usage'
    """
    return ", ".join(f"{code.value} {code.meaning}" for code in ExitCode if code <= last)
