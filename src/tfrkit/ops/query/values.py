"""Convert values that DuckDB returns to JSON, and to text for tables."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tfrkit.ops.preview import MAX_TEXT, preview_value, value_to_json

_NUMBERS = ("INT", "FLOAT", "DOUBLE", "DECIMAL")


def cell_to_json(value: Any) -> Any:
    """Convert a value to the JSON form of `tfr head`; structs become objects, dates and other types strings.

    Example:
        >>> cell_to_json([b"\\xff", Decimal("1.50"), {"x": 1}])
        [{'base64': '/w=='}, 1.5, {'x': 1}]
    """
    if isinstance(value, dict):
        return {str(name): cell_to_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [cell_to_json(inner) for inner in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes, bytearray, memoryview)):
        return value_to_json(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def cell_to_text(value: Any) -> str:
    """Format a value for a cell of a table: images by format and size, long lists and texts cut."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}…"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {cell_to_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)) and any(isinstance(inner, (dict, list, tuple)) for inner in value):
        shown = ", ".join(cell_to_text(inner) for inner in value[:4])
        return f"[{shown}, … {len(value):,} values]" if len(value) > 4 else f"[{shown}]"
    return preview_value(value)


def is_number(kind: str) -> bool:
    """Is this DuckDB type a single number, so that its column is right-aligned?"""
    return (
        not kind.endswith("]")
        and not kind.startswith(("STRUCT", "MAP", "INTERVAL"))
        and any(word in kind for word in _NUMBERS)
    )


def name_uniquely(names: Sequence[str]) -> list[str]:
    """Make names unique by adding a number to duplicates.

    Example:
        >>> name_uniquely(["a", "b", "a"])
        ['a', 'b', 'a_1']
    """
    unique: list[str] = []
    for name in names:
        made, number = name, 0
        while made in unique or (number and made in names):
            number += 1
            made = f"{name}_{number}"
        unique.append(made)
    return unique
