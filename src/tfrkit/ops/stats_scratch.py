"""Memory for what is computed on the way, used again and again.

An array of more than 128 KB comes from the system and goes back to it: its pages are made anew each time, which takes
longer than all that is done with them here.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_MIN_SIZE = 1 << 15


class Scratch(threading.local):
    """Arrays by name, one of each for every thread. What is in them is valid until the name is taken again."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, Any], np.ndarray[Any, np.dtype[Any]]] = {}

    def take(self, name: str, dtype: Any, size: int) -> np.ndarray[Any, np.dtype[Any]]:
        """An array of any content."""
        held = self._held.get((name, dtype))
        if held is None or len(held) < size:
            held = self._held[name, dtype] = np.empty(max(_MIN_SIZE, size), dtype)
        return held[:size]


scratch = Scratch()
