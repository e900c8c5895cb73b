"""The native frames, checksums, resync and permutation against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrkit import _native
from tfrkit.testing import reference
from tfrkit.testing.corruption import flip, make_frame

ALL = 1 << 40
records = st.lists(st.one_of(st.binary(max_size=40), st.just(b""), st.binary(min_size=100, max_size=300)), max_size=6)


def read_native(data: bytes, verify: str = "all") -> tuple[list[bytes], int, _native.Fault | None]:
    return _native.read_frames(data, 0, len(data), ALL, ALL, verify)


@given(st.binary(max_size=700), st.integers(0, 2**32 - 1))
def test_crc32c_equals_reference(data: bytes, crc: int) -> None:
    assert _native.crc32c(data, crc) == reference.crc32c(data, crc)
    assert _native.masked_crc32c(data) == reference.masked_crc32c(data)


@pytest.mark.parametrize("variant", _native.crc32c_variants())
@given(data=st.binary(max_size=5000))
def test_crc32c_every_variant_equals_reference(variant: str, data: bytes) -> None:
    assert _native.crc32c_with(variant, data) == reference.crc32c(data)


def test_crc32c_standard_check_value() -> None:
    assert _native.crc32c(b"123456789") == reference.crc32c(b"123456789") == 0xE3069283


@given(records)
def test_written_frames_equal_reference(payloads: list[bytes]) -> None:
    assert _native.frame_records(payloads) == reference.write_frames(payloads)


@given(records)
def test_sound_frames_read_back(payloads: list[bytes]) -> None:
    data = reference.write_frames(payloads)
    assert read_native(data) == (payloads, len(data), None)
    offsets, stop, fault = _native.index_frames(data, 0, len(data), ALL, "all")
    assert (offsets.tolist(), stop, fault) == (reference.index_frames(data), len(data), None)
    assert [_native.read_frame_at(data, int(offset), "all") for offset in offsets] == payloads


@given(records.filter(bool), st.data())
def test_damaged_frames_stop_where_reference_stops(payloads: list[bytes], data: st.DataObject) -> None:
    shard = reference.write_frames(payloads)
    if data.draw(st.booleans()):
        shard = flip(shard, data.draw(st.integers(0, len(shard) - 1)), data.draw(st.integers(0, 7)))
    else:
        shard = shard[: data.draw(st.integers(0, len(shard) - 1))]
    expected: list[bytes] = []
    offset = 0
    wanted_fault = None
    while offset < len(shard):
        try:
            record, offset = reference.read_frame(shard, offset)
            expected.append(record)
        except reference.ReferenceFault as error:
            wanted_fault = (error.kind, error.offset)
            break
    got, stop, fault = read_native(shard)
    assert (got, stop) == (expected, offset)
    assert (fault and (fault.kind, fault.offset)) == wanted_fault


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.binary(max_size=20).map(reference.write_frame),
            st.binary(max_size=8).map(lambda record: make_frame(record, length=len(record) + 40)),
            st.binary(max_size=8).map(lambda record: make_frame(record, crc=1)),
        ),
        max_size=6,
    ).map(b"".join),
    st.integers(0, 30),
)
def test_next_frame_equals_reference(data: bytes, start: int) -> None:
    start = min(start, len(data))
    found, offset = _native.find_next_frame(data, start, len(data), True)
    assert (offset if found else None) == reference.find_next_frame(data, start)


@given(st.binary(max_size=30), st.binary(max_size=40), st.integers(0, 80))
def test_next_frame_in_pieces_is_found_once_all_is_there(garbage: bytes, record: bytes, cut: int) -> None:
    data = garbage + reference.write_frame(record)
    cut = min(cut, len(data))
    found, offset = _native.find_next_frame(data, 0, cut, False)
    assert offset <= cut
    if not found:
        # Continuing where the search stopped must not miss it.
        found, offset = _native.find_next_frame(data, offset, len(data), True)
    assert found
    assert offset == reference.find_next_frame(data, 0)


def test_frame_longer_than_any_file_is_a_fault() -> None:
    for length in (2**63, 2**64 - 1, 2**64 - 16, 2**64 - 12, 5):
        _, stop, fault = read_native(make_frame(b"abc", length=length))
        assert fault is not None
        assert (stop, fault.kind, fault.stored, fault.computed) == (0, "truncated_payload", length, 7)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 100, 255, 256, 257, 1000, 4096, 10007])
@pytest.mark.parametrize("key", [0, 1, 2**63, 2**64 - 1])
def test_permutation_is_a_bijection(size: int, key: int) -> None:
    permutation = _native.Permutation(size, key)
    items = permutation.at_range(0, size)
    assert np.array_equal(np.sort(items), np.arange(size, dtype=np.uint64))
    for position in range(0, size, max(1, size // 50)):
        assert permutation.at(position) == items[position]
        assert permutation.position_of(int(items[position])) == position


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1), st.data())
def test_permutation_inverse_holds_for_any_size(size: int, key: int, data: st.DataObject) -> None:
    permutation = _native.Permutation(size, key)
    position = data.draw(st.integers(0, size - 1))
    item = permutation.at(position)
    assert 0 <= item < size
    assert permutation.position_of(item) == position


def test_permutation_outside_positions_raise() -> None:
    permutation = _native.Permutation(10, 0)
    with pytest.raises(IndexError, match="outside"):
        permutation.at(10)
    with pytest.raises(IndexError, match="outside"):
        permutation.at_range(5, 11)
