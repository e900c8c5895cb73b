"""`object_detection.utils` and slim's `datasets.dataset_utils`, as converters use them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tfrkit as tfr
from tfrkit.compat import tensorflow as tf
from tfrkit.compat.object_detection.utils import dataset_util, label_map_util
from tfrkit.compat.slim.datasets import dataset_utils
from tfrkit.errors import SchemaError

MAP = """
# comment
item { id: 1 name: 'cat' display_name: "Cat" }
item: { name: "d\\303\\266g"  id: 3, }
item < id: 9 name: "r" "at" frequency: FREQUENT keypoints { id: 1 label: "nose" } >
"""


def test_features_hold_what_they_are_given() -> None:
    def read(feature: Any) -> tuple[str, list[Any]]:
        return feature.WhichOneof("kind"), list(getattr(feature, feature.WhichOneof("kind")).value)

    assert read(dataset_util.int64_feature(3)) == ("int64_list", [3])
    assert read(dataset_util.int64_list_feature([3, 4])) == ("int64_list", [3, 4])
    assert read(dataset_util.bytes_feature(b"a")) == ("bytes_list", [b"a"])
    assert read(dataset_util.bytes_list_feature([b"a", b""])) == ("bytes_list", [b"a", b""])
    assert read(dataset_util.float_feature(0.5)) == ("float_list", [0.5])
    assert read(dataset_util.float_list_feature([])) == ("float_list", [])
    assert read(dataset_utils.int64_feature((1, 2))) == ("int64_list", [1, 2])
    assert read(dataset_utils.float_feature(0.5)) == ("float_list", [0.5])
    assert read(dataset_utils.bytes_list_feature(b"x")) == ("bytes_list", [b"x"])


def test_list_of_examples_is_the_first_word_of_each_line(tmp_path: Path) -> None:
    (tmp_path / "cat_train.txt").write_text("000012  1\n000017 -1\r\n000023\n")
    assert dataset_util.read_examples_list(str(tmp_path / "cat_train.txt")) == ["000012", "000017", "000023"]


def test_annotation_becomes_nested_dicts() -> None:
    root = ElementTree.fromstring(
        "<annotation><size><width>5</width></size><!-- no --><object><name>a</name></object>"
        "<object><name>b</name><bndbox><xmin>1</xmin></bndbox></object><segmented/></annotation>"
    )
    assert dataset_util.recursive_parse_xml_to_dict(root) == {
        "annotation": {
            "size": {"width": "5"},
            "object": [{"name": "a"}, {"name": "b", "bndbox": {"xmin": "1"}}],
            "segmented": None,
        }
    }
    assert dataset_util.recursive_parse_xml_to_dict(ElementTree.fromstring("<a>x</a>")) == {"a": "x"}


def test_annotation_with_one_object_has_a_list_of_it_and_none_has_none() -> None:
    one = dataset_util.recursive_parse_xml_to_dict(ElementTree.fromstring("<a><object>x</object></a>"))
    assert one == {"a": {"object": ["x"]}}


def test_deep_annotation_is_refused() -> None:
    root = ElementTree.fromstring("<a>" * 5000 + "</a>" * 5000)
    with pytest.raises(ValueError, match="annotation expected at most 64 levels, got more"):
        dataset_util.recursive_parse_xml_to_dict(root)


@pytest.fixture
def label_map(tmp_path: Path) -> str:
    path = tmp_path / "label_map.pbtxt"
    path.write_text(MAP, encoding="utf-8")
    return str(path)


def test_label_map_gives_names_and_numbers(label_map: str) -> None:
    loaded = label_map_util.load_labelmap(label_map)
    assert [(item.id, item.name) for item in loaded.item] == [(1, "cat"), (3, "dög"), (9, "rat")]
    assert loaded.item[0].HasField("display_name")
    assert not loaded.item[1].HasField("display_name")
    assert label_map_util.get_label_map_dict(label_map) == {"cat": 1, "dög": 3, "rat": 9}
    assert label_map_util.get_label_map_dict(loaded) == {"cat": 1, "dög": 3, "rat": 9}
    assert label_map_util.get_label_map_dict(label_map, use_display_name=True)["Cat"] == 1
    filled = label_map_util.get_label_map_dict(label_map, fill_in_gaps_and_background=True)
    assert sorted(filled.values()) == list(range(10))
    assert (filled["background"], filled["2"]) == (0, 2)
    assert label_map_util.get_max_label_map_index(loaded) == 9


def test_label_map_becomes_categories(label_map: str) -> None:
    loaded = label_map_util.load_labelmap(label_map)
    few = [{"id": 1, "name": "Cat"}, {"id": 3, "name": "dög"}]
    assert label_map_util.convert_label_map_to_categories(loaded, max_num_classes=3) == few
    index = label_map_util.create_category_index_from_labelmap(label_map, use_display_name=False)
    assert index == {
        1: {"id": 1, "name": "cat"},
        3: {"id": 3, "name": "dög"},
        9: {"id": 9, "name": "rat"},
    }
    assert label_map_util.create_category_index(few)[3]["name"] == "dög"
    assert label_map_util.convert_label_map_to_categories(None, 2) == [
        {"id": 1, "name": "category_1"},
        {"id": 2, "name": "category_2"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item { id: 0 name: 'cat' }", "expected an id from 1 on, 0 is the background, got 0 for 'cat' - at line 1"),
        ("item { name: 'cat' }", "expected an id from 1 on"),
        ("item { id: -1 name: 'cat' }", "expected an id from 0 on, got -1"),
        ("item { id: 1.5 name: 'cat' }", "expected an id from 0 on, got 1.5"),
        ("item { id: 'x' }", "field 'id' expected a number"),
        ("item { id: 1 nmae: 'cat' }", "label map expected .*, got 'nmae' - at line 1"),
        ("items { id: 1 }", "label map expected item, got 'items'"),
        ("item { id: 1 ", "expected a field name or '}'"),
        ("item { " * 2000, "levels of messages|expected item|got 'item'"),
    ],
)
def test_bad_label_map_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.pbtxt"
    path.write_text(text)
    with pytest.raises(SchemaError, match=f"{message}(.|\n)*map.pbtxt"):
        label_map_util.load_labelmap(str(path))


def test_binary_or_missing_label_map_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.pbtxt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match=r"label map expected text, got bytes that are not UTF-8 - at .*map.pbtxt"):
        label_map_util.load_labelmap(str(path))
    with pytest.raises(tf.errors.NotFoundError, match="no such file"):
        label_map_util.load_labelmap(str(tmp_path / "nope"))


def test_number_with_two_names_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "map.pbtxt"
    path.write_text("item { id: 1 name: 'a' } item { id: 1 name: 'b' } item { id: 2 name: 'b' }")
    assert label_map_util.get_label_map_dict(str(path)) == {"a": 1, "b": 2}
    assert [message.split(" - at ")[0] for message in caplog.messages] == [
        "class 1 has two names, 'a' and 'b'",
        "class 'b' has two numbers, 1 and 2",
    ]


def test_label_file_is_written_and_read(tmp_path: Path) -> None:
    assert not dataset_utils.has_labels(str(tmp_path))
    dataset_utils.write_label_file({0: "daisy", 1: "a:b"}, str(tmp_path))
    assert (tmp_path / "labels.txt").read_text() == "0:daisy\n1:a:b\n"
    assert dataset_utils.has_labels(str(tmp_path))
    assert dataset_utils.read_label_file(str(tmp_path)) == {0: "daisy", 1: "a:b"}
    (tmp_path / "labels.txt").write_text("0:a\nb\n")
    with pytest.raises(ValueError, match=r"label file expected number:name, got 'b' - at .*labels.txt, line 2"):
        dataset_utils.read_label_file(str(tmp_path))


def test_shards_are_opened_together_and_read_by_tfrkit(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        writers = dataset_utils.open_sharded_output_tfrecords(stack, str(tmp_path / "x"), 2)
        for number in range(5):
            example = dataset_utils.image_to_tfexample(b"data", b"jpg", 4, 6, number)
            writers[number % 2].write(example.SerializeToString())
    rows = list(tfr.open(str(tmp_path / "x-0000*")))
    assert sorted(row["image/class/label"] for row in rows) == [0, 1, 2, 3, 4]
    assert {(row["image/height"], row["image/width"], row["image/format"]) for row in rows} == {(4, 6, b"jpg")}


def test_downloads_are_not_offered() -> None:
    with pytest.raises(AttributeError, match="download_and_uncompress_tarball is not offered\n  download and unpack"):
        dataset_utils.download_and_uncompress_tarball("x", "y")


def test_one_class_for_all_detections_has_the_id_it_is_found_by() -> None:
    assert label_map_util.create_class_agnostic_category_index() == {1: {"id": 1, "name": "object"}}
