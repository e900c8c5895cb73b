from __future__ import annotations

from typing import Any

import pytest

from tfrkit.errors import MissingFeatureError, SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.size_features import SizeFeatures
from tfrkit.features.spec import Spec
from tfrkit.pictures.features import NO_FEATURE, BoxFeatures, find_picture_features, is_flat_image, list_choices

BYTES, TEXT, INT = Spec("bytes", logical="bytes"), Spec("bytes", logical="text"), Spec("int64")
SIDES = tuple(f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax"))


@pytest.mark.parametrize(
    ("features", "image"),
    [
        ({"a": "image", "image/encoded": "image"}, "image/encoded"),
        ({"b": "image", "a": "image"}, "b"),
        ({"thumb": "image", "image": BYTES}, "thumb"),
        ({"image_raw": BYTES, "label_raw": BYTES, "height": INT, "width": INT}, "image_raw"),
        ({"data": BYTES, "shape": Spec("int64", (3,))}, "data"),
        ({"image_name": TEXT, "image": TEXT}, "image"),
        ({"x": ("uint8", (28, 28, 1))}, "x"),
        ({"image": ("uint8", (28, 28)), "embedding": ("float64", (28, 28))}, "image"),
        ({"pixels": Spec("int64", (784,)), "height": INT, "width": INT}, "pixels"),
    ],
)
def test_image_is_the_feature_that_is_most_surely_one(features: dict[str, Any], image: str) -> None:
    assert find_picture_features(Schema(features)).image == image


@pytest.mark.parametrize(
    "features",
    [
        {},
        {"data": BYTES},
        {"image_name": TEXT, "image/height": INT, "image/width": INT},
        {"embedding": ("float64", (28, 28))},
        {"image/mask": "mask"},
        {"image_floats": Spec("float", (784,))},
    ],
)
def test_features_without_an_image_are_refused(features: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="no feature looks like an image, there is "):
        find_picture_features(Schema(features))


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        ({"label": INT, "label/text": TEXT}, ("label/text",)),
        ({"image/class/label": INT, "image/class/text": TEXT, "image/format": TEXT}, ("image/class/text",)),
        ({"label": INT, "label_length": INT}, ("label",)),
        ({"label1": INT, "label0": INT, "label10": INT, "other": INT}, ("label0", "label1", "label10")),
        ({"species_class": INT}, ("species_class",)),
        ({"image/segmentation/class/format": TEXT, "image/filename": TEXT}, ()),
        ({"height": INT}, ()),
    ],
)
def test_labels_are_texts_then_numbers_and_never_facts(features: dict[str, Any], labels: tuple[str, ...]) -> None:
    assert find_picture_features(Schema({"image": "image", **features})).labels == labels


def test_sizes_are_those_of_the_image_where_there_are_several() -> None:
    names = ("mask/height", "mask/width", "image/height", "image/width", "image/channels")
    found = find_picture_features(Schema({"image/encoded": BYTES, **dict.fromkeys(names, INT)}))
    assert found.sizes == SizeFeatures("image/height", "image/width", "image/channels")


def test_boxes_take_their_names_with_them() -> None:
    lists = dict.fromkeys(SIDES, Spec("float", (None,)))
    classes = {"image/object/class/text": Spec("bytes", (None,), logical="text"), "image/object/class/label": INT}
    found = find_picture_features(Schema({"image/encoded": "image", **lists, **classes, "image/filename": TEXT}))
    assert found.boxes == BoxFeatures(SIDES, "image/object/class/text", "image/object/class/label")
    assert (found.labels, found.title) == ((), "image/filename")
    assert set(found.names) == {"image/encoded", "image/filename", *SIDES, *classes}
    del lists[SIDES[0]]
    assert find_picture_features(Schema({"image/encoded": "image", **lists})).boxes is None


CLASSES = Spec("int64", (None,), logical="class_label", num_classes=5)


