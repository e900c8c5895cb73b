from __future__ import annotations

import pytest

from tfrkit.cli import stats


def test_bar_of_a_small_share_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "can_print", lambda text: False)
    assert [len(stats.bar(share)) for share in (0, 0.0001, 0.5, 1)] == [0, 1, stats.BAR_WIDTH // 2, stats.BAR_WIDTH]


@pytest.mark.parametrize(
    ("kind", "share", "is_shown"), [("int64", 0.1, True), ("float", 0.1, False), ("float", 0.3, True)]
)
def test_a_frequent_float_is_rarer_than_a_frequent_integer(
    kind: str, share: float, is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    top = [{"value": 7, "count": 10, "share": share}, {"value": 8, "count": 9, "share": share}]
    stats.print_top({"classes": [], "features": [{"name": "x", "list": False, "type": kind, "top": top}]})
    assert ("most frequent" in capsys.readouterr().out) == is_shown
