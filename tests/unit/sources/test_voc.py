"""Pascal VOC: the XML, the lists, boxes and masks."""

from __future__ import annotations

import io
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tfrkit.errors import SourceError
from tfrkit.images.encode import ImageOptions
from tfrkit.pictures.colors import voc_colors
from tfrkit.pictures.masks import encode_indices, parse_color_map
from tfrkit.sources.base import Scan
from tfrkit.sources.class_files import load_classes
from tfrkit.sources.voc_det import VocDet
from tfrkit.sources.voc_layout import note_unused_lists, read_sets
from tfrkit.sources.voc_seg import VocSeg
from tfrkit.sources.voc_xml import parse_voc_xml

WIDTH, HEIGHT = 60, 40
OF_VOC = "<folder>VOC2012</folder>"


def make_xml(
    *objects: tuple[Any, ...], size: tuple[int, int] = (WIDTH, HEIGHT), filename: str = "", more: str = ""
) -> str:
    boxes = "\n".join(
        f"<object><name>{name}</name><bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin><xmax>{xmax}</xmax>"
        f"<ymax>{ymax}</ymax></bndbox></object>"
        for name, xmin, ymin, xmax, ymax in objects
    )
    width, height = size
    return (
        f"<annotation>{more}<filename>{filename}</filename><size><width>{width}</width><height>{height}</height></size>\n"
        f"{boxes}</annotation>"
    )


def save_image(path: Path, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (200, 30, 30)).save(path)


def save_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def add(root: Path, name: str, *objects: tuple[Any, ...], **options: Any) -> None:
    save_image(root / "JPEGImages" / f"{name}.jpg")
    save_text(root / "Annotations" / f"{name}.xml", make_xml(*objects, **options))


def problems_of(scan: Scan) -> dict[str, str]:
    return {problem.key: problem.reason for problem in scan.problems}


def rows_of(scan: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    items = [scan.items.item(number) for number in range(scan.items.size)]
    return {item.key: reader.read(item) for item in items}


# --- XML


def test_voc_xml_objects_have_names_corners_flags_and_lines() -> None:
    text = """<annotation>
      <filename>a.jpg</filename>
      <size><width>500</width><height>375</height></size>
      <object><name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
        <bndbox><xmax>20.5</xmax><xmin>1</xmin><ymin>2</ymin><ymax>9</ymax></bndbox>
        <part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>
      </object>
    </annotation>"""
    parsed = parse_voc_xml(text.encode(), "a.xml")
    assert (parsed.filename, parsed.width, parsed.height) == ("a.jpg", 500, 375)
    [found] = parsed.objects
    assert found.corners == (1, 2, 20.5, 9)
    assert (found.name, found.pose, found.truncated, found.difficult, found.line) == ("dog", "Left", 1, 0, 4)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gbk", "big5", "latin-1"])
def test_voc_xml_encoding_that_is_declared_is_read(encoding: str) -> None:
    name = "Käse" if encoding == "latin-1" else "汽車"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + make_xml((name, 1, 1, 2, 2))
    assert parse_voc_xml(text.encode(encoding), "a.xml").objects[0].name == name


BOMB = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">]><annotation>&y;</annotation>'
FILE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation>&x;</annotation>'


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (BOMB, "without a document type, got one.* - at a.xml, line 1"),
        (FILE, "without a document type, got one.* - at a.xml, line 1"),
        ("<!DOCTYPE annotation><annotation/>", "without a document type"),
        ("", "got an empty file - at a.xml"),
        ("<annotation>\n<object>", "not valid XML, .* - at a.xml, line 2"),
        ("<annotation>\n&undefined;</annotation>", "not valid XML, undefined entity - at a.xml, line 2"),
        ("<html/>", "expected a VOC <annotation>, got <html>"),
        ("<a>" * 100, "64 levels, got more"),
        ('<?xml version="1.0" encoding="klingon"?><annotation/>', "expected a known encoding, got 'klingon'"),
        ('<?xml version="1.0" encoding="gbk"?><annotation>\udc81</annotation>', "not text in gbk"),
    ],
)
def test_voc_xml_what_is_no_annotation_is_refused(text: str, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        parse_voc_xml(text.encode("utf-8", "surrogateescape"), "a.xml")


def test_voc_xml_too_many_elements_are_refused() -> None:
    with pytest.raises(SourceError, match="at most 500,000 elements"):
        parse_voc_xml(b"<annotation>" + b"<a/>" * 500_001 + b"</annotation>", "a.xml")


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("<bndbox/>", "object expected a name, got none"),
        ("<name>car</name>", "object 'car' expected a bndbox, got none"),
        ("<name>car</name><bndbox><xmin>1</xmin></bndbox>", "bndbox expected ymin, got none"),
        ("<name>car</name><bndbox><xmin>one</xmin></bndbox>", "xmin expected a number, got 'one'"),
        ("<name>car</name><bndbox><xmin>nan</xmin></bndbox>", "xmin expected a number, got nan"),
        ("<name>car</name><bndbox/><bndbox/>", "object 'car' expected one bndbox, got several"),
    ],
)
def test_voc_xml_object_that_cannot_be_read_is_a_problem(inner: str, reason: str) -> None:
    parsed = parse_voc_xml(f"<annotation>\n<object>{inner}</object></annotation>".encode(), "a.xml")
    assert parsed.problems == ((2, reason),)
    assert parsed.objects == ()


