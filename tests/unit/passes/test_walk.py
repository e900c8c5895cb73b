from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tfrkit import _native
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.records import Policy, read_list
from tfrkit.container.salvage import Salvage
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError
from tfrkit.passes.walk import CollectPolicy, open_shards, walk_frames, walk_streams
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import write_frames

RECORDS = [bytes([number]) * (number * 37 % 200) for number in range(60)]
FRAMES = write_frames(RECORDS)
OFFSETS = frame_offsets(FRAMES)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("max_frames", "max_nbytes"), [(1, 1 << 20), (7, 1 << 20), (1 << 20, 1), (1 << 20, 300)])
def test_stretches_hold_every_record_of_every_shard_with_its_place(
    pack: Callable[[bytes], bytes], max_frames: int, max_nbytes: int
) -> None:
    shards = [Shard(MemoryReader(pack(FRAMES))) for _ in range(2)]
    found = list(walk_frames(shards, Policy(), read_list, max_frames, max_nbytes))
    assert [record for stretch in found for record in stretch.taken] == RECORDS * 2
    assert [stretch.offset for stretch in found] == [OFFSETS[stretch.record] for stretch in found]
    assert sum(stretch.nbytes for stretch in found) == 2 * len(FRAMES)
    assert all(stretch.num_frames <= max_frames for stretch in found)
    assert all(stretch.nbytes <= max(max_nbytes, 200 + FRAME_OVERHEAD) for stretch in found)


def test_damage_raises_after_the_records_before_it() -> None:
    shard = Shard(MemoryReader(flip(FRAMES, OFFSETS[9] + 13)))
    seen = []
    with pytest.raises(CorruptRecordError, match="record 9"):
        for stretch in walk_frames([shard], Policy(), read_list, 4):
            seen += stretch.taken
    assert seen == RECORDS[:9]


def test_collected_damage_is_listed_with_its_error_and_skipped() -> None:
    policy = CollectPolicy()
    shard = Shard(MemoryReader(flip(flip(FRAMES, OFFSETS[9] + 13), OFFSETS[30])))
    found = list(walk_streams(Salvage(shard, policy), read_list, 4))
    assert [record for stretch in found for record in stretch.taken] == RECORDS[:9] + RECORDS[10:30] + RECORDS[31:]
    assert [(finding.record, type(error)) for finding, error in policy.listed] == [
        (9, CorruptRecordError),
        (30, CorruptRecordError),
    ]


def test_stretch_read_again_names_the_damaged_record() -> None:
    shard = Shard(MemoryReader(flip(FRAMES, OFFSETS[9] + 13)))
    second = list(walk_frames([shard], Policy("lengths"), _native.check_frames, 5))[1]
    found = second.read(_native.check_frames, "all")
    assert found is not None
    assert (found[0].kind, found[1].record, found[1].offset) == ("payload_checksum", 9, OFFSETS[9])
    assert second.read(_native.check_frames, "lengths") is None


def test_shards_are_closed_at_the_end_of_the_block(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(FRAMES)
    with open_shards(tmp_path) as shards:
        assert shards[0].reader.descriptor() >= 0
    assert shards[0].reader._file is None  # type: ignore[attr-defined]
