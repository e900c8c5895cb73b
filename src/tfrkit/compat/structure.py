"""Nested values: walk dicts, tuples and lists and their leaves. All other modules use these functions for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def map_parts(function: Callable[..., Any], first: Any, *others: Any, lists: bool = False) -> Any:
    """Apply a function to each leaf, keeping dicts and tuples; with `lists`, lists too.

    The first value gives the structure; the others must have the same dicts and tuples, and may be nested deeper.
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
    """Yield the leaves in order."""
    if isinstance(structure, dict):
        structure = tuple(structure.values())
    if _is_row(structure, lists):
        for part in structure:
            yield from leaves(part, lists=lists)
    else:
        yield structure


def spread(value: Any, like: Any, what: str) -> Any:
    """Give each leaf of `like` a value: `value` has the same dicts and tuples, or one value for all leaves below."""
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
    # A TensorShape is a subclass of tuple, but a single value.
    return type(value) is tuple or hasattr(value, "_fields") or (lists and isinstance(value, list))
