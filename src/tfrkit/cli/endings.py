"""How a command ends when it is asked to: Ctrl-C, and SIGTERM, which job schedulers send."""

from __future__ import annotations

import signal
from typing import Any


class Terminated(BaseException):
    """SIGTERM came. Passes through every clean-up on its way out, as Ctrl-C does."""


def raise_when_asked_to_end() -> None:
    """From here on Ctrl-C raises `KeyboardInterrupt` and SIGTERM `Terminated`. Signals that are ignored stay so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: Any) -> None:
    # A second one must not stop the cleaning up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated
