"""Orders: which record stands at which position, as arithmetic.

An order maps positions [0, size) to record numbers of a dataset. Orders are built on one another (a shuffled part
of a split of a file), hold no array of the records unless a feature had to be read to make them, and answer for
any position at once: that is what makes resuming, ranks and workers exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt64Array


class Order(Protocol):
    """Record numbers by position. Immutable; any thread."""

    @property
    def size(self) -> int:
        """Number of positions."""

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        """The record numbers at `positions`, each below `size`."""

    def describe(self) -> object:
        """What makes this order what it is, as a JSON value: equal descriptions, equal orders."""


def derive_key(purpose: str, seed: int, *numbers: int) -> int:
    """A 64-bit key for one purpose. Part of the promise that orders never change."""
    text = ":".join([purpose, str(seed), *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=64)
def _permutation(size: int, key: int) -> _native.Permutation:
    return _native.Permutation(size, key)


def permute(size: int, key: int, positions: UInt64Array) -> UInt64Array:
    """Items at `positions` of the keyed permutation of [0, size)."""
    if len(positions) == 0:
        return positions
    return _permutation(size, key).at_many(positions)


def keyed_permutation(size: int, seed: int, epoch: int = 0) -> _native.Permutation:
    """The permutation that `Shuffled` mixes `size` positions with, for whoever needs its inverse too."""
    return _permutation(size, derive_key("shuffle", seed, epoch))


class Whole:
    """Every record, in file order."""

    def __init__(self, size: int) -> None:
        self.size = size

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return positions

    def describe(self) -> object:
        return ["whole", self.size]


class Slice:
    """The positions start, start + step, ... of another order."""

    def __init__(self, base: Order, start: int, stop: int, step: int = 1) -> None:
        self._base = base
        self._range = range(start, stop, step)
        self.size = len(self._range)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        inner = positions.astype(np.int64) * self._range.step + self._range.start
        return self._base.at(inner.astype(np.uint64), epoch)

    def describe(self) -> object:
        return ["slice", self._range.start, self._range.stop, self._range.step, self._base.describe()]


class Listed:
    """The positions of another order that a list names: what is left after a feature was looked at."""

    def __init__(self, base: Order, positions: UInt64Array) -> None:
        self._base = base
        self._positions = np.ascontiguousarray(positions, np.uint64)
        self.size = len(self._positions)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return self._base.at(self._positions[positions], epoch)

    def describe(self) -> object:
        digest = hashlib.blake2b(self._positions.tobytes(), digest_size=16).hexdigest()
        return ["listed", self.size, digest, self._base.describe()]


class Permuted:
    """Another order, mixed once and for all: what a split cuts its parts from."""

    def __init__(self, base: Order, seed: int) -> None:
        self._base = base
        self._seed = seed
        self.size = base.size
        self._key = derive_key("split", seed)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return self._base.at(permute(self.size, self._key, positions), epoch)

    def describe(self) -> object:
        return ["permuted", self._seed, self._base.describe()]


class Shuffled:
    """Another order, mixed anew for each epoch: every order of the records is as likely as every other."""

    def __init__(self, base: Order, seed: int) -> None:
        self._base = base
        self._seed = seed
        self.size = base.size

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        key = derive_key("shuffle", self._seed, epoch)
        return self._base.at(permute(self.size, key, positions), epoch)

    def describe(self) -> object:
        return ["shuffled", self._seed, self._base.describe()]


class WindowShuffled:
    """Another order in shuffled blocks: `block` neighbours stay near each other, `window` positions are mixed.

    A window is made of whole blocks from all over the dataset, so that reading it takes few long reads instead of
    many short ones. The last, shorter block takes the last place.
    """

    def __init__(self, base: Order, seed: int, *, block: int, window: int) -> None:
        self._base = base
        self._seed = seed
        self.block = block
        self.window = max(1, window // block) * block
        self.size = base.size

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        inner = np.empty_like(positions)
        windows = positions // np.uint64(self.window)
        for window in np.unique(windows):
            chosen = windows == window
            start = int(window) * self.window
            size = min(self.window, self.size - start)
            key = derive_key("window", self._seed, epoch, int(window))
            inner[chosen] = permute(size, key, positions[chosen] - np.uint64(start)) + np.uint64(start)
        return self._base.at(self._place_blocks(inner, epoch), epoch)

    def numbers_of(self, window: int, epoch: int) -> UInt64Array:
        """All record numbers of one window."""
        start = window * self.window
        return self.at(np.arange(start, min(self.size, start + self.window), dtype=np.uint64), epoch)

    def _place_blocks(self, positions: UInt64Array, epoch: int) -> UInt64Array:
        num_whole = self.size // self.block
        blocks = positions // np.uint64(self.block)
        is_whole = blocks < num_whole
        key = derive_key("blocks", self._seed, epoch)
        moved = permute(num_whole, key, blocks[is_whole]) if num_whole else blocks[is_whole]
        blocks[is_whole] = moved
        return blocks * np.uint64(self.block) + positions % np.uint64(self.block)

    def describe(self) -> object:
        return ["window", self._seed, self.block, self.window, self._base.describe()]


class Repeated:
    """Another order several times over, each time with the next epoch."""

    def __init__(self, base: Order, times: int) -> None:
        self._base = base
        self._times = times
        self.size = base.size * times

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        rounds = positions // np.uint64(max(1, self._base.size))
        for number in np.unique(rounds):
            chosen = rounds == number
            inner = positions[chosen] - number * np.uint64(self._base.size)
            numbers[chosen] = self._base.at(inner, epoch * self._times + int(number))
        return numbers

    def describe(self) -> object:
        return ["repeated", self._times, self._base.describe()]


class Joined:
    """Several orders over one dataset, one after the other."""

    def __init__(self, parts: Sequence[Order]) -> None:
        self._parts = list(parts)
        self._starts = np.cumsum([0, *(part.size for part in self._parts)])
        self.size = int(self._starts[-1])

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        places = np.searchsorted(self._starts, positions.astype(np.int64), side="right") - 1
        for place in np.unique(places):
            chosen = places == place
            inner = positions[chosen] - np.uint64(self._starts[place])
            numbers[chosen] = self._parts[place].at(inner, epoch)
        return numbers

    def describe(self) -> object:
        return ["joined", *(part.describe() for part in self._parts)]


class Bucketed:
    """Another order with rows of like length brought together in batches.

    Each stretch of `chunk` positions is sorted by length, cut into batches, and the whole batches are mixed; so a
    batch holds like lengths, and lengths still come in any order. Only the lengths are held.
    """

    def __init__(self, base: Order, lengths: Int64Array, *, batch_size: int, seed: int, num_batches: int = 64) -> None:
        self._base = base
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._chunk = batch_size * num_batches
        self.size = base.size
        self._last: tuple[tuple[int, int], UInt64Array] | None = None

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        chunks = positions // np.uint64(self._chunk)
        for chunk in np.unique(chunks):
            chosen = chunks == chunk
            members = self._sort_chunk(int(chunk), epoch)
            numbers[chosen] = members[positions[chosen] - chunk * np.uint64(self._chunk)]
        return numbers

    def _sort_chunk(self, chunk: int, epoch: int) -> UInt64Array:
        last = self._last
        if last is not None and last[0] == (chunk, epoch):
            return last[1]
        start = chunk * self._chunk
        stop = min(self.size, start + self._chunk)
        members = self._base.at(np.arange(start, stop, dtype=np.uint64), epoch)
        members = members[np.argsort(self._lengths[members], kind="stable")]
        num_whole = len(members) // self._batch_size
        if num_whole > 1:
            key = derive_key("buckets", self._seed, epoch, chunk)
            places = permute(num_whole, key, np.arange(num_whole, dtype=np.uint64))
            whole = members[: num_whole * self._batch_size].reshape(num_whole, self._batch_size)
            members = np.concatenate([whole[places].reshape(-1), members[num_whole * self._batch_size :]])
        self._last = ((chunk, epoch), members)
        return members

    def describe(self) -> object:
        digest = hashlib.blake2b(self._lengths.tobytes(), digest_size=16).hexdigest()
        return ["bucketed", self._seed, self._batch_size, self._chunk, digest, self._base.describe()]


class Mixed:
    """Several orders drawn from by weight. Each `block` positions hold the same number of each, in a mixed order.

    The records of source i are numbered from `starts[i]`. A source that ends begins again with its next epoch.
    """

    block = 10_000

    def __init__(
        self, parts: Sequence[Order], weights: Sequence[float], starts: Sequence[int], *, seed: int, size: int | None
    ) -> None:
        self._parts = list(parts)
        self._starts = list(starts)
        self._seed = seed
        self._shares = apportion(weights, self.block)
        self._owners = np.repeat(np.arange(len(self._parts)), self._shares)
        self._last: tuple[tuple[int, int], tuple[Int64Array, Int64Array]] | None = None
        if size is None:
            # As long as no source has to begin again.
            size = min(self._first_end(part) for part in range(len(self._parts)) if self._shares[part])
        self.size = size

    def _first_end(self, part: int) -> int:
        """Positions before source `part` would have to begin again."""
        whole, rest = divmod(self._parts[part].size, self._shares[part])
        owners, _ = self._lay_out(whole, 0)
        return whole * self.block + int(np.flatnonzero(owners == part)[rest])

    def _lay_out(self, block: int, epoch: int) -> tuple[Int64Array, Int64Array]:
        """Which source each position of a block draws from, and as which of its draws in this block."""
        last = self._last
        if last is not None and last[0] == (block, epoch):
            return last[1]
        places = np.arange(self.block, dtype=np.uint64)
        owners = self._owners[permute(self.block, derive_key("mix", self._seed, epoch, block), places)]
        draws = np.empty(self.block, np.int64)
        for part, share in enumerate(self._shares):
            draws[owners == part] = np.arange(share)
        self._last = ((block, epoch), (owners, draws))
        return owners, draws

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        numbers = np.empty_like(positions)
        blocks = positions // np.uint64(self.block)
        for block in np.unique(blocks).tolist():
            chosen = np.flatnonzero(blocks == block)
            owners, draws = self._lay_out(block, epoch)
            places = positions[chosen] % np.uint64(self.block)
            for part in np.unique(owners[places]).tolist():
                mine = owners[places] == part
                drawn = draws[places[mine]] + block * self._shares[part]
                numbers[chosen[mine]] = self._draw(part, drawn.astype(np.uint64), epoch)
        return numbers

    def _draw(self, part: int, drawn: UInt64Array, epoch: int) -> UInt64Array:
        """The records that the `drawn`-th draws from a source give."""
        order = self._parts[part]
        size = np.uint64(order.size)
        # An epoch of the mix starts every source anew, in an order of its own.
        rounds_per_epoch = self.size * self._shares[part] // (self.block * order.size) + 2
        numbers = np.empty_like(drawn)
        rounds = drawn // size
        for number in np.unique(rounds):
            chosen = rounds == number
            numbers[chosen] = order.at(drawn[chosen] % size, epoch * rounds_per_epoch + int(number))
        return numbers + np.uint64(self._starts[part])

    def describe(self) -> object:
        return ["mixed", self._seed, self.size, self._shares, *(part.describe() for part in self._parts)]


def apportion(weights: Sequence[float], total: int) -> list[int]:
    """Whole shares of `total` by weight, by largest remainder; every positive weight gets at least one."""
    if not weights or any(not 0 <= weight < float("inf") for weight in weights) or not sum(weights):
        raise ValueError(f"weights expected numbers from 0 up, not all 0, got {list(weights)}")
    exact = [weight * total / sum(weights) for weight in weights]
    shares = [max(int(share), 1 if share else 0) for share in exact]
    remainders = sorted(range(len(shares)), key=lambda part: (int(exact[part]) - exact[part], part))
    for part in remainders[: max(0, total - sum(shares))]:
        shares[part] += 1
    while sum(shares) > total:  # the ones given to tiny weights are taken from the largest
        shares[shares.index(max(shares))] -= 1
    return shares


def score_mixing(order: Order, epoch: int = 0, sample: int = 20_000) -> float:
    """How far neighbours of an order lie apart, against what pure chance gives: 1 is a perfect shuffle, 0 none."""
    if order.size < 3:
        return 1.0
    starts = np.unique(np.linspace(0, order.size - 2, min(sample, order.size - 1)).astype(np.uint64))
    numbers = order.at(starts, epoch).astype(np.int64)
    following = order.at(starts + np.uint64(1), epoch).astype(np.int64)
    spread = np.ptp(np.concatenate([numbers, following])) + 1
    return float(min(1.0, np.abs(following - numbers).mean() / (spread / 3)))
