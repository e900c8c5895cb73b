"""Our own JSON: nothing lost, nothing unknown taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import from_json, to_json
from tfrkit.features.spec import Spec

EVERYTHING = Schema(
    {
        "label": Spec("int64", logical="class_label", classes=("cat", "dog")),
        "id": Spec("int64", logical="class_label", num_classes=3, ignore=255),
        "image": Spec("bytes", logical="image", dtype="uint8", format="png", decoded_shape=(28, None, 1)),
        "tensor": Spec("bytes", (None, 3), logical="tensor", encoding="tensor_proto", dtype="bfloat16", optional=True),
        "raw": Spec("bytes", (2, 2), encoding="raw", dtype="float32", meaning="some numbers"),
        "mixed": Spec("float", (None,), seen=("float", "int64")),
        "never": Spec("bytes", (None,), optional=True, seen=()),
        "\udcff\0/é": Spec("int64"),
    }
)


def test_to_json_keys_are_pinned() -> None:
    schema = Schema({"label": Spec("int64", logical="class_label", classes=("a", "b")), "xyz": ("float", (None, 3))})
    assert to_json(schema) == {
        "format": "tfrkit.schema",
        "version": 1,
        "kind": "example",
        "features": [
            {
                "name": "label",
                "type": "int64",
                "shape": [],
                "logical": "class_label",
                "encoding": "list",
                "optional": False,
                "classes": ["a", "b"],
            },
            {
                "name": "xyz",
                "type": "float",
                "shape": [None, 3],
                "logical": "scalar",
                "encoding": "list",
                "optional": False,
            },
        ],
    }


@pytest.mark.parametrize(
    "schema",
    [
        EVERYTHING,
        Schema({}),
        Schema({}, kind="raw"),
        Schema({"a": "int64"}, feature_lists={"a": ("float", (2,)), "b": "image"}),
        Schema({}, feature_lists={}),
    ],
)
def test_json_round_trip_is_lossless(schema: Schema) -> None:
    back = from_json(json.loads(json.dumps(to_json(schema), allow_nan=False)))
    assert back == schema
    assert back.names == schema.names
    assert [back[name].meaning for name in back] == [schema[name].meaning for name in schema]


def change(**changes: Any) -> dict[str, Any]:
    return {**to_json(Schema({})), **changes}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "schema JSON expected an object with format 'tfrkit.schema'"),
        ({"features": []}, "schema JSON expected an object with format 'tfrkit.schema'"),
        (change(version=2), "schema JSON expected version 1, got 2"),
        (change(extra=1), "schema JSON has unknown keys: extra"),
        (change(kind="table"), "kind expected one of example, .*, got 'table'"),
        (change(features={}), "schema JSON expected a list, got dict - at features"),
        (change(features=[{"type": "int64"}]), r"schema JSON expected an object with a name - at features\[0\]"),
        (change(features=[{"name": "a"}]), "feature 'a' has no type"),
        (change(features=[{"name": "a", "type": "int"}]), "feature 'a': kind expected one of .*, got 'int'"),
        (change(features=[{"name": "a", "type": "int64", "colour": 1}]), "feature 'a' has unknown key 'colour'"),
        (change(features=[{"name": "a", "type": "int64", "shape": 3}]), "feature 'a' expected list as shape, got 3"),
        (change(features=[{"name": "a", "type": "int64", "shape": ["x"]}]), "feature 'a': .*str"),
        (change(features=[{"name": "a", "type": "int64", "ignore": True}]), "expected int as ignore, got True"),
        (change(features=[{"name": "a", "type": "int64"}] * 2), r"feature 'a' is present twice - at features\[1\]"),
        (change(feature_lists=[{"name": "a", "type": "int64"}]), "feature lists expected kind 'sequence_example'"),
    ],
)
def test_from_json_wrong_content_raises(content: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_json(content)
