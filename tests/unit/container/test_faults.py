from __future__ import annotations

import pytest

from tfrkit import _native
from tfrkit.container.faults import describe_fault, fault_to_error
from tfrkit.errors import (
    CorruptRecordError,
    FeatureKindError,
    MissingFeatureError,
    ShapeError,
    TfrkitError,
    TruncatedShardError,
    WireError,
)
from tfrkit.testing.corruption import flip, make_frame, truncate
from tfrkit.testing.reference import Feature, encode_example

FRAME = make_frame(b"abc")


def frame_fault(data: bytes) -> _native.Fault:
    _, _, fault = _native.check_frames(data, 0, len(data), 10, "all")
    assert fault is not None
    return fault


def record_fault(feature: Feature, kind: str, length: int) -> _native.Fault:
    builder = _native.ColumnBuilder("example", [(b"x", kind, False, length)])
    fault = builder.append_record(encode_example({b"x": feature}))
    assert fault is not None
    return fault


def to_error(fault: _native.Fault, *columns: str) -> TfrkitError:
    return fault_to_error(fault, shard="train.tfrecord", record=3, offset=88, columns=columns)


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (truncate(FRAME, 11), TruncatedShardError, "shard ends inside a frame, expected a header of 12 bytes, got 11"),
        (
            truncate(FRAME, 17),
            TruncatedShardError,
            "shard ends inside a frame, expected a payload checksum of 4 bytes, got 2",
        ),
        (truncate(FRAME, 13), TruncatedShardError, "shard ends inside a frame, expected 3 bytes of payload, got 0"),
        (flip(FRAME, 0), CorruptRecordError, "length checksum mismatch, stored 0x[0-9a-f]{8}, computed 0x[0-9a-f]{8}"),
        (flip(FRAME, 13), CorruptRecordError, "payload checksum mismatch, stored 0x21f1576e, computed 0x[0-9a-f]{8}"),
        (
            make_frame(b"abc", length=(1 << 64) - 1),
            TruncatedShardError,
            "expected 18446744073709551615 bytes of payload",
        ),
    ],
)
def test_damaged_frame_says_stored_against_expected(data: bytes, kind: type[TfrkitError], message: str) -> None:
    with pytest.raises(
        kind, match=rf"{message}.* - at train.tfrecord, record 3, byte 88\n  list all damage: tfr verify"
    ):
        raise to_error(frame_fault(data))


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (record_fault(("float", [1.0]), "int64", 1), FeatureKindError, "feature 'height' expected int64, got float"),
        (record_fault(("bytes", [b""]), "float", -1), FeatureKindError, "feature 'height' expected float, got bytes"),
        (record_fault(("int64", [1, 2]), "int64", 3), ShapeError, "feature 'height' expected 3 values, got 2"),
        (record_fault(("int64", []), "int64", 1), ShapeError, "feature 'height' expected 1 values, got 0"),
    ],
)
def test_record_that_does_not_fit_names_its_feature(
    fault: _native.Fault, kind: type[TfrkitError], message: str
) -> None:
    with pytest.raises(kind, match=rf"^{message} - at train.tfrecord, record 3, byte 88\n"):
        raise to_error(fault, "height")


def test_missing_feature_names_it() -> None:
    builder = _native.ColumnBuilder("example", [(b"x", "int64", False, 1)])
    fault = builder.append_record(encode_example({b"y": ("int64", [1])}))
    assert fault is not None
    with pytest.raises(MissingFeatureError, match="feature 'height' expected in every record, got none"):
        raise to_error(fault, "height")


def test_bytes_that_are_no_message_are_a_wire_error() -> None:
    builder = _native.ColumnBuilder("example", [(b"x", "int64", False, 1)])
    fault = builder.append_record(b"\xff\xff")
    assert fault is not None
    with pytest.raises(WireError, match="record is not a well-formed protobuf message of its kind"):
        raise to_error(fault)


def test_facts_are_attributes() -> None:
    error = to_error(frame_fault(flip(FRAME, 0)))
    assert (error.shard, error.record, error.offset) == ("train.tfrecord", 3, 88)


def test_feature_without_a_known_name_is_still_described() -> None:
    assert describe_fault(record_fault(("int64", [1, 2]), "int64", 3)) == "feature '?' expected 3 values, got 2"


def test_name_of_odd_characters_stays_on_one_line() -> None:
    text = describe_fault(record_fault(("int64", [1, 2]), "int64", 3), ["a\nb\0\udcff"])
    assert "\n" not in text
    assert text.isprintable()


def test_name_of_many_characters_is_shortened() -> None:
    assert len(describe_fault(record_fault(("int64", [1, 2]), "int64", 3), ["n" * 10_000])) < 200
