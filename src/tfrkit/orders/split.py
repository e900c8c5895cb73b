"""Splits at read time: parts of a dataset as orders, decided by arithmetic and a seed.

Without a feature, a part is a range of one keyed permutation: it needs no memory and is already shuffled.
With a feature, a part is a list of positions in file order. Nothing here reads a file; docs/design/splits.md lists the
guarantees of each kind of split.
"""

from __future__ import annotations

import hashlib
import math
import operator
from fractions import Fraction

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.orders.group_split import assign_groups
from tfrkit.orders.order import Joined, Listed, Order, Permuted, Slice, derive_key, permute
from tfrkit.orders.part_orders import Without, check_fixed, list_parts
from tfrkit.orders.shares import Parts, check_not_empty, divide_classes, parse_parts, parse_shares
from tfrkit.orders.value_codes import Values, code_values, encode_value

Fold = tuple[Order, Order]
"""The train and the test part of one fold."""


def split_order(base: Order, parts: Parts, seed: int) -> dict[str, Order]:
    """Split by count: the parts are exact, disjoint, exhaustive, and need no memory.

    The same size and seed give the same parts. A larger first part starts with the same records: the first part of 0.8
    starts with all records of the first part of 0.6.
    """
    seed = operator.index(seed)
    check_fixed(base)
    counts = parse_parts(parts, base.size)
    mixed = Permuted(base, seed)
    orders: dict[str, Order] = {}
    start = 0
    for name, count in counts.items():
        orders[name] = Slice(mixed, start, start + count)
        start += count
    return orders


def split_stratified(base: Order, parts: Parts, labels: Values, seed: int) -> dict[str, Order]:
    """Split so that each class has the same share in every part, to within one record of the ideal.

    Counts are exactly those of `parse_parts`. The ideal is size of the class × size of the part / size of all.
    """
    seed = operator.index(seed)
    check_fixed(base)
    counts = parse_parts(parts, base.size)
    codes, values = code_values(labels, "label", base.size)
    cells = divide_classes(np.bincount(codes, minlength=len(values)), list(counts.values()), seed)
    by_class = _order_by_class(codes, seed)
    part_of = np.empty(base.size, np.int64)
    part_of[by_class] = np.repeat(np.tile(np.arange(len(counts)), len(values)), cells.ravel())
    return list_parts(base, list(counts), part_of)


def split_hashed(base: Order, parts: Parts, keys: Values, seed: int) -> dict[str, Order]:
    """Split by the hash of a key: adding records later does not move old records, and equal keys stay together.

    Sizes are only close to the ratios: within a few times sqrt(n) for n distinct keys. If the share of the first part
    grows, the part keeps its records.
    """
    seed = operator.index(seed)
    check_fixed(base)
    shares = parse_shares(parts)
    codes, values = code_values(keys, "key", base.size)
    part_of = part_of_keys([encode_value(value) for value in values], list(shares.values()), seed)[codes]
    orders = list_parts(base, list(shares), part_of)
    check_not_empty({name: orders[name].size for name, share in shares.items() if share}, base.size)
    return orders


def part_of_keys(keys: list[bytes], shares: list[Fraction], seed: int) -> Int64Array:
    """Find the part of each key: [0, 2^64) is divided by the shares, and the hash of the key is in one of them."""
    salt = derive_key("hash", seed).to_bytes(8, "little")
    digests = [hashlib.blake2b(key, digest_size=8, salt=salt).digest() for key in keys]
    hashes = np.frombuffer(b"".join(digests), "<u8")
    bounds = []
    total = Fraction(0)
    for share in shares[:-1]:
        total += share
        bounds.append(math.floor(total * 2**64))
    # A bound of 2^64 is above every hash, and the parts after it are empty.
    inner = np.array([bound for bound in bounds if bound < 2**64], np.uint64)
    return np.searchsorted(inner, hashes, side="right").astype(np.int64)


def fold_orders(
    base: Order, k: int, seed: int, labels: Values | None = None, groups: Values | None = None
) -> list[Fold]:
    """Return `k` pairs of a train and a test part; each record is in one test part and in all other train parts.

    The sizes of test parts differ by at most one; with `labels`, so do the counts of each class in them. With `groups`,
    no group is on both sides of a fold, and sizes are as close as whole groups allow.
    """
    k, seed = operator.index(k), operator.index(seed)
    check_fixed(base)
    if k < 2:
        raise ValueError(f"folds expected from 2 up, got {k}")
    if k > base.size:
        raise ValueError(f"{k} folds expected at least {k} records, got {base.size}")
    if groups is not None:
        targets = [base.size * (i + 1) // k - base.size * i // k for i in range(k)]
        fold_of_group, codes, _ = assign_groups(targets, groups, seed, labels)
        fold_of = fold_of_group[codes]
    elif labels is not None:
        codes, values = code_values(labels, "label", base.size)
        fold_of = np.empty(base.size, np.int64)
        # Records are assigned round-robin, class by class, so the counts of each class differ by at most one.
        mixed_codes = permute(len(values), derive_key("classes", seed), codes.astype(np.uint64))
        fold_of[_order_by_class(mixed_codes, seed)] = np.arange(base.size) % k
    else:
        return _cut_folds(base, k, seed)
    tests = [np.flatnonzero(fold_of == i).view(np.uint64) for i in range(k)]
    return [(Without(base, positions), Listed(base, positions)) for positions in tests]


def _order_by_class(codes: Int64Array | UInt64Array, seed: int) -> UInt64Array:
    """Sort positions by class; positions of one class are in seeded order."""
    mixed = permute(len(codes), derive_key("split", seed), np.arange(len(codes), dtype=np.uint64))
    return mixed[np.argsort(codes[mixed], kind="stable")]


def _cut_folds(base: Order, k: int, seed: int) -> list[Fold]:
    mixed = Permuted(base, seed)
    folds: list[Fold] = []
    for i in range(k):
        start, stop = base.size * i // k, base.size * (i + 1) // k
        before, after = Slice(mixed, 0, start), Slice(mixed, stop, base.size)
        folds.append((Joined([before, after]), Slice(mixed, start, stop)))
    return folds
