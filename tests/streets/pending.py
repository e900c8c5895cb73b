"""Cells that fail until the product is mended, from pending.txt; both files are deleted when that is empty.

A line of pending.txt is the point it waits for, the asker, the maker and the storages, or * for all of the maker.
"""

from __future__ import annotations

from pathlib import Path

from streets.makers import MAKERS
from streets.storages import STORAGES

_LIST = Path(__file__).with_name("pending.txt")


def _read() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _LIST.read_text(encoding="utf-8").splitlines():
        point, asked, made, *stored = line.split()
        if stored == ["*"]:
            stored = [name for name, storage in STORAGES.items() if MAKERS[made].can_store(storage)]
        found |= {f"{made}-{name}-{asked}": point for name in stored}
    return found


PENDING = _read()


def find_pending(made: str, stored: str, asked: str) -> str | None:
    """The point a cell waits for."""
    return PENDING.get(f"{made}-{stored}-{asked}")
