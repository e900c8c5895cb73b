"""Which cells there are, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

from streets.askers import ASKERS
from streets.differences import DIFFERENCES, Difference
from streets.facts import find_wrong
from streets.makers import MAKERS
from streets.storages import STORAGES
from streets.truth import Made

# The storage in which every maker meets every heavy asker, and the makers that meet them in every storage.
_HEAVY_STORAGES = ("file_none", "folder_north", "folder_north_gzip")
_HEAVY_MAKERS = ("rows_schema", "class_folders")


def list_pairs() -> list[tuple[str, str]]:
    """Every maker with every storage it can write."""
    return [
        (made, stored)
        for made, maker in MAKERS.items()
        for stored, storage in STORAGES.items()
        if maker.can_store(storage)
    ]


def list_askers(made: str, stored: str) -> list[str]:
    """Askers of a pair: light ones always, heavy ones for every maker and for every storage."""
    is_full = stored in _HEAVY_STORAGES or made in _HEAVY_MAKERS
    return [asked for asked, asker in ASKERS.items() if is_full or not asker.is_heavy]


def make(made: str, stored: str, folder: Path) -> Made:
    return MAKERS[made].make(folder, STORAGES[stored])


def ask(asked: str, made: Made, folder: Path, differences: tuple[Difference, ...] = DIFFERENCES) -> list[str] | None:
    """Differences, one line each; None if the asker does not apply."""
    asker = ASKERS[asked]
    if not asker.needs(made.truth):
        return None
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return find_wrong(asked, asker.ask(made, folder), made, differences)
    except Exception as error:  # noqa: BLE001 - whatever it is, the cell is wrong and the others are still asked
        return [f"{type(error).__name__}: {error}"]
