"""COCO: outlines, the JSON, and the source."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
import tfrkit.sources
from tfrkit.errors import SourceError
from tfrkit.sources.base import Scan
from tfrkit.sources.coco import Coco
from tfrkit.sources.coco_json import parse_coco
from tfrkit.sources.coco_masks import decode_run_lengths, rasterize_segmentation, unpack_counts

WIDTH, HEIGHT = 60, 40
SQUARE = [1, 1, 20, 1, 20, 20, 1, 20]


def show(mask: np.ndarray[Any, Any]) -> list[str]:
    return ["".join(".#"[value] for value in row) for row in mask]


# --- outlines; what is expected was made with pycocotools 2.0.11

EXPECTED_TRIANGLE = [
    ".........", ".####....", ".#######.", "..#####..", "..####...", "..###....", "...##....", "...#.....",
]  # fmt: skip
EXPECTED_TWO = ["###....", "###....", "######.", "..####.", "..####.", "..####.", "......."]
EXPECTED_STAR = [
    "...........", "...........", "....##.....", "....##.....", ".###..###..", "..#....#...", "...........",
    "...####....", "..##..##...", "..#....#...", "...........",
]  # fmt: skip
PACKED = "0T3hm2QMO"


def test_rasterize_rectangle_covers_pixels_whose_centres_are_inside() -> None:
    mask = rasterize_segmentation([[1, 1, 5, 1, 5, 4, 1, 4]], width=7, height=5)
    assert show(mask) == [".......", ".####..", ".####..", ".####..", "......."]
    assert mask.dtype == np.uint8


def test_rasterize_triangle_is_as_the_reference_draws_it() -> None:
    mask = rasterize_segmentation([[0.5, 0.5, 8.2, 2.1, 3.3, 7.9]], width=9, height=8)
    assert show(mask) == EXPECTED_TRIANGLE


def test_rasterize_two_polygons_are_joined_and_a_star_keeps_its_holes() -> None:
    two = [[0, 0, 3, 0, 3, 3, 0, 3], [2, 2, 6, 2, 6, 6, 2, 6]]
    assert show(rasterize_segmentation(two, width=7, height=7)) == EXPECTED_TWO
    star = [[5, 0, 8, 10, 0, 4, 10, 4, 2, 10]]
    assert show(rasterize_segmentation(star, width=11, height=11)) == EXPECTED_STAR


def test_rasterize_corners_outside_the_image_are_cut() -> None:
    mask = rasterize_segmentation([[-5, -5, 20, -5, 20, 2, -5, 2]], width=4, height=4)
    assert show(mask) == ["####", "####", "....", "...."]


@pytest.mark.parametrize("counts", [[5, 3, 4], "534"])
def test_decode_run_lengths_goes_down_the_columns(counts: Any) -> None:
    mask = decode_run_lengths({"size": [4, 3], "counts": counts}, width=3, height=4)
    assert show(mask) == ["...", ".#.", ".#.", ".#."]


def test_unpack_counts_long_and_negative_differences() -> None:
    # Made by the reference encoder of [0, 100, 3000, 5, 2999].
    assert unpack_counts(PACKED) == [0, 100, 3000, 5, 2999]


@pytest.mark.parametrize(
    ("segmentation", "match"),
    [
        ([], "at least one polygon"),
        ("x", "polygons or run lengths, got str"),
        ([[1, 1, 2, 2]], "at least 3 corners, got 4 numbers"),
        ([[1, 1, 2, 2, 3, 3, 4]], "x, y pairs for at least 3 corners, got 7 numbers"),
        ([[1, 1, 2, 2, 3, float("nan")]], "polygon expected numbers, got nan"),
        ([[1, 1, 2, 2, 3, 1e9]], "corners near the image"),
        ([[0, 0, 60000, 60000] * 200], "at most 16,777,216 points"),
        ([5], "polygon expected a list of numbers, got int"),
        ({"size": [3, 4], "counts": [12]}, r"the size of the image, \[4, 3\], got \[3, 4\]"),
        ({"size": [4, 3], "counts": [11]}, "add up to 12 pixels, got 11"),
        ({"size": [4, 3], "counts": [13, -1]}, "add up to 12 pixels"),
        ({"size": [4, 3], "counts": [1.5]}, "list of numbers or text, got list"),
        ({"size": [4, 3]}, "list of numbers or text, got NoneType"),
        ({"size": [4, 3], "counts": "\x10"}, "characters '0' to 'o'"),
        ({"size": [4, 3], "counts": "P"}, "end inside a number"),
        ({"size": [4, 3], "counts": "o" * 100}, "at most 60 bits"),
    ],
)
def test_rasterize_damaged_outline_is_refused(segmentation: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        rasterize_segmentation(segmentation, width=3, height=4)


# --- the JSON


def make_coco(**changes: Any) -> dict[str, Any]:
    return {
        "images": [{"id": 1, "file_name": "a.jpg", "width": WIDTH, "height": HEIGHT}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 90, "name": "dog"}],
        "annotations": [
            {"id": 7, "image_id": 1, "category_id": 90, "bbox": [6, 4, 24, 36], "segmentation": [SQUARE], "area": 361}
        ],
        **changes,
    }


def reasons_of(content: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    parsed = parse_coco(json.dumps(content).encode(), "c.json", **options)
    return [(problem.key, problem.reason) for problem in parsed.problems]


def test_parse_coco_area_that_is_not_given_is_that_of_the_box() -> None:
    content = make_coco(annotations=[{"id": 7, "image_id": 1, "category_id": 90, "bbox": [6, 4, 24, 36]}])
    [found] = parse_coco(json.dumps(content).encode(), "c.json").images[1].objects
    assert found.area == 24 * 36


def annotation(**changes: Any) -> dict[str, Any]:
    return {"id": 7, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2], **changes}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bbox": [1, 1, 2]}, "bbox expected [x, y, width, height], got [1, 1, 2]"),
        ({"bbox": None}, "bbox expected [x, y, width, height], got None"),
        ({"bbox": [1, 1, 2, float("nan")]}, "bbox expected numbers, got nan"),
        ({"bbox": [1, 1, 2, "2"]}, "bbox expected numbers, got '2'"),
        ({"category_id": 5}, "category_id 5 does not belong to a category"),
        ({"category_id": [1]}, "category_id [1] does not belong to a category"),
        ({"bbox": [1, 1, 10**400, 2]}, "a number is too large"),
        ({"area": 10**400}, "a number is too large"),
        ({"image_id": 99}, "image_id 99 does not belong to an image"),
        ({"iscrowd": 2}, "iscrowd expected 0 or 1, got 2"),
        ({"area": "big"}, "area expected a number, got 'big'"),
    ],
)
def test_parse_coco_annotation_that_makes_no_sense_is_a_problem(changes: dict[str, Any], reason: str) -> None:
    content = make_coco(annotations=[annotation(**changes)])
    assert reasons_of(content) == [("c.json, annotation 7", reason)]


def test_parse_coco_ids_that_come_twice_are_problems() -> None:
    image = {"id": 1, "file_name": "b.jpg"}
    content = make_coco(annotations=[annotation(), annotation()])
    content["images"] += [image, {"file_name": "c.jpg"}, {"id": 5}]
    content["categories"] += [{"id": 1, "name": "cow"}]
    assert reasons_of(content) == [
        ("c.json, image 1", "image id expected once, got it twice"),
        ("c.json, image number 2 of the list", "image expected an id, got none"),
        ("c.json, image 5", "image expected a file_name, got none"),
        ("c.json, category 1", "category id expected once, got it twice"),
        ("c.json, annotation 7", "annotation id expected once, got it twice"),
    ]


def test_coco_masks_need_an_outline_of_every_object_that_is_stored(tmp_path: Path) -> None:
    outside = annotation(id=8, segmentation=None, bbox=[500, 500, 5, 5])
    path = save(tmp_path, make_coco(annotations=[annotation(segmentation=[[0, 0, 9, 0, 9, 9]]), outside]))
    assert Coco(path, masks=True, boxes="drop").scan("").problems == []
    path = save(tmp_path, make_coco(annotations=[annotation(segmentation=[])]))
    assert Coco(path).scan("").problems == []
    [problem] = Coco(path, masks=True).scan("").problems
    assert problem.key.endswith(", annotation 7")
    assert problem.reason == "masks expected a segmentation of every object, got none"
    assert problem.hint == "store boxes only: leave out masks=True"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{\n1", "not valid JSON, .* - at c.json, line 2"),
        ("[]", "expected a COCO file .*, got list"),
        ('{"a": 1}', "with a list of images, got the keys a"),
        ('{"images": [1]}', "images expected objects, got int as entry 0"),
        ('{"images": [], "annotations": {}}', "with a list of annotations"),
        ("[" * 100_000, "not valid JSON, it is nested too deeply"),
        ('{"images": [' + "9" * 5000 + "]}", "not valid JSON, a number has too many digits"),
    ],
)
def test_parse_coco_what_is_no_coco_file_is_refused(text: str, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        parse_coco(text.encode(), "c.json")


# --- the source


def save(root: Path, content: dict[str, Any], name: str = "annotations.json") -> str:
    for image in content.get("images", []):
        path = root / image["file_name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (WIDTH, HEIGHT)).save(path)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(json.dumps(content))
    return str(root / name)


def rows_of(scan: Scan) -> dict[str, Any]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    items = [scan.items.item(number) for number in range(scan.items.size)]
    return {item.key: reader.read(item) for item in items}


def test_coco_row_has_boxes_crowd_area_and_the_categorys_own_id(tmp_path: Path) -> None:
    scan = Coco(save(tmp_path, make_coco())).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/bbox/xmin"].tolist() == [np.float32(0.1)]
    assert row["image/object/bbox/xmax"].tolist() == [0.5]
    assert row["image/object/bbox/ymax"].tolist() == [1]
    assert row["image/object/class/label"].tolist() == [90]
    assert row["image/object/class/text"] == [b"dog"]
    assert row["image/object/is_crowd"].tolist() == [0]
    assert row["image/object/area"].tolist() == [361]
    assert row["image/source_id"] == b"1"
    schema = scan.schema_after({})
    assert schema is not None
    assert set(row) == set(schema.features)
    classes = schema["image/object/class/label"].classes
    assert classes is not None
    assert (classes[1], classes[2], classes[90]) == ("cat", "unused 2", "dog")
    # Ids that no category has are not in the label map.
    items = "item {\n  id: 1\n  name: 'cat'\n}\nitem {\n  id: 90\n  name: 'dog'\n}\n"
    assert scan.label_files["label_map.pbtxt"] == items


@pytest.mark.parametrize(
    ("file_name", "expected"),
    [("1.jpg", b"1.jpg"), ("./1.jpg", b"1.jpg"), ("a/1.jpg", b"a/1.jpg"), ("a/./b//1.jpg", b"a/b/1.jpg")],
)
def test_coco_file_name_keeps_its_folders(file_name: str, expected: bytes, tmp_path: Path) -> None:
    content = make_coco()
    content["images"][0]["file_name"] = file_name
    [row] = rows_of(Coco(save(tmp_path, content)).scan("")).values()
    assert row["image/filename"] == expected


def test_coco_equal_names_in_two_folders_survive_export_and_build(tmp_path: Path) -> None:
    content = make_coco()
    [image], [annotation] = content["images"], content["annotations"]
    names = ["a/1.jpg", "b/1.jpg"]
    content["images"] = [{**image, "id": number, "file_name": name} for number, name in enumerate(names)]
    content["annotations"] = [{**annotation, "id": number, "image_id": number} for number in range(2)]
    tfrkit.build(tfrkit.sources.coco(save(tmp_path, content)), tmp_path / "one.tfrecord")
    tfrkit.tools.export_coco(tmp_path / "one.tfrecord", tmp_path / "out")
    exported = next((tmp_path / "out").rglob("*.json"))
    tfrkit.build(tfrkit.sources.coco(str(exported)), tmp_path / "two.tfrecord")
    for file in ("one.tfrecord", "two.tfrecord"):
        assert sorted(row["image/filename"] for row in tfrkit.open(tmp_path / file)) == [b"a/1.jpg", b"b/1.jpg"]


def test_coco_label_offset_numbers_categories_anew(tmp_path: Path) -> None:
    scan = Coco(save(tmp_path, make_coco()), label_offset=1).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/class/label"].tolist() == [2]
    assert scan.label_files["classes.txt"] == "1:cat\n2:dog\n"


def test_coco_masks_are_png_of_zero_and_one(tmp_path: Path) -> None:
    content = make_coco()
    content["annotations"].append(
        {
            "id": 8,
            "image_id": 1,
            "category_id": 1,
            "bbox": [0, 0, 60, 40],
            "iscrowd": 1,
            "segmentation": {"size": [HEIGHT, WIDTH], "counts": [0, WIDTH * HEIGHT]},
        }
    )
    [row] = rows_of(Coco(save(tmp_path, content), masks=True).scan("")).values()
    first, second = (np.asarray(Image.open(io.BytesIO(data))) for data in row["image/object/mask"])
    assert first.shape == (HEIGHT, WIDTH)
    assert (first.sum(), first[1:20, 1:20].all()) == (19 * 19, True)
    assert second.all()
    assert second.max() == 1


def test_coco_outline_that_does_not_fit_is_a_bad_input(tmp_path: Path) -> None:
    wrong = annotation(segmentation={"size": [1, 1], "counts": [1]})
    scan = Coco(save(tmp_path, make_coco(annotations=[wrong])), masks=True).scan("")
    with pytest.raises(SourceError, match=r"object 'cat' run lengths expected the size of the image, \[40, 60\]"):
        rows_of(scan)


def test_coco_folder_of_sets_makes_splits_and_reads_captions(tmp_path: Path) -> None:
    for name in ("train2017", "val2017"):
        save(tmp_path / name, {"images": [{"file_name": "a.jpg"}]}, "unused.json")
        path = tmp_path / "annotations" / f"instances_{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(make_coco()))
        captions = [{"id": 1, "image_id": 1, "caption": f"一只狗 {name}"}, {"id": 2, "image_id": 5, "caption": "other"}]
        (tmp_path / "annotations" / f"captions_{name}.json").write_text(json.dumps({"annotations": captions}))
    scan = Coco(tmp_path, captions="auto").scan("")  # type: ignore[arg-type]
    assert scan.problems == []
    assert scan.items.split_names == ("train2017", "val2017")
    rows = rows_of(scan)
    assert rows["val2017/a.jpg"]["image/caption"] == ["一只狗 val2017".encode()]
    assert Coco(str(tmp_path), sets=["val2017"]).scan("").items.split_names == ("val2017",)
    with pytest.raises(SourceError, match="no set 'test', expected one of train2017, val2017"):
        Coco(str(tmp_path), sets=["test"]).scan("")


def test_coco_file_of_captions_alone_is_read(tmp_path: Path) -> None:
    content = make_coco(annotations=[{"id": 1, "image_id": 1, "caption": "a dog"}], categories=[])
    [row] = rows_of(Coco(save(tmp_path, content)).scan("")).values()
    assert row["image/caption"] == [b"a dog"]
    assert row["image/object/class/label"].tolist() == []


def test_coco_missing_images_and_bad_boxes_are_named_at_once(tmp_path: Path) -> None:
    path = save(tmp_path, make_coco())
    content = make_coco(
        annotations=[annotation(bbox=[50, 1, 30, 5]), annotation(id=8, image_id=3)],
        images=[
            {"id": 1, "file_name": "a.jpg"},
            {"id": 2, "file_name": "gone.jpg"},
            {"id": 3, "file_name": "a.jpg"},
            {"id": 4, "file_name": "../../etc/passwd"},
            {"id": 5, "file_name": "/etc/passwd"},
        ],
    )
    Path(path).write_text(json.dumps(content))
    scan = Coco(path).scan("")
    assert {problem.key: problem.reason for problem in scan.problems} == {
        "annotations.json, annotation 7": "box (50, 1, 80, 6) is outside its image, 60x40",
        "gone.jpg": "cannot open, no such file or directory",
        "annotations.json, image 3": "image 'a.jpg' expected once, got it twice",
        "annotations.json, image 4": "file_name expected a path below the images, got '../../etc/passwd'",
        "annotations.json, image 5": "file_name expected a path below the images, got '/etc/passwd'",
    }
    assert scan.items.size == 0


def test_coco_size_that_is_not_the_images_is_a_problem(tmp_path: Path) -> None:
    path = save(tmp_path, make_coco())
    content = make_coco(images=[{"id": 1, "file_name": "a.jpg", "width": 640, "height": 480}])
    Path(path).write_text(json.dumps(content))
    [problem] = Coco(path).scan("").problems
    assert problem.reason == "annotation expected an image of 640x480, got one of 60x40"


def test_coco_names_with_blanks_are_stripped_and_reported_once(tmp_path: Path) -> None:
    content = make_coco(categories=[{"id": 90, "name": "dog\n"}])
    content["annotations"].append(annotation(id=8, category_id=90))
    scan = Coco(save(tmp_path, content)).scan("")
    [row] = rows_of(scan).values()
    assert row["image/object/class/text"] == [b"dog", b"dog"]
    expected = r"class names with blanks around them, stripped: 1 - 'dog\n' at annotations.json, category 90"
    assert expected in scan.notes
    assert any(note.endswith("1 category with its own id, 90") for note in scan.notes)


def test_coco_keypoints_are_noted_as_not_stored(tmp_path: Path) -> None:
    content = make_coco(annotations=[annotation(keypoints=[1, 1, 2])])
    assert "keypoints are not stored: 1 annotation has some" in Coco(save(tmp_path, content)).scan("").notes


def test_coco_ids_far_apart_ask_for_new_ones(tmp_path: Path) -> None:
    content = make_coco(categories=[{"id": 1, "name": "cat"}, {"id": 90, "name": "dog"}, {"id": 10**9, "name": "x"}])
    with pytest.raises(SourceError, match="got 1 to 1000000000\n  renumber them: label_offset=1"):
        Coco(save(tmp_path, content)).scan("")


def test_coco_folder_without_a_file_names_the_expected_files(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no COCO file, looked for annotations/instances_"):
        Coco(str(tmp_path)).scan("")
    with pytest.raises(SourceError, match="no such file or folder"):
        Coco(str(tmp_path / "x.json")).scan("")
