"""Orders: the record at each position, computed by arithmetic.

An order maps positions [0, size) to record numbers of a dataset. Orders can be nested (a shuffled part of a split of a
file), keep no array of records unless a feature had to be read, and can be evaluated at any position, which makes
resuming, ranks and workers exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt64Array

OrderStep = tuple[Any, ...]
"""A function on positions: ("slice", start, step), ("permutation", size, key) or ("list", numbers)."""


class Order(Protocol):
    """Record numbers by position. Immutable; safe to share between threads."""

    @property
    def size(self) -> int:
        """Number of positions."""

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        """Return the record numbers at `positions`, each below `size`."""

    def runs(self) -> list[range] | None:
        """Return all record numbers in order, as ranges; None if the order is not made of a few ranges."""

    def cover(self) -> list[range]:
        """Return ranges that cover all record numbers of the order, and perhaps others."""

    def members(self) -> Order:
        """Return an order of the same records, each at least once, that may be simpler."""

    def steps(self, epoch: int) -> list[OrderStep] | None:
        """Return `at` as steps for the native engine, in the order to apply them; None if that is not possible."""

    def describe(self) -> object:
        """Return a JSON value that identifies the order: orders with equal descriptions are equal."""


class Rearranged:
    """Base of orders that rearrange another order."""

    _base: Order

    def runs(self) -> list[range] | None:
        return None

    def cover(self) -> list[range]:
        return self._base.cover()

    def members(self) -> Order:
        return self._base.members()

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return None


def _chain(step: OrderStep, base: Order, epoch: int) -> list[OrderStep] | None:
    steps = base.steps(epoch)
    return None if steps is None else [step, *steps]


def derive_key(purpose: str, seed: int, *numbers: int) -> int:
    """Derive a 64-bit key for one purpose. Pinned by tests: orders never change between versions."""
    text = ":".join([purpose, str(seed), *map(str, numbers)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=64)
def _permutation(size: int, key: int) -> _native.Permutation:
    return _native.Permutation(size, key)


def permute(size: int, key: int, positions: UInt64Array) -> UInt64Array:
    """Return the items at `positions` of the keyed permutation of [0, size)."""
    if len(positions) == 0:
        return positions
    return _permutation(size, key).at_many(positions)


def keyed_permutation(size: int, seed: int) -> _native.Permutation:
    """Return the permutation that `Shuffled` applies to `size` positions in epoch 0, for its inverse."""
    return _permutation(size, derive_key("shuffle", seed, 0))


class Whole:
    """Every record, in file order."""

    def __init__(self, size: int) -> None:
        self.size = size

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return positions

    def runs(self) -> list[range]:
        return [range(self.size)]

    def cover(self) -> list[range]:
        return self.runs()

    def members(self) -> Order:
        return self

    def steps(self, epoch: int) -> list[OrderStep]:
        return []

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

    def runs(self) -> list[range] | None:
        runs = self._base.runs()
        if runs is None or len(runs) == 1:
            return None if runs is None else [_pick_range(runs[0], self._range)]
        if self._range.step != 1:
            return None
        cut, start = [], 0
        for run in runs:
            low, high = max(0, self._range.start - start), min(len(run), self._range.stop - start)
            if low < high:
                cut.append(run[low:high])
            start += len(run)
        return cut

    def cover(self) -> list[range]:
        runs = self.runs()
        return self._base.cover() if runs is None else runs

    def members(self) -> Order:
        base = self._base
        # A slice as long as two rounds contains a whole round, wherever it starts.
        is_round = isinstance(base, Repeated) and self._range.step == 1 and self.size >= 2 * base.round_size
        return base.members() if is_round else self

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return _chain(("slice", self._range.start, self._range.step), self._base, epoch)

    def describe(self) -> object:
        return ["slice", self._range.start, self._range.stop, self._range.step, self._base.describe()]


class Listed(Rearranged):
    """Listed positions of another order, e.g. the result of a filter by a feature."""

    def __init__(self, base: Order, positions: UInt64Array) -> None:
        self._base = base
        self._positions = np.ascontiguousarray(positions, np.uint64)
        self.size = len(self._positions)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return self._base.at(self._positions[positions], epoch)

    def members(self) -> Order:
        return self

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return _chain(("list", self._positions), self._base, epoch)

    def describe(self) -> object:
        digest = hashlib.blake2b(self._positions.data, digest_size=16).hexdigest()
        return ["listed", self.size, digest, self._base.describe()]


class Permuted(Rearranged):
    """Another order in one fixed permutation, the same in every epoch; the parts of a split are slices of it."""

    def __init__(self, base: Order, seed: int) -> None:
        self._base = base
        self._seed = seed
        self.size = base.size
        self._key = derive_key("split", seed)

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        return self._base.at(permute(self.size, self._key, positions), epoch)

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return _chain(("permutation", self.size, self._key), self._base, epoch)

    def describe(self) -> object:
        return ["permuted", self._seed, self._base.describe()]


class Shuffled(Rearranged):
    """Another order, shuffled for each epoch; all permutations are equally likely."""

    def __init__(self, base: Order, seed: int) -> None:
        self._base = base
        self._seed = seed
        self.size = base.size

    def at(self, positions: UInt64Array, epoch: int = 0) -> UInt64Array:
        key = derive_key("shuffle", self._seed, epoch)
        return self._base.at(permute(self.size, key, positions), epoch)

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return _chain(("permutation", self.size, derive_key("shuffle", self._seed, epoch)), self._base, epoch)

    def describe(self) -> object:
        return ["shuffled", self._seed, self._base.describe()]


class WindowShuffled(Rearranged):
    """Another order in shuffled blocks of `block` adjacent positions, shuffled again within each `window` positions.

    A window has whole blocks from all over the dataset, so that it needs few long reads instead of many short reads.
    A last, shorter block stays last.
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

    def windows_of(self, positions: UInt64Array) -> list[int]:
        """Return the windows that hold these positions."""
        return [int(window) for window in np.unique(positions // np.uint64(self.window))]

    def next_window(self, window: int) -> int | None:
        """Return the window after another one in this epoch."""
        return window + 1 if (window + 1) * self.window < self.size else None

    def numbers_of(self, window: int, epoch: int) -> UInt64Array:
        """Return all record numbers of one window."""
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


class Repeated(Rearranged):
    """Another order repeated, each time with the next epoch."""

    def __init__(self, base: Order, times: int) -> None:
        self._base = base
        self._times = times
        self.size = base.size * times
        self.round_size = base.size

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

    def runs(self) -> list[range] | None:
        runs: list[range] = []
        for part in self._parts:
            found = part.runs()
            if found is None:
                return None
            runs += found
        return runs

    def cover(self) -> list[range]:
        return [run for part in self._parts for run in part.cover()]

    def members(self) -> Order:
        return Joined([part.members() for part in self._parts])

    def steps(self, epoch: int) -> list[OrderStep] | None:
        return None

    def describe(self) -> object:
        return ["joined", *(part.describe() for part in self._parts)]


class Bucketed(Rearranged):
    """Another order with rows of similar length batched together.

    Each chunk of `num_batches` batches is sorted by length and cut into batches, and the batches are shuffled. A batch
    has similar lengths, and the order of the batches is random. Only the lengths are kept in memory.
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


def _pick_range(numbers: range, positions: range) -> range:
    """Return the numbers at these positions of a range."""
    start = numbers.start + numbers.step * positions.start
    step = numbers.step * positions.step
    return range(start, start + step * len(positions), step)


def score_mixing(order: Order, epoch: int = 0, sample: int = 20_000) -> float:
    """Compute the mean distance of adjacent records relative to a random order: 1 is a perfect shuffle, 0 none."""
    if order.size < 3:
        return 1.0
    starts = np.unique(np.linspace(0, order.size - 2, min(sample, order.size - 1)).astype(np.uint64))
    numbers = order.at(starts, epoch).astype(np.int64)
    following = order.at(starts + np.uint64(1), epoch).astype(np.int64)
    spread = np.ptp(np.concatenate([numbers, following])) + 1
    return float(min(1.0, np.abs(following - numbers).mean() / (spread / 3)))
