"""Every byte of a small shard flipped, every length cut: reported or harmless, never a wrong or missing value."""

from __future__ import annotations

import contextlib
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tfrkit as tfr
from tfrkit.container.identify import describe_foreign
from tfrkit.errors import CompressionError, ContainerError, NotATFRecordError, TfrkitError, WireError
from tfrkit.testing import reference
from tfrkit.testing.corruption import fix_checksum, flip, flip_each_byte, frame_offsets, make_frame, splice, truncate

RECORDS = [
    reference.encode_example({b"id": ("int64", [number]), b"text": ("bytes", [text])})
    for number, text in enumerate([b"first", b"", b"the third one", b"\0\xff"])
]
SHARD = reference.write_frames(RECORDS)


def pack(data: bytes, compression: str) -> bytes:
    if compression == "none":
        return data
    wbits = {"gzip": 31, "zlib": 15}[compression]
    packer = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return packer.compress(data) + packer.flush()


def read_all(path: Path, data: bytes, **options: Any) -> tuple[list[bytes] | None, TfrkitError | None]:
    """The records, or the error. Anything that is not a TfrkitError fails the test."""
    path.write_bytes(data)
    try:
        with tfr.open(path, **options) as ds:
            return list(ds.records()), None
    except TfrkitError as error:
        return None, error


def check_reported_or_harmless(path: Path, data: bytes, where: object) -> bool:
    records, error = read_all(path, data)
    if error is None:
        assert records == RECORDS, where
        return False
    assert " - at " in str(error), where
    assert str(path) in str(error), where
    return True


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_each_byte_flipped_is_reported_or_harmless(compression: str, tmp_path: Path) -> None:
    sound = pack(SHARD, compression)
    harmless = [
        offset
        for offset, data in flip_each_byte(sound)
        if not check_reported_or_harmless(tmp_path / "shard", data, offset)
    ]
    # gzip: flags, time stamp, extra flags and the operating system do not affect the data. Deflate: the last byte
    # before the checksum may hold padding bits.
    filler = len(sound) - {"none": 0, "gzip": 8, "zlib": 4}[compression] - 1
    allowed = {"none": set(), "gzip": {*range(3, 10), filler}, "zlib": {0, 1, filler}}[compression]
    assert set(harmless) <= allowed


def test_each_bit_of_two_frames_flipped_is_reported(tmp_path: Path) -> None:
    for offset in range(frame_offsets(SHARD)[2]):
        for bit in range(8):
            assert check_reported_or_harmless(tmp_path / "shard", flip(SHARD, offset, bit), (offset, bit))


def test_flip_is_reported_at_its_record(tmp_path: Path) -> None:
    starts = frame_offsets(SHARD)
    for offset, data in flip_each_byte(SHARD):
        _, error = read_all(tmp_path / "shard", data)
        record = max(i for i, start in enumerate(starts) if start <= offset)
        assert error is not None
        assert (error.record, error.offset) == (record, starts[record]), offset


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_each_cut_is_reported_or_between_frames(compression: str, tmp_path: Path) -> None:
    sound = pack(SHARD, compression)
    starts = frame_offsets(SHARD) if compression == "none" else [0]
    for nbytes in range(len(sound)):
        path = tmp_path / "shard"
        if nbytes in starts:
            # A cut between two frames of an uncompressed shard looks like a shorter shard.
            records, error = read_all(path, truncate(sound, nbytes))
            assert (records, error) == (RECORDS[: starts.index(nbytes)], None)
        else:
            assert check_reported_or_harmless(path, truncate(sound, nbytes), nbytes), nbytes


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_each_byte_flipped_gives_no_wrong_record_by_number(compression: str, tmp_path: Path) -> None:
    path = tmp_path / "shard"
    for offset, data in flip_each_byte(pack(SHARD, compression)):
        path.write_bytes(data)
        got = []
        try:
            with tfr.open(path) as ds:
                count = len(ds)
                assert count == len(RECORDS), offset
        except TfrkitError:
            continue
        with tfr.open(path) as ds:
            for number in range(count):
                try:
                    got.append(ds.records()[number])
                except TfrkitError:
                    got.append(RECORDS[number])  # reported
        assert got == RECORDS, offset


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_cut_stream_under_skip_gives_the_frames_before_it(compression: str, tmp_path: Path) -> None:
    sound = pack(SHARD, compression)
    for nbytes in range(12, len(sound), 3):
        path = tmp_path / "shard"
        path.write_bytes(truncate(sound, nbytes))
        try:
            with tfr.open(path, on_error="skip") as ds:
                records = list(ds.records())
                assert ds.errors
        except TfrkitError:
            continue
        assert records == RECORDS[: len(records)]


def test_cut_stream_is_a_compression_error(tmp_path: Path) -> None:
    _, error = read_all(tmp_path / "shard", truncate(pack(SHARD, "gzip"), -4))
    assert isinstance(error, CompressionError)


# --- skipping


def salvaged(path: Path, data: bytes) -> tuple[list[bytes], list[int]]:
    path.write_bytes(data)
    with tfr.open(path, on_error="skip") as ds:
        records = list(ds.records())
        return records, sorted(finding.offset for finding in ds.errors)


