"""Progress on stderr: one updated line on a terminal, plain lines in a log, or JSON lines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import Literal

from tfrkit.cli.output import is_quiet, show_nbytes

ProgressForm = Literal["auto", "bar", "lines", "json", "none"]

_BAR_SECONDS = 0.1
_JSON_SECONDS = 0.5
_LINE_SECONDS = 10.0
_BAR_WIDTH = 24


def watch_on_terminal() -> ShownProgress:
    """Return a progress bar if stderr is a terminal and not quiet; otherwise no progress is shown."""
    shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not is_quiet()
    return ShownProgress("bar" if shown else "none")


class ShownProgress:
    """Counts items and bytes, and shows them at intervals in the chosen form."""

    def __init__(self, form: ProgressForm) -> None:
        if is_quiet():
            form = "none"
        if form == "auto":
            form = "bar" if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else "lines"
        self._form = form
        self._pause = {"bar": _BAR_SECONDS, "json": _JSON_SECONDS, "lines": _LINE_SECONDS}.get(form, 0.0)
        self._num_items = self._nbytes = 0
        self._items = self._bytes = self._bad = 0
        self._started = self._shown = time.monotonic()

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """Reset the counts; if `num_items` is 0, it is unknown and only bytes are shown."""
        self._num_items = num_items
        self._nbytes = nbytes or 0
        self._items = self._bytes = self._bad = 0
        self._started = self._shown = time.monotonic()

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        # A task repeated after its worker died must not push the count past the total.
        self._items = min(self._num_items, self._items + num_items)
        self._bytes = min(self._nbytes, self._bytes + nbytes)
        self._bad += num_bad
        now = time.monotonic()
        if self._form != "none" and now - self._shown >= self._pause:
            self._shown = now
            self._show(now - self._started)

    def end(self) -> None:
        if self._form == "bar" and not self._num_items:
            # A step of a longer command: clear its line for the next step.
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            return
        if self._form in ("bar", "json") and self._num_items:
            self._show(time.monotonic() - self._started)
        if self._form == "bar":
            print(file=sys.stderr, flush=True)

    def _show(self, seconds: float) -> None:
        rate = self._items / seconds if seconds > 0 else 0.0
        done, of = (self._items, self._num_items) if self._num_items else (self._bytes, self._nbytes)
        eta = (of - done) * seconds / done if done else None
        if self._form == "json":
            content = {
                "items": self._items,
                "of": self._num_items,
                "nbytes": self._bytes,
                "of_nbytes": self._nbytes or None,
                "skipped": self._bad,
                "seconds": round(seconds, 3),
                "items_per_s": round(rate, 1),
                "mb_per_s": round(self._bytes / 1e6 / seconds, 2) if seconds > 0 else 0.0,
                "eta_s": None if eta is None else round(eta, 1),
            }
            print(json.dumps(content), file=sys.stderr, flush=True)
            return
        text = self._describe(seconds, rate, eta)
        if self._form == "bar":
            columns = shutil.get_terminal_size().columns
            # Return to the start and clear the line first: nothing of a longer text remains.
            print(f"\r\x1b[K{text[: columns - 1]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def _describe(self, seconds: float, rate: float, eta: float | None) -> str:
        if self._num_items:
            share = self._items / self._num_items
            parts = [f"{self._items:,} of {self._num_items:,}", f"{rate:,.0f} items/s"]
        else:
            share = self._bytes / self._nbytes if self._nbytes else 1.0
            parts = [f"{show_nbytes(self._bytes)} of {show_nbytes(self._nbytes)}"]
        if self._nbytes:
            parts.append(f"{self._bytes / 1e6 / seconds if seconds > 0 else 0:,.1f} MB/s")
        parts.append(f"{self._bad:,} {'skipped' if self._num_items else 'found'}")
        parts.append("ETA ?" if eta is None else f"ETA {show_seconds(eta)}")
        text = ", ".join(parts)
        if self._form != "bar":
            return f"{share:.0%}, {text}"
        filled = int(share * _BAR_WIDTH)
        return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {share:4.0%} {text}"


def show_seconds(seconds: float) -> str:
    """Format a duration in hours, minutes and seconds.

    Example:
        >>> show_seconds(3725), show_seconds(8)
        ('1:02:05', '0:08')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
