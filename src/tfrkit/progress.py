"""Progress of long operations: a callback."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Callback for progress. Called in the main process."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """Called once with the totals; `num_items` is 0 where only bytes are known."""

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        """Called with the amounts since the last call."""

    def end(self) -> None:
        """Called once at the end."""


class Quiet:
    """Reports nothing."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        pass

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        pass

    def end(self) -> None:
        pass
