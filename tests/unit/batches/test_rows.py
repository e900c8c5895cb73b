from __future__ import annotations

from typing import Any

import pytest

from tfrkit.batches import rows as rows_module
from tfrkit.batches.access import Records
from tfrkit.batches.rows import RowReader
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


def make_reader(*shards: bytes, policy: Policy | None = None, schema: Schema = SCHEMA) -> RowReader:
    opened = [Shard(MemoryReader(data)) for data in shards]
    policy = policy or Policy()
    return RowReader(opened, Records(opened, policy), schema, policy)


def make_shard(features: list[Any]) -> bytes:
    return write_frames([encode_example({} if isinstance(f, str) else {b"x": f}) for f in features])


def wanted() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"x": number} for number in range(100)]
    rows[10] = {}
    rows[20] = {"x": None}
    return rows


@pytest.mark.parametrize("at_once", [1, 7, 64, 1000])
def test_rows_picked_and_batches_agree(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(rows_module, "_ROWS_AT_ONCE", at_once)
    reader = make_reader(make_shard(FEATURES[:33]), make_shard(FEATURES[33:]))
    assert list(reader.rows()) == wanted()
    assert reader.pick(range(100)) == wanted()
    assert reader.pick([99, 0, 10, -1]) == [{"x": 99}, {"x": 0}, {}, {"x": 99}]
    batches = list(reader.batches(30, drop_last=False, threads=1))
    assert [len(batch["x"]) for batch in batches] == [30, 30, 30, 10]
    assert batches[0]["x"].presence.tolist() == [2] * 10 + [0] + [2] * 9 + [1] + [2] * 9


def test_nothing_picked_is_an_empty_list() -> None:
    assert make_reader(make_shard(FEATURES)).pick([]) == []


def test_picking_a_record_that_does_not_decode_raises_with_its_place() -> None:
    reader = make_reader(make_shard(FEATURES[:5]) + make_frame(b"\xff") + make_shard(FEATURES[5:9]))
    with pytest.raises(WireError, match=f"<memory>, record 5, byte {len(make_shard(FEATURES[:5]))}"):
        reader.pick([5])
    assert reader.pick([6]) == [{"x": 5}]


def test_skipping_picks_what_iterating_gives() -> None:
    policy = Policy("all", "skip")
    reader = make_reader(make_shard(FEATURES[:5]) + make_frame(b"\xff") + make_shard(FEATURES[5:9]), policy=policy)
    rows = list(reader.rows())
    assert rows == [{"x": number} for number in range(9)]
    assert reader.pick(range(10)) == rows  # numbers count frames, also the one that does not decode
