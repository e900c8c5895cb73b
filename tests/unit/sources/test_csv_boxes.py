"""Boxes in a CSV file, as xml_to_csv.py makes it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tfrkit
from tfrkit import sources
from tfrkit.errors import SourceError
from tfrkit.sources.base import Scan

WIDTH, HEIGHT = 60, 40
HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax"
ROWS = [
    "b.jpg,60,40,dog,6,4,30,40",
    "a.jpg,60,40,cat,0,0,60,20",
    "b.jpg,60,40,cat,30,10,60,30",
]


def make(root: Path, *rows: str, header: str = HEADER, images: tuple[str, ...] = ("a.jpg", "b.jpg")) -> str:
    for name in images:
        (root / "pics" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (WIDTH, HEIGHT), (200, 30, len(name))).save(root / "pics" / name)
    (root / "boxes.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(root / "boxes.csv")


def scan(root: Path, *rows: str, **options: Any) -> Scan:
    made = {name: options.pop(name) for name in ("header", "images_made") if name in options}
    images = made.pop("images_made", ("a.jpg", "b.jpg"))
    path = make(root, *rows, images=images, **made)
    return sources.csv_boxes(path, **{"image_root": str(root / "pics"), **options}).scan("")


def rows_of(found: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(found.reader))  # as it comes to a worker
    items = [found.items.item(number) for number in range(found.items.size)]
    return {item.key: reader.read(item) for item in items}


def problems_of(found: Scan) -> dict[str, str]:
    return {problem.key.rpartition("/")[2]: problem.reason for problem in found.problems}


def test_rows_are_grouped_by_image_with_boxes_in_their_order(tmp_path):
    found = scan(tmp_path, *ROWS)
    assert found.problems == []
    rows = rows_of(found)
    assert list(rows) == ["a.jpg", "b.jpg"]
    row = rows["b.jpg"]
    assert row["image/object/class/text"] == [b"dog", b"cat"]
    assert row["image/object/class/label"].tolist() == [2, 1]
    assert row["image/object/bbox/xmin"].tolist() == pytest.approx([0.1, 0.5])
    assert row["image/object/bbox/ymax"].tolist() == [1, 0.75]
    assert found.label_files["classes.txt"] == "1:cat\n2:dog\n"
    assert "name: 'dog'" in found.label_files["label_map.pbtxt"]
    assert "classes: 2, sorted names, labels 1 to 2" in found.notes


def test_records_are_those_of_the_xml_the_csv_was_made_of(tmp_path):
    make(tmp_path, *ROWS)
    objects: dict[str, str] = {"a": "", "b": ""}
    for row in ROWS:
        name, _, _, label, xmin, ymin, xmax, ymax = row.split(",")
        objects[name[0]] += (
            f"<object><name>{label}</name><bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin><xmax>{xmax}</xmax>"
            f"<ymax>{ymax}</ymax></bndbox></object>"
        )
    for name, text in objects.items():
        (tmp_path / "pics" / f"{name}.xml").write_text(f"<annotation>{text}</annotation>")
    tfrkit.build(sources.voc_det(str(tmp_path / "pics")), tmp_path / "xml.record", jobs=1)
    source = sources.csv_boxes(str(tmp_path / "boxes.csv"), image_root=str(tmp_path / "pics"))
    tfrkit.build(source, tmp_path / "csv.record", jobs=1)
    assert (tmp_path / "csv.record").read_bytes() == (tmp_path / "xml.record").read_bytes()
    for name in ("label_map.pbtxt", "classes.txt"):
        made = [(tmp_path / f"_index/{kind}.record.{name}").read_text() for kind in ("csv", "xml")]
        assert made[0] == made[1]


def test_columns_may_have_other_names_and_separators(tmp_path):
    header = "x0;y0;x1;y1;label;image"
    found = scan(
        tmp_path,
        "6;4;30;40;dog;a.jpg",
        header=header,
        columns={"filename": "image", "class": "label", "xmin": "x0", "ymin": "y0", "xmax": "x1", "ymax": "y1"},
    )
    assert found.problems == []
    assert rows_of(found)["a.jpg"]["image/object/class/text"] == [b"dog"]


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("a.jpg,60,40,cat,0,0,60,20", r"columns expected different names(.|\n)*give it a first line, such as filename"),
        (
            "filename,name,xmin,ymin,xmax,ymax",
            r"header expected the columns 'class', got filename, name.* - at .*boxes.csv, line 1\n"
            r"  name the columns: columns=\.\.\.",
        ),
    ],
)
def test_header_without_a_needed_column_is_refused(tmp_path, header, match):
    with pytest.raises(SourceError, match=match):
        scan(tmp_path, "b.jpg,60,40,cat,0,0,60,20", header=header)


def test_column_that_is_not_used_is_noted_and_unknown_names_are_refused(tmp_path):
    found = scan(tmp_path, "a.jpg,cat,0,0,9,9,7", header="filename,class,xmin,ymin,xmax,ymax,score")
    assert "columns that are not used: score" in found.notes
    with pytest.raises(ValueError, match="columns expected some of filename, class, .*, got 'klass'"):
        sources.csv_boxes("x.csv", columns={"klass": "label"})


def test_bad_rows_are_named_with_file_and_line_and_their_images_are_bad(tmp_path):
    found = scan(
        tmp_path,
        "a.jpg,60,40,cat,0,0,9,9",
        "b.jpg,60,40,cat,0,0,x,9",
        "b.jpg,60,40,,0,0,9,9",
        "c.jpg,60,40,cat,0,0,9",
        ",60,40,cat,0,0,9,9",
        "d.jpg,60,40,cat,0,0,9,9",
        "d.jpg,61,40,cat,0,0,9,9",
        "e.jpg,640,480,cat,0,0,9,9",
        "f.jpg,60,40,cat,nan,0,9,9",
        "../g.jpg,60,40,cat,0,0,9,9",
        "lost.jpg,60,40,cat,0,0,9,9",
        images_made=tuple(f"{name}.jpg" for name in "abcdef"),
    )
    assert problems_of(found) == {
        "boxes.csv, line 3": "xmax expected a number, got 'x'",
        "boxes.csv, line 4": "class expected, got an empty cell",
        "boxes.csv, line 5": "row expected 8 cells, got 7",
        "boxes.csv, line 6": "filename expected, got an empty cell",
        "boxes.csv, line 8": "image 'd.jpg' expected one width and height, got another in line 7",
        "boxes.csv, line 9": "annotation expected an image of 640x480, got one of 60x40",
        "boxes.csv, line 10": "xmin expected a number, got 'nan'",
        "boxes.csv, line 11": "filename expected a path below the images, got '../g.jpg'",
        "boxes.csv, line 12": f"no image 'lost.jpg' in {tmp_path / 'pics'}",
    }
    assert [found.items.key(number) for number in range(found.items.size)] == ["a.jpg"]
    assert {problem.bad_input for problem in found.problems} == {
        None, "b.jpg", "d.jpg", "e.jpg", "f.jpg", "../g.jpg", "lost.jpg",
    }  # fmt: skip
    assert found.problems[-1].hint == "name the folder where file names start: image_root=..."


def test_number_as_python_writes_it_and_an_empty_cell_are_refused(tmp_path):
    found = scan(tmp_path, "a.jpg,60,40,cat,3_0,0,60,20", "b.jpg,60,40,dog,,4,30,40")
    assert problems_of(found) == {
        "boxes.csv, line 2": "xmin expected a number, got '3_0'",
        "boxes.csv, line 3": "xmin expected a number, got an empty cell",
    }


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_file_in_utf_16_is_named_as_such(tmp_path, encoding):
    path = Path(make(tmp_path, *ROWS))
    path.write_bytes(("\ufeff" + path.read_text(encoding="utf-8")).encode(encoding))
    with pytest.raises(SourceError, match='looks like UTF-16: encoding="utf-16"'):
        sources.csv_boxes(str(path), image_root=str(tmp_path / "pics")).scan("")
    assert not sources.csv_boxes(str(path), image_root=str(tmp_path / "pics"), encoding="utf-16").scan("").problems


def test_boxes_outside_fail_are_cut_or_are_left_out(tmp_path):
    rows = ("a.jpg,60,40,cat,30,0,90,20", "a.jpg,60,40,dog,0,0,9,9")
    [problem] = scan(tmp_path, *rows).problems
    assert problem.reason == "box (30, 0, 90, 20) is outside its image, 60x40"
    assert 'boxes="clip"' in problem.hint
    assert rows_of(scan(tmp_path, *rows, boxes="clip"))["a.jpg"]["image/object/bbox/xmax"].tolist()[0] == 1
    assert rows_of(scan(tmp_path, *rows, boxes="drop"))["a.jpg"]["image/object/class/text"] == [b"dog"]


def test_row_with_a_file_name_alone_is_an_image_without_objects(tmp_path):
    found = scan(tmp_path, "a.jpg,60,40,cat,0,0,9,9", "b.jpg,60,40,,,,,")
    assert rows_of(found)["b.jpg"]["image/object/class/label"].tolist() == []
    assert "images without objects, kept: 1" in found.notes


def test_images_that_no_row_names_are_noted_or_kept(tmp_path):
    rows = ("a.jpg,60,40,cat,0,0,9,9",)
    found = scan(tmp_path, *rows, images_made=("a.jpg", "b.jpg", "sub/c.jpg"))
    assert list(rows_of(found)) == ["a.jpg"]
    assert 'images that no row names, left out: 2; without objects: unlisted="keep"' in found.notes
    kept = scan(tmp_path, *rows, unlisted="keep")
    assert list(rows_of(kept)) == ["a.jpg", "b.jpg", "sub/c.jpg"]


def test_parts_of_the_image_are_refused_as_pixels_and_taken_as_parts(tmp_path):
    row = "a.jpg,60,40,cat,0.1,0.25,0.5,1"
    with pytest.raises(SourceError, match=r'expected in pixels, got no corner beyond 1(.|\n)*units="parts"'):
        scan(tmp_path, row)
    found = rows_of(scan(tmp_path, row, units="parts"))["a.jpg"]
    assert found["image/object/bbox/xmin"].tolist() == pytest.approx([0.1])
    assert found["image/object/bbox/ymax"].tolist() == [1]


def test_classes_of_a_label_map_number_the_boxes_and_others_stop_the_build(tmp_path):
    (tmp_path / "map.pbtxt").write_text("item { id: 7 name: 'cat' } item { id: 9 name: 'dog' }")
    found = scan(tmp_path, *ROWS, classes=str(tmp_path / "map.pbtxt"))
    assert rows_of(found)["b.jpg"]["image/object/class/label"].tolist() == [9, 7]
    [problem] = scan(tmp_path, *ROWS, classes=["cat"]).problems
    assert (problem.blocking, problem.bad_input) == (True, None)
    assert problem.reason == "class 'dog' is not one of the 1 of the given names"


def test_windows_paths_and_marks_of_the_file_are_read(tmp_path):
    path = make(tmp_path, "sub\\a.jpg,60,40,cat,0,0,9,9", images=("sub/a.jpg",))
    Path(path).write_bytes(b"\xef\xbb\xbf" + Path(path).read_bytes().replace(b"\n", b"\r\n"))
    found = sources.csv_boxes(path, image_root=str(tmp_path / "pics")).scan("")
    assert list(rows_of(found)) == ["sub/a.jpg"]
