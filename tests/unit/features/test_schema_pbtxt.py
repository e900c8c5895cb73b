"""schema.pbtxt: real files, each rule by itself, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.errors import SchemaError, TfrkitWarning
from tfrkit.features.schema import Schema
from tfrkit.features.schema_pbtxt import from_pbtxt, to_pbtxt
from tfrkit.features.spec import Spec

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
ALWAYS = "presence { min_fraction: 1.0 min_count: 1 }"


@pytest.mark.parametrize(
    ("body", "spec"),
    [
        (f"type: INT {ALWAYS} shape {{}}", Spec("int64")),
        (f"type: FLOAT {ALWAYS} shape {{ dim {{ size: 1 }} }}", Spec("float", (1,), logical="tensor")),
        (f"type: FLOAT {ALWAYS} shape {{ dim {{ size: 2 }} dim {{}} }}", Spec("float", (2, None), logical="tensor")),
        ("type: INT shape {}", Spec("int64", optional=True)),
        ("type: INT presence { min_count: 1 } shape {}", Spec("int64", optional=True)),
        ("type: INT presence { min_fraction: 0.5 } shape {}", Spec("int64", optional=True)),
        (f"type: BYTES {ALWAYS}", Spec("bytes", (None,))),
        (f"type: BYTES {ALWAYS} value_count {{ min: 1 max: 1 }}", Spec("bytes")),
        (f"type: INT {ALWAYS} value_count {{ min: 3 max: 3 }}", Spec("int64", (3,), logical="tensor")),
        (f"type: INT {ALWAYS} value_count {{ min: 0 max: 3 }}", Spec("int64", (None,), logical="tensor")),
        (f"type: INT {ALWAYS} value_count {{ min: 1 }}", Spec("int64", (None,), logical="tensor")),
        (
            f"type: INT {ALWAYS} value_counts {{ value_count {{ min: 2 max: 2 }} }}",
            Spec("int64", (2,), logical="tensor"),
        ),
        (
            f"type: INT {ALWAYS} shape {{}} int_domain {{ min: 0 max: 9 is_categorical: true }}",
            Spec("int64", logical="class_label", num_classes=10),
        ),
        (f"type: INT {ALWAYS} shape {{}} int_domain {{ min: -1 max: 9 is_categorical: true }}", Spec("int64")),
        (f"type: INT {ALWAYS} shape {{}} int_domain {{ min: 0 max: 9 }}", Spec("int64")),
        (f"type: INT {ALWAYS} shape {{}} bool_domain {{}}", Spec("int64")),
        (f"type: BYTES {ALWAYS} shape {{}} image_domain {{}}", Spec("bytes", logical="image")),
        (f"type: BYTES {ALWAYS} shape {{}} natural_language_domain {{}}", Spec("bytes", logical="text")),
        (f"type: BYTES {ALWAYS} shape {{}} string_domain {{ value: 'a' value: 'b' }}", Spec("bytes", logical="text")),
    ],
)
def test_from_pbtxt_feature_becomes_spec(body: str, spec: Spec) -> None:
    read = from_pbtxt(f'feature {{ name: "x" {body} }}')
    assert read.schema["x"] == spec
    assert read.notes == ()


def test_schema_from_pbtxt_warns_about_features_left_out() -> None:
    with pytest.warns(TfrkitWarning, match="feature 's' is left out: its type is STRUCT"):
        schema = Schema.from_pbtxt('feature { name: "x" type: INT } feature { name: "s" type: STRUCT }')
    assert schema.names == ("x",)


def test_from_pbtxt_named_domains_are_followed() -> None:
    read = from_pbtxt(
        'feature { name: "a" type: BYTES domain: "words" } feature { name: "b" type: INT domain: "ids" }'
        'string_domain { name: "words" value: "x" value: "y" }'
        'int_domain { name: "ids" min: 0 max: 3 is_categorical: true }'
    )
    assert (read.schema["a"].logical, read.schema["a"].meaning) == ("text", "one of 2 texts")
    assert read.schema["b"].num_classes == 4


def test_from_pbtxt_what_has_no_place_is_noted() -> None:
    read = from_pbtxt(
        'feature { name: "a" type: STRUCT } feature { name: "b" } sparse_feature { name: "c" }'
        'feature { name: "d" type: INT } generated_feature { name: "e" } default_environment: "TRAIN"'
    )
    assert read.schema.names == ("d",)
    assert read.notes == (
        "sparse_feature 'c' is left out: no record stores it",
        "generated_feature 'e' is left out: no record stores it",
        "feature 'a' is left out: its type is STRUCT",
        "feature 'b' is left out: its type is not given",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text expected a tensorflow_metadata schema, got no field 'feature'"),
        ('item { id: 1 name: "cat" }', "text expected a tensorflow_metadata schema, got no field 'feature'"),
        ("feature { type: INT }", "feature of the schema has no name - at line 1"),
        (
            'feature { name: "a" type: INT }\nfeature { name: "a" type: INT }',
            "feature 'a' is present twice - at line 2",
        ),
        ("feature: 3", "field 'feature' expected a message, got 3"),
        ('feature { name: "a" type: "INT" }', "field 'type' expected a word, got b'INT'"),
        ('feature { name: "a" type: INT shape { dim { size: 1.5 } } }', r"shape expected sizes, got \[1.5\]"),
        (
            'feature { name: "a" type: INT shape { dim { size: 99999999999999999999 } } }',
            "shape expected sizes of 0 or more, or None, .* - at line 1",
        ),
        ("feature {", "text format expected a field name or '}', got 'end of text' - at line 1, column 10"),
    ],
)
def test_from_pbtxt_wrong_text_raises(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_pbtxt(text)


def test_to_pbtxt_text_is_pinned() -> None:
    schema = Schema(
        {
            "label": Spec("int64", logical="class_label", num_classes=10),
            "xyz": Spec("float", (3,), logical="tensor", optional=True),
            "pixels": Spec("bytes", (28, 28), encoding="tensor_proto", dtype="uint8"),
        },
    )
    assert to_pbtxt(schema) == (
        "feature {\n"
        '  name: "label"\n'
        "  type: INT\n"
        "  int_domain {\n"
        "    min: 0\n"
        "    max: 9\n"
        "    is_categorical: true\n"
        "  }\n"
        "  presence {\n"
        "    min_fraction: 1.0\n"
        "    min_count: 1\n"
        "  }\n"
        "  shape {}\n"
        "}\n"
        "feature {\n"
        '  name: "xyz"\n'
        "  type: FLOAT\n"
        "  value_count {\n"
        "    min: 3\n"
        "    max: 3\n"
        "  }\n"
        "}\n"
        "feature {\n"
        '  name: "pixels"\n'
        "  type: BYTES\n"
        "  presence {\n"
        "    min_fraction: 1.0\n"
        "    min_count: 1\n"
        "  }\n"
        "  shape {}\n"
        "  annotation {\n"
        '    comment: "uint8 tensor (28, 28)"\n'
        "  }\n"
        "}\n"
    )


def test_pbtxt_round_trip_keeps_what_the_format_holds() -> None:
    schema = Schema(
        {
            "label": Spec("int64", logical="class_label", num_classes=10),
            "image": Spec("bytes", logical="image"),
            "text": Spec("bytes", (None,), logical="text", optional=True),
            "xyz": Spec("float", (2, 3), logical="tensor"),
            'odd "name"\n\\é': Spec("int64"),
        },
        feature_lists={
            "frames": Spec("float", (3,), logical="tensor"),
            "words": Spec("bytes", (None,), optional=True),
        },
    )
    assert from_pbtxt(to_pbtxt(schema)).schema == schema


def test_to_pbtxt_shape_of_two_sizes_is_in_a_comment() -> None:
    assert 'comment: "float (2, 3)"' in to_pbtxt(Schema({"x": Spec("float", (2, 3))}))
    assert "comment" not in to_pbtxt(Schema({"x": Spec("float", (2,))}))


def test_to_pbtxt_unsupported_parts_become_comments() -> None:
    schema = Schema({"\udcff": "int64", "mixed": Spec("int64", (None,), seen=("int64", "float"))})
    assert to_pbtxt(schema).splitlines()[:2] == [
        "# feature '\\udcff' is left out: its name is not UTF-8",
        "# feature 'mixed' has int64 and float in different records",
    ]
    with pytest.raises(SchemaError, match=r"schema\.pbtxt expected example or sequence_example records, got raw"):
        to_pbtxt(Schema({}, kind="raw"))


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project")
@pytest.mark.parametrize(
    ("path", "num_features", "some"),
    [
        ("google+tensorflow-recorder/tfrecorder/test_data/sample_tfrecords/schema.pbtxt", 7, {"label": Spec("int64")}),
        (
            "spotify+spotify-tensorflow/tests/resources/tf-test-resource/tf-records-taxi/chicago_taxi_schema.pbtxt",
            19,
            {"fare": Spec("float", optional=True), "trip_id": Spec("bytes", (None,))},
        ),
        (
            "tensorflow+tfx/tfx/components/testdata/penguin/schema/schema.pbtxt",
            5,
            {"species": Spec("int64", (1,), logical="tensor")},
        ),
        (
            "tensorflow+tfx/tfx/components/testdata/schema_gen/schema.pbtxt",
            18,
            {"company": Spec("bytes", (None,), logical="text"), "fare": Spec("float")},
        ),
        (
            "tensorflow+tfx/tfx/components/testdata/schema_gen_sequence/schema.pbtxt",
            3,
            {"i": Spec("int64", optional=True), "s": Spec("bytes", (None,), is_list=True, optional=True)},
        ),
        (
            "tensorflow+tfx/tfx/components/testdata/transform/transform_graph/transformed_metadata/schema.pbtxt",
            17,
            {"company_xf": Spec("int64", (1,), logical="class_label", num_classes=63)},
        ),
    ],
)
def test_from_pbtxt_corpus_files_are_read(path: str, num_features: int, some: dict[str, Spec]) -> None:
    read = from_pbtxt((CORPUS / path).read_text())
    assert len(read.schema) == num_features
    assert {name: read.schema[name] for name in some} == some
    assert from_pbtxt(to_pbtxt(read.schema)).schema == read.schema
