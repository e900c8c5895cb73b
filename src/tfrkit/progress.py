"""What a build tells about how it goes on."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told how a build goes on. Called in the process that leads it."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        """Reading starts: so many items of so many bytes are to come."""

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        """So many more were read."""

    def end(self) -> None:
        """Reading is over."""


class Quiet:
    """Progress for nobody."""

    def begin(self, num_items: int, nbytes: int | None) -> None:
        pass

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        pass

    def end(self) -> None:
        pass
