"""Slices of named splits in TFDS's syntax: "train[:75%]+test[100:200]".

```
spec      = term ("+" term)*                      spaces around + only
term      = "all" | name | name "[" slice "]"
slice     = bound? ":" bound? | number "shard"    at least one bound
bound     = number ("%" | "shard")?               negative ones count from the end
```

A number of records or shards is an int, such as 1_000; a percentage may have a decimal point. A percentage is rounded
to the closest record, halves to even, as in TFDS. If TFDS returns a surprising result, this module raises: see
docs/design/splits.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from tfrkit.errors import QueryError
from tfrkit.orders.split_names import find_nearest_split

_NAME = re.compile(r"[\w-]+")
_BOUND = re.compile(r"(?P<number>-?[0-9_.]+)(?P<unit>%|shard)?")
_PLUS = re.compile(r"\s*\+\s*")

ALL = "all"


class SplitRange(NamedTuple):
    """Records [start, stop) of one split."""

    split: str
    start: int
    stop: int


class _Bound(NamedTuple):
    """One side of a slice: the number as written, and its position in the spec."""

    text: str
    unit: str
    at: int


class _Term(NamedTuple):
    """One split of a spec, with the bounds of its slice; `train[3shard]` has the bound `only`."""

    name: str
    at: int
    is_sliced: bool = False
    start: _Bound | None = None
    stop: _Bound | None = None
    only: _Bound | None = None


def resolve_slices(
    spec: str, sizes: Mapping[str, int], *, shard_sizes: Mapping[str, Sequence[int]] | None = None
) -> list[SplitRange]:
    """Return the ranges of records that a spec names, in the order of the spec.

    `sizes` has the number of records of each split, `shard_sizes` of each of its shards, needed only for "shard". A
    record named twice is repeated, as in TFDS. A split whose name has characters other than letters, digits, _ and -
    must be the whole spec.

    Example:
        >>> resolve_slices("train[-10%:]+test[:5]", {"train": 100, "test": 50})
        [SplitRange(split='train', start=90, stop=100), SplitRange(split='test', start=0, stop=5)]
    """
    if not isinstance(spec, str):
        raise TypeError(f"spec of splits expected str, got {type(spec).__name__}")
    if spec in sizes:
        return [SplitRange(spec, 0, sizes[spec])]
    ranges = []
    for term in _parse(spec):
        if term.name == ALL and ALL not in sizes:
            if term.is_sliced:
                _fail(spec, term.at, "'all' expected no slice", "slice each split: 'train[:5]+test[:5]'")
            ranges += [SplitRange(name, 0, size) for name, size in sizes.items()]
        elif term.name not in sizes:
            known = ", ".join(map(repr, sizes)) or "none"
            nearest = find_nearest_split(term.name, sizes)
            advice = f"the nearest name is {nearest!r}" if nearest else None
            _fail(spec, term.at, f"unknown split {term.name!r}, there are {known}", advice)
        else:
            shards = None if shard_sizes is None else shard_sizes.get(term.name)
            ranges.append(_resolve_term(spec, term, sizes[term.name], shards))
    return ranges


def _parse(spec: str) -> list[_Term]:
    terms = []
    at = 0
    while True:
        term, at = _parse_term(spec, at)
        terms.append(term)
        if at == len(spec):
            return terms
        plus = _PLUS.match(spec, at)
        if plus is None:
            expected = "'+' or the end" if term.is_sliced else "'[', '+' or the end"
            _fail(spec, at, f"expected {expected}, got {spec[at]!r}")
        at = plus.end()


def _parse_term(spec: str, at: int) -> tuple[_Term, int]:
    """Parse the term that starts at a character; return it and the character where it ends."""
    found = _NAME.match(spec, at)
    if found is None:
        _fail(
            spec,
            at,
            f"expected the name of a split, got {spec[at : at + 1]!r}"
            if at < len(spec)
            else "expected the name of a split, got the end",
        )
    name, start_at, at = found.group(), at, found.end()
    if not spec.startswith("[", at):
        return _Term(name, start_at), at
    start, at = _parse_bound(spec, at + 1)
    if start is not None and spec.startswith("]", at):
        if start.unit != "shard":
            _fail(spec, at, "expected ':', got ']'", "one shard is written train[3shard], one record train[3:4]")
        return _Term(name, start_at, is_sliced=True, only=start), at + 1
    if not spec.startswith(":", at):
        _fail(spec, at, f"expected a number or ':', got {_show(spec, at)}")
    stop, at = _parse_bound(spec, at + 1)
    if not spec.startswith("]", at):
        _fail(
            spec,
            at,
            f"expected ']', got {_show(spec, at)}",
            "a slice has no step" if spec.startswith(":", at) else None,
        )
    if start is None and stop is None:
        _fail(spec, at, "expected a number in the slice, got none", f"all of it is {name!r}")
    return _Term(name, start_at, is_sliced=True, start=start, stop=stop), at + 1


def _parse_bound(spec: str, at: int) -> tuple[_Bound | None, int]:
    found = _BOUND.match(spec, at)
    if found is None:
        return None, at
    return _Bound(found["number"], found["unit"] or "", at), found.end()


def _show(spec: str, at: int) -> str:
    return repr(spec[at]) if at < len(spec) else "the end"


def _resolve_term(spec: str, term: _Term, size: int, shards: Sequence[int] | None) -> SplitRange:
    units = [bound.unit for bound in (term.start, term.stop, term.only) if bound is not None and bound.unit]
    if len(set(units)) > 1:
        _fail(spec, term.at, f"expected one unit in a slice, got {units[0]!r} and {units[1]!r}")
    unit = units[0] if units else ""
    if unit == "shard":
        start, stop = _resolve_shards(spec, term, shards)
    else:
        resolve = _resolve_percent if unit == "%" else _resolve_count
        start = 0 if term.start is None else resolve(spec, term.start, size)
        stop = size if term.stop is None else resolve(spec, term.stop, size)
    if start > stop:
        _fail(spec, term.at, f"slice of {term.name!r} starts at record {start}, after its stop at {stop}")
    return SplitRange(term.name, start, stop)


def _resolve_count(spec: str, bound: _Bound, size: int) -> int:
    number = _read_int(spec, bound)
    if abs(number) > size:
        _fail(spec, bound.at, f"{number} is outside the split, which has {size} records")
    return number + size if number < 0 else number


def _resolve_percent(spec: str, bound: _Bound, size: int) -> int:
    try:
        percent = float(bound.text)
    except ValueError:
        _fail(spec, bound.at, f"expected a number, got {bound.text!r}")
    if abs(percent) > 100:
        _fail(spec, bound.at, f"expected a percentage from -100 to 100, got {bound.text}")
    number = round(percent * size / 100.0)  # in the same order as TFDS, because another order rounds differently
    if bound.text.startswith("-"):
        if number == 0 and size:
            # TFDS counts a negative zero from the start, so that train[-1%:] of 7 records is all records.
            _fail(spec, bound.at, f"{bound.text}% of {size} records is none, so the slice has no bound there")
        return size + number
    return number


def _resolve_shards(spec: str, term: _Term, shards: Sequence[int] | None) -> tuple[int, int]:
    if shards is None:
        _fail(spec, term.at, f"shards of {term.name!r} are not known")
    edges = [0]
    for size in shards:
        edges.append(edges[-1] + size)
    if term.only is not None:
        number = _read_shard(spec, term.only, len(shards))
        if number == len(shards):
            _fail(spec, term.only.at, f"shard {number} is outside the split, which has {len(shards)} shards")
        return edges[number], edges[number + 1]
    start = 0 if term.start is None else _read_shard(spec, term.start, len(shards))
    stop = len(shards) if term.stop is None else _read_shard(spec, term.stop, len(shards))
    if term.stop is not None and _read_int(spec, term.stop) == 0:
        # TFDS reads train[:0shard] as all shards, a Python slice would have none.
        _fail(spec, term.stop.at, "a slice that stops at shard 0 is empty")
    return edges[start], edges[stop]


def _read_shard(spec: str, bound: _Bound, num_shards: int) -> int:
    number = _read_int(spec, bound)
    if abs(number) > num_shards:
        _fail(spec, bound.at, f"shard {number} is outside the split, which has {num_shards} shards")
    return number + num_shards if number < 0 else number


def _read_int(spec: str, bound: _Bound) -> int:
    try:
        return int(bound.text)
    except ValueError:
        _fail(spec, bound.at, f"expected a whole number, got {bound.text!r}")


def _fail(spec: str, at: int, what: str, advice: str | None = None) -> NoReturn:
    hint = f"{spec}\n  {' ' * at}^"
    raise QueryError(f"{what} - at character {at}", hint=f"{hint} {advice}" if advice else hint)
