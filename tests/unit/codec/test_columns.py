from __future__ import annotations

import numpy as np
import pytest

from tfrkit.codec.columns import ABSENT, PRESENT, UNSET, BytesColumn, Ragged


@pytest.fixture
def column() -> BytesColumn:
    return BytesColumn.from_values([b"ab", b"", "\u00e9", b"\0c"])


def states(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)


def test_bytes_column_acts_as_a_sequence(column: BytesColumn) -> None:
    assert len(column) == 4
    assert column[0] == b"ab"
    assert column[2] == b"\xc3\xa9"
    assert column[-1] == b"\0c"
    assert list(column) == [b"ab", b"", b"\xc3\xa9", b"\0c"]
    assert b"" in column
    assert column.index(b"\0c") == 3


@pytest.mark.parametrize("index", [4, -5, 1 << 40])
def test_bytes_column_row_that_is_not_there_raises(column: BytesColumn, index: int) -> None:
    with pytest.raises(IndexError, match="row -?[0-9]+ is out of range, the column has 4 rows"):
        column[index]


@pytest.mark.parametrize(
    "part", [slice(None), slice(1, 3), slice(3, 1), slice(-2, None), slice(None, None, -1), slice(0, 4, 2)]
)
def test_bytes_column_slice_equals_slice_of_list(column: BytesColumn, part: slice) -> None:
    assert list(column[part]) == list(column)[part]
    assert len(column[part]) == len(list(column)[part])


@pytest.mark.parametrize("part", [slice(1, 3), slice(0, 4, 2), slice(None, None, -1), slice(3, 1)])
def test_bytes_column_slice_keeps_presence(column: BytesColumn, part: slice) -> None:
    marked = BytesColumn(column.data, column.offsets, states(PRESENT, ABSENT, UNSET, PRESENT))
    presence = marked[part].presence
    assert presence is not None
    assert presence.tolist() == [2, 0, 1, 2][part]


def test_bytes_column_of_a_slice_reads_its_own_values(column: BytesColumn) -> None:
    inner = column[1:][1:]
    assert inner[0] == b"\xc3\xa9"
    assert inner.lengths.tolist() == [2, 2]
    assert repr(inner) == "BytesColumn(2 values, 4 bytes)"


def test_bytes_column_equals_lists_and_columns_of_equal_values(column: BytesColumn) -> None:
    assert column == [b"ab", b"", b"\xc3\xa9", b"\0c"]
    assert column == column[:]
    assert column != [b"ab"]
    assert column != 3


def test_bytes_column_without_values_is_empty() -> None:
    column = BytesColumn.from_values([])
    assert len(column) == 0
    assert list(column) == []
    assert list(column[::-1]) == []


def test_bytes_column_becomes_an_object_array_with_nuls_kept(column: BytesColumn) -> None:
    array = np.asarray(column)
    assert array.dtype == object
    assert array.tolist() == list(column)
    assert np.asarray(BytesColumn.from_values([b"1", b"2"]), "S1").tolist() == [b"1", b"2"]


def test_ragged_acts_as_a_sequence() -> None:
    ragged = Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
    assert [row.tolist() for row in ragged] == [[1, 2], [], [3]]
    assert ragged[-1].tolist() == [3]
    assert len(ragged) == 3
    assert ragged.lengths.tolist() == [2, 0, 1]
    assert repr(ragged) == "Ragged(3 rows, 3 values)"


@pytest.mark.parametrize("index", [3, -4])
def test_ragged_row_that_is_not_there_raises(index: int) -> None:
    with pytest.raises(IndexError, match="row -?[0-9]+ is out of range, the column has 3 rows"):
        Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))[index]


def test_ragged_slice_keeps_values_and_presence() -> None:
    ragged = Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 2, 3]), states(2, 0, 1, 2))
    part = ragged[1:]
    assert [row.tolist() for row in part] == [[], [], [3]]
    assert part.presence is not None
    assert part.presence.tolist() == [0, 1, 2]
    assert len(ragged[3:1]) == 0


def test_ragged_slice_with_a_step_raises() -> None:
    with pytest.raises(ValueError, match="step 1, got 2"):
        Ragged(np.array([1, 2, 3]), np.array([0, 2, 3]))[::2]


def test_ragged_of_bytes_gives_bytes_columns() -> None:
    ragged = Ragged(BytesColumn.from_values([b"a", b"b", b"c"]), np.array([0, 1, 3]))
    assert [list(row) for row in ragged] == [[b"a"], [b"b", b"c"]]


def test_ragged_of_ragged_gives_frames() -> None:
    frames = Ragged(np.arange(5), np.array([0, 2, 3, 5]))
    ragged = Ragged(frames, np.array([0, 1, 3]))
    assert [[frame.tolist() for frame in row] for row in ragged] == [[[0, 1]], [[2], [3, 4]]]


def test_ragged_from_rows_joins_them() -> None:
    ragged = Ragged.from_rows([[1, 2], [], [3]])
    assert ragged.values.tolist() == [1, 2, 3]
    assert ragged.row_splits.tolist() == [0, 2, 2, 3]
    assert len(Ragged.from_rows([])) == 0
    assert Ragged.from_rows([[0.5]], np.float32).values.dtype == np.float32
