"""Where the `tfr` command starts: it ends quietly from its first moment on, before anything large is imported.

A package of its own: importing anything of `tfrkit` imports NumPy and the native core first.
"""

from __future__ import annotations

import os

# As in `tfrkit.cli.exit_codes`, which is not loaded yet.
INTERRUPTED = 130
TERMINATED = 143


def main() -> None:
    """Run `tfr`. Until its parts are loaded there is nothing to clean up, and a signal ends it at once."""
    try:
        _end_at_once()
        from tfrkit.cli.main import main as run
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    run()


def _end_at_once() -> None:
    import signal

    # Signals that are ignored, as in the background of a shell, stay so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
