"""Frame copies against their slow twins: dealt to parts, gathered in another order, summed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrkit import _native
from tfrkit.testing import reference
from tfrkit.testing.corruption import flip

ALL = 1 << 40
MASK = (1 << 64) - 1
records = st.lists(st.one_of(st.binary(max_size=40), st.just(b""), st.binary(min_size=100, max_size=300)), max_size=9)


def slow_digest(payloads: list[bytes]) -> int:
    total = 0
    for payload in payloads:
        length = len(payload)
        x = (length << 32 & MASK | length >> 32) ^ reference.masked_crc32c(payload)
        x = x + 0x9E3779B97F4A7C15 & MASK
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        total += x ^ x >> 31
    return total & MASK


@given(records)
def test_sum_equals_slow_twin_in_any_order(payloads: list[bytes]) -> None:
    data = reference.write_frames(payloads)
    offsets, digest, stop, fault = _native.sum_frames(data, 0, len(data), ALL, ALL, "all")
    assert (offsets.tolist(), stop, fault) == (reference.index_frames(data), len(data), None)
    assert digest == slow_digest(payloads[::-1])


@given(records, st.data())
def test_dealt_frames_equal_slow_twin(payloads: list[bytes], data: st.DataObject) -> None:
    parts = [data.draw(st.integers(0, 4)) for _ in payloads]
    span = reference.write_frames(payloads)
    frames, sizes, digest, num_frames, stop, fault = _native.deal_frames(
        span, 0, len(span), np.array(parts, np.uint32), 4, ALL, "all"
    )
    assert (num_frames, stop, fault) == (len(payloads), len(span), None)
    by_part = [[p for p, part in zip(payloads, parts, strict=True) if part == wanted] for wanted in range(4)]
    assert bytes(frames) == b"".join(map(reference.write_frames, by_part))
    assert sizes.tolist() == [len(reference.write_frames(some)) for some in by_part]
    assert digest == slow_digest(sum(by_part, []))


@given(records.filter(bool), st.data())
def test_gathered_frames_equal_slow_twin(payloads: list[bytes], data: st.DataObject) -> None:
    picks = data.draw(st.lists(st.integers(0, len(payloads) - 1), max_size=12))
    span = reference.write_frames(payloads)
    table = _native.FrameTable(span, np.array(reference.index_frames(span), np.uint64), "all")
    frames, digest, num_frames, fault = _native.gather_picks(
        [table], np.zeros(len(picks), np.uint32), np.array(picks, np.uint64), "all"
    )
    chosen = [payloads[pick] for pick in picks]
    assert (bytes(frames), num_frames, fault) == (reference.write_frames(chosen), len(picks), None)
    assert digest == slow_digest(chosen)


def test_damage_stops_dealing_before_it() -> None:
    span = flip(reference.write_frames([b"abc", b"def", b"ghi"]), 19 + 13)
    frames, _, _, num_frames, stop, fault = _native.deal_frames(
        span, 0, len(span), np.zeros(3, np.uint32), 1, ALL, "all"
    )
    assert (bytes(frames), num_frames, stop) == (reference.write_frames([b"abc"]), 1, 19)
    assert fault is not None
    assert fault.kind == "payload_checksum"


def test_pick_outside_is_refused() -> None:
    span = reference.write_frames([b"abc"])
    table = _native.FrameTable(span, np.zeros(1, np.uint64), "all")
    with pytest.raises(IndexError, match="out of range"):
        _native.gather_picks([table], np.zeros(1, np.uint32), np.ones(1, np.uint64), "all")
    with pytest.raises(ValueError, match="as many shards as records"):
        _native.gather_picks([table], np.zeros(2, np.uint32), np.ones(1, np.uint64), "all")


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1), st.data())
def test_positions_of_range_are_the_inverse(size: int, key: int, data: st.DataObject) -> None:
    permutation = _native.Permutation(size, key)
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    positions = permutation.positions_of_range(start, stop)
    assert permutation.at_many(positions).tolist() == list(range(start, stop))


def test_positions_outside_are_refused() -> None:
    with pytest.raises(IndexError, match="outside the permutation"):
        _native.Permutation(10, 1).positions_of_range(3, 11)
