"""A perceptual hash: the hashes of copies with another size, format or quality differ in only a few bits.

This is the well-known pHash: the low frequencies of a small gray copy, each compared with their median. The bits are
equal to those of the package imagehash, `phash(image, hash_size=16, highfreq_factor=4)` and `phash(image, hash_size=8,
highfreq_factor=8)`, for the same 64x64 copy; `docs/design/verify.md` explains why the package is not used.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tfrkit._types import UInt8Array, UInt64Array

SIDE = 64
LONG_BITS = 256
# A copy with a smaller standard deviation is almost blank: its low frequencies are noise.
_MIN_SPREAD = 3.0

Floats = np.ndarray[Any, np.dtype[np.float64]]


@functools.cache
def _cosines() -> Floats:
    """Return the first 16 rows of the discrete cosine transform (type 2)."""
    rows = np.arange(16)[:, None]
    places = np.arange(SIDE)[None, :]
    cosines: Floats = 2 * np.cos(np.pi * rows * (2 * places + 1) / (2 * SIDE))
    return cosines


def has_detail(copies: UInt8Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which small gray copies, (number, 64, 64), have enough contrast to be compared."""
    spread: np.ndarray[Any, np.dtype[np.bool_]] = copies.reshape(len(copies), -1).std(axis=1) >= _MIN_SPREAD
    return spread


def hash_copies(copies: UInt8Array) -> tuple[UInt64Array, UInt64Array]:
    """Hash small gray copies, (number, 64, 64); return 64 bits each, (number,), and 256 bits each, (number, 4)."""
    cosines = _cosines()
    low = cosines @ copies.astype(np.float64) @ cosines.T
    return _pack_bits(low[:, :8, :8]).reshape(-1), _pack_bits(low)


def _pack_bits(low: Floats) -> UInt64Array:
    flat = low.reshape(len(low), -1)
    bits = flat > np.median(flat, axis=1, keepdims=True)
    packed: UInt64Array = np.packbits(bits, axis=1).view(np.uint64)
    return packed
