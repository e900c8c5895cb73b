"""Progress of long operations, reported to a callback."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives progress. Called in the main process."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """Start, with the totals; called once. `num_items` is 0 if only bytes are known."""

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        """Report the amounts since the last call."""

    def end(self) -> None:
        """Finish; called once."""


class Quiet:
    """Ignores all progress."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        pass

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        pass

    def end(self) -> None:
        pass
