"""Find duplicates and near duplicates by hashes.

Equal bytes are found by sorting digests. Images that look the same are found without comparing all pairs: two 64-bit
hashes that differ in at most 3 bits have at least one of their four 16-bit parts in common, so only hashes that share a
part are compared. A 256-bit hash then tells apart images with the same layout (plates, forms, captchas). Memory: 17
bytes per record and 40 more per image; 33 and 110 during the comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import Int64Array, UInt8Array, UInt64Array
from tfrkit.images.perceptual import LONG_BITS

DIGEST_NBYTES = 16
# Distance of 64-bit hashes: by comparing four parts, no pair within this distance is missed.
_NEAR_BITS = 3
_PART_BITS = 16
# Distance of 256-bit hashes. Copies in another size or quality differ in 0 to 20 bits, unrelated images in about 128.
NEAR_LONG_BITS = 26
_NONE = np.iinfo(np.uint64).max
_INDEX_BITS = 40


Bools = np.ndarray[Any, np.dtype[np.bool_]]


class Match(NamedTuple):
    """Record `later` copies record `earlier`; `distance` counts differing bits of 256, None for equal bytes."""

    earlier: int
    later: int
    distance: int | None


class Fingerprints:
    """Hashes of records, in the order they were added. Not thread-safe."""

    def __init__(self) -> None:
        self._digests: list[UInt8Array] = []
        self._short: list[UInt64Array] = []  # of images only, as the next one
        self._long: list[UInt64Array] = []
        self._is_hashed: list[Bools] = []
        self._splits: list[tuple[int, int]] = []  # split and number of records, of each call of `add`

    def add(self, digests: list[bytes], short: UInt64Array, long: UInt64Array, is_hashed: Bools, *, split: int) -> None:
        """Add records of one split; a record with digest b"" is not compared."""
        joined = b"".join(digest or bytes(DIGEST_NBYTES) for digest in digests)
        self._digests.append(np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_NBYTES))
        self._short.append(short if is_hashed.all() else short[is_hashed])
        self._long.append(long if is_hashed.all() else long[is_hashed])
        self._is_hashed.append(is_hashed)
        self._splits.append((split, len(digests)))

    def find_matches(self) -> Iterator[Match]:
        """Yield matches of each record with earlier ones, in its own split and in each earlier split.

        REQUIRES: records were added split by split.
        """
        if not self._digests:
            return
        digests = _join(self._digests).view(np.uint64).reshape(-1, 2)
        counts = np.array(self._splits, np.int64)
        splits = np.repeat(counts[:, 0].astype(np.int32), counts[:, 1])
        is_copy = np.zeros(len(splits), np.bool_)
        yield from _match_equal(digests, splits, is_copy)
        is_hashed = _join(self._is_hashed)
        short, long = _join(self._short), _join(self._long)
        if is_copy.any():
            is_left = ~is_copy[is_hashed]
            short, long, is_hashed = short[is_left], long[is_left], is_hashed & ~is_copy
        if len(short) > 1:
            numbers = np.flatnonzero(is_hashed)
            for match in _NearSearch(short, long, digests, numbers, splits[numbers]).find():
                yield Match(int(numbers[match.earlier]), int(numbers[match.later]), match.distance)


def _join(pieces: list[Any]) -> Any:
    """Concatenate arrays, and keep the result instead of them: both would be twice the memory."""
    if len(pieces) > 1:
        pieces[:] = [np.concatenate(pieces)]
    return pieces[0]


def _match_equal(digests: UInt64Array, splits: np.ndarray[Any, np.dtype[np.int32]], is_copy: Bools) -> Iterator[Match]:
    """Yield records with equal bytes; mark in `is_copy` those that have an earlier match in their own split."""
    alike = _find_alike(digests[:, 0])
    alike = alike[digests[alike].any(axis=1)]
    # The sort is stable, so equal records stay in order.
    order = alike[np.lexsort((digests[alike, 1], digests[alike, 0]))]
    if len(order) < 2:
        return
    is_same = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_same, [False]]).astype(np.int8)))
    for start, stop in edges.reshape(-1, 2).tolist():
        firsts: dict[int, int] = {}
        for number in order[start : stop + 1].tolist():
            split = int(splits[number])
            for first in firsts.values():
                yield Match(first, number, None)
            is_copy[number] = split in firsts
            firsts.setdefault(split, number)


def _find_alike(values: UInt64Array) -> Int64Array:
    """Return the places of the values that come more than once, in order: of most datasets these are few."""
    found = np.sort(values)
    found = np.unique(found[1:][found[1:] == found[:-1]])
    pieces = [np.zeros(0, np.int64)]
    for start in range(0, len(values) if len(found) else 0, LIMITS.compared_records):
        piece = values[start : start + LIMITS.compared_records]
        at = np.minimum(np.searchsorted(found, piece), len(found) - 1)
        pieces.append(start + np.flatnonzero(found[at] == piece))
    return np.concatenate(pieces)


class _NearSearch:
    """Finds for each image the nearest earlier one in its own split and in each earlier split, by similar hashes."""

    def __init__(
        self,
        short: UInt64Array,
        long: UInt64Array,
        digests: UInt64Array,
        numbers: Int64Array,
        splits: np.ndarray[Any, np.dtype[np.int32]],
    ) -> None:
        """Compare images by their hashes; `numbers` are their places among the digests of all records."""
        self._short = short
        self._long = long
        self._digests = digests
        self._numbers = numbers
        distinct = np.unique(splits)
        self._splits = np.searchsorted(distinct, splits).astype(np.int32)
        # Distance in the high bits, number of the earlier image in the low bits: the minimum is the nearest image, and
        # the first of several.
        self._nearest = np.full((len(short), len(distinct)), _NONE, np.uint64)

    def find(self) -> Iterator[Match]:
        for part in range(64 // _PART_BITS):
            self._compare_part(part)
        for later, column in np.argwhere(self._nearest != _NONE).tolist():
            packed = int(self._nearest[later, column])
            yield Match(packed & (1 << _INDEX_BITS) - 1, later, packed >> _INDEX_BITS)

    def _compare_part(self, part: int) -> None:
        """Compare images that share one part of their short hash."""
        values = (self._short >> np.uint64(part * _PART_BITS)).astype(np.uint16)
        # Sorted by the whole hash within a part, so that the pairs compared are similar if there are too many for all.
        order = np.lexsort((self._short, values))
        in_order = values[order]
        # Pieces, because what is computed for each pair would be several times the hashes.
        for start in range(0, len(order), LIMITS.compared_records):
            active = np.arange(start, min(start + LIMITS.compared_records, len(order)))
            stops = np.searchsorted(in_order, in_order[active], side="right")
            for lag in range(1, LIMITS.max_neighbours + 1):
                is_left = active + lag < stops
                active, stops = active[is_left], stops[is_left]
                if not len(active):
                    break
                self._compare(order[active], order[active + lag])

    def _compare(self, one: Int64Array, two: Int64Array) -> None:
        is_near = count_bits(self._short[one] ^ self._short[two]) <= _NEAR_BITS
        earlier, later = np.minimum(one[is_near], two[is_near]), np.maximum(one[is_near], two[is_near])
        distances = count_bits(self._long[earlier] ^ self._long[later]).sum(axis=1)
        digests = self._digests[self._numbers[earlier]], self._digests[self._numbers[later]]
        is_kept = (distances <= NEAR_LONG_BITS) & (digests[0] != digests[1]).any(axis=1)
        earlier, later, distances = earlier[is_kept], later[is_kept], distances[is_kept]
        packed = distances.astype(np.uint64) << np.uint64(_INDEX_BITS) | earlier.astype(np.uint64)
        np.minimum.at(self._nearest, (later, self._splits[earlier]), packed)


_BITS_OF_BYTES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def count_bits(values: UInt64Array) -> Int64Array:
    """Count the set bits of each number.

    Example:
        >>> count_bits(np.array([0, 7, 2**63], np.uint64)).tolist()
        [0, 3, 1]
    """
    in_bytes = _BITS_OF_BYTES[np.ascontiguousarray(values).view(np.uint8)]
    counts: Int64Array = in_bytes.reshape(*values.shape, 8).sum(axis=-1, dtype=np.int64)
    return counts


def describe_distance(distance: int | None) -> str:
    """Describe the distance of two images, for messages."""
    return "" if distance is None else f", {distance} of {LONG_BITS} bits of their hashes differ"
