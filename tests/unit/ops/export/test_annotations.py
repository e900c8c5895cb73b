"""VOC, YOLO and COCO: boxes, classes, masks and captions come back from a build as they went in."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import CodecError, SchemaError
from tfrkit.ops.export.coco import encode_run_lengths, export_coco
from tfrkit.ops.export.objects import corners_to_pixels, show_number
from tfrkit.ops.export.voc import export_voc
from tfrkit.ops.export.yolo import export_yolo
from tfrkit.sources.coco_masks import decode_run_lengths
from tfrkit.sources.voc_xml import parse_voc_xml
from tfrkit.sources.yolo_files import parse_data_yaml, parse_yolo_labels

WIDTH, HEIGHT = 333, 217


def encode(number: int = 0, format: str = "JPEG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (number, 0, 0)).save(file, format)
    return file.getvalue()


def save(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return path


def files_of(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def make_xml(*objects: tuple[Any, ...]) -> str:
    parts = [
        f"<object><name>{name}</name><pose>{pose}</pose><truncated>{truncated}</truncated>"
        f"<difficult>{difficult}</difficult><bndbox><xmin>{box[0]}</xmin><ymin>{box[1]}</ymin><xmax>{box[2]}</xmax>"
        f"<ymax>{box[3]}</ymax></bndbox></object>"
        for name, box, pose, truncated, difficult in objects
    ]
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    return f"<annotation>{size}{''.join(parts)}</annotation>"


VOC_OBJECTS: dict[str, list[tuple[Any, ...]]] = {
    "a": [("cat", (1, 2, 332, 216), "Left", 0, 1), ("a &lt;dog&gt;", (24, 31, 57.5, 102), "", 1, 0)],
    "b": [],
    "sub/c": [("cat", (0, 0, WIDTH, HEIGHT), "Frontal", 0, 0)],
}


def make_voc(root: Path) -> None:
    for number, (name, objects) in enumerate(VOC_OBJECTS.items()):
        save(root / "JPEGImages" / f"{name}.jpg", encode(number))
        save(root / "Annotations" / f"{name}.xml", make_xml(*objects))
    save(root / "ImageSets" / "Main" / "train.txt", "a\nb\n")
    save(root / "ImageSets" / "Main" / "val.txt", "sub/c\n")


def read_voc(root: Path) -> dict[str, Any]:
    found = {}
    for path in sorted((root / "Annotations").rglob("*.xml")):
        annotation = parse_voc_xml(path.read_bytes(), str(path))
        objects = [(o.name, o.corners, o.pose, o.truncated, o.difficult) for o in annotation.objects]
        found[str(path.relative_to(root / "Annotations"))] = (annotation.width, annotation.height, objects)
    return found


def read_rows(path: Path) -> dict[bytes, dict[str, Any]]:
    """Rows by name and image; lists as lists, whatever a build made of them."""
    with tfrkit.open(path) as ds:
        return {
            row["image/filename"]: {name: np.asarray(value).reshape(-1).tolist() for name, value in row.items()}
            for row in ds
        }


# --- VOC


def test_voc_comes_back_from_a_build(tmp_path: Path) -> None:
    make_voc(tmp_path / "voc")
    tfrkit.build(tfrkit.sources.voc_det(str(tmp_path / "voc")), tmp_path / "out", jobs=1)
    report = export_voc(tmp_path / "out", tmp_path / "back")
    assert files_of(tmp_path / "back") >= {"classes.txt", "ImageSets/Main/train.txt", "ImageSets/Main/val.txt"}
    # For an image in a folder the record keeps only the file name.
    expected = {name.rpartition("/")[2]: content for name, content in read_voc(tmp_path / "voc").items()}
    assert read_voc(tmp_path / "back") == expected
    assert sorted((tmp_path / "back/ImageSets/Main/train.txt").read_text().split()) == ["a", "b"]
    assert (tmp_path / "back/JPEGImages/a.jpg").read_bytes() == encode(0)
    assert (report.records, report.ok, report.num_renamed) == (3, True, 0)


def test_voc_built_again_is_the_same_dataset(tmp_path: Path) -> None:
    make_voc(tmp_path / "voc")
    tfrkit.build(tfrkit.sources.voc_det(str(tmp_path / "voc"), label_offset=5), tmp_path / "one", jobs=1)
    export_voc(tmp_path / "one", tmp_path / "back")
    tfrkit.build(tfrkit.sources.voc_det(str(tmp_path / "back")), tmp_path / "two", jobs=1)
    assert read_rows(tmp_path / "two") == read_rows(tmp_path / "one")


def test_voc_corners_between_pixels_are_noted(tmp_path: Path) -> None:
    row: dict[str, Any] = {"image/encoded": encode(), "image/object/class/text": [b"cat"]}
    for side, value in {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 0.5}.items():
        row[f"image/object/bbox/{side}"] = np.array([value], np.float32)
    whole = row | {"image/object/bbox/ymax": np.array([1.0], np.float32)}
    report = export_voc(write_rows(tmp_path / "x.tfrecord", [row, whole]), tmp_path / "out")
    assert any(
        note.startswith("images with corners of boxes between pixels, written with decimals: 1")
        for note in report.notes
    )
    report = export_voc(write_rows(tmp_path / "y.tfrecord", [whole]), tmp_path / "whole")
    assert not any("between pixels" in note for note in report.notes)


def test_voc_masks_come_back_with_palette_and_lists(tmp_path: Path) -> None:
    numbers = np.zeros((HEIGHT, WIDTH), np.uint8)
    numbers[:9] = 15
    numbers[9] = 255
    save(tmp_path / "voc/JPEGImages/a.jpg", encode())
    mask = io.BytesIO()
    Image.fromarray(numbers).save(mask, "PNG")
    save(tmp_path / "voc/SegmentationClass/a.png", mask.getvalue())
    save(tmp_path / "voc/ImageSets/Segmentation/train.txt", "a\n")
    tfrkit.build(tfrkit.sources.voc_seg(str(tmp_path / "voc")), tmp_path / "out", jobs=1)
    export_voc(tmp_path / "out", tmp_path / "back")
    with Image.open(tmp_path / "back/SegmentationClass/a.png") as image:
        assert image.mode == "P"
        assert np.array_equal(np.asarray(image), numbers)
    assert files_of(tmp_path / "back") == {
        "JPEGImages/a.jpg",
        "SegmentationClass/a.png",
        "ImageSets/Segmentation/train.txt",
        "classes.txt",
    }
    tfrkit.build(tfrkit.sources.voc_seg(str(tmp_path / "back")), tmp_path / "again", jobs=1)
    assert read_rows(tmp_path / "again") == read_rows(tmp_path / "out")


# --- YOLO

YOLO_LABELS = {
    "train/a": "0 0.5 0.5 0.25 0.5\n2 0.123456 0.654321 0.1 0.2\n",
    "train/b": "",
    "val/c": "1 0.3333333 0.25 0.01 0.0101\n",
}


def make_yolo(root: Path, names: str = "names: [cat, 'a: dog', \"x\"]\n") -> None:
    for number, (name, labels) in enumerate(YOLO_LABELS.items()):
        save(root / "images" / f"{name}.jpg", encode(number))
        save(root / "labels" / f"{name}.txt", labels)
    save(root / "data.yaml", f"train: images/train\nval: images/val\n{names}")


def test_yolo_comes_back_from_a_build(tmp_path: Path) -> None:
    make_yolo(tmp_path / "yolo")
    tfrkit.build(tfrkit.sources.yolo(str(tmp_path / "yolo")), tmp_path / "out", jobs=1)
    export_yolo(tmp_path / "out", tmp_path / "back")
    assert files_of(tmp_path / "back") == files_of(tmp_path / "yolo")
    described = parse_data_yaml((tmp_path / "back/data.yaml").read_text(), "data.yaml")
    assert described.names == {0: "cat", 1: "a: dog", 2: "x"}
    assert described.splits == {"train": ("images/train",), "val": ("images/val",)}
    for name, labels in YOLO_LABELS.items():
        text = (tmp_path / "back/labels" / f"{name}.txt").read_text()
        before, after = parse_yolo_labels(labels)[0], parse_yolo_labels(text)[0]
        assert [one.label for one in after] == [one.label for one in before]
        assert np.allclose([one.corners for one in after], [one.corners for one in before], atol=1e-7)
    assert (tmp_path / "back/labels/train/a.txt").read_text().splitlines()[0] == "0 0.5 0.5 0.25 0.5"


def test_yolo_built_again_is_the_same_dataset(tmp_path: Path) -> None:
    make_yolo(tmp_path / "yolo", "names: {0: cat, 2: x, 1: y, 4: far}\n")
    save(tmp_path / "yolo/labels/val/c.txt", "4 0.3333333 0.25 0.01 0.0101\n")
    tfrkit.build(tfrkit.sources.yolo(str(tmp_path / "yolo")), tmp_path / "one", jobs=1)
    export_yolo(tmp_path / "one", tmp_path / "back")
    assert (tmp_path / "back/labels/val/c.txt").read_text().startswith("4 ")
    tfrkit.build(tfrkit.sources.yolo(str(tmp_path / "back")), tmp_path / "two", jobs=1)
    assert read_rows(tmp_path / "two") == read_rows(tmp_path / "one")


# --- COCO

COCO: dict[str, Any] = {
    "images": [
        {"id": 42, "file_name": "a.jpg", "width": WIDTH, "height": HEIGHT},
        {"id": 7, "file_name": "b.jpg", "width": WIDTH, "height": HEIGHT},
    ],
    "categories": [{"id": 3, "name": "cat"}, {"id": 90, "name": "dog"}],
    "annotations": [
        {
            "id": 1,
            "image_id": 42,
            "category_id": 90,
            "bbox": [10.25, 20.5, 100.13, 50],
            "area": 702.1,
            "iscrowd": 0,
            "segmentation": [[10, 20, 110, 20, 110, 70]],
        },
        {
            "id": 2,
            "image_id": 42,
            "category_id": 3,
            "bbox": [0, 0, 5, 5],
            "area": 25,
            "iscrowd": 1,
            "segmentation": [[0, 0, 5, 0, 5, 5, 0, 5]],
        },
    ],
}
CAPTIONS = {"annotations": [{"id": 1, "image_id": 7, "caption": "two cats"}, {"id": 2, "image_id": 7, "caption": "ü"}]}


def make_coco(root: Path) -> None:
    save(root / "annotations/instances_train.json", json.dumps(COCO))
    save(root / "annotations/captions_train.json", json.dumps(CAPTIONS))
    for number, name in enumerate("ab"):
        save(root / "train" / f"{name}.jpg", encode(number))


def test_coco_comes_back_from_a_build_with_masks_and_captions(tmp_path: Path) -> None:
    make_coco(tmp_path / "coco")
    source = tfrkit.sources.coco(str(tmp_path / "coco"), masks=True, captions="auto")
    tfrkit.build(source, tmp_path / "out", jobs=1)
    export_coco(tmp_path / "out", tmp_path / "back")
    back = json.loads((tmp_path / "back/annotations/instances_train.json").read_text())
    assert sorted(back["images"], key=lambda one: one["file_name"]) == COCO["images"]
    assert [(one["id"], one["name"]) for one in back["categories"]] == [(3, "cat"), (90, "dog")]
    kept = ("image_id", "category_id", "bbox", "area", "iscrowd")
    assert [{key: one[key] for key in kept} for one in back["annotations"]] == [
        {key: one[key] for key in kept} for one in COCO["annotations"]
    ]
    captions = json.loads((tmp_path / "back/annotations/captions_train.json").read_text())
    assert [(one["image_id"], one["caption"]) for one in captions["annotations"]] == [(7, "two cats"), (7, "ü")]
    again = tfrkit.sources.coco(str(tmp_path / "back"), masks=True, captions="auto")
    tfrkit.build(again, tmp_path / "two", jobs=1)
    assert read_rows(tmp_path / "two") == read_rows(tmp_path / "out")


def test_coco_without_splits_is_one_file(tmp_path: Path) -> None:
    row = {
        "image/encoded": encode(),
        "image/filename": "x.jpg",
        **{f"image/object/bbox/{side}": np.array([0.1 + 0.5 * (side[1:] == "max")], np.float32) for side in SIDES},
        "image/object/class/text": ["猫"],
    }
    export_coco(write_rows(tmp_path / "a.tfrecord", [row]), tmp_path / "back")
    assert files_of(tmp_path / "back") == {"annotations.json", "images/x.jpg"}
    text = (tmp_path / "back/annotations.json").read_text(encoding="utf-8")
    assert json.loads(text)["categories"] == [{"id": 1, "name": "猫", "supercategory": ""}] and "猫" in text
    tfrkit.build(tfrkit.sources.coco(str(tmp_path / "back")), tmp_path / "two", jobs=1)


SIDES = ("xmin", "ymin", "xmax", "ymax")
CLASS = "image/object/class"


def make_row(number: int = 0, boxes: Any = ((0.1, 0.1, 0.6, 0.6),), **changes: Any) -> dict[str, Any]:
    corners = np.array(boxes, np.float32).reshape(-1, 4)
    row: dict[str, Any] = {"image/encoded": encode(number), "image/filename": f"{number}.jpg"}
    row |= {f"image/object/bbox/{side}": corners[:, index] for index, side in enumerate(SIDES)}
    return row | {"image/object/class/label": np.full(len(corners), 2)} | changes


# --- what all of them share

EXPORTS = [export_voc, export_yolo, export_coco]


@pytest.mark.parametrize("export", EXPORTS)
def test_boxes_that_are_none_stop_or_are_listed(tmp_path: Path, export: Any) -> None:
    bad = [
        make_row(1, [(0.6, 0.1, 0.1, 0.6)]),
        make_row(2, [(np.nan, 0.1, 0.1, 0.6)]),
        make_row(3) | {"image/object/bbox/xmin": np.array([0.1, 0.2], np.float32)},
        make_row(4) | {"image/object/class/label": np.array([1, 2])},
        make_row(5) | {"image/encoded": b"nothing"},
    ]
    source = write_rows(tmp_path / "a", [make_row(0), *bad, make_row(6, [])])
    with pytest.raises(CodecError, match=r"box 0 expected xmin, ymin, xmax, ymax in order, got 0.6.*record 1, byte"):
        export(source, tmp_path / "out", image="image/encoded")
    assert not (tmp_path / "out").exists()
    report = export(source, tmp_path / "out", image="image/encoded", on_bad="skip")
    assert [finding.record for finding in report.skipped] == [1, 2, 3, 4, 5]
    assert report.records == 2


@pytest.mark.parametrize("export", EXPORTS)
def test_dataset_without_boxes_is_refused(tmp_path: Path, export: Any) -> None:
    source = write_rows(tmp_path / "a", [{"image": encode(), "label": 1}])
    with pytest.raises(SchemaError, match=r"expected boxes.*\n.*tfr export images"):
        export(source, tmp_path / "out")


@pytest.mark.parametrize("export", EXPORTS)
def test_names_equal_without_suffix_are_made_unique(tmp_path: Path, export: Any) -> None:
    rows = [make_row(0) | {"image/filename": "../a.jpg"}, make_row(1) | {"image/filename": "a.png"}]
    report = export(write_rows(tmp_path / "x", rows), tmp_path / "out")
    assert {tuple(one) for one in report.renamed} == {("../a.jpg", "a.jpg"), ("a.png", "a-2.png")}
    assert all(path.is_relative_to(tmp_path / "out") for path in tmp_path.rglob("*.jpg"))


def test_classes_without_names_are_called_by_their_numbers(tmp_path: Path) -> None:
    export_voc(write_rows(tmp_path / "a", [make_row(0)]), tmp_path / "out")
    assert read_voc(tmp_path / "out")["0.xml"][2][0][0] == "2"
    assert (tmp_path / "out/classes.txt").read_text() == "2:2\n"
    assert (tmp_path / "out/ImageSets/Main/default.txt").read_text() == "0\n"


def test_boxes_of_tfds_are_read_too(tmp_path: Path) -> None:
    rows = [{"image": encode(), "objects/bbox": np.array([0.1, 0.2, 0.5, 0.9] * count, np.float32)} for count in (1, 2)]
    with tfrkit.Writer(str(tmp_path / "a")) as writer:
        for row in rows:
            writer.write(row)
    schema = tfrkit.Schema({"image": "image", "objects/bbox": tfrkit.Spec("float", (None, 4), logical="boxes")})
    from tfrkit.pictures.features import find_picture_features
    from tfrkit.pictures.values import read_corners

    boxes = find_picture_features(schema).boxes
    assert boxes is not None
    assert np.allclose(read_corners(rows[0], boxes), [[0.2, 0.1, 0.9, 0.5]])


@pytest.mark.parametrize("export", EXPORTS)
def test_boxes_without_classes_are_noted_and_their_feature_can_be_named(tmp_path: Path, export: Any) -> None:
    row = make_row(0, [(0.1, 0.1, 0.6, 0.6), (0.2, 0.2, 0.6, 0.6)], kinds=["cat", "dog"])
    del row["image/object/class/label"]
    source = write_rows(tmp_path / "a", [row])
    note = "no classes of boxes were found, all are 'object'; name their feature: names=..."
    assert note in export(source, tmp_path / "out").notes
    assert note not in export(source, tmp_path / "none", names="-").notes
    assert note not in export(source, tmp_path / "named", names="kinds").notes
    assert any("dog" in path.read_text() for path in (tmp_path / "named").rglob("*.*") if path.suffix != ".jpg")


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("same", [{}, {3: "cat"}])
def test_class_with_two_texts_is_noted_once_with_the_record(tmp_path: Path, export: Any, same: dict[int, str]) -> None:
    def make(number: int, classes: dict[int, str]) -> dict[str, Any]:
        names = {f"{CLASS}/text": list(classes.values()), f"{CLASS}/label": np.array([*classes], np.int64)}
        return make_row(number, [(0.1, 0.1, 0.6, 0.6)] * len(classes), **names)

    rows = [make(number, same | {7: text}) for number, text in enumerate(("horse", "horse", "dog", "cow"))]
    report = export(write_rows(tmp_path / "a", rows), tmp_path / "out")
    note = f"class 7 expected one text, got 'horse' and 'dog', listed as 'horse' - at {tmp_path / 'a'}, record"
    assert [one for one in report.notes if "expected one text" in one] == [f"{note} 2"]
    rows = [make(10, {}), *rows[:2], make(11, {}), *rows[2:], make(12, {8: "owl", 9: "elk"}), make(13, {8: "ant"})]
    report = export(write_rows(tmp_path / "a", rows), tmp_path / "more")
    assert report.notes[0] == f"{note} 4; 1 more class has several texts"


def test_pixels_have_no_more_decimals_than_they_need() -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 5000, (1000, 4)).astype(np.float64)
    sizes = np.array([5000, 4999, 5000, 4999])
    stored = (whole / sizes).astype(np.float32)
    assert np.array_equal(corners_to_pixels(stored, 5000, 4999), whole)
    cents = np.round(rng.uniform(0, 640, (1000, 4)), 2)
    stored = (cents / [640, 480, 640, 480]).astype(np.float32)
    pixels = corners_to_pixels(stored, 640, 480)
    assert np.array_equal((pixels / [640, 480, 640, 480]).astype(np.float32), stored)
    assert np.abs(pixels - cents).max() < 0.005
    assert [show_number(value) for value in (3.0, 0.1, 100.0, 0.000001)] == ["3", "0.1", "100", "0.000001"]


def test_run_lengths_are_what_the_reader_reads() -> None:
    rng = np.random.default_rng(5)
    for mask in (rng.integers(0, 2, (7, 5)), np.zeros((2, 3)), np.ones((2, 3)), np.ones((1, 1))):
        coded = encode_run_lengths(mask)
        height, width = mask.shape
        assert np.array_equal(decode_run_lengths(coded, width=width, height=height), mask)
