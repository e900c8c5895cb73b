from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from tfrkit.ops.query.values import cell_to_json, cell_to_text, is_number, name_uniquely


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (float("nan"), {"float": "nan"}),
        ("x", "x"),
        (b"\xff", {"base64": "/w=="}),
        (Decimal("2.50"), 2.5),
        (Decimal("7"), 7),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2, 3), "2020-01-02T03:00:00"),
        (datetime.timedelta(hours=1), "1:00:00"),
        ((1, [b"a", None]), [1, ["a", None]]),
        ({"a": {"b": (1,)}, 2: 3}, {"a": {"b": [1]}, "2": 3}),
    ],
)
def test_values_have_a_json_form(value: Any, json: Any) -> None:
    assert cell_to_json(value) == json


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (0.5, "0.5"),
        ("cat", "cat"),
        ("x" * 80, "x" * 72 + "…"),
        (b"\x00\xff", "00 ff (2 bytes)"),
        ([1, 2], "[1, 2]"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, 6, 7, … 9 values]"),
        ([[1], [2, 3]], "[[1], [2, 3]]"),
        ([[n] for n in range(6)], "[[0], [1], [2], [3], … 6 values]"),
        ({"a": 1, "b": "x"}, "{a: 1, b: x}"),
    ],
)
def test_values_have_a_short_text(value: Any, text: str) -> None:
    assert cell_to_text(value) == text


def test_numbers_are_distinguished_from_other_types() -> None:
    kinds = [
        "BIGINT",
        "UTINYINT",
        "DOUBLE",
        "DECIMAL(2,1)",
        "VARCHAR",
        "BIGINT[]",
        "FLOAT[3]",
        "STRUCT(a INTEGER)",
        "INTERVAL",
    ]
    assert [kind for kind in kinds if is_number(kind)] == ["BIGINT", "UTINYINT", "DOUBLE", "DECIMAL(2,1)"]


def test_names_that_come_twice_get_a_number_that_is_free() -> None:
    assert name_uniquely(["a", "a", "a_1", "a"]) == ["a", "a_2", "a_1", "a_3"]
