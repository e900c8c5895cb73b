"""Messages: what goes in comes out, presence is kept, wrong values are refused."""

from __future__ import annotations

import copy
import math
import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrkit.compat import tensorflow as tf
from tfrkit.errors import WireError
from tfrkit.testing import reference, strategies

LISTS = {"bytes": "bytes_list", "float": "float_list", "int64": "int64_list"}


def to_feature(parsed: reference.Feature) -> Any:
    return tf.train.Feature() if parsed is None else tf.train.Feature(**{LISTS[parsed[0]]: {"value": parsed[1]}})


def from_feature(feature: Any) -> Any:
    name = feature.WhichOneof("kind")
    if name is None:
        return None
    kind = next(kind for kind, field in LISTS.items() if field == name)
    return kind, bits(kind, list(getattr(feature, name).value))


def bits(kind: str, values: list[Any]) -> list[Any]:
    return [struct.pack("<f", value) for value in values] if kind == "float" else values


def plain(parsed: reference.Feature) -> Any:
    return None if parsed is None else (parsed[0], bits(parsed[0], list(parsed[1])))


@given(strategies.examples())
def test_example_round_trips_through_the_reference_codec(features: reference.Features) -> None:
    message = tf.train.Example(
        features=tf.train.Features(feature={name.decode(): to_feature(value) for name, value in features.items()})
    )
    data = message.SerializeToString()
    assert data == reference.encode_example(features)
    parsed = tf.train.Example.FromString(data)
    assert {name.encode(): from_feature(value) for name, value in parsed.features.feature.items()} == {
        name: plain(value) for name, value in features.items()
    }
    assert parsed == message
    assert message.ByteSize() == len(data)


@given(strategies.sequence_examples())
def test_sequence_example_round_trips_through_the_reference_codec(parsed: Any) -> None:
    context, lists = parsed
    message = tf.train.SequenceExample(
        context={"feature": {name.decode(): to_feature(value) for name, value in context.items()}},
        feature_lists={
            "feature_list": {
                name.decode(): {"feature": [to_feature(frame) for frame in frames]} for name, frames in lists.items()
            }
        },
    )
    again = tf.train.SequenceExample.FromString(message.SerializeToString())
    assert again == message
    found_context, found_lists = reference.parse_sequence_example(message.SerializeToString())
    assert {name: plain(value) for name, value in found_context.items()} == {
        name: plain(value) for name, value in context.items()
    }
    assert {name: [plain(frame) for frame in frames] for name, frames in found_lists.items()} == {
        name: [plain(frame) for frame in frames] for name, frames in lists.items()
    }


@given(st.one_of(strategies.odd_examples(), strategies.damaged(strategies.odd_examples())))
def test_parse_of_unusual_bytes_agrees_with_the_reference_codec(record: bytes) -> None:
    try:
        expected = reference.parse_example(record)
        for name in expected:
            name.decode()
    except (reference.ReferenceFault, UnicodeDecodeError):
        with pytest.raises(WireError, match="expected a serialized Example"):
            tf.train.Example.FromString(record)
        return
    parsed = tf.train.Example.FromString(record)
    assert {name.encode(): from_feature(value) for name, value in parsed.features.feature.items()} == {
        name: plain(value) for name, value in expected.items()
    }


@given(strategies.odd_sequence_examples())
def test_parse_of_odd_sequences_agrees_with_the_reference_codec(record: bytes) -> None:
    context, lists = reference.parse_sequence_example(record)
    parsed = tf.train.SequenceExample.FromString(record)
    assert {name: from_feature(value) for name, value in parsed.context.feature.items()} == {
        name.decode(): plain(value) for name, value in context.items()
    }
    assert {
        name: [from_feature(frame) for frame in frames.feature]
        for name, frames in parsed.feature_lists.feature_list.items()
    } == {name.decode(): [plain(frame) for frame in frames] for name, frames in lists.items()}


