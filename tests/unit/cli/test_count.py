from __future__ import annotations

import pytest

from tfrkit.cli import count


def test_total_is_for_several_files(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"records": 3, "path": "a"}, {"records": 4, "path": "b"}]
    count.print_text(rows[:1])
    assert "total" not in capsys.readouterr().out
    count.print_text(rows)
    assert capsys.readouterr().out.splitlines()[-1].split() == ["7", "total"]
