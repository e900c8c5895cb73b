from __future__ import annotations

import gzip
import lzma

import pytest

from tfrkit import _native
from tfrkit.container.records import Finding, Policy
from tfrkit.container.salvage import Salvage
from tfrkit.container.shards import Shard
from tfrkit.errors import CompressionError, TfrkitError
from tfrkit.storage.base import ByteSource
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import splice, truncate
from tfrkit.testing.reference import write_frames

# Incompressible, so that a member is longer than a decoder's read-ahead.
RECORDS = [bytes((number * 7 + place * place) % 251 for place in range(300)) for number in range(40)]


class Listing(Policy):
    def __init__(self) -> None:
        super().__init__("all", "skip")
        self.listed: list[Finding] = []

    def take(self, finding: Finding, error: TfrkitError) -> None:
        self.listed.append(finding)


def read(data: bytes, policy: Policy | None = None) -> tuple[list[bytes], list[Finding], Salvage]:
    policy = policy or Listing()
    parts = Salvage(Shard(MemoryReader(data, name="s")), policy)
    records: list[bytes] = []

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        found, next_start, fault = _native.read_frames(data, start, stop, 4096, 1 << 20, "all")
        records.extend(found)
        return len(found), next_start, fault

    for stream in parts:
        while stream.step(consume):
            pass
    return records, getattr(policy, "listed", []), parts


def test_sound_shard_is_one_part() -> None:
    for data in (write_frames(RECORDS), gzip.compress(write_frames(RECORDS)), b""):
        records, findings, parts = read(data)
        assert records == (RECORDS if data else [])
        assert (findings, parts.gaps) == ([], [])


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_members_after_a_damaged_one_are_read(pack) -> None:
    members = [pack(write_frames(RECORDS[start : start + 10])) for start in (0, 10, 20, 30)]
    middle = len(members[0]) + len(members[1]) // 2
    data = splice(b"".join(members), middle, middle + 40, b"\xff" * 40)
    records, findings, parts = read(data)
    assert records[:10] == RECORDS[:10]
    assert records[-20:] == RECORDS[20:]
    assert 0 < len(records) - 30 < 10
    assert set(records) <= set(RECORDS)
    assert findings[-1].cause.startswith("compressed stream is damaged")
    (gap,) = parts.gaps
    assert gap.stop == len(members[0]) + len(members[1])
    assert len(members[0]) < gap.start <= gap.stop


def test_members_after_a_removed_one_are_found() -> None:
    members = [gzip.compress(write_frames(RECORDS[start : start + 20])) for start in (0, 20)]
    records, findings, parts = read(truncate(members[0], len(members[0]) // 2) + members[1])
    assert records[-20:] == RECORDS[20:]
    assert findings
    assert parts.gaps[0].stop == len(members[0]) // 2


def test_member_that_begins_inside_a_frame_loses_that_frame_only() -> None:
    frames = write_frames(RECORDS)
    pieces = [frames[:4000], frames[4000:8000], frames[8000:]]
    members = [gzip.compress(piece) for piece in pieces]
    data = splice(b"".join(members), len(members[0]) + 30, len(members[0]) + 60, bytes(30))
    records, findings, _ = read(data)
    frame_nbytes = 300 + 16
    assert records[: 4000 // frame_nbytes] == RECORDS[: 4000 // frame_nbytes]
    first = -(-8000 // frame_nbytes)
    assert records[-(40 - first) :] == RECORDS[first:]
    assert len(findings) == 2  # the torn member, and the frame whose first part was in it


def test_offsets_count_what_was_inflated() -> None:
    members = [gzip.compress(write_frames(RECORDS[start : start + 20])) for start in (0, 20)]
    data = members[0] + members[1][:200] + members[0]
    _, findings, _ = read(data)
    assert findings[0].offset >= 20 * 316
    assert findings[0].record >= 20


def test_last_member_torn_ends_it() -> None:
    packed = gzip.compress(write_frames(RECORDS))
    records, findings, parts = read(truncate(packed, -20))
    assert records == RECORDS[: len(records)]
    assert len(findings) == 1
    assert parts.gaps[0].stop == len(packed) - 20


def test_false_member_header_is_skipped() -> None:
    members = [gzip.compress(write_frames(RECORDS[start : start + 20])) for start in (0, 20)]
    junk = b"\x1f\x8b\x08\x00 not a member" + gzip.compress(b"no frame in here")
    records, _, _ = read(truncate(members[0], 300) + junk + members[1])
    assert records[-20:] == RECORDS[20:]


def test_strict_policy_raises_at_the_tear() -> None:
    members = [gzip.compress(write_frames(RECORDS[start : start + 20])) for start in (0, 20)]
    with pytest.raises(CompressionError, match="s, "):
        read(truncate(members[0], 300) + members[1], Policy())
