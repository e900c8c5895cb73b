from __future__ import annotations

import gzip
from typing import Any

import pytest

from tfrkit.batches.check import check_records
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, frame_offsets, make_frame, truncate
from tfrkit.testing.reference import encode_example, write_frames

EXAMPLES = [encode_example({b"x": ("int64", [number])}) for number in range(20)]
FRAMES = write_frames(EXAMPLES)
OFFSETS = frame_offsets(FRAMES)


def check(data: bytes, *, parse: bool = True) -> tuple[int, list[tuple[int, int]]]:
    policy = Policy("all", "skip")
    num_records = check_records(Shard(MemoryReader(data)), policy, parse=parse)
    return num_records, [(finding.record, finding.offset) for finding in policy.findings.values()]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("data", [b"", FRAMES, write_frames([b""] * 100), write_frames([b"not an example"] * 5)])
def test_sound_shard_has_no_findings(pack: Any, data: bytes) -> None:
    assert check(pack(data)) == (len(frame_offsets(data)), [])


@pytest.mark.parametrize("parse", [True, False])
@pytest.mark.parametrize("record", [0, 7, 19])
@pytest.mark.parametrize("offset", [0, 9, 12, 16])
def test_damage_is_listed_with_record_and_byte(parse: bool, record: int, offset: int) -> None:
    assert check(flip(FRAMES, OFFSETS[record] + offset), parse=parse) == (19, [(record, OFFSETS[record])])


def test_every_place_of_damage_is_listed_in_order() -> None:
    data = truncate(flip(flip(FRAMES, OFFSETS[3]), OFFSETS[9] + 12), -1)
    assert check(data) == (17, [(3, OFFSETS[3]), (9, OFFSETS[9]), (19, OFFSETS[19])])


@pytest.mark.parametrize("other", [b"hello", b"\xff\xff", b"\x0a\x05abc"])
def test_record_that_is_no_example_among_examples_is_listed(other: bytes) -> None:
    data = FRAMES[: OFFSETS[7]] + make_frame(other) + FRAMES[OFFSETS[7] :]
    assert check(data) == (20, [(7, OFFSETS[7])])
    assert check(data, parse=False) == (21, [])


def test_findings_of_both_sorts_come_in_file_order() -> None:
    data = make_frame(b"hello") + flip(FRAMES, OFFSETS[3] + 12) + make_frame(b"hello")
    num_records, places = check(data)
    assert num_records == 19
    assert places == sorted(places)
    assert [record for record, _ in places] == [0, 4, 21]


def test_strict_policy_raises_at_the_first_damage() -> None:
    with pytest.raises(CorruptRecordError, match="record 3"):
        check_records(Shard(MemoryReader(flip(FRAMES, OFFSETS[3]))), Policy(), parse=True)
