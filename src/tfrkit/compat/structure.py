"""Nested values: dicts, tuples and lists with something at their ends. One walk for all that goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def map_parts(function: Callable[..., Any], first: Any, *others: Any, lists: bool = False) -> Any:
    """The result of a function for each part, in the same dicts and tuples; with `lists`, also in lists.

    The first value says how far to go down; the others must have its dicts and tuples, and may have more below.
    """
    if isinstance(first, dict):
        return {
            name: map_parts(function, part, *(other[name] for other in others), lists=lists)
            for name, part in first.items()
        }
    if not _is_row(first, lists):
        return function(first, *others)
    parts = [map_parts(function, *group, lists=lists) for group in zip(first, *others, strict=True)]
    if isinstance(first, list):
        return parts
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def leaves(structure: Any, *, lists: bool = False) -> Iterator[Any]:
    """The parts, in order."""
    if isinstance(structure, dict):
        structure = tuple(structure.values())
    if _is_row(structure, lists):
        for part in structure:
            yield from leaves(part, lists=lists)
    else:
        yield structure


def spread(value: Any, like: Any, what: str) -> Any:
    """A value for every part of another one: given in the same dicts and tuples, or once for all below."""
    if isinstance(like, dict):
        parts = value if isinstance(value, dict) else dict.fromkeys(like, value)
        if parts.keys() != like.keys():
            raise ValueError(f"{what} expected the names {sorted(like)}, got {sorted(parts)}")
        return {name: spread(parts[name], part, what) for name, part in like.items()}
    if not _is_row(like, False):
        return value
    if type(value) is not tuple:
        value = (value,) * len(like)
    if len(value) != len(like):
        raise ValueError(f"{what} expected {len(like)} parts, got {len(value)}")
    return tuple(spread(part, one, what) for part, one in zip(value, like, strict=True))


def _is_row(value: Any, lists: bool) -> bool:
    # A TensorShape is a tuple too, and is one value.
    return type(value) is tuple or hasattr(value, "_fields") or (lists and isinstance(value, list))