@pytest.mark.parametrize("size", ["", "<size/>", "<size><width>0</width><height>x</height></size>"])
def test_voc_xml_size_that_says_nothing_is_none(size: str) -> None:
    parsed = parse_voc_xml(f"<annotation>{size}</annotation>".encode(), "a.xml")
    assert (parsed.width, parsed.height) == (None, None)


# --- lists


def test_read_sets_gives_ids_with_splits_and_lines(tmp_path: Path) -> None:
    save_text(tmp_path / "ImageSets/Main/train.txt", "a\n\n b \n")
    save_text(tmp_path / "ImageSets/Main/val.txt", "图片 1\n图片\n")
    listed = read_sets(str(tmp_path), "Main", ())
    assert listed is not None
    assert listed.split_names == ("train", "val")
    assert listed.ids == {
        "a": (0, "ImageSets/Main/train.txt, line 1"),
        "b": (0, "ImageSets/Main/train.txt, line 3"),
        "图片 1": (1, "ImageSets/Main/val.txt, line 1"),
        "图片": (1, "ImageSets/Main/val.txt, line 2"),
    }
    assert listed.notes == ["sets: train, val of ImageSets/Main, as none were named"]


def test_read_sets_id_in_two_sets_stops_the_build(tmp_path: Path) -> None:
    save_text(tmp_path / "ImageSets/Main/train.txt", "a\nb\nb\n")
    save_text(tmp_path / "ImageSets/Main/trainval.txt", "a\n")
    listed = read_sets(str(tmp_path), "Main", ["train", "trainval"])
    assert listed is not None
    assert [(problem.reason, problem.blocking) for problem in listed.problems] == [
        ("id 'b' expected once, got it twice in set 'train'", False),
        ("id 'a' expected in one set, got it in 'train' and 'trainval'", True),
    ]


def test_read_sets_marks_of_class_lists_are_skipped(tmp_path: Path) -> None:
    save_text(tmp_path / "ImageSets/Main/car_train.txt", "2008_000002 -1\n2008_000003  1\n2008_000004  0\n")
    listed = read_sets(str(tmp_path), "Main", ["car_train"])
    assert listed is not None
    assert list(listed.ids) == ["2008_000002", "2008_000003", "2008_000004"]
    assert listed.notes == ["set 'car_train': the marks -1, 0 and 1 after its ids were ignored"]


def test_read_sets_unknown_set_names_those_that_are_there(tmp_path: Path) -> None:
    save_text(tmp_path / "ImageSets/Main/train.txt", "a\n")
    with pytest.raises(SourceError, match=r"no list of set 'tain'.*\n  sets that are there: train"):
        read_sets(str(tmp_path), "Main", ["tain"])


def test_read_sets_other_names_are_taken_where_no_id_is_in_two(tmp_path: Path) -> None:
    save_text(tmp_path / "ImageSets/Main/north.txt", "a\nb\n")
    save_text(tmp_path / "ImageSets/Main/south.txt", "c\n")
    listed = read_sets(str(tmp_path), "Main", ())
    assert listed is not None
    assert listed.split_names == ("north", "south")
    assert [split for split, _ in listed.ids.values()] == [0, 0, 1]


