"""The table of deprecations: complete, and nothing stays past the version of its removal."""

from __future__ import annotations

import re
from pathlib import Path

from tfrkit._version import VERSION

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "tfrkit"
PAGE = ROOT / "DEPRECATIONS.md"
ROW = re.compile(r"\| `(.+?)` \| `(.+?)` \| ([\d.]+) \| ([\d.]+) \| `(.+?)` \|")


def read_version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def read_rows() -> list[tuple[str, ...]]:
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def find_overdue(version: str) -> list[str]:
    return [name for name, _, _, removed, _ in read_rows() if read_version(version) >= read_version(removed)]


def test_nothing_is_left_whose_version_of_removal_is_reached() -> None:
    assert find_overdue(VERSION) == [], "remove these names and their rows in DEPRECATIONS.md"


def test_a_version_of_removal_is_noticed() -> None:
    assert find_overdue("999.0.0") == [row[0] for row in read_rows()]
    assert len(read_rows()) >= 1


def test_a_name_stays_for_two_minor_versions() -> None:
    for name, _, since, removed, _ in read_rows():
        (major, minor, *_), (last_major, last_minor, *_) = read_version(since), read_version(removed)
        assert last_major > major or last_minor > minor + 2, name


def test_every_deprecated_name_in_the_sources_is_listed() -> None:
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"\bDeprecationWarning\b|\"Deprecated: ", path.read_text(encoding="utf-8"))
    }
    assert found == {row[4] for row in read_rows()}
