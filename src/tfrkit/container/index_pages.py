"""Pages of the offsets in an index, each with a checksum that is compared when the page is first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.errors import StaleIndexError

Offsets = np.ndarray[Any, np.dtype[np.uint64]]


class IndexPages:
    """The pages of one index. `checker` is for the core, which checks the pages that it reads by itself. Any thread."""

    def __init__(
        self,
        offsets: Offsets,
        sums: np.ndarray[Any, np.dtype[np.uint32]],
        page: int,
        stale: Callable[[str], StaleIndexError],
    ) -> None:
        self._offsets, self._sums = offsets, sums
        self._page = page
        self._stale = stale
        self.checker = _native.OffsetPages(offsets, sums, page)

    def require(self, start: int, stop: int) -> None:
        """Raise `StaleIndexError` if a page with an offset of [start, stop) is damaged or does not ascend."""
        damaged = self.checker.find_damaged(start, stop)
        if damaged != len(self._sums):
            first = damaged * self._page
            is_sound = _native.crc32c(self._offsets[first : first + self._page].data) == self._sums[damaged]
            reason = "offsets do not ascend" if is_sound else "offsets checksum mismatch"
            raise self._stale(f"index is damaged, {reason} in page {damaged}, of the records from {first:,} on")


def sum_pages(offsets: Offsets, page: int) -> bytes:
    """Return the checksums of all pages, as they are stored."""
    parts = (offsets[start : start + page].data for start in range(0, len(offsets), page))
    return np.array([_native.crc32c(part) for part in parts], "<u4").tobytes()
