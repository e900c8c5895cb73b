"""Schema: construction, lookup, projection, printing and comparison."""

from __future__ import annotations

import pickle

import pytest

from tfrkit.errors import MissingFeatureError, SchemaError
from tfrkit.features.schema import (
    Schema,
    decode_name,
    describe_type,
    encode_name,
    find_mismatches,
    find_nearest_name,
    show_name,
)
from tfrkit.features.spec import Spec


def test_schema_shorthand_gives_specs() -> None:
    schema = Schema(
        {
            "label": "int64",
            "image": Spec("bytes", logical="image"),
            "xyz": ("float", (3,)),
            "tokens": ("int64", (None,)),
            "pixels": ("uint8", (28, 28)),
            "mean": "float64",
            "score": "float32",
            "title": str,
            "count": int,
        }
    )
    assert dict(schema.features) == {
        "label": Spec("int64"),
        "image": Spec("bytes", logical="image"),
        "xyz": Spec("float", (3,)),
        "tokens": Spec("int64", (None,)),
        "pixels": Spec("bytes", (28, 28), logical="tensor", encoding="tensor_proto", dtype="uint8"),
        "mean": Spec("bytes", (), logical="tensor", encoding="tensor_proto", dtype="float64"),
        "score": Spec("float"),
        "title": Spec("bytes", logical="text"),
        "count": Spec("int64"),
    }
    assert schema.kind == "example"
    assert len(schema) == 9
    assert list(schema)[:2] == ["label", "image"]
    assert "xyz" in schema
    assert "abc" not in schema


def test_schema_feature_lists_are_marked_and_found_after_features() -> None:
    schema = Schema({"id": "int64", "both": "int64"}, feature_lists={"frame": "image", "both": ("float", (2,))})
    assert schema.kind == "sequence_example"
    assert schema["frame"] == Spec("bytes", logical="image", is_list=True)
    assert schema["both"] == Spec("int64")
    assert schema.names == ("id", "both", "frame", "both")
    picked = schema.select(["both"])
    assert picked.features == {"both": Spec("int64")}
    assert picked.feature_lists == {"both": Spec("float", (2,), is_list=True)}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"a": "int63"}, ValueError, r"feature 'a' expected a type of bytes, float, int64, .*, got 'int63'"),
        ({"a": 3}, TypeError, r"feature 'a' expected a Spec, a type or \(type, shape\), got 3"),
        ({b"a": "int64"}, TypeError, r"feature name expected str, got b'a'"),
        ({"a": ("int64", (-1,))}, ValueError, r"shape expected sizes of 0 or more, or None, got \(-1,\)"),
        ({"a": ("int64", (1 << 63,))}, ValueError, r"shape expected sizes of 0 or more"),
        ({"a": ("int64", (1,) * 255)}, ValueError, r"shape expected at most 254 sizes, got 255"),
        ({"a": ("int64", 3)}, TypeError, r"shape expected a tuple of sizes, got 3"),
    ],
)
def test_schema_wrong_spec_raises(given: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Schema(given)  # type: ignore[arg-type]


def test_schema_lists_in_an_example_raise() -> None:
    with pytest.raises(ValueError, match="feature lists expected kind 'sequence_example', got 'example'"):
        Schema({}, feature_lists={"a": "int64"}, kind="example")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lable", "no feature 'lable', did you mean 'label'$"),
        ("LABEL", "no feature 'LABEL', did you mean 'label'$"),
        ("height", "no feature 'height', did you mean 'image/height'$"),
        ("zzz", "no feature 'zzz'$"),
        ("x" * 1000, r"no feature 'x{61}\.\.\.'$"),
    ],
)
def test_schema_unknown_name_raises_with_nearest(name: str, message: str) -> None:
    schema = Schema({"label": "int64", "image/height": "int64"})
    with pytest.raises(MissingFeatureError, match=message):
        schema[name]
    with pytest.raises(MissingFeatureError, match=message):
        schema.select(["label", name])


def test_find_nearest_many_long_names_stays_quick() -> None:
    assert find_nearest_name("label", ["x" * 100_000] * 50) is None


def test_schema_select_keeps_requested_order_and_kind() -> None:
    schema = Schema({"a": "int64", "b": "float", "c": "bytes"})
    assert schema.select(["c", "a", "c"]).names == ("c", "a")
    empty = Schema({"a": "int64"}, feature_lists={"b": "float"}).select(["a"])
    assert (empty.kind, empty.names) == ("sequence_example", ("a",))


def test_schema_select_of_a_string_raises() -> None:
    with pytest.raises(TypeError, match="names expected a list of names, got the string 'abc'"):
        Schema({"a": "int64"}).select("abc")


def test_schema_is_immutable_hashable_and_picklable() -> None:
    schema = Schema({"a": "int64"}, feature_lists={"b": "float"})
    with pytest.raises(TypeError, match="does not support item assignment"):
        schema.features["c"] = Spec("int64")  # type: ignore[index]
    same = pickle.loads(pickle.dumps(schema))
    assert same == schema
    assert hash(same) == hash(schema)
    assert schema != Schema({"a": "int64"})
    assert Schema({"a": "int64"}) != {"a": Spec("int64")}


