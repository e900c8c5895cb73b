"""End a command on Ctrl-C or on SIGTERM, which job schedulers send."""

from __future__ import annotations

import signal
from typing import Any


class Terminated(BaseException):
    """Raised on SIGTERM, so that clean-up runs as for Ctrl-C."""


def raise_when_asked_to_end() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt` and SIGTERM `Terminated`. Ignored signals stay ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: Any) -> None:
    # A second SIGTERM must not stop the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def remove_temporaries() -> None:
    """Remove what an interrupted command could not: a signal may come in the middle of its clean-up."""
    from tfrkit.storage.temporaries import remove_held

    remove_held()
