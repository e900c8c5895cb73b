"""The exit codes of `tfr` with their meanings, which help and manual list, and the code of each error."""

from __future__ import annotations

import signal
from enum import IntEnum

from tfrkit.cli.endings import Terminated
from tfrkit.errors import RemoteAddressError


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


def code_of_error(error: BaseException) -> ExitCode:
    """Return the exit code of a command that raised this error; a bug counts as FAILED."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, Terminated):
        return ExitCode.TERMINATED
    # A ValueError is a wrong argument; its subclasses, for unreadable text and JSON, are about contents of files.
    is_usage = type(error) is ValueError or isinstance(error, RemoteAddressError)
    return ExitCode.USAGE if is_usage else ExitCode.FAILED


def list_codes(last: ExitCode = ExitCode.TERMINATED) -> str:
    """Return the codes up to `last` in one line.

    Example:
        >>> list_codes(ExitCode.USAGE)
        '0 done, 1 found something, 2 wrong usage'
    """
    return ", ".join(f"{code.value} {code.meaning}" for code in ExitCode if code <= last)
