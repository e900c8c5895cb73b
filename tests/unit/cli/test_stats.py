from __future__ import annotations

import pytest

from tfrkit.cli import stats


def test_bar_of_a_small_share_is_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "can_print", lambda text: False)
    assert [len(stats.bar(share)) for share in (0, 0.0001, 0.5, 1)] == [0, 1, stats.BAR_WIDTH // 2, stats.BAR_WIDTH]