@pytest.mark.parametrize("lists", [{"all": "a\n"}, {"car_train": "a 1\nb -1\n", "cat_train": "a -1\nb 1\n"}])
def test_read_sets_one_list_and_lists_of_classes_are_no_splits(tmp_path: Path, lists: dict[str, str]) -> None:
    for name, text in lists.items():
        save_text(tmp_path / f"ImageSets/Main/{name}.txt", text)
    assert read_sets(str(tmp_path), "Main", ()) is None
    [note] = note_unused_lists(str(tmp_path), "Main")
    assert note == f"lists of ImageSets/Main were not used, as none were named: {', '.join(lists)}"


def test_read_sets_without_lists_is_none(tmp_path: Path) -> None:
    assert read_sets(str(tmp_path), "Main", ()) is None


# --- class names


@pytest.mark.parametrize(
    ("name", "text", "first", "names"),
    [
        ("c.txt", "cat\ndog\n", 1, ("cat", "dog")),
        ("c.txt", "_background_\ncat\n", 0, ("_background_", "cat")),
        ("c.txt", "3:cat\n4:dog\n", 3, ("cat", "dog")),
        ("c.pbtxt", "item { id: 1 name: 'cat' }\nitem { id: 3 display_name: 'dog' }", 1, ("cat", "unused 2", "dog")),
        ("labelmap.txt", "# label:color\nbackground:0,0,0::\ncat:1,2,3::\n", 0, ("background", "cat")),
    ],
)
def test_load_classes_reads_each_kind_of_file(
    tmp_path: Path, name: str, text: str, first: int, names: tuple[str, ...]
) -> None:
    save_text(tmp_path / name, text)
    labels = load_classes(str(tmp_path / name), label_offset=None)
    assert (labels.offset, labels.names) == (first, names)
    assert load_classes(str(tmp_path / name), label_offset=7).offset == 7


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("item { id: 1 }", "item expected an id and a name - at .*c.pbtxt, line 1"),
        ("item { id: 1 name: 'a' } item { id: 1 name: 'b' }", "id 1 expected once"),
        ("", "expected at least one item"),
        ("item {", "not a label map"),
    ],
)
def test_load_classes_damaged_label_map_is_refused(tmp_path: Path, text: str, match: str) -> None:
    save_text(tmp_path / "c.pbtxt", text)
    with pytest.raises(SourceError, match=match):
        load_classes(str(tmp_path / "c.pbtxt"), label_offset=None)


# --- boxes