@pytest.mark.parametrize(
    ("message", "data"),
    [
        (tf.train.Int64List(value=[1, 300]), b"\x0a\x03\x01\xac\x02"),
        (tf.train.Int64List(), b""),
        (tf.train.FloatList(value=[1.0]), b"\x0a\x04\x00\x00\x80\x3f"),
        (tf.train.BytesList(value=[b"a", b""]), b"\x0a\x01a\x0a\x00"),
        (tf.train.Feature(), b""),
        (tf.train.Feature(int64_list={}), b"\x1a\x00"),
        (tf.train.Feature(float_list={}), b"\x12\x00"),
        (tf.train.Feature(bytes_list={"value": [b"a"]}), b"\x0a\x03\x0a\x01a"),
        (tf.train.Features(), b""),
        (tf.train.Features(feature={"a": {}}), b"\x0a\x05\x0a\x01a\x12\x00"),
        (tf.train.Example(), b""),
        (tf.train.Example(features={}), b"\x0a\x00"),
        (tf.train.FeatureList(), b""),
        (tf.train.FeatureList(feature=[{}, {"int64_list": {}}]), b"\x0a\x00\x0a\x02\x1a\x00"),
        (tf.train.FeatureLists(feature_list={"a": {}}), b"\x0a\x05\x0a\x01a\x12\x00"),
        (tf.train.SequenceExample(), b""),
        (tf.train.SequenceExample(context={}), b"\x0a\x00"),
        (tf.train.SequenceExample(feature_lists={}), b"\x12\x00"),
    ],
    ids=lambda value: value.hex() if isinstance(value, bytes) else type(value).__name__,
)
def test_every_message_has_bytes_and_is_made_of_them(message: Any, data: bytes) -> None:
    assert message.SerializeToString() == data
    assert message.SerializeToString(deterministic=True) == data
    assert type(message).FromString(data) == message
    assert type(message).FromString(data).SerializeToString() == data


def test_large_lists_keep_their_bytes() -> None:
    numbers = list(range(100_000))
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
    data = feature.SerializeToString()
    assert data == reference.encode_feature(("int64", numbers))
    assert list(tf.train.Feature.FromString(data).int64_list.value) == numbers


def test_frames_of_several_kinds_in_one_list_are_kept() -> None:
    frames = [("int64", [1]), None, ("float", [0.5]), ("bytes", [b"a"]), ("float", [])]
    message = tf.train.FeatureList(feature=[to_feature(frame) for frame in frames])
    parsed = tf.train.FeatureList.FromString(message.SerializeToString())
    assert [from_feature(frame) for frame in parsed.feature] == [plain(frame) for frame in frames]


# --- presence


def test_reading_a_message_does_not_make_it_present() -> None:
    example = tf.train.Example()
    assert len(example.features.feature) == 0
    assert "a" not in example.features.feature
    assert example.features.feature.get("a") is None
    assert not example.HasField("features")
    assert example.SerializeToString() == b""


def test_asking_a_map_for_a_name_makes_an_empty_feature() -> None:
    example = tf.train.Example()
    feature = example.features.feature["a"]
    assert feature.WhichOneof("kind") is None
    assert example.HasField("features")
    assert example.SerializeToString() == b"\x0a\x07\x0a\x05\x0a\x01a\x12\x00"


def test_appending_sets_the_kind_and_another_kind_replaces_it() -> None:
    feature = tf.train.Feature()
    feature.int64_list.value.append(3)
    assert (feature.WhichOneof("kind"), feature.HasField("kind")) == ("int64_list", True)
    old = feature.int64_list
    feature.float_list.value.append(1.5)
    old.value.append(9)
    assert feature.WhichOneof("kind") == "float_list"
    assert list(old.value) == [3, 9]
    assert list(feature.int64_list.value) == []


def test_two_handles_of_one_part_are_the_same_part() -> None:
    feature = tf.train.Feature()
    first, second = feature.int64_list, feature.int64_list
    first.value.append(1)
    second.value.append(2)
    assert list(feature.int64_list.value) == [1, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.value.extend([]),
        lambda part: part.value.__setitem__(slice(None), []),
        lambda part: part.SetInParent(),
        lambda part: part.Clear(),
        lambda part: part.CopyFrom(tf.train.Int64List()),
        lambda part: part.ParseFromString(b""),
    ],
)
def test_a_change_without_values_sets_the_kind(change: Any) -> None:
    feature = tf.train.Feature()
    change(feature.int64_list)
    assert feature.SerializeToString() == b"\x1a\x00"


