"""End a command on Ctrl-C or on SIGTERM, which job schedulers send."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any

_AGAIN_SECONDS = 0.01


class Terminated(BaseException):
    """Raised on SIGTERM, so that clean-up runs as for Ctrl-C."""


def raise_when_asked_to_end() -> None:
    """Make Ctrl-C raise `KeyboardInterrupt` and SIGTERM `Terminated`, in any case. Ignored signals stay ignored."""
    sys.unraisablehook = _ask_again
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: Any) -> None:
    # A second SIGTERM must not stop the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _ask_again(ignored: Any) -> None:
    """Repeat a signal whose exception Python ignored, because it came in a destructor or during a fork."""
    number = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}.get(ignored.exc_type)
    if number is None:
        sys.__unraisablehook__(ignored)
        return
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, _terminate)
    with contextlib.suppress(RuntimeError):  # no thread is started any more: the process is at its end
        threading.Thread(target=_send_later, args=(number,), daemon=True).start()


def _send_later(number: int) -> None:
    time.sleep(_AGAIN_SECONDS)
    os.kill(os.getpid(), number)


def remove_temporaries() -> None:
    """Remove what an interrupted command could not: a signal may come in the middle of its clean-up."""
    from tfrkit.storage.temporaries import remove_held

    remove_held()
