"""Arrow types by name; that pyarrow prints the same is an interop test."""

from __future__ import annotations

import json

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.arrow_schema import find_type, print_arrow_schema, to_arrow_fields
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (Spec("int64"), "int64"),
        (Spec("float"), "float"),
        (Spec("bytes"), "large_binary"),
        (Spec("bytes", logical="text"), "large_string"),
        (Spec("int64", dtype="bool"), "bool"),
        (Spec("float", dtype="float64"), "double"),
        (Spec("int64", (None,)), "large_list<item: int64>"),
        (Spec("float", (3,)), "fixed_size_list<item: float>[3]"),
        (Spec("float", (None, 4)), "large_list<item: fixed_size_list<item: float>[4]>"),
        (Spec("bytes", (None,), logical="image", dtype="uint8"), "large_list<item: large_binary>"),
        (Spec("float", (2,), is_list=True), "large_list<item: fixed_size_list<item: float>[2]>"),
        (
            Spec("bytes", (2, 3), encoding="tensor_proto", dtype="uint8"),
            "fixed_size_list<item: fixed_size_list<item: uint8>[3]>[2]",
        ),
        (Spec("bytes", (None,), encoding="raw", dtype="float16"), "large_list<item: halffloat>"),
        (Spec("bytes", (2,), encoding="tensor_proto", dtype="string"), "fixed_size_list<item: large_binary>[2]"),
        (Spec("bytes", (2,), encoding="tensor_proto", dtype="bfloat16"), "fixed_size_list<item: float>[2]"),
        (Spec("bytes", (2,), encoding="tensor_proto", dtype="complex64"), "large_binary"),
        (Spec("float", dtype="bfloat16"), "float"),
        (Spec("bytes", (2,), encoding="tensor_proto"), "large_binary"),
        (Spec("bytes", (None,), seen=()), "null"),
        (Spec("bytes", (None,), seen=(), is_list=True), "large_list<item: null>"),
        (Spec("float", (2, None)), "large_list<item: float>"),
        (Spec("bytes", (None, None), encoding="raw", dtype="uint8"), "large_list<item: uint8>"),
        (
            Spec("bytes", (None, None), encoding="tensor_proto", dtype="uint8"),
            "large_list<item: large_list<item: uint8>>",
        ),
        (Spec("bytes", (2,), encoding="raw", dtype="complex64", is_list=True), "large_list<item: large_binary>"),
    ],
)
def test_find_type_follows_storage_and_shape(spec: Spec, text: str) -> None:
    assert str(find_type(spec)) == text


def test_print_arrow_schema_marks_what_may_be_missing() -> None:
    schema = Schema(
        {"label": "int64", "tokens": Spec("int64", (None,), optional=True), "both": "int64"},
        feature_lists={"frames": "float", "both": "float"},
    )
    assert print_arrow_schema(schema) == (
        "context: struct<label: int64 not null, tokens: large_list<item: int64>, both: int64 not null> not null\n"
        "feature_lists: struct<frames: large_list<item: float>, both: large_list<item: float>> not null"
    )
    assert print_arrow_schema(schema.select(["frames"])) == (
        "feature_lists: struct<frames: large_list<item: float>> not null"
    )


def test_fields_only_a_fixed_number_of_values_is_not_null() -> None:
    # The decoder checks a fixed length in every record; a varying list may be absent.
    specs = {"one": Spec("int64"), "three": Spec("float", (3,)), "some": Spec("int64", (None,))}
    specs |= {"maybe": Spec("int64", optional=True)}
    assert [field.nullable for field in to_arrow_fields(Schema(specs))] == [False, False, True, True]


def test_field_metadata_is_set_when_the_type_is_not_enough() -> None:
    specs = {
        "plain": Spec("int64"),
        "label": Spec("int64", logical="class_label", classes=("cat", "dog")),
        "image": Spec("bytes", logical="image", format="png"),
        "flat": Spec("float", (2, None)),
    }
    metadata = {field.name: field.metadata for field in to_arrow_fields(Schema(specs))}
    assert metadata["plain"] == {}
    assert json.loads(metadata["label"]["tfrkit.feature"])["classes"] == ["cat", "dog"]
    assert json.loads(metadata["image"]["tfrkit.feature"])["format"] == "png"
    assert json.loads(metadata["flat"]["tfrkit.feature"])["shape"] == [2, None]


def test_fields_names_that_arrow_cannot_hold_are_escaped() -> None:
    fields = to_arrow_fields(Schema({"a\0b": "int64", "\udcff": "int64", "\n": "int64", "鍵": "int64"}))
    assert [field.name for field in fields] == ["a\\x00b", "\\udcff", "\n", "鍵"]
    assert [field.feature for field in fields] == ["a\0b", "\udcff", "\n", "鍵"]
    assert json.loads(fields[0].metadata["tfrkit.feature"])["name"] == "a\0b"
    assert fields[3].metadata == {}


def test_fields_names_that_become_one_raise() -> None:
    with pytest.raises(SchemaError, match=r"features 'a\\x00' and 'a\\\\x00' have one name in Arrow"):
        to_arrow_fields(Schema({"a\0": "int64", "a\\x00": "int64"}))


def test_print_arrow_schema_mixed_kinds_raise() -> None:
    schema = Schema({"a": Spec("int64", seen=("int64", "float"))})
    with pytest.raises(SchemaError, match="feature 'a' expected one kind, got int64 and float in different records"):
        print_arrow_schema(schema)