def test_voc_det_row_has_the_features_of_the_detection_api(tmp_path: Path) -> None:
    add(tmp_path, "a", ("person", 6, 4, 30, 40), ("dog", 0, 0, 60, 20), more=OF_VOC)
    scan = VocDet(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert row["image/encoded"] == (tmp_path / "JPEGImages/a.jpg").read_bytes()
    assert (row["image/format"], row["image/height"], row["image/width"]) == ("jpeg", HEIGHT, WIDTH)
    assert (row["image/filename"], row["image/source_id"]) == (b"a.jpg", b"a.jpg")
    assert row["image/object/bbox/xmin"].tolist() == [np.float32(0.1), 0]
    assert row["image/object/bbox/ymin"].tolist() == [np.float32(0.1), 0]
    assert row["image/object/bbox/xmax"].tolist() == [0.5, 1]
    assert row["image/object/bbox/ymax"].tolist() == [1, 0.5]
    assert row["image/object/bbox/xmin"].dtype == np.float32
    assert row["image/object/class/text"] == [b"person", b"dog"]
    assert row["image/object/class/label"].tolist() == [15, 12]  # VOC's own ids
    assert row["image/object/view"] == [b"", b""]
    assert set(row) == set(scan.schema_after({}).features)  # type: ignore[union-attr]
    assert scan.counts == {"objects": {"person": 1, "dog": 1}}
    assert "15:person\n" in scan.label_files["classes.txt"]


def test_voc_det_label_map_has_the_ids_of_the_records(tmp_path: Path) -> None:
    add(tmp_path, "a", ("dog", 6, 4, 30, 40), ("cat's eye", 0, 0, 60, 20), ("\\", 0, 0, 9, 9))
    scan = VocDet(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/class/label"].tolist() == [3, 2, 1]
    text = scan.label_files["label_map.pbtxt"]
    assert text.startswith("item {\n  id: 1\n  name: '\\\\'\n}\nitem {\n  id: 2\n  name: 'cat\\'s eye'\n}\n")
    save_text(tmp_path / "labels.pbtxt", text)
    again = VocDet(str(tmp_path), classes=str(tmp_path / "labels.pbtxt")).scan("")
    assert again.label_files == scan.label_files
    assert [row["image/object/class/label"].tolist() for row in rows_of(again).values()] == [[3, 2, 1]]


@pytest.mark.parametrize(
    ("more", "label", "origin"),
    [
        ("", 1, 'sorted names, labels 1 to 1; with the numbers of Pascal VOC: classes="voc"'),
        ("<folder>images</folder><source><database>Unknown</database></source>", 1, "sorted names, labels 1 to 1"),
        ("<folder>VOC2007</folder>", 8, "the 20 of Pascal VOC, labels 1 to 20"),
        ("<source><database>The VOC2008 Database</database></source>", 8, "the 20 of Pascal VOC, labels 1 to 20"),
    ],
)
def test_voc_det_has_vocs_numbers_only_for_vocs_own_annotations(
    tmp_path: Path, more: str, label: int, origin: str
) -> None:
    add(tmp_path, "a", ("cat", 1, 1, 9, 9), more=more)
    save_text(tmp_path / "ImageSets/Main/train.txt", "a\n")
    scan = VocDet(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/class/label"].tolist() == [label]
    assert any(note.endswith(origin) or origin in note for note in scan.notes), scan.notes
    [row] = rows_of(VocDet(str(tmp_path), classes="voc").scan("")).values()
    assert row["image/object/class/label"].tolist() == [8]


def test_voc_det_one_annotation_that_is_not_vocs_makes_all_sorted(tmp_path: Path) -> None:
    add(tmp_path, "a", ("cat", 1, 1, 9, 9), more=OF_VOC)
    add(tmp_path, "b", ("cat", 1, 1, 9, 9))
    assert VocDet(str(tmp_path)).scan("").label_files["classes.txt"] == "1:cat\n"


def test_voc_det_label_zero_is_noted(tmp_path: Path) -> None:
    add(tmp_path, "a", ("cat", 1, 1, 9, 9))
    notes = VocDet(str(tmp_path), label_offset=0).scan("").notes
    assert any(note.startswith("label 0 is class 'cat', which the Object Detection API keeps") for note in notes)
    assert not any("label 0" in note for note in VocDet(str(tmp_path)).scan("").notes)


def test_voc_det_classes_that_are_not_vocs_are_sorted_from_one(tmp_path: Path) -> None:
    add(tmp_path, "a", ("zebra", 1, 1, 9, 9), ("dog", 1, 1, 9, 9))
    [row] = rows_of(VocDet(str(tmp_path)).scan("")).values()
    assert row["image/object/class/label"].tolist() == [2, 1]
    [row] = rows_of(VocDet(str(tmp_path), label_offset=0).scan("")).values()
    assert row["image/object/class/label"].tolist() == [1, 0]


def test_voc_det_image_without_objects_is_kept_with_typed_empty_lists(tmp_path: Path) -> None:
    from tfrkit.writer import Writer

    add(tmp_path, "a")
    scan = VocDet(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert "images without objects, kept: 1" in scan.notes
    with Writer(tmp_path / "x.tfrecord") as writer:
        writer.write(row)


def test_voc_det_all_bad_inputs_are_named_at_once(tmp_path: Path) -> None:
    add(tmp_path, "good", ("car", 1, 1, 20, 20))
    add(tmp_path, "swapped", ("car", 20, 1, 1, 20))
    add(tmp_path, "outside", ("car", 1, 1, 61, 20), ("car", 1, 1, 600, 20))
    add(tmp_path, "scaled", ("car", 1, 1, 20, 20), size=(640, 480))
    add(tmp_path, "turned", ("car", 1, 1, 20, 20), size=(HEIGHT, WIDTH))
    add(tmp_path, "text", ("car", "x", 1, 20, 20))
    add(tmp_path, "broken")
    save_text(tmp_path / "Annotations/broken.xml", "<annotation>")
    save_text(tmp_path / "Annotations/alone.xml", make_xml(filename="alone.jpg"))
    save_image(tmp_path / "JPEGImages/bare.jpg")
    add(tmp_path, "void")
    (tmp_path / "JPEGImages/void.jpg").write_bytes(b"")
    scan = VocDet(str(tmp_path)).scan("")
    assert problems_of(scan) == {
        "Annotations/swapped.xml, line 2": "box (20, 1, 1, 20) has its corners swapped, expected xmin < xmax "
        "and ymin < ymax",
        "Annotations/outside.xml, line 2": "box (1, 1, 61, 20) is outside its image, 60x40",
        "Annotations/outside.xml, line 3": "box (1, 1, 600, 20) is outside its image, 60x40",
        "Annotations/scaled.xml": "annotation expected an image of 640x480, got one of 60x40",
        "Annotations/turned.xml": "annotation expected an image of 40x60, got one of 60x40, "
        "width and height are swapped",
        "Annotations/text.xml, line 2": "xmin expected a number, got 'x'",
        "Annotations/broken.xml, line 1": "not valid XML, no element found",
        "Annotations/alone.xml": "no image 'alone.jpg', which the annotation names, and none called 'alone'",
        "JPEGImages/bare.jpg": "image has no annotation (.xml)",
        "JPEGImages/void.jpg": "expected an image, got an empty file",
    }
    assert [scan.items.key(number) for number in range(scan.items.size)] == ["good"]


def test_voc_det_size_of_zero_is_taken_from_the_image(tmp_path: Path) -> None:
    add(tmp_path, "a", ("car", 6, 1, 30, 20), size=(0, 0))
    [row] = rows_of(VocDet(str(tmp_path)).scan("")).values()
    assert row["image/object/bbox/xmax"].tolist() == [0.5]


def test_voc_det_name_with_line_feed_is_stripped_and_reported(tmp_path: Path) -> None:
    add(tmp_path, "a", ("car\n", 1, 1, 20, 20))
    scan = VocDet(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/class/text"] == [b"car"]
    assert any("stripped: 1 - 'car\\n' at Annotations/a.xml, line 2" in note for note in scan.notes)


def test_voc_det_unknown_class_blocks_and_is_not_written_by_its_reader(tmp_path: Path) -> None:
    add(tmp_path, "a", ("zebra", 1, 1, 20, 20))
    scan = VocDet(str(tmp_path), classes=["car", "dog"]).scan("")
    [problem] = scan.problems
    assert problem.blocking
    assert problem.reason == "class 'zebra' is not one of the 2 of the given names"
    assert problem.key == "Annotations/a.xml, line 2"
    with pytest.raises(SourceError, match="class 'zebra' is not one of the classes"):
        rows_of(scan)


def test_voc_det_lists_that_name_missing_files_name_each_one(tmp_path: Path) -> None:
    add(tmp_path, "a")
    save_image(tmp_path / "JPEGImages/b.jpg")
    save_text(tmp_path / "ImageSets/Main/train.txt", "a\nb\nghost\n")
    scan = VocDet(str(tmp_path)).scan("")
    assert [(problem.key, problem.reason) for problem in scan.problems] == [
        ("ImageSets/Main/train.txt, line 2", "no annotation in Annotations with id 'b'"),
        ("ImageSets/Main/train.txt, line 3", "no annotation in Annotations with id 'ghost'"),
        ("ImageSets/Main/train.txt, line 3", "no image in JPEGImages with id 'ghost'"),
    ]
    assert scan.items.split_names == ("train",)


def test_voc_det_loose_files_are_paired_by_name_then_stem(tmp_path: Path) -> None:
    save_image(tmp_path / "train/图.jpg")
    save_text(tmp_path / "train/图.xml", make_xml(("a", 1, 1, 5, 5), filename=r"C:\photos\old.jpg"))
    save_image(tmp_path / "valid/x.jpg")
    save_text(tmp_path / "valid/other.xml", make_xml(("a", 1, 1, 5, 5), filename="x.jpg"))
    scan = VocDet(tmp_path).scan("")  # type: ignore[arg-type]
    assert scan.problems == []
    assert sorted(rows_of(scan)) == ["train/图", "valid/x"]
    assert scan.items.split_names == ("train", "val")
    assert "splits: train, val, by the folders" in scan.notes


def test_voc_det_files_that_are_no_images_are_not_missed(tmp_path: Path) -> None:
    save_image(tmp_path / "a.jpg")
    save_text(tmp_path / "a.xml", make_xml())
    for name in ("README", "LICENSE", "notes.txt", "_build/lock"):
        save_text(tmp_path / name, "text")
    scan = VocDet(str(tmp_path)).scan("")
    assert (scan.problems, scan.items.size) == ([], 1)


def test_voc_det_same_name_in_two_folders_takes_the_nearest(tmp_path: Path) -> None:
    for folder, size in (("a", (10, 10)), ("b", (20, 20))):
        save_image(tmp_path / folder / "1.jpg", size)
        save_text(tmp_path / folder / "1.xml", make_xml(("x", 0, 0, 5, 5), size=size, filename="1.jpg"))
    rows = rows_of(VocDet(str(tmp_path)).scan(""))
    assert {key: row["image/width"] for key, row in rows.items()} == {"a/1": 10, "b/1": 20}


def test_voc_det_annotation_that_could_mean_two_images_is_a_problem(tmp_path: Path) -> None:
    save_image(tmp_path / "a.jpg")
    save_image(tmp_path / "b.jpg")
    save_text(tmp_path / "a.xml", make_xml(filename="b.jpg"))
    scan = VocDet(str(tmp_path)).scan("")
    assert "annotation names 'b.jpg', but 'a.jpg' has the same name" in problems_of(scan)["a.xml"]


def test_voc_det_two_annotations_of_one_image_are_both_named(tmp_path: Path) -> None:
    save_image(tmp_path / "a.jpg")
    save_text(tmp_path / "x.xml", make_xml(filename="a.jpg"))
    save_text(tmp_path / "y.xml", make_xml(filename="a.jpg"))
    scan = VocDet(str(tmp_path)).scan("")
    assert set(problems_of(scan)) == {"x.xml", "y.xml"}
    assert scan.items.size == 0


def test_voc_det_boxes_stay_parts_of_a_resized_image(tmp_path: Path) -> None:
    add(tmp_path, "a", ("car", 6, 4, 30, 40))
    [row] = rows_of(VocDet(str(tmp_path), images=ImageOptions(resize=(8, 8))).scan("")).values()
    assert (row["image/width"], row["image/height"], len(row["image/encoded"])) == (8, 8, 8 * 8 * 3)
    assert row["image/object/bbox/xmax"].tolist() == [0.5]


def test_voc_det_image_turned_by_exif_stays_with_its_boxes(tmp_path: Path) -> None:
    add(tmp_path, "a", ("car", 6, 4, 30, 40))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "JPEGImages/a.jpg", exif=exif)
    [row] = rows_of(VocDet(str(tmp_path), images=ImageOptions(encode="png")).scan("")).values()
    assert (row["image/width"], row["image/height"]) == (WIDTH, HEIGHT)


def test_voc_det_wrong_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such folder"):
        VocDet(str(tmp_path / "nothing")).scan("")


# --- masks

MASK = np.zeros((HEIGHT, WIDTH), np.uint8)
MASK[5:20] = 15
MASK[0] = 255


def palette_png(mask: np.ndarray[Any, Any], **options: Any) -> bytes:
    image = Image.fromarray(mask)
    colors = sorted(voc_colors(), key=voc_colors().__getitem__)
    image.putpalette([channel for color in colors for channel in color])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return buffer.getvalue()


def color_png(mask: np.ndarray[Any, Any]) -> bytes:
    colors = np.array(sorted(voc_colors(), key=voc_colors().__getitem__), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(colors[mask]).save(buffer, "PNG")
    return buffer.getvalue()


def add_mask(root: Path, name: str, data: bytes) -> None:
    save_image(root / "JPEGImages" / f"{name}.jpg")
    path = root / "SegmentationClass" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def read_gray(data: bytes) -> np.ndarray[Any, Any]:
    image = Image.open(io.BytesIO(data))
    assert image.mode == "L"
    return np.asarray(image)


def test_voc_seg_palette_indices_are_stored_as_gray_values(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", palette_png(MASK))
    scan = VocSeg(str(tmp_path)).scan("")
    [row] = rows_of(scan).values()
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), MASK)
    assert row["image/encoded"] == (tmp_path / "JPEGImages/a.jpg").read_bytes()
    assert row["image/segmentation/class/format"] == "png"
    spec = scan.schema_after({})["image/segmentation/class/encoded"]  # type: ignore[index]
    assert (spec.logical, spec.ignore, spec.num_classes) == ("mask", 255, 21)
    assert set(row) == set(scan.schema_after({}).features)  # type: ignore[union-attr]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_voc_seg_palette_of_few_bits_keeps_its_numbers(tmp_path: Path, bits: int) -> None:
    mask = (np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % (1 << bits)).astype(np.uint8)
    add_mask(tmp_path, "a", palette_png(mask, bits=bits))
    [row] = rows_of(VocSeg(str(tmp_path)).scan("")).values()
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), mask)


def gray_png(mask: np.ndarray[Any, Any], bits: int) -> bytes:
    """A gray PNG of 2 or 4 bits, which Pillow does not write."""
    per_byte = 8 // bits
    lines = b""
    for row in mask:
        packed = row.reshape(-1, per_byte) @ (1 << np.arange(8 - bits, -1, -bits))
        lines += b"\0" + packed.astype(np.uint8).tobytes()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = WIDTH.to_bytes(4, "big") + HEIGHT.to_bytes(4, "big") + bytes([bits, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("bits", [2, 4])
def test_voc_seg_gray_of_few_bits_keeps_its_numbers(tmp_path: Path, bits: int) -> None:
    mask = (np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH) % (1 << bits)).astype(np.uint8)
    add_mask(tmp_path, "a", gray_png(mask, bits))
    [row] = rows_of(VocSeg(str(tmp_path)).scan("")).values()
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), mask)


def test_voc_seg_gray_mask_is_kept_byte_for_byte(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", encode_indices(MASK))
    [row] = rows_of(VocSeg(str(tmp_path)).scan("")).values()
    assert row["image/segmentation/class/encoded"] == encode_indices(MASK)


def test_voc_seg_keep_stores_the_palette_file_itself(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", palette_png(MASK))
    [row] = rows_of(VocSeg(str(tmp_path), mask="keep").scan("")).values()
    assert row["image/segmentation/class/encoded"] == palette_png(MASK)


def test_voc_seg_value_outside_the_classes_fails_with_a_histogram(tmp_path: Path) -> None:
    mask = MASK.copy()
    mask[30:40] = 200
    add_mask(tmp_path, "a", palette_png(mask))
    with pytest.raises(
        SourceError,
        match=r"0 to 20 and 255, got 200 \(15: 38 %, 0: 35 %, 200: 25 %, 255: 2.5 %\)\n"
        r"  if 200 is a class: map=\{200: 1\}    if it is none: map=\{200: 255\}$",
    ):
        rows_of(VocSeg(str(tmp_path)).scan(""))
    [row] = rows_of(VocSeg(str(tmp_path), map={200: 1}).scan("")).values()
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), np.where(mask == 200, 1, mask))


def test_voc_seg_ignore_value_counts_only_if_it_is_one(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", palette_png(MASK))
    with pytest.raises(SourceError, match="class numbers 0 to 20, got 255"):
        rows_of(VocSeg(str(tmp_path), ignore=None).scan(""))


def test_voc_seg_colours_need_a_colour_map(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", color_png(MASK))
    [problem] = VocSeg(str(tmp_path)).scan("").problems
    assert problem.reason.startswith("mask expected class numbers (palette or gray), got PNG 60x40, which has colours")
    [row] = rows_of(VocSeg(str(tmp_path), colormap="voc").scan("")).values()
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), MASK)


def test_voc_seg_colour_map_of_a_file_gives_classes_too(tmp_path: Path) -> None:
    save_text(tmp_path / "map.txt", "background:0,0,0::\nroad:192,128,128::\nsky:224,224,192::\n")
    add_mask(tmp_path, "a", color_png(MASK))
    scan = VocSeg(str(tmp_path), colormap=str(tmp_path / "map.txt")).scan("")
    [row] = rows_of(scan).values()
    expected = np.select([MASK == 15, MASK == 255], [1, 2], 0)
    assert np.array_equal(read_gray(row["image/segmentation/class/encoded"]), expected)
    assert scan.label_files == {"classes.txt": "0:background\n1:road\n2:sky\n"}


def test_voc_seg_colour_outside_the_map_is_named(tmp_path: Path) -> None:
    save_text(tmp_path / "map.txt", "0,0,0\n192,128,128\n")
    add_mask(tmp_path, "a", color_png(MASK))
    with pytest.raises(SourceError, match=r"colour map of 2, got \(224, 224, 192\) in 60 pixels"):
        rows_of(VocSeg(str(tmp_path), colormap=str(tmp_path / "map.txt")).scan(""))


def test_voc_seg_bad_masks_are_named_while_scanning(tmp_path: Path) -> None:
    add_mask(tmp_path, "large", encode_indices(np.zeros((80, 120), np.uint8)))
    buffer = io.BytesIO()
    Image.fromarray(MASK).save(buffer, "JPEG")
    add_mask(tmp_path, "lossy", buffer.getvalue())
    add_mask(tmp_path, "void", b"")
    add_mask(tmp_path, "text", b"hello")
    add_mask(tmp_path, "lone", palette_png(MASK))
    (tmp_path / "JPEGImages/lone.jpg").unlink()
    scan = VocSeg(str(tmp_path)).scan("")
    assert problems_of(scan) == {
        "SegmentationClass/large.png": "mask expected the size of its image, 60x40, got 120x80",
        "SegmentationClass/lossy.png": "mask expected a lossless image, got JPEG, which changes class numbers",
        "SegmentationClass/void.png": "mask expected an image file, got an empty file",
        "SegmentationClass/text.png": "mask expected an image file, got something else",
        "SegmentationClass/lone": "no image in JPEGImages with id 'lone'",
    }
    assert scan.items.size == 0


def test_voc_seg_half_a_mask_is_a_bad_input(tmp_path: Path) -> None:
    data = palette_png(MASK)
    add_mask(tmp_path, "a", data[: len(data) // 2])
    with pytest.raises(SourceError, match="does not decode|truncated"):
        rows_of(VocSeg(str(tmp_path)).scan(""))


def test_voc_seg_raw_pixels_and_numbers(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", palette_png(MASK))
    scan = VocSeg(str(tmp_path), images=ImageOptions(encode="raw")).scan("")
    [row] = rows_of(scan).values()
    assert row["image/segmentation/class/encoded"] == MASK.tobytes()
    assert len(row["image/encoded"]) == WIDTH * HEIGHT * 3
    spec = scan.schema_after({})["image/segmentation/class/encoded"]  # type: ignore[index]
    assert (spec.encoding, spec.dtype, spec.logical) == ("raw", "uint8", "mask")


def test_voc_seg_resize_makes_up_no_number(tmp_path: Path) -> None:
    mask = np.random.default_rng(0).choice(np.array([0, 7, 20, 255], np.uint8), (HEIGHT, WIDTH))
    add_mask(tmp_path, "a", palette_png(mask))
    [row] = rows_of(VocSeg(str(tmp_path), images=ImageOptions(resize=(33, 21), encode="png")).scan("")).values()
    resized = read_gray(row["image/segmentation/class/encoded"])
    assert resized.shape == (21, 33)
    assert set(np.unique(resized).tolist()) <= {0, 7, 20, 255}


def test_voc_seg_image_turned_by_exif_stays_with_its_mask(tmp_path: Path) -> None:
    add_mask(tmp_path, "a", palette_png(MASK))
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "JPEGImages/a.jpg", exif=exif)
    [row] = rows_of(VocSeg(str(tmp_path), images=ImageOptions(encode="png")).scan("")).values()
    assert (row["image/width"], row["image/height"]) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("sky:1,2,3:parts:actions", ("sky", (1, 2, 3))),
        ("sky,1,2,3", ("sky", (1, 2, 3))),
        ("1 2 3 sky", ("sky", (1, 2, 3))),
        ("1, 2, 3", ("", (1, 2, 3))),
    ],
)
def test_parse_color_map_reads_each_form(line: str, parsed: tuple[str, tuple[int, int, int]]) -> None:
    colors, names = parse_color_map(f"name,r,g,b\n# note\n{line}\n", "m.txt")
    assert (names, list(colors)) == ([parsed[0]], [parsed[1]])


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("sky:1,2,300\n", "three numbers from 0 to 255, got 'sky:1,2,300' - at m.txt, line 1"),
        ("a 1 1 1\nb 1 1 1\n", r"colour \(1, 1, 1\) expected once, got it twice - at m.txt, line 2"),
        ("\n", "expected at least one colour"),
    ],
)
def test_parse_color_map_damaged_file_is_refused(text: str, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        parse_color_map(text, "m.txt")


def test_voc_options_decide_about_the_plan(tmp_path: Path) -> None:
    assert VocSeg("a", map={200: 1}).options() != VocSeg("a").options()
    assert VocDet("a", boxes="clip").options() != VocDet("a").options()
    with pytest.raises(ValueError, match="mask numbers expected from 0 to 255, got 300"):
        VocSeg("a", map={300: 1})
