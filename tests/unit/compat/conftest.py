"""Scripts switch eager execution for a whole process; a test switches it for itself."""

from __future__ import annotations

import pytest

from tfrkit.compat import iterators


@pytest.fixture(autouse=True)
def _mode_of_execution_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterators, "_is_eager", False)
    monkeypatch.setattr(iterators, "_has_graphs", False)