def test_constructor_copies_what_it_is_given() -> None:
    numbers = tf.train.Int64List(value=[1])
    feature = tf.train.Feature(int64_list=numbers)
    numbers.value.append(2)
    assert list(feature.int64_list.value) == [1]
    assert copy.deepcopy(feature) == feature
    assert copy.deepcopy(feature) is not feature


def test_clear_and_clear_field_take_content_out() -> None:
    example = tf.train.Example(features={"feature": {"a": {"int64_list": {"value": [1]}}}})
    example.features.feature["a"].ClearField("kind")
    assert example.features.feature["a"].WhichOneof("kind") is None
    example.ClearField("features")
    assert not example.HasField("features")
    with pytest.raises(ValueError, match="Example has no field 'x', its fields are features"):
        example.ClearField("x")


def test_merge_appends_lists_and_replaces_map_entries() -> None:
    first = tf.train.Features(feature={"a": {"int64_list": {"value": [1]}}, "b": {}})
    first.MergeFrom(tf.train.Features(feature={"a": {"float_list": {"value": [2.0]}}}))
    assert first.feature["a"].WhichOneof("kind") == "float_list"
    assert sorted(first.feature) == ["a", "b"]
    feature = tf.train.Feature(int64_list={"value": [1]})
    feature.MergeFrom(tf.train.Feature(int64_list={"value": [2]}))
    assert list(feature.int64_list.value) == [1, 2]


def test_parse_from_string_replaces_and_merge_from_string_adds() -> None:
    message = tf.train.Int64List(value=[1])
    assert message.MergeFromString(tf.train.Int64List(value=[2]).SerializeToString()) == 3
    assert list(message.value) == [1, 2]
    message.ParseFromString(b"")
    assert list(message.value) == []


# --- values


@pytest.mark.parametrize("value", [1.0, "1", None, [1], np.float32(1), np.array([1])])
def test_int64_list_refuses_what_is_no_integer(value: Any) -> None:
    with pytest.raises(TypeError, match="Int64List expected integers, got"):
        tf.train.Int64List(value=[value])


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, np.uint64(2**63)])
def test_int64_list_refuses_what_64_bits_do_not_hold(value: Any) -> None:
    with pytest.raises(ValueError, match="got -?9223372036854775808|got -9223372036854775809"):
        tf.train.Int64List(value=[value])
    with pytest.raises(ValueError, match="out of range"):
        tf.train.Int64List(value=np.array([2**63], np.uint64))


@pytest.mark.parametrize("value", [True, np.bool_(True), np.int8(1), np.array(1), 1])
def test_int64_list_accepts_integers_of_any_type(value: Any) -> None:
    message = tf.train.Int64List(value=[value])
    assert list(message.value) == [1]
    assert type(message.value[0]) is int


@pytest.mark.parametrize(
    "array", [np.array([1, 0], np.uint8), np.array([True, False]), np.array([1, 0], ">i2"), np.array([1, 0], np.uint64)]
)
def test_int64_list_takes_arrays(array: Any) -> None:
    assert tf.train.Int64List(value=array).SerializeToString() == b"\x0a\x02\x01\x00"


@pytest.mark.parametrize("value", ["1", b"1", None, 1j, np.array(1.5)])
def test_float_list_refuses_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError, match="FloatList expected real numbers, got|real number|can't convert"):
        tf.train.FloatList(value=[value])


def test_float_list_rounds_to_float32() -> None:
    values = tf.train.FloatList(value=[0.1, 1e40, -1e40, 1, True]).value
    assert list(values) == [float(np.float32(0.1)), math.inf, -math.inf, 1.0, 1.0]
    assert list(tf.train.FloatList(value=np.array([0.1, 1e40])).value) == list(values)[:2]


