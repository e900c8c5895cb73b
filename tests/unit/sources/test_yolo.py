"""YOLO: label files, data.yaml, layouts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import SourceError
from tfrkit.features.text_proto import parse_text
from tfrkit.sources.base import Scan
from tfrkit.sources.yolo import Yolo
from tfrkit.sources.yolo_files import parse_data_yaml, parse_names, parse_yolo_labels


def save_image(path: Path, size: tuple[int, int] = (60, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


def save_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def rows_of(scan: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    items = [scan.items.item(number) for number in range(scan.items.size)]
    return {item.key: reader.read(item) for item in items}


# --- label files


def test_parse_labels_boxes_and_outlines() -> None:
    objects, problems = parse_yolo_labels("3 0.5 0.5 0.25 0.5\n\n0 0.1 0.2 0.5 0.3 0.3 0.9\r\n")
    assert problems == []
    assert [(one.label, one.corners, one.line, one.is_outline) for one in objects] == [
        (3, (0.375, 0.25, 0.625, 0.75), 1, False),
        (0, (0.1, 0.2, 0.5, 0.9), 3, True),
    ]


def test_parse_labels_keypoints_after_a_box_are_skipped() -> None:
    line = "0 0.5 0.5 0.2 0.2 0.4 0.4 2 0.6 0.6 1"
    objects, problems = parse_yolo_labels(line, has_keypoints=True)
    assert (objects[0].corners, objects[0].is_outline, problems) == ((0.4, 0.4, 0.6, 0.6), False, [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("cat 0.5 0.5 0.1 0.1", "expected numbers, got 'cat'"),
        ("0 0.5 0,5 0.1 0.1", "expected numbers, got '0,5'"),
        ("0 nan 0.5 0.1 0.1", "expected numbers, got nan or inf"),
        ("-1 0.5 0.5 0.1 0.1", "class expected a whole number of 0 or more, got '-1'"),
        ("1.5 0.5 0.5 0.1 0.1", "class expected a whole number of 0 or more, got '1.5'"),
        ("0 0.5 0.5 -0.1 0.1", "width and height expected 0 or more, got -0.1 and 0.1"),
        ("0 0.5 0.5", "pairs of 3 corners or more, got 3 numbers"),
        ("0 0.5 0.5 0.1 0.1 0.9", "got 6 numbers"),
    ],
)
def test_parse_labels_line_that_is_none_is_named(line: str, reason: str) -> None:
    objects, [(number, got)] = parse_yolo_labels(f"0 0.5 0.5 0.1 0.1\n{line}\n")
    assert (len(objects), number) == (1, 2)
    assert reason in got


# --- data.yaml

YAMLS = {
    "block map": "path: ../coco  # root\ntrain: images/train\nval: images/val\ntest:\nnames:\n  0: cat\n"
    "  1: 'traffic light'\n  10: \"tv # 1\"\ndownload: |\n  names: [x]\n",
    "flow list": "train: ../train/images\nnc: 3\nnames: ['a', \"b, c\", it's]\nroboflow:\n  v: 1\n",
    "block list": "train:\n- a/images\n- b/images\nval: [x, y]\nnames:\n- cat\n- 'dog'\nnc: 2\n",
    "flow map": "names: {0: a, 1: 'b: c'}\ntrain: t\n",
    "flow list in lines": "names: [a,\n  b]\ntrain: t",
}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("block map", {0: "cat", 1: "traffic light", 10: "tv # 1"}),
        ("flow list", {0: "a", 1: "b, c", 2: "it's"}),
        ("block list", {0: "cat", 1: "dog"}),
        ("flow map", {0: "a", 1: "b: c"}),
        ("flow list in lines", {0: "a", 1: "b"}),
    ],
)
def test_parse_data_yaml_reads_names_in_each_form(kind: str, names: dict[int, str]) -> None:
    assert parse_data_yaml(YAMLS[kind], "data.yaml").names == names


def test_parse_data_yaml_names_are_as_written() -> None:
    names = parse_data_yaml("names: [no, 1.50, 007, ~, &a x, *a, !!python/object:os.system y]", "d").names
    assert list(names.values()) == ["no", "1.50", "007", "~", "x", "x", "y"]


def test_parse_data_yaml_reads_places() -> None:
    assert parse_data_yaml(YAMLS["block map"], "d").path == "../coco"
    assert parse_data_yaml(YAMLS["block map"], "d").splits == {"train": ("images/train",), "val": ("images/val",)}
    assert parse_data_yaml(YAMLS["block list"], "d").splits == {"train": ("a/images", "b/images"), "val": ("x", "y")}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("nc: 3\nnames: [a, b]\n", "nc expected the number of names, 2, got 3 - at d.yaml, line 1"),
        ("\nnames: [a, [b]]\n", "key 'names' expected a word, a flat list or a flat map, got a sequence .*line 2"),
        ("names: {0: {a: b}}\n", "key 'names' expected a word, a flat list or a flat map, got a mapping"),
        ("names: [a\n", "expected YAML, expected ',' or ']', .* - at d.yaml, line 2"),
        ("names: *x\n", "expected YAML, found undefined alias 'x' - at d.yaml, line 1"),
        ("names: " + "[" * 100_000, "expected YAML, got endlessly nested lists - at d.yaml"),
        ("names:\n  cat: 0\n", "names expected a list, or numbers with names"),
    ],
)
def test_parse_data_yaml_what_it_does_not_read_is_refused(text: str, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        parse_data_yaml(text, "d.yaml")


def test_parse_names_keeps_empty_lines_inside() -> None:
    assert parse_names("\ufeffcat\n\ndog \n\n") == ["cat", "", "dog"]


# --- the source


def make_dataset(root: Path) -> None:
    for split in ("train", "val"):
        save_image(root / f"images/{split}/a.jpg")
        save_text(root / f"labels/{split}/a.txt", "1 0.5 0.5 0.2 0.4\n")
    save_text(root / "data.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: [cat, dog]\n")


def test_yolo_rows_have_the_features_of_the_detection_api(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    scan = Yolo(tmp_path).scan("")  # type: ignore[arg-type]
    assert scan.items.split_names == ("train", "val")
    rows = rows_of(scan)
    row = rows["images/train/a.jpg"]
    assert row["image/object/bbox/xmin"].tolist() == [np.float32(0.4)]
    assert row["image/object/bbox/ymax"].tolist() == [np.float32(0.7)]
    assert row["image/object/class/label"].tolist() == [2]
    assert row["image/object/class/text"] == [b"dog"]
    schema = scan.schema_after({})
    assert schema is not None
    assert set(row) == set(schema.features)
    assert scan.label_files["classes.txt"] == "1:cat\n2:dog\n"
    assert [item.get_text("name") for item in parse_text(scan.label_files["label_map.pbtxt"]).get_messages("item")] == [
        "cat",
        "dog",
    ]
    path = tmp_path / "map.pbtxt"
    path.write_text(scan.label_files["label_map.pbtxt"])
    again = Yolo(str(tmp_path), classes=str(path)).scan("")
    assert again.label_files == scan.label_files
    assert rows_of(again)["images/train/a.jpg"]["image/object/class/label"].tolist() == [2]


def test_yolo_label_map_below_the_offset_is_refused(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    path = tmp_path / "map.pbtxt"
    path.write_text("item { id: 0 name: 'cat' } item { id: 1 name: 'dog' }")
    with pytest.raises(SourceError, match=r"label map expected ids from 1 up, got 0 - at .*\n.*label_offset=0"):
        Yolo(str(tmp_path), classes=str(path)).scan("")
    assert rows_of(Yolo(str(tmp_path), label_offset=0).scan(""))["images/val/a.jpg"]["image/object/class/label"] == [1]


def test_yolo_sets_of_the_same_images_name_the_option_for_one(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    save_text(tmp_path / "data.yaml", "train: images/train\nval: ./images/train\nnames: [cat, dog]\n")
    with pytest.raises(SourceError, match=r"got 'images/train' for train and val - at .*\n.*sets=\[\"train\"\]"):
        Yolo(str(tmp_path)).scan("")
    assert Yolo(str(tmp_path), sets=["train"]).scan("").items.size == 1


def test_yolo_set_takes_one_split(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    assert list(rows_of(Yolo(str(tmp_path / "data.yaml"), sets="val").scan(""))) == ["images/val/a.jpg"]
    with pytest.raises(SourceError, match="no set 'test', expected one of train, val"):
        Yolo(str(tmp_path), sets=["test"]).scan("")


def make_north_and_south(root: Path, yaml: str) -> None:
    for split in ("north", "south"):
        save_image(root / f"images/{split}/{split}.jpg")
        save_text(root / f"labels/{split}/{split}.txt", "0 0.5 0.5 0.2 0.4\n")
    save_text(root / "data.yaml", yaml)


def test_yolo_splits_of_any_name_are_read_from_data_yaml(tmp_path: Path) -> None:
    make_north_and_south(tmp_path, "north: images/north\nsouth: [images/south]\nlicense: MIT\nnames: [x]\n")
    scan = Yolo(str(tmp_path)).scan("")
    assert (scan.items.split_names, scan.items.size) == (("north", "south"), 2)
    assert list(rows_of(Yolo(str(tmp_path), sets="south").scan(""))) == ["images/south/south.jpg"]


def test_yolo_other_splits_next_to_train_are_found_by_name(tmp_path: Path) -> None:
    make_north_and_south(tmp_path, "train: images/north\nsouth: images/south\nnames: [x]\n")
    assert Yolo(str(tmp_path)).scan("").items.split_names == ("train",)
    assert Yolo(str(tmp_path), sets=["train", "south"]).scan("").items.split_names == ("train", "south")


def test_yolo_set_is_a_folder_where_data_yaml_names_none(tmp_path: Path) -> None:
    make_north_and_south(tmp_path, "names: [x]\n")
    assert Yolo(str(tmp_path), sets="north").scan("").items.split_names == ("north",)
    with pytest.raises(SourceError, match="no set 'east', expected one of images without sets"):
        Yolo(str(tmp_path), sets="east").scan("")


def test_yolo_exports_that_point_one_folder_too_high_are_understood(tmp_path: Path) -> None:
    save_image(tmp_path / "valid/images/a.jpg")
    save_text(tmp_path / "valid/labels/a.txt", "0 0.5 0.5 0.2 0.4\n")
    save_text(tmp_path / "data.yaml", "val: ../valid/images\nnc: 1\nnames: ['x']\n")
    scan = Yolo(str(tmp_path)).scan("")
    assert (scan.items.split_names, scan.items.size) == (("val",), 1)


def test_yolo_list_of_images_is_followed(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    save_text(tmp_path / "data.yaml", "train: list.txt\nnames: [cat, dog]\n")
    save_text(tmp_path / "list.txt", "./images/val/a.jpg\n\n")
    assert list(rows_of(Yolo(str(tmp_path)).scan(""))) == ["images/val/a.jpg"]


def test_yolo_flat_folder_with_labels_next_to_images(tmp_path: Path) -> None:
    save_image(tmp_path / "图.png")
    save_text(tmp_path / "图.txt", "0 0.5 0.5 0.2 0.4\n")
    save_text(tmp_path / "classes.txt", "猫\n")
    scan = Yolo(str(tmp_path)).scan("")
    assert scan.problems == []
    [row] = rows_of(scan).values()
    assert row["image/object/class/text"] == ["猫".encode()]


def test_yolo_bad_lines_are_named_at_once(tmp_path: Path) -> None:
    save_text(tmp_path / "classes.txt", "cat\ndog\n")
    lines = {"ok": "0 .5 .5 .2 .2", "class": "7 .5 .5 .2 .2", "out": "0 .9 .5 .5 .2", "word": "cat .5 .5 .2 .2"}
    for name, line in lines.items():
        save_image(tmp_path / f"images/{name}.jpg")
        save_text(tmp_path / f"labels/{name}.txt", line)
    save_text(tmp_path / "labels/orphan.txt", "0 .5 .5 .2 .2")
    scan = Yolo(str(tmp_path)).scan("")
    assert {problem.key: (problem.reason, problem.blocking) for problem in scan.problems} == {
        "labels/orphan.txt": ("label file has no image", False),
        "labels/class.txt, line 1": ("class 7 is not one of the 2 classes, 0 to 1", True),
        "labels/out.txt, line 1": ("box (39, 16, 69, 24) is outside its image, 60x40", False),
        "labels/word.txt, line 1": ("expected numbers, got 'cat'", False),
    }
    assert list(rows_of(scan)) == ["images/ok.jpg"]
    clipped = rows_of(Yolo(str(tmp_path), boxes="clip").scan(""))
    assert clipped["images/out.jpg"]["image/object/bbox/xmax"].tolist() == [1]


def test_yolo_image_without_label_file_has_no_objects_by_default(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    save_image(tmp_path / "images/train/b.jpg")
    scan = Yolo(str(tmp_path)).scan("")
    assert rows_of(scan)["images/train/b.jpg"]["image/object/class/label"].tolist() == []
    assert "images without a label file, assumed to have no objects: 1" in scan.notes
    [problem] = Yolo(str(tmp_path), missing_labels="fail").scan("").problems
    assert (problem.key, problem.reason) == ("labels/train/b.txt", "cannot open, no such file or directory")


def test_yolo_folder_without_label_files_raises(tmp_path: Path) -> None:
    save_image(tmp_path / "images/a.jpg")
    with pytest.raises(SourceError, match="no label file for any of 1 images, expected 'labels/a.txt'"):
        Yolo(str(tmp_path)).scan("")


def test_yolo_without_names_classes_are_called_by_their_numbers(tmp_path: Path) -> None:
    save_image(tmp_path / "a.jpg")
    save_text(tmp_path / "a.txt", "2 .5 .5 .2 .2")
    scan = Yolo(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert (row["image/object/class/text"], row["image/object/class/label"].tolist()) == ([b"2"], [3])
    assert any("3 numbers without names" in note for note in scan.notes)


def test_yolo_data_yaml_that_names_no_folder_is_refused(tmp_path: Path) -> None:
    save_text(tmp_path / "data.yaml", "train: gone\nnames: [a]\n")
    with pytest.raises(SourceError, match="no folder or list 'gone', which data.yaml names"):
        Yolo(str(tmp_path)).scan("")
