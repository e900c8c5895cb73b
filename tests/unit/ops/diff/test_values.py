from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from tfrkit.features.schema import Schema
from tfrkit.ops.diff.values import compare_schemas, make_comparison
from tfrkit.testing.reference import encode_example


def note_of(kind: str, a: list[object], b: list[object]) -> str:
    compare = make_comparison("example", "example", [])
    changes, is_told = compare(encode_example({b"v": (kind, a)}), encode_example({b"v": (kind, b)}))
    assert not is_told
    (change,) = changes
    return change.note


def encode(pixels: np.ndarray, format: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format=format, **options)
    return file.getvalue()


GRAY = np.arange(48, dtype=np.uint8).reshape(6, 8)
COLOUR = np.dstack([GRAY, GRAY + 1, GRAY + 2])


@pytest.mark.parametrize("pixels", [GRAY, COLOUR, GRAY.astype(np.uint16) * 900])
def test_images_of_other_bytes_are_compared_by_pixels(pixels: np.ndarray) -> None:
    packed, loose = encode(pixels, compress_level=9), encode(pixels, compress_level=0)
    assert packed != loose
    assert note_of("bytes", [packed], [loose]) == "equal pixels"
    changed = pixels.copy()
    changed[2, 3] += 7
    assert note_of("bytes", [packed], [encode(changed)]) == "2.08% of pixels differ, by at most 7"


def test_size_differences_and_damaged_images_are_reported() -> None:
    assert note_of("bytes", [encode(COLOUR)], [encode(COLOUR[:3])]) == "pixels 8x6x3 uint8 against 8x3x3 uint8"
    assert note_of("bytes", [encode(COLOUR)], [encode(GRAY)]) == "pixels 8x6x3 uint8 against 8x6x1 uint8"
    assert note_of("bytes", [encode(COLOUR)], [encode(COLOUR)[:50]]).startswith("not decoded: ")
    assert note_of("bytes", [encode(COLOUR)], [b"text"]) == ""


def test_lists_of_numbers_report_the_difference() -> None:
    assert note_of("int64", [1, 2, 3], [1, 5, 0]) == "2 of 3 values differ, by at most 3"
    assert note_of("float", [0.0, 1.0], [-0.0, 1.0]) == "1 of 2 values differ, by at most 0"
    assert note_of("float", [1.0], [2.0]) == ""
    assert note_of("int64", [1], [1, 2]) == "1 against 2 values"
    assert note_of("bytes", [b"a", b"b"], [b"a", b"c"]) == ""
    assert note_of("int64", [-(1 << 63), 0], [(1 << 63) - 1, 0]) == "1 of 2 values differ, by at most 1.84467e+19"


def test_added_removed_and_unset_features_are_reported() -> None:
    compare = make_comparison("example", "example", [])
    a = encode_example({b"gone": ("int64", [1]), b"same": ("int64", [2]), b"set": ("int64", [3])})
    b = encode_example({b"new": ("bytes", [b"x"]), b"same": ("int64", [2]), b"set": ("int64", [])})
    changes, _ = compare(a, b)
    assert {(change.feature, change.change, change.a, change.b) for change in changes} == {
        ("gone", "removed", "1", None),
        ("new", "added", None, '"x"'),
        ("set", "changed", "3", "[]"),
    }


def test_schemas_are_compared_by_names_and_kinds_only() -> None:
    a = Schema({"x": ("int64", (3,)), "y": "float"})
    assert compare_schemas(a, Schema({"x": ("int64", (None,)), "y": "float"})) == []
    assert compare_schemas(a, Schema()) == []
    (change,) = compare_schemas(a, Schema({"x": "int64"}))
    assert (change.feature, change.change, change.a, change.b) == ("y", "removed", "float", None)
    (change,) = compare_schemas(a, Schema({"x": "int64", "y": "float"}, feature_lists={"f": "int64"}))
    assert (change.feature, change.a, change.b) == ("", "example records", "sequence_example records")