def test_schema_order_and_meaning_take_no_part_in_equality() -> None:
    first = Schema({"a": Spec("int64", meaning="class id 0..9"), "b": "float"})
    assert first == Schema({"b": "float", "a": "int64"})
    assert hash(first) == hash(Schema({"b": "float", "a": "int64"}))


def test_schema_repr_is_code() -> None:
    schema = Schema({"a": ("int64", (3,)), "n\0": "bytes"}, feature_lists={"b": "float"})
    text = (
        "Schema({\n  'a': Spec('int64', shape=(3,)),\n  'n\\x00': Spec('bytes'),\n}, feature_lists={\n"
        "  'b': Spec('float'),\n})"
    )
    assert repr(schema) == text
    assert repr(Schema({}, kind="raw")) == "Schema({}, kind='raw')"


def test_schema_str_is_a_table() -> None:
    schema = Schema(
        {
            "image": Spec("bytes", logical="image", meaning="JPEG 640x480"),
            "label": Spec("int64", logical="class_label", num_classes=10, optional=True),
            "xyz": ("float", (3,)),
        }
    )
    assert str(schema) == (
        "example, 3 features\n"
        "name   type    shape  meaning\n"
        "image  bytes   ()     JPEG 640x480\n"
        "label  int64?  ()     class id 0..9\n"
        "xyz    float   (3,)"
    )
    assert str(Schema({}, kind="raw")) == "raw, 0 features"


def test_schema_odd_names_survive_and_print_on_one_line() -> None:
    name = decode_name(b"\xff\x00\n")
    assert encode_name(name) == b"\xff\x00\n"
    assert show_name(name) == "'\\udcff\\x00\\n'"
    assert str(Schema({name: "int64"})).encode().count(b"\n") == 2


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Spec("int64"), "int64"),
        (Spec("int64", dtype="bool", optional=True), "int64 as bool?"),
        (Spec("bytes", (2, 2), encoding="tensor_proto", dtype="uint8"), "uint8 tensor"),
        (Spec("bytes", (2, 2), encoding="tensor_proto"), "mixed tensor"),
        (Spec("bytes", (2, 2), encoding="raw", dtype="float32"), "float32 raw bytes"),
        (Spec("bytes", (2, 2), encoding="zlib", dtype="float32"), "float32 zlib bytes"),
        (Spec("int64", seen=("int64", "float")), "int64|float"),
        (Spec("float", is_list=True), "float list"),
    ],
)
def test_describe_type_says_storage(spec: Spec, text: str) -> None:
    assert describe_type(spec) == text


def test_require_one_kind_mixed_feature_raises() -> None:
    schema = Schema({"a": Spec("int64", (None,), seen=("int64", "float")), "b": "int64"})
    assert schema.require_one_kind("b") == Spec("int64")
    with pytest.raises(SchemaError, match="feature 'a' expected one kind, got int64 and float in different records"):
        schema.require_one_kind("a")


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        (Spec("int64"), Spec("int64"), []),
        (Spec("int64"), Spec("float"), ["feature 'x' expected int64, got float"]),
        (Spec("int64", (3,)), Spec("int64", (4,)), ["feature 'x' expected 3 values, got 4 values"]),
        (
            Spec("int64", (3,)),
            Spec("int64", (None,)),
            ["feature 'x' expected 3 values, got a number of values that varies"],
        ),
        (Spec("int64"), Spec("int64", (2,)), ["feature 'x' expected 1 value, got 2 values"]),
        (Spec("int64", (0,)), Spec("int64", (2,)), ["feature 'x' expected 0 values, got 2 values"]),
        (Spec("int64", (1,)), Spec("int64"), []),
        (Spec("float", (2, 3)), Spec("float", (6,)), []),
        (Spec("float", (2, 3)), Spec("float", (5,)), ["feature 'x' expected 6 values (shape (2, 3)), got 5 values"]),
        (Spec("float", (None, 4)), Spec("float", (8,)), []),
        (
            Spec("float", (None, 4)),
            Spec("float", (7,)),
            ["feature 'x' expected a multiple of 4 values (shape (None, 4)), got 7 values"],
        ),
        (Spec("int64", (None,)), Spec("int64", (4,)), []),
        (Spec("int64"), Spec("int64", optional=True), ["feature 'x' expected in every record, got it in some only"]),
        (Spec("int64", optional=True), Spec("int64"), []),
        (Spec("int64"), Spec("int64", seen=()), ["feature 'x' expected in every record, got it with no kind set"]),
        (Spec("float", optional=True), Spec("bytes", optional=True, seen=()), []),
        (
            Spec("int64"),
            Spec("float", seen=("float", "int64")),
            ["feature 'x' expected int64, got float and int64 in different records"],
        ),
        (Spec("bytes"), Spec("bytes", (2,), encoding="tensor_proto", dtype="uint8"), []),
        (Spec("bytes", (2, 2), encoding="raw", dtype="uint8"), Spec("bytes"), []),
        (Spec("bytes", (2,), encoding="tensor_proto", dtype="float8_e5m2"), Spec("bytes"), []),
        (
            Spec("bytes", (2,), encoding="tensor_proto", dtype="uint8"),
            Spec("bytes"),
            ["feature 'x' expected a serialized uint8 tensor, got plain bytes"],
        ),
        (
            Spec("bytes", (2, None), encoding="tensor_proto", dtype="uint8"),
            Spec("bytes", (3, 4), encoding="tensor_proto", dtype="int8"),
            [
                "feature 'x' expected a uint8 tensor, got int8",
                "feature 'x' expected tensor shape (2, None), got (3, 4)",
            ],
        ),
    ],
)
def test_find_mismatches_names_wanted_and_found(wanted: Spec, found: Spec, expected: list[str]) -> None:
    assert find_mismatches(Schema({"x": wanted}), Schema({"x": found})) == expected


