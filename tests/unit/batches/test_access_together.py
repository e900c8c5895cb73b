"""Indexes of remote shards are requested at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.testing.fake_store import FakeStore, use_fake_store


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeStore]:
    monkeypatch.setattr(LIMITS, "retry_seconds", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tfrkit.build([{"number": number} for number in range(240)], tmp_path / "made", shards=12)
    with use_fake_store() as made:
        made.add_folder(str(tmp_path / "made"), "made/")
        yield made


@pytest.mark.parametrize("how", ["picks", "shuffled"])
def test_indexes_of_a_batch_are_requested_together(store: FakeStore, how: str) -> None:
    lock = threading.Lock()
    now = most = 0

    def answer(key: str, number: int, data: bytes) -> bytes:
        nonlocal now, most
        if ".tfidx" not in key:
            return data
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1
        return data

    ds = tfrkit.open("s3://bucket/made")
    store.answer = answer
    wanted = list(range(0, 240, 20))
    if how == "picks":
        assert len({row["number"] for row in ds[wanted]}) == 12
    else:
        [batch] = ds.shuffle(seed=1).batch(240)
        assert sorted(batch["number"].tolist()) == list(range(240))
    assert most > 3
