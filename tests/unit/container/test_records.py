from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.container.records import Finding, FrameStream, Policy, find_hole, read_records
from tfrkit.container.shards import Shard
from tfrkit.errors import CompressionError, CorruptRecordError, StorageError, TruncatedShardError
from tfrkit.storage.local import LocalReader
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import fix_checksum, flip, frame_offsets, make_frame, splice, truncate
from tfrkit.testing.reference import write_frames

RECORDS = [b"record %d " % number * number for number in range(40)]
FRAMES = write_frames(RECORDS)
OFFSETS = frame_offsets(FRAMES)


def open_shard(data: bytes) -> Shard:
    return Shard(MemoryReader(data, name="s.tfrecord"))


def read(data: bytes, policy: Policy | None = None) -> list[bytes]:
    return [record for some in read_records(open_shard(data), policy or Policy()) for record in some]


def read_skipping(data: bytes, **options: Any) -> tuple[list[bytes], list[Finding]]:
    policy = Policy("all", "skip", **options)
    return read(data, policy), list(policy.findings.values())


@pytest.fixture(params=["one window", "small windows"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests with windows smaller than a frame: frames that cross a border must not be lost."""
    if request.param == "small windows":
        monkeypatch.setattr(LIMITS, "window_nbytes", 7)
        monkeypatch.setattr(LIMITS, "inflate_nbytes", 5)
        monkeypatch.setattr(LIMITS, "read_nbytes", 11)


pytestmark = pytest.mark.usefixtures("windows")


# --- sound shards -------------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_records_come_in_file_order(verify: Any, pack: Any) -> None:
    assert read(pack(FRAMES), Policy(verify)) == RECORDS


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("records", [[], [b""], [b""] * 1000, [b"x" * 100_000, b"", b"y"]])
def test_empty_and_large_records_are_read(pack: Any, records: list[bytes]) -> None:
    assert read(pack(write_frames(records))) == records


def test_stream_knows_record_and_offset() -> None:
    stream = FrameStream(open_shard(FRAMES), Policy())
    assert stream.step(lambda data, start, stop: _native.check_frames(data, start, stop, 1, "all")) == 1
    assert (stream.record, stream.offset) == (1, OFFSETS[1])
    while stream.step(lambda data, start, stop: _native.check_frames(data, start, stop, 3, "all")):
        pass
    assert (stream.record, stream.offset) == (40, len(FRAMES))


def test_consumer_that_does_nothing_is_a_bug_and_not_a_hang() -> None:
    stream = FrameStream(open_shard(FRAMES), Policy())
    with pytest.raises(RuntimeError, match="took no frame and named no fault"):
        stream.step(lambda data, start, stop: (0, start, None))


# --- damage raises ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("offset", "kind"),
    [(0, CorruptRecordError), (7, CorruptRecordError), (9, CorruptRecordError), (12, CorruptRecordError)],
)
def test_flipped_byte_raises_with_record_and_byte(pack: Any, offset: int, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"checksum mismatch, .* - at s.tfrecord, record 5, byte {OFFSETS[5]}\n") as caught:
        read(pack(flip(FRAMES, OFFSETS[5] + offset)))
    assert (caught.value.record, caught.value.offset) == (5, OFFSETS[5])  # type: ignore[attr-defined]
    expected = "length_checksum" if offset < 12 else "payload_checksum"
    assert caught.value.fault == expected  # type: ignore[attr-defined]


def test_finding_has_the_kind_of_its_fault() -> None:
    policy = Policy(on_error="skip")
    for _ in read_records(open_shard(flip(flip(FRAMES, OFFSETS[2] + 12), OFFSETS[5])), policy):
        pass
    assert [(one.record, one.kind) for one in policy.findings.values()] == [
        (2, "payload_checksum"),
        (5, "length_checksum"),
    ]


def test_records_before_damage_are_given_first() -> None:
    some = read_records(open_shard(flip(FRAMES, OFFSETS[5])), Policy())
    given = []
    with pytest.raises(CorruptRecordError, match="record 5"):
        for records in some:
            given += records
    assert given == RECORDS[:5]


@pytest.mark.parametrize("nbytes", [1, 3, 4, 5, 11, 12, 13])
def test_shard_that_ends_inside_a_frame_raises(nbytes: int) -> None:
    with pytest.raises(TruncatedShardError, match=f"shard ends inside a frame, .* record 39, byte {OFFSETS[39]}"):
        read(truncate(FRAMES, OFFSETS[39] + nbytes))


@pytest.mark.parametrize("length", [1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_length_past_the_end_raises_without_asking_for_memory(pack: Any, length: int) -> None:
    with pytest.raises(TruncatedShardError, match=f"expected {length} bytes of payload"):
        read(pack(FRAMES + make_frame(b"abc", length=length)))


def test_torn_gzip_raises_after_what_inflates() -> None:
    packed = gzip.compress(FRAMES)
    given = []
    with pytest.raises(CompressionError, match="s.tfrecord"):
        for records in read_records(open_shard(truncate(packed, len(packed) // 2)), Policy()):
            given += records
    assert given == RECORDS[: len(given)]


@pytest.mark.parametrize(("verify", "is_found"), [("all", True), ("lengths", False), ("none", False)])
def test_payload_is_compared_only_when_requested(verify: Any, is_found: bool) -> None:
    data = flip(FRAMES, OFFSETS[5] + 12)
    if is_found:
        with pytest.raises(CorruptRecordError, match="payload checksum"):
            read(data, Policy(verify))
    else:
        assert len(read(data, Policy(verify))) == 40


# --- damage is skipped ---------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("offset", [0, 6, 8, 11, 12, 15])
@pytest.mark.parametrize("record", [0, 5, 39])
def test_one_damaged_frame_costs_one_record(pack: Any, offset: int, record: int) -> None:
    got, findings = read_skipping(pack(flip(FRAMES, OFFSETS[record] + offset)))
    assert got == RECORDS[:record] + RECORDS[record + 1 :]
    assert [(finding.record, finding.offset) for finding in findings] == [(record, OFFSETS[record])]
    # A damaged length may hide further frames, a damaged payload between two lengths hides none.
    assert [finding.is_one_record for finding in findings] == [offset >= 12]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lost_bytes_with_an_unknown_number_of_records_say_so(pack: Any) -> None:
    # Of record 5 the payload is damaged, of record 6 the length.
    got, findings = read_skipping(pack(flip(flip(FRAMES, OFFSETS[5] + 14), OFFSETS[6] + 1)))
    assert got == RECORDS[:5] + RECORDS[7:]
    (found,) = findings
    assert (found.kind, found.is_one_record) == ("payload_checksum", False)
    assert (found.offset, found.stop) == (OFFSETS[5], OFFSETS[7])


def test_record_numbers_are_uncertain_after_the_first_such_bytes() -> None:
    bad = flip(flip(flip(FRAMES, OFFSETS[5] + 14), OFFSETS[8] + 1), OFFSETS[12] + 1)
    assert find_hole(read_skipping(bad)[1]) == 8
    assert find_hole(read_skipping(flip(FRAMES, OFFSETS[5] + 14))[1]) > len(RECORDS)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_wrong_length_with_a_right_checksum_does_not_swallow_others(pack: Any) -> None:
    bad = make_frame(RECORDS[5], length=len(RECORDS[5]) + 100)
    got, findings = read_skipping(pack(splice(FRAMES, OFFSETS[5], OFFSETS[6], bad)))
    assert got == RECORDS[:5] + RECORDS[6:]
    assert len(findings) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_garbage_between_frames_is_one_finding(pack: Any) -> None:
    got, findings = read_skipping(pack(splice(FRAMES, OFFSETS[5], OFFSETS[5], b"\xfe" * 1000)))
    assert got == RECORDS
    assert [(finding.offset, finding.lost_nbytes) for finding in findings] == [(OFFSETS[5], 1000)]


def test_bytes_taken_out_of_the_middle_cost_the_frames_they_were_in() -> None:
    got, findings = read_skipping(splice(FRAMES, OFFSETS[5] + 3, OFFSETS[7] + 3))
    assert got == RECORDS[:5] + RECORDS[8:] or got == RECORDS[:5] + RECORDS[7:]
    assert findings


def test_torn_gzip_is_a_finding() -> None:
    packed = gzip.compress(FRAMES)
    got, findings = read_skipping(truncate(packed, len(packed) - 20))
    assert got == RECORDS[: len(got)]
    assert len(findings) == 1


def test_truncated_shard_is_a_finding() -> None:
    got, findings = read_skipping(truncate(FRAMES, -1))
    assert got == RECORDS[:-1]
    assert findings[0].cause.startswith("shard ends inside a frame")


def test_finding_is_noted_once_over_many_passes() -> None:
    policy = Policy("all", "skip")
    data = flip(FRAMES, OFFSETS[5])
    read(data, policy.for_one_pass())
    read(data, policy.for_one_pass())
    assert len(policy.findings) == 1


@pytest.mark.parametrize("max_errors", [0, 1, 2])
def test_more_damage_than_allowed_raises(max_errors: int) -> None:
    data = FRAMES
    for record in (3, 10, 20):
        data = flip(data, OFFSETS[record] + 12)
    with pytest.raises(CorruptRecordError, match=f"record {(3, 10, 20)[max_errors]},"):
        read_skipping(data, max_errors=max_errors)
    assert len(read_skipping(data, max_errors=3)[0]) == 37


def test_errors_are_counted_anew_in_each_pass() -> None:
    policy = Policy("all", "skip", max_errors=1)
    data = flip(FRAMES, OFFSETS[5])
    for _ in range(3):
        assert len(read(data, policy.for_one_pass())) == 39


def test_changed_payload_with_right_checksums_is_read() -> None:
    data = fix_checksum(flip(FRAMES, OFFSETS[5] + 12), 5)
    assert read(data)[5] != RECORDS[5]


def test_finding_has_its_public_form() -> None:
    finding = Finding("s", 1, 2, "why", lost_nbytes=5)
    assert finding.to_json() == {"shard": "s", "record": 1, "offset": 2, "cause": "why"}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_false_lengths_between_sound_frames_cost_linear_time(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each sound frame follows a header whose length covers nearly the rest of the file: checksumming each from its
    # first byte would read 3000 x 1 MB, twice.
    searches: list[_native.FrameSearch] = []

    def make_search(data: Any) -> _native.FrameSearch:
        searches.append(original(data))
        return searches[-1]

    original = _native.FrameSearch
    monkeypatch.setattr(_native, "FrameSearch", make_search)
    frame = write_frames([b"x"])
    units, padding = 3000, 1 << 20
    size = units * (12 + len(frame)) + padding
    headers = [
        make_frame(b"", length=size - start - 12 - 8)[:12] for start in range(0, size - padding, 12 + len(frame))
    ]
    data = b"".join(header + frame for header in headers) + b"\xfe" * padding
    policy = Policy("all", "skip")
    stream = FrameStream(open_shard(pack(data)), policy)
    num_read = 0
    while num_frames := stream.step(lambda data, start, stop: _native.check_frames(data, start, stop, 99, "all")):
        num_read += num_frames
    assert num_read == units
    assert len(policy.findings) == units + 1
    num_checked = stream._wasted_nbytes + sum(search.num_checked for search in searches)
    assert num_checked < 8 * len(data) + units * 2 * 2048


# --- files that change, and pipes ---------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [0, 100, 5000, -1])
def test_file_that_shrinks_between_steps_raises_storage_error(tmp_path: Path, nbytes: int) -> None:
    # Touching a mapped page past the end of its file kills the process: the check must come first.
    path = tmp_path / "s.tfrecord"
    data = write_frames([b"x" * 1000] * 200)
    path.write_bytes(data)
    shard = Shard(LocalReader(str(path)))
    stream = FrameStream(shard, Policy())

    def consume(data: Any, start: int, stop: int) -> Any:
        # Stands in for the core, which would be killed here.
        assert os.path.getsize(path) >= stop, "a page that is gone would have been read"
        return _native.check_frames(data, start, stop, 1, "all")

    assert stream.step(consume) == 1
    os.truncate(path, nbytes % len(data))
    with pytest.raises(
        StorageError, match=rf"the file became shorter while it was read, {len(data)} bytes at first, .* now"
    ):
        while stream.step(consume):
            pass
    shard.close()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pipe_is_read_once_and_says_so_the_second_time(pack: Any) -> None:
    source, target = os.pipe()
    os.write(target, pack(FRAMES))
    os.close(target)
    try:
        shard = Shard(LocalReader(f"/dev/fd/{source}"))
        assert [r for some in read_records(shard, Policy()) for r in some] == RECORDS
        with pytest.raises(StorageError, match="pipe, which can be read only once"):
            list(read_records(shard, Policy()))
        shard.close()
    finally:
        os.close(source)
