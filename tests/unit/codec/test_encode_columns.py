"""Columns and rows must give the same bytes: the row writer is the slow twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrkit import BytesColumn, Ragged, Writer
from tfrkit.codec.coerce import Coercer, Floats
from tfrkit.codec.encode_columns import check_columns, encode_columns
from tfrkit.errors import ShapeError

DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool complex64 complex128".split()
ABSENT = object()


@pytest.fixture
def check(tmp_path: Path) -> Any:
    def check(column: Any, values: Sequence[Any], *, floats: Floats = "ask") -> None:
        by_column, by_row = tmp_path / "columns", tmp_path / "rows"
        with Writer(by_column, floats=floats) as writer:
            writer.write_columns({"x": column, "n": np.arange(len(values))})
        with Writer(by_row, floats=floats) as writer:
            for number, value in enumerate(values):
                writer.write({"n": number} if value is ABSENT else {"n": number, "x": value})
        assert by_column.read_bytes() == by_row.read_bytes()

    return check


def states(*values: int) -> np.ndarray:
    return np.array(values, np.uint8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3), (6, 1), (0,), (0, 3), (3, 0), (2, 0, 3)])
def test_dense_column_equals_its_rows(check: Any, dtype: str, shape: tuple[int, ...]) -> None:
    column = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    for floats in ("ask", "float32", "float64"):
        check(column, list(column), floats=floats)


@pytest.mark.parametrize(
    "column", [np.arange(12).reshape(3, 4)[:, ::2], np.arange(12).reshape(3, 4).T, np.arange(6)[::-2]]
)
def test_column_that_is_not_contiguous_equals_its_rows(check: Any, column: np.ndarray) -> None:
    check(column, list(column))


@pytest.mark.parametrize(
    "column", [np.arange(3, dtype=">i8"), np.arange(4, dtype=">i4").reshape(2, 2), np.arange(3, dtype=">f4")]
)
def test_big_endian_column_equals_its_rows(check: Any, column: np.ndarray) -> None:
    check(column, list(column))


@pytest.mark.parametrize(
    "column",
    [
        [1, 2],
        (1, 2),
        range(4),
        [0.5, 1],
        [None, None],
        [None, 3],
        [b"a", None],
        [None, 0.5],
        [[1], [2, 3]],
        [[1], []],
        [[b"a"], [b"b", "c"]],
        ["a", b"b"],
        [bytearray(b"x"), memoryview(b"y")],
        [True, False],
        [np.arange(3, dtype=np.uint8), np.arange(2, dtype=np.uint8)],
        [[[1, 2]], [[3, 4], [5, 6]]],
        np.array([b"a\0", "b"], object),
        np.array([None, b"b"], object),
        np.array([b"ab", b"c"]),
        np.array(["ab", "c"]),
        np.array([["ab", "c"]]),
    ],
)
def test_column_of_values_equals_its_rows(check: Any, column: Any) -> None:
    check(column, list(column))


def test_bytes_column_equals_its_rows(check: Any) -> None:
    check(BytesColumn.from_values([b"a", b"", b"cc\0"]), [b"a", b"", b"cc\0"])
    check(BytesColumn.from_values([b"a", b"b", b"c"])[1:], [b"b", b"c"])
    check(BytesColumn.from_values([]), [])


def test_bytes_column_with_presence_equals_its_rows(check: Any) -> None:
    column = BytesColumn.from_values([b"a", b"", b""])
    column.presence = states(2, 0, 1)
    check(column, [b"a", ABSENT, None])


def test_bytes_column_of_many_rows_keeps_presence(check: Any) -> None:
    num_rows = 40_000  # more than are encoded in one run
    column = BytesColumn.from_values([b"x"] * num_rows)
    column.presence = np.tile(states(2, 0, 1, 2), num_rows // 4)
    check(column, [b"x", ABSENT, None, b"x"] * (num_rows // 4))


def test_ragged_of_many_rows_keeps_presence(check: Any) -> None:
    num_rows = 40_000
    splits = np.concatenate([[0], np.cumsum(np.tile([1, 0, 0, 0], num_rows // 4))])
    column = Ragged(np.zeros(num_rows // 4, np.int64), splits, np.tile(states(2, 0, 1, 2), num_rows // 4))
    check(column, [np.zeros(1, np.int64), ABSENT, None, np.zeros(0, np.int64)] * (num_rows // 4))


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8", "float64", "int32"])
def test_ragged_with_presence_equals_its_rows(check: Any, dtype: str) -> None:
    values = np.arange(3).astype(dtype)
    column = Ragged(values, np.array([0, 2, 2, 2, 2, 3]), states(2, 0, 1, 2, 2))
    check(column, [values[:2], ABSENT, None, values[:0], values[2:]])


def test_ragged_of_bytes_equals_its_rows(check: Any) -> None:
    column = Ragged(BytesColumn.from_values([b"a", b"", b"cc"]), np.array([0, 2, 2, 3]))
    check(column, [[b"a", b""], np.array([], object), [b"cc"]])


def test_ragged_that_starts_later_equals_its_rows(check: Any) -> None:
    check(Ragged(np.arange(6), np.array([0, 2, 3, 6]))[1:], [np.array([2]), np.array([3, 4, 5])])


def test_ragged_of_rows_with_more_dimensions_equals_its_rows(check: Any) -> None:
    values = np.arange(6).reshape(3, 2)
    check(Ragged(values, np.array([0, 2, 3])), [values[:2], values[2:]])


def test_values_of_an_absent_row_are_not_written(check: Any) -> None:
    check(Ragged(np.arange(3), np.array([0, 2, 3]), states(0, 2)), [ABSENT, np.array([2])])


@pytest.mark.parametrize("floats", ["float32", "float64"])
@pytest.mark.parametrize(
    "column", [np.array([0.1, 0.5]), [0.1, 0.5], [0.5, 0.1], [[0.5], [0.1]], np.array([[0.1], [0.5]])]
)
def test_choice_of_floats_holds_for_columns_as_for_rows(check: Any, column: Any, floats: Floats) -> None:
    check(column, list(column), floats=floats)


# --- what is refused ----------------------------------------------------------------------------------


def encode(**columns: Any) -> tuple[list[Any], int]:
    return encode_columns(columns, coercer=Coercer(), floats="ask")


def at_odd_addresses(values: Sequence[Any], dtype: str) -> np.ndarray:
    array = np.array(values, dtype)
    moved = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(dtype).reshape(array.shape)
    assert not moved.flags.aligned
    return moved


def test_numbers_at_odd_addresses_are_copied_and_others_are_not(check: Any) -> None:
    moved = at_odd_addresses([[1, -2], [3, 4]], "<i8")
    check(moved, list(moved))
    check(at_odd_addresses([0.5, 2.0], "<f4"), [0.5, 2.0])
    check(Ragged(at_odd_addresses([1, 2, 3], "<i8"), at_odd_addresses([0, 1, 3], "<i8")), [[1], [2, 3]])
    splits = at_odd_addresses([0, 2, 4], "<i8")
    offsets = at_odd_addresses([0, 1, 3], "<i8")
    encoded, _ = encode(
        a=moved, b=Ragged(moved.reshape(-1), splits), c=BytesColumn(np.frombuffer(b"abc", np.uint8), offsets)
    )
    arrays = [part for column in encoded for part in column if isinstance(part, np.ndarray)]
    assert len(arrays) == 5
    assert all(part.flags.aligned for part in arrays)
    plain = np.array([[1, 2]])
    assert np.shares_memory(encode(a=plain)[0][0][2], plain)


def test_columns_are_sorted_by_the_bytes_of_their_names() -> None:
    encoded, num_rows = encode_columns({"b": [1], "\u00e9": [1], "a": [1]}, coercer=Coercer(), floats="ask")
    assert [column[0] for column in encoded] == [b"a", b"b", b"\xc3\xa9"]
    assert num_rows == 1


def test_columns_of_different_lengths_raise() -> None:
    with pytest.raises(ShapeError, match="columns expected one length, got 1 rows of 'a' and 2 of 'b'"):
        encode(a=[1], b=[1, 2])


@pytest.mark.parametrize("column", [5, b"abc", "abc", None, np.array(5), (item for item in [1]), {"y": [1]}, {1, 2}])
def test_value_that_is_no_column_raises(column: Any) -> None:
    with pytest.raises(TypeError, match=r"feature 'a' expected a column .*, got "):
        encode(a=column)


@pytest.mark.parametrize("splits", [[0, 2, 5], [0, 2, 1], [-1, 2, 3], []])
def test_row_splits_that_do_not_fit_raise(splits: list[int]) -> None:
    with pytest.raises(ShapeError, match="feature 'a' expected row_splits that rise from 0 to at most 3"):
        encode(a=Ragged(np.arange(3), np.array(splits, np.int64)))


@pytest.mark.parametrize("offsets", [[0, 2, 5], [0, 2, 1], [-1, 2]])
def test_byte_offsets_that_do_not_fit_raise(offsets: list[int]) -> None:
    with pytest.raises(ShapeError, match="feature 'a' expected offsets that rise from 0 to at most 3"):
        encode(a=BytesColumn(np.zeros(3, np.uint8), np.array(offsets, np.int64)))


@pytest.mark.parametrize("presence", [[2], [2, 2, 2, 2], []])
def test_presence_of_another_length_raises(presence: list[int]) -> None:
    # The core reads one state per row: a short array would be read past its end.
    with pytest.raises(ShapeError, match=f"feature 'a' expected presence of 3 rows.*, got {len(presence)}"):
        encode(a=Ragged(np.arange(3), np.array([0, 2, 2, 3]), states(*presence)))
    column = BytesColumn.from_values([b"a", b"b", b"c"])
    column.presence = states(*presence)
    with pytest.raises(ShapeError, match=f"feature 'a' expected presence of 3 rows.*, got {len(presence)}"):
        encode(a=column)


def test_presence_that_means_nothing_raises() -> None:
    with pytest.raises(ShapeError, match="feature 'a' expected presence of 2 rows, 0, 1 or 2 each"):
        encode(a=Ragged(np.arange(3), np.array([0, 2, 3]), states(2, 7)))


def test_masked_column_raises_where_a_value_is_masked() -> None:
    with pytest.raises((TypeError, ValueError), match="feature 'a' .*[mM]ask"):
        encode(a=np.ma.array([1, 2], mask=[False, True]))


def test_error_names_the_row() -> None:
    with pytest.raises(TypeError, match="feature 'a' .* - at row 2"):
        encode(a=[1, 2, object()])


@pytest.mark.parametrize("column", [np.array([1, (1 << 64) - 1], np.uint64), [1, 1 << 63]])
def test_integer_beyond_int64_raises(column: Any) -> None:
    with pytest.raises(OverflowError, match="feature 'a' expected a signed 64-bit integer"):
        encode(a=column)


@pytest.mark.parametrize("column", [np.array([0.5, 0.1]), [0.5, 0.1]])
def test_float_that_would_round_raises(column: Any) -> None:
    with pytest.raises(ValueError, match="feature 'a' would round 0.1 to"):
        encode(a=column)


class Lazy:
    def collect(self) -> None: ...


@pytest.mark.parametrize(("columns", "has_hint"), [(Lazy(), True), ([1], False)])
def test_rows_that_are_not_computed_are_refused_with_a_hint(columns: object, has_hint: bool) -> None:
    with pytest.raises(TypeError, match="columns expected a dict of columns, got") as caught:
        check_columns(columns)
    assert ("collect() them first" in str(caught.value)) == has_hint
