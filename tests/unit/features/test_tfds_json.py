"""features.json of TFDS: both styles, each feature class, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.spec import Spec
from tfrkit.features.tfds_json import from_tfds

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
PACKAGE = "tensorflow_datasets.core.features."


def old(class_name: str, **content: Any) -> dict[str, Any]:
    return {"type": PACKAGE + class_name, "content": content}


def new(class_name: str, key: str, **content: Any) -> dict[str, Any]:
    return {"pythonClassName": PACKAGE + class_name, key: content}


def old_dict(**features: Any) -> dict[str, Any]:
    return old("features_dict.FeaturesDict", **features)


def new_dict(**features: Any) -> dict[str, Any]:
    return new("features_dict.FeaturesDict", "featuresDict", features=features)


def old_tensor(dtype: str = "int64", shape: Any = (), **more: Any) -> dict[str, Any]:
    return old("tensor_feature.Tensor", shape=list(shape), dtype=dtype, **more)


def new_tensor(dtype: str = "int64", *dimensions: str, **more: Any) -> dict[str, Any]:
    shape = {"dimensions": list(dimensions)} if dimensions else {}
    return new("tensor_feature.Tensor", "tensor", shape=shape, dtype=dtype, encoding="none", **more)


def sequence(feature: Any, length: int = -1) -> dict[str, Any]:
    return new("sequence_feature.Sequence", "sequence", feature=feature, length=str(length))


IMAGE = Spec("bytes", logical="image", dtype="uint8", format="png", decoded_shape=(None, None, 3))


@pytest.mark.parametrize(
    ("feature", "spec"),
    [
        (old_tensor("int64"), Spec("int64")),
        (new_tensor("int64"), Spec("int64")),
        (new("scalar.Scalar", "tensor", shape={}, dtype="bool", encoding="none"), Spec("int64", dtype="bool")),
        (new_tensor("uint8", "28", "28", "1"), Spec("int64", (28, 28, 1), logical="tensor", dtype="uint8")),
        (old_tensor("float32", [None, 3]), Spec("float", (None, 3), logical="tensor")),
        (new_tensor("float64", "-1"), Spec("float", (None,), logical="tensor", dtype="float64")),
        (new_tensor("bfloat16"), Spec("float", dtype="bfloat16")),
        (new_tensor("string"), Spec("bytes")),
        (new_tensor("int32", optional=True), Spec("int64", dtype="int32", optional=True)),
        (
            old_tensor("float32", [2, 2], encoding="zlib"),
            Spec("bytes", (2, 2), logical="tensor", encoding="zlib", dtype="float32"),
        ),
        (
            {**new_tensor(), "tensor": {"shape": {"dimensions": ["-1"]}, "dtype": "uint8", "encoding": "bytes"}},
            Spec("bytes", (None,), logical="tensor", encoding="raw", dtype="uint8"),
        ),
        (old("text_feature.Text"), Spec("bytes", logical="text")),
        (new("text_feature.Text", "text"), Spec("bytes", logical="text")),
        (old("text_feature.Text", use_encoder=True), Spec("int64", (None,), logical="tensor")),
        (old("class_label_feature.ClassLabel", num_classes=3), Spec("int64", logical="class_label", num_classes=3)),
        (
            new("class_label_feature.ClassLabel", "classLabel", numClasses="3"),
            Spec("int64", logical="class_label", num_classes=3),
        ),
        (old("image_feature.Image", shape=[None, None, 3], dtype="uint8", encoding_format="png"), IMAGE),
        (
            new(
                "image_feature.Image",
                "image",
                shape={"dimensions": ["-1", "-1", "3"]},
                dtype="uint8",
                encodingFormat="png",
            ),
            IMAGE,
        ),
        (new("image_feature.Image", "image", dtype="uint8", encodingFormat="png"), IMAGE),
        (
            new("labeled_image.LabeledImage", "image", dtype="uint8", label={"numClasses": "4"}),
            Spec("bytes", logical="mask", dtype="uint8", decoded_shape=(None, None, 1), num_classes=4),
        ),
        (
            new("video_feature.Video", "video", shape={"dimensions": ["-1", "64", "64", "3"]}, encodingFormat="jpeg"),
            Spec("bytes", (None,), logical="image", dtype="uint8", format="jpeg", decoded_shape=(64, 64, 3)),
        ),
        (old("audio_feature.Audio", shape=[None], dtype="int64"), Spec("int64", (None,), logical="tensor")),
        (
            new("audio_feature.Audio", "audio", dtype="int64", lazyDecode=True, fileFormat="flac"),
            Spec("bytes", logical="bytes", format="flac"),
        ),
        (new("bounding_boxes.BBoxFeature", "boundingBox"), Spec("float", (4,), logical="boxes")),
        (sequence(new_tensor("bool")), Spec("int64", (None,), logical="tensor", dtype="bool")),
        (sequence(new_tensor("float32", "7"), 5), Spec("float", (5, 7), logical="tensor")),
        (
            old("sequence_feature.Sequence", feature=old("bounding_boxes.BBoxFeature"), length=None),
            Spec("float", (None, 4), logical="boxes"),
        ),
        (
            sequence(old_tensor("uint8", [4], encoding="bytes")),
            Spec("bytes", (None,), logical="bytes"),
        ),
        (
            {
                "pythonClassName": PACKAGE + "tensor_feature.Tensor",
                "jsonFeature": {"json": '{"shape": [2], "dtype": "int64"}'},
            },
            Spec("int64", (2,), logical="tensor"),
        ),
        (
            {
                "type": PACKAGE + "tensor_feature.Tensor",
                "content": '{"shape": {"dimensions": ["2"]}, "dtype": "int64"}',
                "proto_cls": "tensorflow_datasets.TensorFeature",
            },
            Spec("int64", (2,), logical="tensor"),
        ),
    ],
)
def test_from_tfds_feature_becomes_spec(feature: dict[str, Any], spec: Spec) -> None:
    for content in (old_dict(x=feature), new_dict(x=feature)):
        read = from_tfds(content)
        assert dict(read.schema.features) == {"x": spec}
        assert read.notes == ()


def test_from_tfds_nested_dicts_are_joined_by_slashes() -> None:
    steps = new(
        "dataset_feature.Dataset",
        "sequence",
        feature=new_dict(obs=new_dict(xy=new_tensor("float32", "2"))),
        length="-1",
    )
    read = from_tfds(new_dict(steps=steps, meta=new_dict(id=new_tensor())))
    assert dict(read.schema.features) == {
        "steps/obs/xy": Spec("float", (None, 2), logical="tensor"),
        "meta/id": Spec("int64"),
    }


def test_from_tfds_sequence_of_sequences_is_ragged_on_disk() -> None:
    read = from_tfds(new_dict(a=sequence(sequence(new_tensor("float32", "2")))))
    assert dict(read.schema.features) == {
        "a/ragged_flat_values": Spec("float", (None, 2), logical="tensor"),
        "a/ragged_row_lengths_0": Spec("int64", (None,), logical="tensor"),
    }


def test_from_tfds_array_of_unknown_shape_adds_a_shape_feature() -> None:
    read = from_tfds(old_dict(a=old_tensor("uint8", [None, None], encoding="zlib")))
    assert dict(read.schema.features) == {
        "a/shape": Spec("int64", (2,), logical="tensor", dtype="int32"),
        "a/value": Spec("bytes", logical="bytes"),
    }


def test_from_tfds_translations_are_texts() -> None:
    assert dict(from_tfds(old("translation_feature.Translation", languages=["de", "en"])).schema.features) == {
        "de": Spec("bytes", logical="text"),
        "en": Spec("bytes", logical="text"),
    }
    variable = new("translation_feature.TranslationVariableLanguages", "translation", variableLanguagesPerExample=True)
    assert dict(from_tfds(new_dict(t=variable)).schema.features) == {
        "t/language": Spec("bytes", (None,), logical="text"),
        "t/translation": Spec("bytes", (None,), logical="text"),
    }


def test_from_tfds_class_names_come_from_files_next_to_it() -> None:
    label = new("class_label_feature.ClassLabel", "classLabel", numClasses="2")
    asked = []

    def read_text(name: str) -> str | None:
        asked.append(name)
        return {"objects-label.labels.txt": "cat\n dog \n\n", "wrong.labels.txt": "one\n"}.get(name)

    content = new_dict(objects=sequence(new_dict(label=label)), wrong=label, **{"a/b": label})
    read = from_tfds(content, read_text=read_text)
    assert asked == ["objects-label.labels.txt", "wrong.labels.txt", "a.b.labels.txt"]
    assert read.schema["objects/label"].classes == ("cat", "dog")
    assert (read.schema["wrong"].classes, read.schema["wrong"].num_classes) == (None, 2)
    assert read.notes == ("wrong.labels.txt expected 2 names, got 1; left out",)


def test_from_tfds_unknown_features_are_left_to_inference() -> None:
    content = new_dict(
        ok=new_tensor(),
        theirs={"pythonClassName": "my.project.Image", "image": {}},
        later=new("future.Hologram", "hologram"),
        dtype=new_tensor("complex64"),
        # NumPy would parse such a name and fail with its own errors.
        digits=new_tensor("9" * 5000),
        shape=new_tensor("int64", "x"),
        words=sequence({"pythonClassName": "my.Word", "text": {}}),
        number=3,
        long=sequence(new_tensor(), 10**30),
    )
    read = from_tfds(content)
    assert read.schema.names == ("ok",)
    assert read.notes == (
        "feature 'theirs' has the unknown class 'my.project.Image'; taken from the records instead",
        "feature 'later' has the unknown class 'tensorflow_datasets.core.features.future.Hologram'; "
        "taken from the records instead",
        "feature 'dtype' has the unknown dtype 'complex64'; taken from the records instead",
        f"feature 'digits' has the unknown dtype '{'9' * 63}; taken from the records instead",
        "feature 'shape' expected a list of sizes as shape, got ['x']; taken from the records instead",
        "feature 'words' has the unknown class 'my.Word'; taken from the records instead",
        "feature 'number' expected an object, got int; taken from the records instead",
        f"feature 'long' shape expected sizes of 0 or more, or None, got ({10**30},); taken from the records instead",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "features.json expected an object with a feature class"),
        ({"name": "mnist", "splits": []}, "features.json expected an object with a feature class"),
        (old_tensor(), "features.json expected a dict of features at the top, got a single one"),
        ({"type": 3}, "features.json cannot be read: its top-level feature has no class or no content"),
        ({"type": "my.Dict"}, "features.json cannot be read: its top-level feature has the unknown class 'my.Dict'"),
    ],
)
def test_from_tfds_something_else_raises(content: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_tfds(content)


def test_from_tfds_deep_nesting_is_refused_not_followed() -> None:
    feature = new_tensor()
    for _ in range(100):
        feature = new_dict(a=feature)
    read = from_tfds(feature)
    assert read.schema.names == ()
    assert "is nested deeper than 40 levels" in read.notes[0]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the project")
@pytest.mark.parametrize(
    ("folder", "num_features", "some"),
    [
        ("google+trax/trax/data/testdata/para_crawl/ende/1.2.0", 2, {"de": Spec("bytes", logical="text")}),
        (
            "octo-models+octo/tests/debug_dataset/bridge_dataset/1.0.0",
            20,
            {
                "steps/action": Spec("float", (None, 7), logical="tensor"),
                "steps/is_first": Spec("int64", (None,), logical="tensor", dtype="bool"),
                "steps/observation/image_0": Spec(
                    "bytes", (None,), logical="image", dtype="uint8", format="jpeg", decoded_shape=(64, 64, 3)
                ),
            },
        ),
        (
            "tensorflow+datasets/tensorflow_datasets/robotics/dummy_data/bridge/1.0.0",
            13,
            {"steps/action/world_vector": Spec("float", (None, 3), logical="tensor")},
        ),
        (
            "tensorflow+datasets/tensorflow_datasets/testing/metadata/accentdb/1.0.0",
            3,
            {"audio": Spec("int64", (None,), logical="tensor"), "speaker_id": Spec("bytes")},
        ),
        (
            "tensorflow+datasets/tensorflow_datasets/testing/metadata/d4rl_mujoco_ant/v0-expert/1.2.0",
            7,
            {"steps/observation": Spec("float", (None, 111), logical="tensor")},
        ),
        (
            "tensorflow+datasets/tensorflow_datasets/testing/metadata/ted_multi_translate/1.1.0",
            3,
            {"translations/language": Spec("bytes", (None,), logical="text")},
        ),
        (
            "tensorflow+datasets/tensorflow_datasets/testing/metadata/voc/2007/4.0.0",
            9,
            {
                "objects/bbox": Spec("float", (None, 4), logical="boxes"),
                "image/filename": Spec("bytes", logical="text"),
            },
        ),
    ],
)
def test_from_tfds_corpus_files_are_read(folder: str, num_features: int, some: dict[str, Spec]) -> None:
    def read_text(name: str) -> str | None:
        path = CORPUS / folder / name
        return path.read_text() if path.exists() else None

    read = from_tfds(json.loads((CORPUS / folder / "features.json").read_text()), read_text=read_text)
    assert (len(read.schema), read.notes) == (num_features, ())
    assert {name: read.schema[name] for name in some} == some
    if "voc" in folder:
        assert read.schema["objects/label"].classes is not None
        assert read.schema["objects/label"].classes[:2] == ("aeroplane", "bicycle")