@pytest.mark.parametrize(
    ("value", "name"), [("a", "str"), (3, "int"), (None, "NoneType"), (bytearray(b"a"), "bytearray")]
)
def test_bytes_list_refuses_what_is_not_bytes(value: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"BytesList expected bytes, got {name}"):
        tf.train.BytesList(value=[value])


def test_bytes_list_says_how_to_encode_text() -> None:
    with pytest.raises(TypeError, match=r"value\.encode\(\)"):
        tf.train.BytesList(value=["cat"])


def test_values_that_are_no_list_are_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a list of values, got int\n  wrap it"):
        tf.train.Int64List(value=3)


def test_values_act_as_a_list() -> None:
    values = tf.train.Int64List(value=[1, 2, 3, 4, 5]).value
    assert (values[1:3], values[-1], len(values), 3 in values) == ([2, 3], 5, 5, True)
    values[1:3] = [7]
    values.insert(0, 9)
    assert (values.pop(), values.pop(0), values[:]) == (5, 9, [1, 7, 4])
    values.sort()
    values.reverse()
    del values[0]
    assert values == [4, 1]
    assert values != (4, 1)
    assert repr(values) == "[4, 1]"
    with pytest.raises(TypeError, match="got float"):
        values[0] = 1.5
    with pytest.raises(AttributeError, match="extend"):
        values += [1]


