"""The streams of the command: results on stdout, notes on stderr, whose failures are ignored."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class _Talk(io.FileIO):
    """Stderr that drops notes on a closed pipe or a full disk."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Make stdout and stderr safe to print to.

    A failure to write to stderr is ignored: an edit must not stop half-way because of its notes. Stdout keeps its
    errors. A closed stream is replaced by /dev/null.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    descriptor = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
    talk = io.BufferedWriter(_Talk(descriptor, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(talk, encoding=sys.stdout.encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        # Text that the terminal cannot encode must not end the command.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
