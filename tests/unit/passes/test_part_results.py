"""Results as JSON: what is written is read again, and nothing else is."""

from __future__ import annotations

import json
from collections import Counter, deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest

from tfrkit.ops.stats.stats import collect_stats
from tfrkit.passes.frame_sources import Counted
from tfrkit.passes.part_results import read_results, write_results
from tfrkit.storage.options import StorageOptions


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(10**30),
        0.1,
        float("inf"),
        "é\udc80\n",
        b"\0\xff",
        [1, (2, "x"), []],
        {1: "a", "1": "b", (1, 2): {3}},
        Counter("aab"),
        frozenset("ab"),
        deque([1, 2]),
        np.float32(0.1),
        Counted(3, 4),
        StorageOptions(endpoint="http://x"),
        datetime(2024, 2, 29, 1, 2, 3, 4, UTC),
        date(2024, 2, 29),
        time(1, 2, 3, 4),
        timedelta(-1, 2, 3),
        Decimal("1.50"),
        UUID(int=5),
    ],
)
def test_value_is_read_as_it_was_written(value):
    found = read_results(write_results(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype="<u2").reshape(2, 3), np.array([], "<f8"), np.array([(1, 2.5)], [("a", "<i4"), ("b", "<f8")])],
)
def test_array_is_read_as_it_was_written(array):
    found = read_results(write_results(array))
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable


def test_not_a_number_stays_one():
    assert np.isnan(read_results(write_results(float("nan"))))


@pytest.mark.parametrize("value", [object(), collect_stats, np.array([None]), 1j])
def test_value_that_is_no_result_is_refused(value):
    with pytest.raises(TypeError, match="is no result"):
        write_results(value)


@pytest.mark.parametrize(
    "content",
    [
        {"object": ["os:system", {"dict": []}]},
        {"object": ["subprocess:Popen", {"dict": []}]},
        {"object": ["tfrkit.storage.local:os", {"dict": []}]},
        {"object": ["tfrkit.ops.count:count_records", {"dict": []}]},
        {"object": ["tfrkit.passes.parts:LocalEngine", {"dict": []}]},
        {"object": ["tfrkit.none:x", {"dict": []}]},
        {"row": ["tfrkit.storage.options:StorageOptions", []]},
        {"array": ["|O", [1], "AAAAAAAAAAA="]},
        {"array": ["<i4", [5], ""]},
        {"other": 1},
        {"set": 1},
        {},
        {"a": 1, "b": 2},
    ],
)
def test_forged_result_is_refused(content):
    with pytest.raises(ValueError, match="expected a result of tfrkit, got another text"):
        read_results(json.dumps(content).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="expected a result of tfrkit, got another text"):
        read_results(data)
