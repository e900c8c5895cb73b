from __future__ import annotations

import time

from tfrkit.testing.fake_store import FakeStore


def test_requests_are_noted_with_their_range() -> None:
    store = FakeStore()
    store.objects["x"] = b"data"
    store.get("x", 1, None, None)
    store.get("x", 1, 3, None)
    assert store.log == [("get", "x", 1, -1), ("get", "x", 1, 3)]


def test_time_of_an_object_is_rounded_to_seconds() -> None:
    store = FakeStore()
    before = time.time_ns() // 10**9
    store.put("x", b"data", "anything")
    modified = store.head("x").modified_ns
    assert modified % 10**9 == 0
    assert before <= modified // 10**9 <= time.time_ns() // 10**9
