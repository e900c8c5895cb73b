"""Pages of the offsets in an index, each with a checksum that is compared when the page is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.errors import StaleIndexError
from tfrkit.storage.base import ByteReader
from tfrkit.storage.forking import renew_lock_after_fork

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


class FetchedPages(IndexPages):
    """The pages of an index in a store, each requested when it is first used."""

    def __init__(
        self,
        offsets: Offsets,
        sums: np.ndarray[Any, np.dtype[np.uint32]],
        page: int,
        stale: Callable[[str], StaleIndexError],
        reader: ByteReader,
        start: int,
        num_here: int,
    ) -> None:
        """Pages are read from byte `start` of `reader` on, into `offsets`, which has the first `num_here` of them."""
        super().__init__(offsets, sums, page, stale)
        self._reader = reader
        self._start = start
        self._is_here = bytearray(b"\1" * num_here).ljust(len(sums), b"\0")
        self._lock = threading.Lock()
        renew_lock_after_fork(self)

    def require(self, start: int, stop: int) -> None:
        pages = range(start // self._page, -(-stop // self._page))
        self._fetch(pages)
        try:
            super().require(start, stop)
        except StaleIndexError:
            self._fetch(pages, fresh=True)  # a byte may have been wrong on its way
            super().require(start, stop)

    def expect(self, records: Sequence[int]) -> None:
        """Request the pages with these records and those after them, together."""
        numbers = np.asarray(records, np.int64)
        last = len(self._offsets) - 1
        self._fetch(np.unique(np.concatenate([numbers, np.minimum(numbers + 1, last)]) // self._page).tolist())

    def _fetch(self, pages: Sequence[int], *, fresh: bool = False) -> None:
        if not fresh and all(self._is_here[page] for page in pages):
            return
        with self._lock:
            wanted = [page for page in pages if fresh or not self._is_here[page]]
            firsts = [page * self._page for page in wanted]
            stops = [min(first + self._page, len(self._offsets)) for first in firsts]
            ranges = [(self._start + 8 * a, self._start + 8 * b) for a, b in zip(firsts, stops, strict=True)]
            found = self._reader.read_ranges(ranges, fresh=fresh) if ranges else []
            for page, first, stop, data in zip(wanted, firsts, stops, found, strict=True):
                self._offsets[first:stop] = np.frombuffer(data, "<u8")
                self._is_here[page] = 1


def sum_pages(offsets: Offsets, page: int) -> bytes:
    """Return the checksums of all pages, as they are stored."""
    parts = (offsets[start : start + page].data for start in range(0, len(offsets), page))
    return np.array([_native.crc32c(part) for part in parts], "<u4").tobytes()
