"""Helpers of this folder are imported by name; CSV is read in both ways."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tfrkit.sources import table_text

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=["slow", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """CSV with the csv module, and by the core, which falls back to it."""
    if request.param != "native":
        monkeypatch.setattr(table_text, "spool_typed", lambda *_: None)
    return str(request.param)
