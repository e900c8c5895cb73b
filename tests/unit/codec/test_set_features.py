from __future__ import annotations

import pytest

from tfrkit.codec.edit_record import encode_feature
from tfrkit.codec.set_features import set_features
from tfrkit.errors import CodecError
from tfrkit.testing.reference import encode_example, encode_sequence_example

RECORD = encode_example({b"a": ("int64", [1]), b"image": ("bytes", [b"x" * 300]), b"z": ("float", [0.5])})


def test_other_features_keep_their_bytes() -> None:
    changed = set_features(RECORD, {"a": encode_feature("int64", [-7, 300])})
    assert changed == encode_example(
        {b"a": ("int64", [-7, 300]), b"image": ("bytes", [b"x" * 300]), b"z": ("float", [0.5])}
    )


def test_value_that_is_there_keeps_its_encoding() -> None:
    # 3 as a list that is not packed: field 3, then 08 03.
    loose = b"\n\x0f\n\x0d\n\x05label\x12\x04\x1a\x02\x08\x03"
    assert set_features(loose, {"label": encode_feature("int64", [3])}) == loose
    assert set_features(loose, {"label": encode_feature("int64", [4])}) == encode_example({b"label": ("int64", [4])})


def test_negative_zero_is_another_value_than_zero() -> None:
    record = encode_example({b"x": ("float", [0.0])})
    assert set_features(record, {"x": encode_feature("float", [-0.0])}) == encode_example({b"x": ("float", [-0.0])})


def test_absent_feature_is_added_in_order_and_none_is_taken_away() -> None:
    value = encode_feature("bytes", [b"new"])
    with_b = {
        b"a": ("int64", [1]),
        b"b": ("bytes", [b"new"]),
        b"image": ("bytes", [b"x" * 300]),
        b"z": ("float", [0.5]),
    }
    added = set_features(RECORD, {"b": value})
    assert added == encode_example(with_b)
    assert set_features(added, {"b": None}) == RECORD
    assert set_features(RECORD, {"b": None}) == RECORD
    assert set_features(b"", {"b": value}) == encode_example({b"b": ("bytes", [b"new"])})


def test_name_that_is_there_twice_is_set_once() -> None:
    once = encode_example({b"a": ("int64", [1])})
    assert (
        set_features(once + once, {"a": encode_feature("int64", [5])})
        == encode_example({b"a": ("int64", [5])}) + b"\n\0"
    )


def test_context_of_a_sequence_is_set_and_its_frames_stay() -> None:
    frames = {b"tokens": [("int64", [1, 2]), ("int64", [3])]}
    record = encode_sequence_example({b"label": ("int64", [1])}, frames)
    changed = set_features(record, {"label": encode_feature("int64", [2])})
    assert changed == encode_sequence_example({b"label": ("int64", [2])}, frames)


def test_unknown_fields_stay() -> None:
    record = RECORD + b"\x48\x05"
    assert set_features(record, {"a": encode_feature("int64", [9])}).endswith(b"\x48\x05")


def test_record_that_is_no_example_is_refused() -> None:
    with pytest.raises(CodecError, match="expected an Example, got another record"):
        set_features(b"\xff\xff raw", {"a": b""})
