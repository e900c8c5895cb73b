"""Splits at read time: parts of a dataset as orders, decided by arithmetic and a seed.

Without a feature a part is a range of one keyed permutation: no memory, and already shuffled.
With a feature it is a list of positions in file order. Nothing here reads a file; docs/design/splits.md lists the
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
    """Parts by count alone: exact, disjoint, exhaustive, without memory.

    The same size and seed give the same parts. The first part grows with its share: with 0.8 it starts with the records
    it has with 0.6.
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
    """Parts with each class in the same share: within one record of the ideal, in every part.

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
    """Parts by the hash of a key alone: records added later move no old one, equal keys stay together.

    Sizes are only near the ratios: for n distinct keys within a few times sqrt(n). A larger share for the first part
    keeps its records.
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
    """The part of each key: where its 64-bit hash falls among the shares laid end to end on [0, 2^64)."""
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
    """`k` pairs of a train and a test part: each record is in exactly one test part and in the other train parts.

    Sizes of test parts differ by at most one, and so do, with `labels`, the counts of each class in them. With
    `groups` no group is on both sides of a fold, and sizes are as close as whole groups allow.
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
        # Dealt round-robin, class by class: any run of the deal, so any class, is even to within one.
        mixed_codes = permute(len(values), derive_key("classes", seed), codes.astype(np.uint64))
        fold_of[_order_by_class(mixed_codes, seed)] = np.arange(base.size) % k
    else:
        return _cut_folds(base, k, seed)
    tests = [np.flatnonzero(fold_of == i).astype(np.uint64) for i in range(k)]
    return [(Without(base, positions), Listed(base, positions)) for positions in tests]


def _order_by_class(codes: Int64Array | UInt64Array, seed: int) -> UInt64Array:
    """Positions sorted by class, those of one class in seeded order."""
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
