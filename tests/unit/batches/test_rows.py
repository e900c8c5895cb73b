from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit._limits import LIMITS
from tfrkit.batches.fetch import Fetcher
from tfrkit.batches.rows import make_rows, pick_row, read_rows
from tfrkit.batches.shard_set import ShardSet
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import WireError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import make_frame
from tfrkit.testing.reference import Feature, encode_example, write_frames

FEATURES: list[Feature | str] = [("int64", [number]) for number in range(100)]
FEATURES[10] = "absent"
FEATURES[20] = None
SCHEMA = Schema({"x": Spec("int64", optional=True)})


def open_set(*shards: bytes, policy: Policy | None = None) -> tuple[ShardSet, Fetcher]:
    opened = ShardSet([Shard(MemoryReader(data)) for data in shards], policy or Policy(), SCHEMA)
    return opened, Fetcher(opened.records, opened.new_decoder(None), opened.policy)


def make_shard(features: list[Any]) -> bytes:
    return write_frames([encode_example({} if isinstance(f, str) else {b"x": f}) for f in features])


def pick(fetcher: Fetcher, numbers: Any) -> list[dict[str, Any]]:
    return make_rows(np.array(numbers, np.uint64), fetcher, ())


def wanted() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"x": number} for number in range(100)]
    rows[10] = {}
    rows[20] = {"x": None}
    return rows


@pytest.mark.parametrize("at_once", [1, 7, 64, 1000])
def test_rows_read_and_picked_agree(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(LIMITS, "rows_at_once", at_once)
    opened, fetcher = open_set(make_shard(FEATURES[:33]), make_shard(FEATURES[33:]))
    assert list(read_rows(opened, fetcher)) == wanted()
    assert pick(fetcher, range(100)) == wanted()
    assert pick(fetcher, [99, 0, 10]) == [{"x": 99}, {"x": 0}, {}]
    assert pick_row(opened, fetcher, 50) == [{"x": 50}]


def test_nothing_picked_is_an_empty_list() -> None:
    assert pick(open_set(make_shard(FEATURES))[1], []) == []


def test_picking_a_record_that_does_not_decode_raises_with_its_place() -> None:
    opened, fetcher = open_set(make_shard(FEATURES[:5]) + make_frame(b"\xff") + make_shard(FEATURES[5:9]))
    for read in (lambda: pick_row(opened, fetcher, 5), lambda: pick(fetcher, [1, 5])):
        with pytest.raises(WireError, match=f"<memory>, record 5, byte {len(make_shard(FEATURES[:5]))}"):
            read()
    assert pick(fetcher, [6]) == pick_row(opened, fetcher, 6) == [{"x": 5}]


def test_skipping_picks_what_iterating_gives() -> None:
    policy = Policy("all", "skip")
    damaged = make_shard(FEATURES[:5]) + make_frame(b"\xff") + make_shard(FEATURES[5:9])
    opened, fetcher = open_set(damaged, policy=policy)
    rows = list(read_rows(opened, fetcher))
    assert rows == [{"x": number} for number in range(9)]
    assert pick(fetcher, range(10)) == rows  # numbers count frames, also the one that does not decode
    assert pick_row(opened, fetcher, 5) == []
