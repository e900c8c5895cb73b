"""The output streams: results on stdout, notes on stderr, where write failures are ignored."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class _Talk(io.FileIO):
    """A stderr that drops notes if its pipe is closed or its disk is full."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def prepare_streams() -> None:
    """Make stdout and stderr safe to print to.

    A failure to write to stderr is ignored: an edit must not stop half-way because of its notes. On stdout it raises.
    A closed stream is replaced by /dev/null.
    """
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    descriptor = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
    talk = io.BufferedWriter(_Talk(descriptor, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(talk, encoding=sys.stdout.encoding, line_buffering=True)
    for stream in (sys.stdout, sys.stderr):
        # Text that the terminal cannot encode must not end the command.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
