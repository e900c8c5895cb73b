"""features.json as we write it; that TFDS loads it is an interop test."""

from __future__ import annotations

from typing import Any

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.features.tfds_export import to_tfds
from tfrkit.features.tfds_json import from_tfds

PACKAGE = "tensorflow_datasets.core.features."

FAITHFUL = Schema(
    {
        "label": Spec("int64", logical="class_label", classes=("cat", "dog")),
        "labels": Spec("int64", (None,), logical="class_label", num_classes=7),
        "image": Spec("bytes", logical="image", dtype="uint8", format="jpeg", decoded_shape=(None, None, 3)),
        "frames": Spec("bytes", (5,), logical="image", dtype="uint8", format="png", decoded_shape=(64, 64, 1)),
        "mask": Spec(
            "bytes", logical="mask", dtype="uint8", format="png", decoded_shape=(None, None, 1), classes=("a", "b")
        ),
        "text": Spec("bytes", logical="text"),
        "texts": Spec("bytes", (None,), logical="text"),
        "image/object/bbox": Spec("float", (None, 4), logical="boxes"),
        "box": Spec("float", (4,), logical="boxes"),
        "bytes": Spec("bytes"),
        "pixels": Spec("int64", (28, 28, 1), logical="tensor", dtype="uint8"),
        "flag": Spec("int64", dtype="bool"),
        "wide": Spec("float", (3,), logical="tensor", dtype="float64"),
        "maybe": Spec("float", optional=True),
        "raw": Spec("bytes", (2, None), logical="tensor", encoding="raw", dtype="float64"),
        "packed": Spec("bytes", (2, 2), logical="tensor", encoding="zlib", dtype="uint16"),
    }
)


def test_tfds_round_trip_keeps_what_the_format_holds() -> None:
    files = to_tfds(FAITHFUL)
    assert files.notes == ()
    assert files.labels == {"label.labels.txt": "cat\ndog\n", "mask.labels.txt": "a\nb\n"}
    read = from_tfds(files.features, read_text=files.labels.get)
    assert read.schema == FAITHFUL
    assert read.schema.names == FAITHFUL.names


def test_to_tfds_content_is_pinned() -> None:
    schema = Schema({"labels": Spec("int64", (None,), logical="class_label", num_classes=7), "x": ("float", (2,))})
    assert to_tfds(schema).features == {
        "pythonClassName": PACKAGE + "features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "labels": {
                    "pythonClassName": PACKAGE + "sequence_feature.Sequence",
                    "sequence": {
                        "feature": {
                            "pythonClassName": PACKAGE + "class_label_feature.ClassLabel",
                            "classLabel": {"numClasses": "7"},
                        },
                        "length": "-1",
                    },
                },
                "x": {
                    "pythonClassName": PACKAGE + "tensor_feature.Tensor",
                    "tensor": {"shape": {"dimensions": ["2"]}, "dtype": "float32", "encoding": "none"},
                },
            }
        },
    }


@pytest.mark.parametrize(
    ("name", "spec", "becomes", "note"),
    [
        (
            "t",
            Spec("bytes", (2, 2), encoding="tensor_proto", dtype="uint8"),
            Spec("bytes"),
            "feature 't' is a serialized tensor; TFDS returns its bytes, for tf.io.parse_tensor",
        ),
        (
            "t",
            Spec("bytes", (None, None), encoding="raw", dtype="uint8"),
            Spec("bytes"),
            "feature 't' has an array (None, None) whose shape TFDS cannot infer; TFDS returns its bytes",
        ),
        (
            "t",
            Spec("float", (None, None)),
            Spec("float", (None,), logical="tensor"),
            "feature 't' has shape (None, None); TFDS returns the values as one list",
        ),
        (
            "t",
            Spec("bytes", logical="image", format="webp"),
            Spec("bytes"),
            "feature 't' is a webp image (None, None, 3), which TFDS cannot decode; TFDS returns its bytes",
        ),
        (
            "t",
            Spec("int64", (None,), seen=("int64", "float")),
            Spec("int64", (None,), logical="tensor"),
            "feature 't' has int64 and float in different records; TFDS will read the int64 ones",
        ),
        (
            "a/t",
            Spec("int64", logical="class_label", classes=("a", "")),
            Spec("int64", logical="class_label", num_classes=2),
            "feature 'a/t' has class names that do not fit on lines of a file; TFDS will see ids only",
        ),
        ("\udcff", Spec("int64"), None, "feature '\\udcff' is left out: its name is not UTF-8"),
    ],
)
def test_to_tfds_unsupported_parts_are_noted(name: str, spec: Spec, becomes: Spec | None, note: str) -> None:
    files = to_tfds(Schema({name: spec}))
    assert files.notes == (note,)
    expected: dict[str, Any] = {} if becomes is None else {name: becomes}
    assert dict(from_tfds(files.features).schema.features) == expected


def test_to_tfds_optional_list_is_not_marked() -> None:
    # TFDS fails on a default for a size that varies, and takes a missing list for an empty one.
    files = to_tfds(Schema({"tokens": Spec("int64", (None,), logical="tensor", optional=True)}))
    assert from_tfds(files.features).schema["tokens"] == Spec("int64", (None,), logical="tensor")


def test_to_tfds_sequence_examples_raise() -> None:
    with pytest.raises(SchemaError, match="TFDS expected example records, got sequence_example"):
        to_tfds(Schema({}, feature_lists={}))
