from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tfrkit.cli import dedupe


def test_each_split_has_its_count_of_duplicates() -> None:
    files = [SimpleNamespace(split=split, dropped=dropped) for split, dropped in (("a", 1), ("a", 2), ("b", 0))]
    made: Any = SimpleNamespace(files=files, dropped=3, splits={"a": 7, "b": 8})
    assert dedupe.describe_splits(made) == ["a: 3 records dropped, 7 left", "b: 0 records dropped, 8 left"]
    made.files = files[:2]
    assert dedupe.describe_splits(made) == []
