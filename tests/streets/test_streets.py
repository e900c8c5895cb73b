"""Made by x stored as x asked by: everything that can be asked about a dataset is what went in."""

from __future__ import annotations

from pathlib import Path

import pytest

from streets.cells import ask, list_askers, list_pairs, make
from streets.pending import PENDING


@pytest.mark.parametrize(("made", "stored"), [pytest.param(*pair, id="-".join(pair)) for pair in list_pairs()])
def test_every_asker_agrees_with_what_went_in(made: str, stored: str, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    asked_all = list_askers(made, stored)
    try:
        dataset = make(made, stored, tmp_path)
    except AssertionError as error:
        wrong[f"{made}-{stored}-made"] = [str(error)]
        asked_all = []
    for asked in asked_all:
        lines = ask(asked, dataset, tmp_path / f"ask_{asked}")
        if lines:
            wrong[f"{made}-{stored}-{asked}"] = lines
    expected = {cell for cell in PENDING if cell.startswith(f"{made}-{stored}-")}
    message = [f"{cell}: {line}" for cell in sorted(wrong.keys() - expected) for line in wrong[cell]]
    message += [f"{cell} is right now: take it out of pending.py" for cell in sorted(expected - wrong.keys())]
    assert not message, "\n" + "\n".join(message)
