"""Every intended difference is needed: its cell fails without the entry and passes with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streets.askers import ASKERS
from streets.cells import ask, make
from streets.differences import DIFFERENCES, Difference

_IDS = [f"{difference.asked}-{number}" for number, difference in enumerate(DIFFERENCES)]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=_IDS)
def test_without_the_entry_its_cell_fails(difference: Difference, tmp_path: Path) -> None:
    others = tuple(other for other in DIFFERENCES if other is not difference)
    dataset = make(*difference.example, tmp_path)
    with_it = ask(difference.asked, dataset, tmp_path / "with")
    without_it = ask(difference.asked, dataset, tmp_path / "without", others)
    assert difference.asked in ASKERS
    assert without_it != with_it, "this is no difference any more: take the entry out"
    assert with_it == []
