"""How far a long command is, on one line of stderr, and only where somebody is watching."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_EVERY_SECONDS = 0.2
_FIRST_AFTER_SECONDS = 0.5  # a command that is done by then never flickers


class Progress:
    """Counts bytes and shows them with a rate; silent unless stderr is a terminal.

    Example:
        >>> with Progress("checked") as progress:
        ...     progress.advance(1 << 20)
    """

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._visible = sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown_at = self._started + _FIRST_AFTER_SECONDS - _EVERY_SECONDS
        self._nbytes = 0
        self._width = 0

    def advance(self, nbytes: int) -> None:
        """Add bytes that are done; may be called as often as is convenient."""
        self._nbytes += nbytes
        if not self._visible:
            return
        now = time.monotonic()
        if now - self._shown_at >= _EVERY_SECONDS:
            self._shown_at = now
            rate = self._nbytes / max(now - self._started, 1e-9)
            self._show(f"{self._verb} {self._nbytes / 1e6:,.0f} MB, {rate / 1e6:,.0f} MB/s")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._show("")
            print("\r", end="", file=sys.stderr, flush=True)

    def _show(self, text: str) -> None:
        print("\r" + text.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(text)
