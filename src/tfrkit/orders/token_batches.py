"""Batches by a token budget: each has as many rows as fit when padded to the longest row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.orders.order import Order, Rearranged, derive_key, permute
from tfrkit.orders.part_orders import is_fixed
from tfrkit.orders.plan import Even, check_ranks

# Approximate number of batches that are sorted and shuffled together.
_BATCHES_AT_ONCE = 64


class TokenBatches(Rearranged):
    """Another order, cut into batches of rows of similar length; rows times longest row is at most `max_tokens`.

    Each chunk of `chunk` positions is sorted by length, cut from the shortest row on, and its batches are shuffled.
    `lengths` has the lengths of all records, each at most `max_tokens`; an empty row counts as length 1. If the other
    order changes between epochs, the number of batches may change, too.
    """

    def __init__(
        self, base: Order, lengths: Int64Array, *, max_tokens: int, max_rows: int | None = None, seed: int = 0
    ) -> None:
        self._base = base
        self._lengths = np.maximum(lengths, 1)
        self._max_tokens = max_tokens
        self._max_rows = max_tokens if max_rows is None else max_rows
        self._seed = seed
        self.size = base.size
        mean = int(self._lengths.mean()) if len(lengths) else 1
        typical_rows = max(1, min(self._max_rows, max_tokens // max(1, mean)))
        self._chunk = typical_rows * _BATCHES_AT_ONCE
        self.is_fixed = is_fixed(base)
        self._last_chunk: tuple[tuple[int, int], tuple[UInt64Array, Int64Array]] | None = None
        self._last_stops: tuple[int, Int64Array] | None = None

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        chunks = positions // np.uint64(self._chunk)
        for chunk in np.unique(chunks):
            chosen = chunks == chunk
            members, _ = self._cut_chunk(int(chunk), epoch)
            numbers[chosen] = members[positions[chosen] - chunk * np.uint64(self._chunk)]
        return numbers

    def stops(self, epoch: int) -> Int64Array:
        """Return the stop position of each batch of an epoch. Takes about 0.4 s for a million rows; then cached."""
        last = self._last_stops
        if last is not None and last[0] == epoch:
            return last[1]
        sizes = [self._cut_chunk(chunk, epoch)[1] for chunk in range(-(-self.size // self._chunk))]
        stops = np.cumsum(np.concatenate(sizes)) if sizes else np.empty(0, np.int64)
        self._last_stops = (epoch, stops)
        return stops

    def _cut_chunk(self, chunk: int, epoch: int) -> tuple[UInt64Array, Int64Array]:
        """Return the records of a chunk of positions, and the sizes of its batches."""
        last = self._last_chunk
        if last is not None and last[0] == (chunk, epoch):
            return last[1]
        start = chunk * self._chunk
        members = self._base.at(np.arange(start, min(self.size, start + self._chunk), dtype=np.uint64), epoch)
        members = members[np.argsort(self._lengths[members], kind="stable")]
        sizes = cut_by_tokens(self._lengths[members], self._max_tokens, self._max_rows)
        key = derive_key("tokens", self._seed, epoch, chunk)
        places = permute(len(sizes), key, np.arange(len(sizes), dtype=np.uint64))
        pieces = np.split(members, np.cumsum(sizes)[:-1])
        made = np.concatenate([pieces[place] for place in places.tolist()]), sizes[places]
        self._last_chunk = ((chunk, epoch), made)
        return made

    def describe(self) -> object:
        digest = hashlib.blake2b(self._lengths.tobytes(), digest_size=16).hexdigest()
        budget = [self._max_tokens, self._max_rows, self._chunk]
        return ["tokens", self._seed, *budget, digest, self._base.describe()]


def cut_by_tokens(lengths: Int64Array, max_tokens: int, max_rows: int) -> Int64Array:
    """Compute batch sizes for rows of ascending lengths from 1 to `max_tokens`: each batch takes all rows that fit."""
    sizes = []
    start = 0
    while start < len(lengths):
        # Upper bound, as if all rows were as short as the first.
        most = min(len(lengths) - start, max_tokens // int(lengths[start]), max_rows)
        fits = lengths[start : start + most] * np.arange(1, most + 1) <= max_tokens
        sizes.append(most if fits[-1] else int(fits.argmin()))
        start += sizes[-1]
    return np.array(sizes, np.int64)


@dataclass(frozen=True)
class TokenPlan:
    """Distributes the batches of an epoch, from row `start` on, to ranks: each gets the same number of whole batches.

    Rank r of W gets the batches r, W + r, 2 W + r, ... If the last round is incomplete, `even` decides: fill it from
    the start of the epoch, or drop it.
    """

    order: TokenBatches
    epoch: int = 0
    rank: int = 0
    world_size: int = 1
    even: Even = "pad"
    start: int = 0

    def __post_init__(self) -> None:
        check_ranks(self.rank, self.world_size, self.even)
        stops = self.order.stops(self.epoch)
        if self.start and (not len(stops) or stops[self._first - 1] != self.start):
            raise ValueError(f"row {self.start} is inside a batch of epoch {self.epoch}, expected the end of one")

    @property
    def _first(self) -> int:
        """The number of the first batch from row `start` on."""
        return int(np.searchsorted(self.order.stops(self.epoch), self.start, "right")) if self.start else 0

    @property
    def num_batches(self) -> int:
        """The number of batches of every rank."""
        whole, rest = divmod(len(self.order.stops(self.epoch)) - self._first, self.world_size)
        return whole + (1 if rest and self.even == "pad" else 0)

    @property
    def num_equal_rows(self) -> None:
        """None, because batches have different numbers of rows."""

    def rows(self, number: int) -> UInt64Array:
        """Return the rows of batch `number` of this rank."""
        stops = self.order.stops(self.epoch)
        if not len(stops):
            return np.empty(0, np.uint64)
        batch = (self._first + number * self.world_size + self.rank) % len(stops)
        return np.arange(stops[batch - 1] if batch else 0, stops[batch], dtype=np.uint64)

    def stop_of(self, number: int) -> int:
        """Return the number of rows of the epoch before the end of batch `number` of all ranks."""
        stops = self.order.stops(self.epoch)
        return int(stops[min(self._first + (number + 1) * self.world_size, len(stops)) - 1])
