"""Values of a feature as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrkit.codec.columns import ABSENT, PRESENT, BytesColumn
from tfrkit.orders.value_codes import code_values, encode_value


@pytest.mark.parametrize(
    "values",
    [
        np.array([7, -1, 7, 3]),
        np.array([7, 1, 7, 3], np.uint8),
        [7, -1, 7, 3],
        np.array([b"7", b"", b"7", b"7\x00"], object),
        ["b", "a", "b", "c"],
        np.array(["b", "a", "b", "c"]),
        np.array([b"b", b"a", b"b", b"c"]),
        BytesColumn.from_values([b"b", b"a", b"b", b"c"]),
    ],
)
def test_codes_count_up_by_first_appearance(values: Any) -> None:
    codes, distinct = code_values(values, "label", 4)
    assert codes.tolist() == [0, 1, 0, 2]
    assert distinct == [values[number] for number in (0, 1, 3)]


def test_booleans_are_integers() -> None:
    assert code_values(np.array([True, False, True]), "label", 3)[0].tolist() == [0, 1, 0]


def test_no_values_have_no_codes() -> None:
    codes, distinct = code_values(np.zeros(0, np.int64), "label", 0)
    assert len(codes) == 0 and distinct == []
    codes, distinct = code_values([], "label", 0)
    assert len(codes) == 0 and distinct == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1.0, 2.0]), r"^label expected integers, bytes or str, got an array of float64$"),
        ([1, 2.0], r"^label expected integers, bytes or str, got float - at record 1$"),
        ([b"a", None], r"^label expected integers, bytes or str, got NoneType - at record 1$"),
        ([np.zeros(2), np.zeros(2)], r"^label expected integers, bytes or str, got ndarray - at record 0$"),
        ([5, "5"], r"^label expected values of one kind, got integers and str$"),
        ([b"5", "5"], r"^label expected values of one kind, got bytes and str$"),
    ],
)
def test_other_kinds_of_values_are_refused(values: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        code_values(values, "label", 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], r"^expected one group per record, got 3 for 2 records$"),
        (np.zeros((2, 3), np.int64), r"^expected one group per record, got an array of shape \(2, 3\)$"),
        (
            BytesColumn(np.zeros(0, np.uint8), np.zeros(3, np.int64), np.array([PRESENT, ABSENT], np.uint8)),
            r"^group is missing in 1 of 2 records - at record 1$",
        ),
    ],
)
def test_missing_or_many_values_are_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        code_values(values, "group", 2)


def test_keys_of_any_kind_are_the_bytes_of_their_text() -> None:
    assert encode_value(5) == encode_value("5") == encode_value(b"5") == b"5"
    assert encode_value(-(2**63)) == b"-9223372036854775808"
    assert encode_value(np.int64(3)) == b"3"
    assert encode_value(True) == b"1"
    assert encode_value("é") == b"\xc3\xa9"
    assert encode_value(b"\x00\xff") == b"\x00\xff"