@pytest.mark.parametrize("threads", [1, 2])
def test_each_byte_flipped_under_skip_loses_one_record(threads: int, tmp_path: Path) -> None:
    for offset, data in flip_each_byte(SHARD):
        wanted, damage = reference.salvage_frames(data)
        assert len(wanted) == len(RECORDS) - 1
        assert salvaged(tmp_path / "shard", data) == (wanted, damage), offset
    with tfr.open(tmp_path / "shard", on_error="skip") as ds:
        rows = [row for batch in ds.batch(2, threads=threads) for row in batch["id"].tolist()]
        assert rows == [0, 1, 2]
        assert len(ds) == 3
        assert [ds[i]["id"] for i in range(3)] == rows


def test_damaged_length_does_not_end_the_file(tmp_path: Path) -> None:
    start = frame_offsets(SHARD)[1]
    for data in (
        flip(SHARD, start, 0),
        flip(SHARD, start + 7, 7),
        flip(SHARD, start + 8, 3),
        splice(SHARD, start, start + 8, struct.pack("<Q", 2**64 - 1)),
    ):
        records, damage = salvaged(tmp_path / "shard", data)
        assert records == [RECORDS[0], *RECORDS[2:]]
        assert damage == [start]


@pytest.mark.parametrize("length", [0, 1, 20, 60, 100, 2**31, 2**63, 2**64 - 1])
def test_wrong_length_with_right_checksum_does_not_end_the_file(length: int, tmp_path: Path) -> None:
    start = frame_offsets(SHARD)[1]
    header = make_frame(b"", length=length)[:12]
    data = splice(SHARD, start, start + 12, header)
    wanted, damage = reference.salvage_frames(data)
    assert wanted == [RECORDS[0], *RECORDS[2:]]
    assert salvaged(tmp_path / "shard", data) == (wanted, damage)
    with (
        pytest.raises(ContainerError, match=r"checksum mismatch|shard ends inside a frame"),
        tfr.open(tmp_path / "shard") as ds,
    ):
        list(ds.records())


damages = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, 10_000), st.integers(0, 7)),
    st.tuples(st.just("cut"), st.integers(0, 10_000), st.integers(1, 40)),
    st.tuples(st.just("insert"), st.integers(0, 10_000), st.binary(min_size=1, max_size=20)),
)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8), st.lists(damages, min_size=1, max_size=3))
def test_skip_gives_exactly_what_the_reference_salvages(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], hits: list[tuple[str, int, Any]]
) -> None:
    data = reference.write_frames(records)
    for how, offset, detail in hits:
        if not data:
            break
        offset %= len(data)
        if how == "flip":
            data = flip(data, offset, detail)
        elif how == "cut":
            data = splice(data, offset, offset + detail)
        else:
            data = splice(data, offset, offset, detail)
    assume(
        describe_foreign(data[:4096], len(data), tail=data[-4096:]) is None
    )  # inserted bytes may look like another file type
    wanted, damage = reference.salvage_frames(data)
    path = tmp_path_factory.getbasetemp() / "salvage"
    if wanted:
        assert salvaged(path, data) == (wanted, damage)
        return
    with contextlib.suppress(NotATFRecordError):  # nothing identifies it as one any more
        assert salvaged(path, data) == ([], damage)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_damage_inside_a_sound_stream_is_skipped_alike(compression: str, tmp_path: Path) -> None:
    for offset, data in flip_each_byte(SHARD):
        assert salvaged(tmp_path / "shard", pack(data, compression)) == reference.salvage_frames(data), offset


def test_max_errors_raises_at_the_one_too_many(tmp_path: Path) -> None:
    starts = frame_offsets(SHARD)
    data = flip(flip(SHARD, starts[1] + 13), starts[3] + 13)
    (tmp_path / "shard").write_bytes(data)
    with tfr.open(tmp_path / "shard", on_error="skip", max_errors=2) as ds:
        assert list(ds.records()) == [RECORDS[0], RECORDS[2]]
    with (
        tfr.open(tmp_path / "shard", on_error="skip", max_errors=1) as ds,
        pytest.raises(TfrkitError, match=r"payload checksum mismatch.*record 3"),
    ):
        list(ds.records())


def test_message_that_does_not_parse_is_named_and_skipped(tmp_path: Path) -> None:
    """A valid checksum over wrong bytes: damage from before the shard was written."""
    start = frame_offsets(SHARD)[2]
    data = fix_checksum(flip(SHARD, start + 13, 7), 2)
    assert reference.read_frames(data)
    (tmp_path / "shard").write_bytes(data)
    with tfr.open(_write(tmp_path / "sound", SHARD)) as sound:
        schema = sound.schema
    with (
        tfr.open(tmp_path / "shard", schema=schema) as ds,
        pytest.raises(WireError, match=r"not a well-formed protobuf message.*record 2, byte"),
    ):
        list(ds)
    with tfr.open(tmp_path / "shard", schema=schema, on_error="skip") as ds:
        assert [row["id"] for row in ds] == [0, 1, 3]
        assert [(finding.record, finding.offset) for finding in ds.errors] == [(2, start)]


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
