"""The items of a selection in little memory: a bitmap for many in file order, else a list of the smallest integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Items = np.ndarray[Any, np.dtype[Any]]

_BLOCK_NBYTES = 64
_BLOCK = 8 * _BLOCK_NBYTES  # records per entry of the table of ranks
# A number takes 32 bits in a list, a record one bit in a bitmap.
_LIST_BITS = 32
_NUM_BITS = np.array([number.bit_count() for number in range(256)], np.uint8)


class ListedItems:
    """Items in any order."""

    def __init__(self, items: Items) -> None:
        is_small = len(items) and int(items.min()) >= 0 and int(items.max()) < 1 << 32
        self._items: Items = items.astype(np.uint32 if is_small else np.int64)
        self._is_sorted = _is_ascending(items)
        self._places: Items | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def nbytes(self) -> int:
        return int(self._items.nbytes)

    def __iter__(self) -> Iterator[int]:
        return map(int, self._items)

    def item_at(self, position: int) -> int:
        return int(self._items[position])

    def position_of(self, item: int) -> int | None:
        """Return the position of an item, or None. The first call sorts, if they are not in order."""
        if not self._is_sorted and self._places is None:
            self._places = np.argsort(self._items, kind="stable")
        place = int(np.searchsorted(self._items, item, sorter=self._places))
        if place == len(self._items):
            return None
        position = place if self._places is None else int(self._places[place])
        return position if self._items[position] == item else None


class Bitmap:
    """Ascending record numbers, one bit for each record of the dataset, and the count before each block."""

    def __init__(self, bits: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Take a bit per record, the lowest first; the size is a multiple of `_BLOCK_NBYTES`."""
        self._bits = bits
        counts = _NUM_BITS[bits].reshape(-1, _BLOCK_NBYTES).sum(1, dtype=np.uint64)
        self._ranks = np.concatenate([np.zeros(1, np.uint64), np.cumsum(counts)])

    @classmethod
    def of_ranges(cls, ranges: Sequence[tuple[int, int]], num_records: int) -> Bitmap:
        """Take all records of half-open ranges."""
        bits = np.zeros(-(-num_records // _BLOCK) * _BLOCK_NBYTES, np.uint8)
        for start, stop in ranges:
            whole = -(-start // 8), stop // 8
            bits[whole[0] : whole[1]] = 255
            for record in {*range(start, min(stop, 8 * whole[0])), *range(max(start, 8 * whole[1]), stop)}:
                bits[record // 8] |= 1 << record % 8
        return cls(bits)

    @classmethod
    def of_items(cls, items: Items, num_records: int) -> Bitmap:
        """Take ascending record numbers."""
        flags = np.zeros(-(-num_records // _BLOCK) * _BLOCK, np.bool_)
        flags[items] = True
        return cls(np.packbits(flags, bitorder="little"))

    def __len__(self) -> int:
        return int(self._ranks[-1])

    @property
    def nbytes(self) -> int:
        return int(self._bits.nbytes + self._ranks.nbytes)

    def __iter__(self) -> Iterator[int]:
        for block in range(len(self._ranks) - 1):
            yield from (_BLOCK * block + self._list_block(block)).tolist()

    def item_at(self, position: int) -> int:
        block = int(np.searchsorted(self._ranks, position, side="right")) - 1
        return _BLOCK * block + int(self._list_block(block)[position - int(self._ranks[block])])

    def position_of(self, item: int) -> int | None:
        """Return the position of an item, or None."""
        if not 0 <= item < 8 * len(self._bits) or not self._bits[item // 8] >> item % 8 & 1:
            return None
        block, offset = divmod(item, _BLOCK)
        return int(self._ranks[block]) + int(np.searchsorted(self._list_block(block), offset))

    def _list_block(self, block: int) -> Items:
        bits = self._bits[_BLOCK_NBYTES * block : _BLOCK_NBYTES * (block + 1)]
        return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


def _is_ascending(items: Items) -> bool:
    return bool(np.all(items[1:] > items[:-1]))


Chosen = ListedItems | Bitmap


def choose_form(items: Items, num_records: int) -> Chosen:
    """Return items in the form that takes less memory."""
    is_in_order = len(items) and int(items[0]) >= 0 and _is_ascending(items)
    if is_in_order and len(items) * _LIST_BITS > num_records:
        return Bitmap.of_items(items, num_records)
    return ListedItems(items)
