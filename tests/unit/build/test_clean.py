from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.build import finish, session
from tfrkit.build.clean import clean_build
from tfrkit.outputs.target import Target

ROWS = [{"x": number} for number in range(40)]


def test_nothing_to_remove_is_no_error(tmp_path: Path) -> None:
    assert clean_build(Target(str(tmp_path / "out"))) == []


@pytest.mark.parametrize("place", [(session, "finish_build"), (finish, "draft_sidecars")])
def test_unfinished_build_is_removed_with_shards_that_are_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(*place, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tfr.build(ROWS, out, shards=2, jobs=1)
    assert clean_build(Target(str(out))) == ["an unfinished build with 2 shards"]
    assert [path for path in out.rglob("*") if path.is_file()] == []


def test_finished_dataset_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    tfr.build(ROWS, out, shards=2, jobs=1)
    (out / "_build").mkdir()
    clean_build(Target(str(out)))
    assert len(tfr.open(out)) == 40
