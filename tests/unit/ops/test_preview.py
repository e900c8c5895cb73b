from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tfrkit.ops.preview import MAX_TEXT, preview_bytes, preview_row, preview_value, row_to_json, value_to_json

PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\xf4\x00\x00\x01\x77\x08\x02\x00\x00\x00"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "no value"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (0.5, "0.5"),
        (float(np.float32(0.1)), "0.1"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (b"", '""'),
        (b"text", '"text"'),
        ("grüße".encode(), '"grüße"'),
        (b"\xff\x00", "ff 00 (2 bytes)"),
        (bytes(range(200, 230)), "c8 c9 ca cb cc cd ce cf d0 d1 d2 d3 … (30 bytes)"),
        (bytes(5), "00 00 00 00 00 (5 bytes)"),
        ([], "[]"),
        ([b"a", b"\xff"], '["a", ff (1 bytes)]'),
        (np.array([1, 2, 3]), "[1, 2, 3]"),
        (np.arange(8), "[0, 1, 2, 3, 4, 5, 6, 7]"),
        (np.arange(1000), "[0, 1, 2, 3, 4, 5, 6, 7, … 1,000 values]"),
        (np.array([0.1], np.float32), "[0.1]"),
        (np.array([[1, 2]], np.uint8), "uint8 1x2 [1, 2]"),
        (np.array(7, np.uint16), "uint16 scalar [7]"),
        (np.array([True, False]), "bool 2 [True, False]"),
    ],
)
def test_preview_value_is_short_and_exact(value: object, text: str) -> None:
    assert preview_value(value) == text


def test_preview_image_is_format_size_and_bytes() -> None:
    assert preview_bytes(PNG_HEAD + bytes(43112 - len(PNG_HEAD))).startswith("PNG 500x375")
    assert preview_bytes(PNG_HEAD + bytes(43112 - len(PNG_HEAD))).endswith("43,112 bytes")


def test_preview_long_text_is_cut_with_its_size() -> None:
    assert preview_bytes("é".encode() * 1000) == f'"{"é" * MAX_TEXT}…" (2,000 bytes)'


@pytest.mark.parametrize("shift", range(4))
def test_preview_text_cut_inside_a_character_is_still_text(shift: int) -> None:
    assert preview_bytes(b"x" * shift + "漢".encode() * 200_000).startswith('"')


def test_preview_row_of_sequence_names_both_parts() -> None:
    row = {"context": {"id": 3}, "feature_lists": {"frame": [np.array([1, 2]), np.array([3])]}}
    assert preview_row(row) == {"context.id": "3", "feature_lists.frame": "[[1, 2], [3]]"}


def test_preview_row_with_features_that_happen_to_be_called_so_is_an_example() -> None:
    assert preview_row({"context": 1, "feature_lists": 2}) == {"context": "1", "feature_lists": "2"}


def test_preview_row_of_raw_record() -> None:
    assert preview_row(b"hello") == {"record": '"hello"'}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, None),
        (2**63 - 1, 2**63 - 1),
        (1.5, 1.5),
        (math.nan, {"float": "nan"}),
        (math.inf, {"float": "inf"}),
        (-math.inf, {"float": "-inf"}),
        (b"text", "text"),
        (b"\xff", {"base64": "/w=="}),
        ([b"a", b"\xff"], ["a", {"base64": "/w=="}]),
        (np.array([], np.int64), []),
        (np.array([1.5, math.inf], np.float32), [1.5, {"float": "inf"}]),
        (np.array([[1], [2]], np.uint8), {"tensor": {"dtype": "uint8", "shape": [2, 1], "values": [1, 2]}}),
        (np.array(True), {"tensor": {"dtype": "bool", "shape": [], "values": [True]}}),
        (np.array([1 + 2j]), {"tensor": {"dtype": "complex128", "shape": [1], "values": [{"complex": [1.0, 2.0]}]}}),
    ],
)
def test_value_to_json_is_json(value: object, wanted: object) -> None:
    found = value_to_json(value)
    assert found == wanted
    json.dumps(found, allow_nan=False)


def test_row_to_json_of_sequence_and_raw() -> None:
    row = {"context": {"id": 3}, "feature_lists": {"frame": [np.array([1, 2]), np.array([], np.int64)]}}
    assert row_to_json(row) == {"context": {"id": 3}, "feature_lists": {"frame": [[1, 2], []]}}
    row = {"context": {}, "feature_lists": {"frame": np.array([[1, 2], [3, 4]]), "one": np.array([5, 6])}}
    assert row_to_json(row) == {"context": {}, "feature_lists": {"frame": [[1, 2], [3, 4]], "one": [5, 6]}}
    assert row_to_json(b"\xff") == {"record": {"base64": "/w=="}}