def test_find_mismatches_missing_feature_names_nearest() -> None:
    found = Schema({"label": "int64", "extra": "float"})
    assert find_mismatches(Schema({"lable": "int64", "label": "int64"}), found) == [
        "no feature 'lable', did you mean 'label'"
    ]
    assert find_mismatches(Schema({"lable": Spec("int64", optional=True)}), found) == []


def test_find_mismatches_other_record_kind_is_one_sentence() -> None:
    assert find_mismatches(Schema({"a": "int64"}), Schema({}, kind="raw")) == ["records expected example, got raw"]
    wanted = Schema({"a": "int64"}, feature_lists={})
    assert find_mismatches(wanted, Schema({"a": "int64"})) == []


def test_find_mismatches_feature_in_the_other_half_is_reported() -> None:
    wanted = Schema({"a": "int64"}, feature_lists={"b": "int64"})
    found = Schema({"b": "int64"}, feature_lists={"a": "int64"})
    assert find_mismatches(wanted, found) == [
        "feature 'a' expected in the features of the record, got it in the feature_lists",
        "feature 'b' expected in feature_lists, got it in the context",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "int32"}, "kind expected one of bytes, float, int64, got 'int32'"),
        ({"kind": "int64", "encoding": "tensor_proto"}, "encoding 'tensor_proto' expected kind 'bytes', got 'int64'"),
        ({"kind": "bytes", "encoding": "raw"}, "encoding 'raw' expected a dtype, got None"),
        ({"kind": "int64", "dtype": "9" * 5000}, r"dtype expected one of float32, .*, got '9{63}$"),
        ({"kind": "int64", "classes": ("a",), "num_classes": 2}, "expected 2 class names, got 1"),
        ({"kind": "int64", "logical": "jpeg"}, "logical expected one of .*, got 'jpeg'"),
    ],
)
def test_spec_wrong_field_raises(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Spec(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "fixed_length", "num_values"),
    [
        (Spec("int64"), 1, 1),
        (Spec("int64", (2, 3)), 6, 6),
        (Spec("int64", (0,)), 0, 0),
        (Spec("int64", (None, 3)), -1, -1),
        (Spec("int64", (3,), optional=True), -1, 3),
        (Spec("int64", (3,), optional=True, is_list=True), 3, 3),
        (Spec("bytes", (28, 28), encoding="tensor_proto", dtype="uint8"), 1, 1),
    ],
)
def test_spec_lengths_count_stored_values(spec: Spec, fixed_length: int, num_values: int) -> None:
    assert (spec.fixed_length, spec.num_values) == (fixed_length, num_values)


def test_parts_of_a_sequence_example_are_named_by_prefix() -> None:
    schema = Schema({"id": "int64", "a": "text"}, feature_lists={"id": "float", "b": "bytes"})
    both = schema.select(["id"])
    assert (list(both.features), list(both.feature_lists)) == (["id"], ["id"])
    for mark in "./":
        context = schema.select([f"context{mark}id"])
        assert (list(context.features), list(context.feature_lists)) == (["id"], [])
        lists = schema.select([f"feature_lists{mark}b", f"feature_lists{mark}id", "a"])
        assert (list(lists.features), list(lists.feature_lists)) == (["a"], ["b", "id"])
    assert context.kind == "sequence_example"
    with pytest.raises(MissingFeatureError, match=r"no feature 'context\.b', did you mean 'feature_lists\.b'"):
        schema.select(["context/b"])
    with pytest.raises(MissingFeatureError, match=r"no feature 'context\.idd', did you mean 'context\.id'"):
        schema.select(["context.idd"])


def test_prefix_of_a_part_is_part_of_the_name_elsewhere() -> None:
    assert list(Schema({"context.id": "int64"}).select(["context.id"]).features) == ["context.id"]
    with pytest.raises(MissingFeatureError, match=r"no feature 'context\.id'"):
        Schema({"id": "int64"}).select(["context.id"])
    named = Schema({"context.id": "int64", "id": "text"}, feature_lists={})
    assert list(named.select(["context.id"]).features) == ["context.id"]
