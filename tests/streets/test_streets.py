"""Made by x stored as x asked by: everything that can be asked about a dataset is what went in."""

from __future__ import annotations

from pathlib import Path

import pytest

from streets.cells import ask, list_askers, list_pairs, make
from streets.storages import STORAGES
from tfrkit._limits import LIMITS


@pytest.mark.parametrize(("made", "stored"), [pytest.param(*pair, id="-".join(pair)) for pair in list_pairs()])
def test_every_asker_agrees_with_what_went_in(
    made: str, stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if STORAGES[stored].has_table:
        monkeypatch.setattr(LIMITS, "table_text_nbytes", 0)
    dataset = make(made, stored, tmp_path)
    wrong = [
        f"{made}-{stored}-{asked}: {line}"
        for asked in list_askers(made, stored)
        for line in ask(asked, dataset, tmp_path / f"ask_{asked}") or ()
    ]
    assert not wrong, "\n" + "\n".join(wrong)