@pytest.mark.parametrize(
    ("features", "label"),
    [
        ({"boxes/cls": CLASSES}, "boxes/cls"),
        ({"boxes/cls": CLASSES, "boxes/label": CLASSES}, "boxes/label"),
        ({"boxes/size": CLASSES, "boxes/category": CLASSES}, "boxes/category"),
        ({"boxes/size": CLASSES, "boxes/look": CLASSES}, None),
        ({"boxes/cls": Spec("int64", logical="class_label")}, None),
        ({"boxes/cls": Spec("int64", (None,))}, None),
        ({"others/cls": CLASSES, "cls": CLASSES}, None),
    ],
)
def test_classes_of_boxes_are_the_class_labels_next_to_them(features: dict[str, Any], label: str | None) -> None:
    box = Spec("float", (None, 4), logical="boxes")
    found = find_picture_features(Schema({"image": "image", "boxes/bbox": box, **features}))
    assert found.boxes == BoxFeatures(("boxes/bbox",), None, label)
    sides = {f"boxes/bbox/{side}": Spec("float", (None,)) for side in ("xmin", "ymin", "xmax", "ymax")}
    found = find_picture_features(Schema({"image": "image", **sides, **features}))
    assert found.boxes is not None and found.boxes.label == label
    alone = Schema(
        {"image": "image", **{side.removeprefix("boxes/"): spec for side, spec in sides.items()}, "cls": CLASSES}
    )
    found = find_picture_features(alone)
    assert found.boxes is not None and found.boxes.label is None


@pytest.mark.parametrize("name", ["image/object/score", "image/object/class/score", "image/object/confidence"])
def test_scores_of_boxes_are_found_next_to_them(name: str) -> None:
    sides = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]
    floats = {one: Spec("float", (None,)) for one in [*sides, name]}
    schema = Schema({"image/encoded": Spec("bytes", logical="image"), **floats})
    for boxes in (None, "image/object/bbox"):
        found = find_picture_features(schema, boxes=boxes)
        assert found.boxes is not None and found.boxes.score == name
        assert name in found.names


def test_features_of_several_kinds_are_left_out() -> None:
    mixed = Spec("int64", seen=("int64", "bytes"))
    assert find_picture_features(Schema({"image": "image", "label": mixed})).labels == ()
    with pytest.raises(SchemaError, match="feature 'label' expected one kind, got int64 and bytes"):
        find_picture_features(Schema({"image": "image", "label": mixed}), label="label")
    with pytest.raises(MissingFeatureError, match="no feature 'lable', did you mean 'label'"):
        find_picture_features(Schema({"image": "image", "label": INT}), label="lable")


def test_every_choice_can_be_overridden() -> None:
    schema = Schema(
        {
            "a": Spec("bytes", logical="image"),
            "b": Spec("bytes", logical="image"),
            "seg": Spec("bytes", logical="mask"),
            "box": Spec("float", (None, 4), logical="boxes"),
            "other": Spec("float", (None,)),
            "kind": Spec("int64", (None,)),
            "label": Spec("int64"),
            "weight": Spec("int64"),
        }
    )
    found = find_picture_features(schema)
    assert (found.image, found.mask, found.labels) == ("a", "seg", ("label",))
    assert found.boxes == BoxFeatures(("box",))
    found = find_picture_features(
        schema,
        image="b",
        mask="a",
        label="weight",
        boxes="other",
        names="kind",
        box_order="xywh",
        box_units="pixels",
    )
    assert (found.image, found.mask, found.labels) == ("b", "a", ("weight",))
    assert found.boxes == BoxFeatures(("other",), None, "kind", "xywh", "pixels")
    found = find_picture_features(schema, mask=NO_FEATURE, label=NO_FEATURE, boxes=NO_FEATURE)
    assert (found.mask, found.labels, found.boxes) == (None, (), None)
    with pytest.raises(SchemaError, match="boxes expected numbers in 'a' or its xmin"):
        find_picture_features(schema, boxes="a")
    choices = list_choices(schema)
    assert choices["image"] == ["a", "b", "seg"]
    assert choices["boxes"] == ["box", "other"]
    assert "label" in choices["label"] and "box" not in choices["label"]


def test_choices_of_boxes_are_the_start_of_four_features() -> None:
    schema = Schema({name: Spec("float", (None,)) for name in SIDES})
    assert list_choices(schema)["boxes"] == ["image/object/bbox"]


@pytest.mark.parametrize(("shape", "is_flat"), [((784,), True), ((0,), False), ((None,), False), ((28, 28), False)])
def test_flat_image_is_a_list_of_a_known_length(shape: tuple[int | None, ...], is_flat: bool) -> None:
    assert is_flat_image("image", Spec("int64", shape)) == is_flat