@pytest.mark.parametrize(
    ("message", "dtype"),
    [
        (tf.train.Int64List(value=[1]), "int64"),
        (tf.train.FloatList(value=[1]), "float32"),
        (tf.train.BytesList(), "f8"),
    ],
)
def test_values_become_arrays_of_their_kind(message: Any, dtype: str) -> None:
    assert np.array(message.value).dtype == dtype


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: tf.train.Int64List([1]), TypeError, "takes its fields by name"),
        (lambda: tf.train.Feature(foo=1), ValueError, "Feature has no field 'foo'"),
        (lambda: tf.train.Feature(int64_list=tf.train.FloatList()), TypeError, "expected a Int64List"),
        (lambda: tf.train.Features(feature={1: {}}), TypeError, "feature name expected str, got int"),
        (lambda: tf.train.Features(feature=[1]), TypeError, "expected a dict of Features"),
        (lambda: tf.train.FeatureList(feature=3), TypeError, "expected a list of Features"),
        (lambda: tf.train.Features().feature.update({"a": tf.train.Feature()}), ValueError, "CopyFrom"),
        (lambda: tf.train.FeatureList(feature=[{}]).feature.__setitem__(0, {}), TypeError, "CopyFrom"),
        (lambda: setattr(tf.train.Int64List(), "value", [1]), AttributeError, "assignment to field 'value'"),
        (lambda: setattr(tf.train.Example(), "foo", 1), AttributeError, "foo"),
        (lambda: tf.train.Int64List().HasField("value"), ValueError, "repeated"),
        (lambda: tf.train.Feature().WhichOneof("x"), ValueError, "no oneof 'x'"),
        (lambda: tf.train.Example().CopyFrom(tf.train.Features()), TypeError, "expected a Example, got Features"),
        (lambda: tf.train.Example.FromString("abc"), TypeError, "parsed from bytes, got str"),
        (lambda: tf.train.Example.FromString(b"\x0a\x05a"), WireError, "expected a serialized Example"),
        (lambda: tf.train.Features.FromString(b"\x0a\x05\x0a\x01\xff\x12\x00"), WireError, "not UTF-8"),
        (lambda: hash(tf.train.Example()), TypeError, "unhashable"),
    ],
)
def test_misuse_raises_with_a_message(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_message_survives_pickling() -> None:
    import pickle

    message = tf.train.Example(features={"feature": {"a": {"float_list": {"value": [math.nan]}}}})
    assert pickle.loads(pickle.dumps(message)) == message


# --- text


def test_text_is_protobufs() -> None:
    message = tf.train.Example(
        features={
            "feature": {
                'b\n"é': {"bytes_list": {"value": [b"a\0\xff'\"\\"]}},
                "a": {"float_list": {"value": [1, 0.1, 1e10, 123456789, -0.0, math.nan, 1 / 3]}},
                "c": {},
            }
        }
    )
    assert str(message) == (
        'features {\n  feature {\n    key: "a"\n    value {\n      float_list {\n        value: 1\n        value: 0.1\n'
        "        value: 1e+10\n        value: 123456792\n        value: -0\n        value: nan\n"
        "        value: 0.333333343\n      }\n    }\n  }\n"
        '  feature {\n    key: "b\\n\\"é"\n    value {\n      bytes_list {\n'
        '        value: "a\\000\\377\\\'\\"\\\\"\n      }\n    }\n  }\n'
        '  feature {\n    key: "c"\n    value {\n    }\n  }\n}\n'
    )
    assert repr(message) == str(message)
    assert str(tf.train.Example()) == ""


# --- messages that are made in one expression, against their slow twin: fields filled one by one


_TYPE_OF = {"bytes": tf.train.BytesList, "float": tf.train.FloatList, "int64": tf.train.Int64List}


def make_at_once(features: dict[bytes, Any]) -> Any:
    made = {}
    for name, feature in features.items():
        fields = {} if feature is None else {LISTS[feature[0]]: _TYPE_OF[feature[0]](value=feature[1])}
        made[name.decode()] = tf.train.Feature(**fields)
    return tf.train.Example(features=tf.train.Features(feature=made))


def fill_slowly(features: dict[bytes, Any]) -> Any:
    example = tf.train.Example()
    example.features.SetInParent()
    for name, feature in features.items():
        inner = example.features.feature[name.decode()]
        if feature is not None:
            child = getattr(inner, LISTS[feature[0]])
            child.SetInParent()
            child.value.extend(feature[1])
    return example


@given(strategies.examples())
@settings(max_examples=200, deadline=None)
def test_made_at_once_equals_filled_one_by_one(features: dict[bytes, Any]) -> None:
    made, filled = make_at_once(features), fill_slowly(features)
    assert made.SerializeToString() == filled.SerializeToString()
    assert str(made) == str(filled)  # takes the frozen lists apart
    assert made.SerializeToString() == filled.SerializeToString()
    for name in features:
        inner = made.features.feature[name.decode()]
        assert inner.WhichOneof("kind") == filled.features.feature[name.decode()].WhichOneof("kind")
        assert inner.SerializeToString() == filled.features.feature[name.decode()].SerializeToString()


def test_what_a_message_was_made_of_can_change_afterwards() -> None:
    numbers = [1]
    values = tf.train.Int64List(value=numbers)
    feature = tf.train.Feature(int64_list=values)
    given = {"x": feature}
    features = tf.train.Features(feature=given)
    example = tf.train.Example(features=features)
    other = copy.deepcopy(example)
    stored = example.SerializeToString()
    numbers.append(2)
    values.value.append(3)
    feature.int64_list.value.append(4)
    given["y"] = feature
    features.feature["x"].int64_list.value.append(5)
    other.features.feature["x"].float_list.value.append(6)
    assert example.SerializeToString() == stored
    assert values.value == [1, 3]
    assert feature.int64_list.value == [1, 4]
    assert features.feature["x"].int64_list.value == [1, 5]
    assert other.features.feature["x"].WhichOneof("kind") == "float_list"
    example.features.feature["x"].int64_list.value[:] = []
    assert example.features.feature["x"].WhichOneof("kind") == "int64_list"


@pytest.mark.parametrize("value", [["a"], [1.5], [1 << 63], 5, "ab", [None]])
def test_a_list_made_of_wrong_values_raises_what_extend_raises(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as filled:
        tf.train.Int64List().value.extend(value)
    with pytest.raises(filled.type, match=re.escape(str(filled.value))):
        tf.train.Int64List(value=value)


def test_one_name_may_have_another_kind_in_every_message() -> None:
    for feature in (("int64", [1]), ("bytes", [b"a"]), ("float", [0.5]), ("float", []), ("bytes", []), ("int64", [])):
        assert make_at_once({b"x": feature}).SerializeToString() == reference.encode_example({b"x": feature})
