"""Records by number through the native core: many shards in one call, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames

SHARDS = [[encode_example({b"n": ("int64", [100 * shard + record])}) for record in range(20)] for shard in range(3)]
FRAMES = [write_frames(records) for records in SHARDS]
OFFSETS = [np.array(frame_offsets(frames), np.uint64) for frames in FRAMES]


def make_tables(frames: list[bytes] = FRAMES) -> list[_native.FrameTable]:
    return [_native.FrameTable(data, offsets, "all") for data, offsets in zip(frames, OFFSETS, strict=True)]


def make_builder() -> _native.ColumnBuilder:
    return _native.ColumnBuilder("example", [(b"n", "int64", False, 1)])


def append(
    builder: _native.ColumnBuilder,
    shards: list[int],
    records: list[int],
    *,
    tables: list[_native.FrameTable] | None = None,
    verify: str = "all",
) -> tuple[int, _native.Fault | None]:
    return builder.append_picks(
        make_tables() if tables is None else tables,
        np.array(shards, np.uint32),
        np.array(records, np.uint64),
        verify,
    )


@pytest.mark.parametrize("count", [0, 1, 2, 11, 12, 13, 24, 25, 1000])
def test_picks_come_in_the_order_requested(count: int) -> None:
    random = np.random.default_rng(count)
    shards, records = random.integers(0, 3, count).tolist(), random.integers(0, 20, count).tolist()
    builder = make_builder()
    assert append(builder, shards, records) == (count, None)
    assert builder.num_rows == count
    ((values, *_),) = builder.finish()
    assert values.tolist() == [100 * shard + record for shard, record in zip(shards, records, strict=True)]


def test_fault_ends_the_picks_and_the_rest_can_be_requested() -> None:
    frames = [FRAMES[0], flip(FRAMES[1], int(OFFSETS[1][7]) + 13), FRAMES[2]]
    tables = make_tables(frames)
    builder = make_builder()
    num_rows, fault = append(builder, [2, 1, 1, 0], [3, 6, 7, 5], tables=tables)
    assert num_rows == builder.num_rows == 2
    assert fault is not None
    assert (fault.kind, fault.offset) == ("payload_checksum", OFFSETS[1][7])
    assert append(builder, [0], [5], tables=tables) == (1, None)
    ((values, *_),) = builder.finish()
    assert values.tolist() == [203, 106, 5]


def test_record_that_does_not_decode_is_a_fault_inside_it() -> None:
    data = write_frames([b"\x0a\x02\x0a\x05"])
    table = _native.FrameTable(data, np.zeros(1, np.uint64), "all")
    _, fault = append(make_builder(), [0], [0], tables=[table])
    assert fault is not None
    assert fault.kind == "wire"
    assert fault.offset >= 12


def test_offset_past_the_span_is_a_fault() -> None:
    table = _native.FrameTable(FRAMES[0], np.array([1 << 40, len(FRAMES[0])], np.uint64), "all")
    for record in (0, 1):
        _, fault = append(make_builder(), [0], [record], tables=[table])
        assert fault is not None
        assert fault.kind == "truncated_header"
        read = table.read(record)
        assert isinstance(read, _native.Fault)
        assert read.kind == "truncated_header"


@pytest.mark.parametrize(("shards", "records"), [([3], [0]), ([0], [20]), ([0, 0], [1, 1 << 63]), ([0xFFFFFFFF], [0])])
def test_pick_that_is_not_there_raises_and_adds_nothing(shards: list[int], records: list[int]) -> None:
    builder = make_builder()
    with pytest.raises(IndexError, match="record number out of range"):
        append(builder, shards, records)
    assert builder.num_rows == 0


def test_picks_of_unequal_length_or_wrong_type_raise() -> None:
    with pytest.raises(ValueError, match="as many shards as records"):
        append(make_builder(), [0, 1], [0])
    for table in ("no table", None):
        with pytest.raises(TypeError, match="expected FrameTables"):
            append(make_builder(), [0], [0], tables=[table])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="verify must be"):
        append(make_builder(), [0], [0], verify="some")


def test_permuted_positions_are_those_of_one_at_a_time() -> None:
    for size in (1, 2, 200, 257, 10_000):
        permutation = _native.Permutation(size, 7)
        positions = np.random.default_rng(size).integers(0, size, 300).astype(np.uint64)
        assert permutation.at_many(positions).tolist() == [permutation.at(int(position)) for position in positions]
    assert len(_native.Permutation(5, 1).at_many(np.empty(0, np.uint64))) == 0
    with pytest.raises(IndexError, match="positions lie outside"):
        _native.Permutation(5, 1).at_many(np.array([4, 5], np.uint64))


class Picked(_native.RecordPicker):
    """The core reports offsets it does not have."""

    def _get(self, index: object) -> object:
        return ("asked", index)


def test_picker_reads_open_shards_and_asks_for_the_rest() -> None:
    picker = Picked()
    assert picker[0] == ("asked", 0)
    picker.set_starts([0, 20, 20, 60])
    picker.set_table(0, make_tables()[0])
    assert picker[0] == SHARDS[0][0]
    assert picker[19] == SHARDS[0][19]
    assert picker[-60] == SHARDS[0][0]
    for number in (20, 59, 60, -61, -1, 1 << 70, True, 1.5, slice(1), None):
        assert picker[number] == ("asked", number)
    picker.set_table(2, make_tables()[2])
    assert [picker[number] for number in (20, 39)] == [SHARDS[2][0], SHARDS[2][19]]
    assert picker[40] == ("asked", 40)  # fewer records than declared
    picker.set_table(0, None)
    assert picker[0] == ("asked", 0)


def test_picker_asks_for_a_record_with_a_fault() -> None:
    picker = Picked()
    picker.set_starts([0, 20])
    picker.set_table(0, make_tables([flip(FRAMES[0], int(OFFSETS[0][7]) + 13), *FRAMES[1:]])[0])
    assert picker[6] == SHARDS[0][6]
    assert picker[7] == ("asked", 7)


def test_picker_refuses_what_is_not_there() -> None:
    picker = Picked()
    with pytest.raises(IndexError, match="no such shard"):
        picker.set_table(0, None)
    with pytest.raises(TypeError, match="expected a RecordPicker"):
        _native.RecordPicker.set_starts(5, [0])  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="_get"):
        _native.RecordPicker()[0]
