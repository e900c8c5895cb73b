from __future__ import annotations

from collections.abc import Iterator

import pytest

from tfrkit._limits import LIMITS
from tfrkit.testing.fake_store import FakeStore, use_fake_store


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStore]:
    """A store in memory that answers all s3:// addresses; retries do not wait."""
    monkeypatch.setattr(LIMITS, "retry_seconds", 0.0)
    with use_fake_store() as made:
        yield made
