"""Arrow types by name; that pyarrow prints the same is an interop test."""

from __future__ import annotations

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.arrow_schema import find_type, print_arrow_schema
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
        (Spec("bytes", (2,), encoding="tensor_proto", dtype="bfloat16"), "large_binary"),
        (Spec("bytes", (2,), encoding="tensor_proto"), "large_binary"),
        (Spec("bytes", (None,), seen=()), "null"),
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
        "label: int64 not null\n"
        "tokens: large_list<item: int64>\n"
        "both: int64 not null\n"
        "frames: large_list<item: float> not null\n"
        "feature_lists/both: large_list<item: float> not null"
    )


def test_print_arrow_schema_mixed_kinds_raise() -> None:
    schema = Schema({"a": Spec("int64", seen=("int64", "float"))})
    with pytest.raises(SchemaError, match="feature 'a' expected one kind, got int64 and float in different records"):
        print_arrow_schema(schema)
