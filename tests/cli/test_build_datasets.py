"""`tfr build`: every source once, with its own options."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def build(run_tfr: Run, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Runs `tfr build` and returns the rows it wrote."""

    def run(source: str, *arguments: object) -> list[dict[str, Any]]:
        out = tmp_path / "out.tfrecord"
        done = run_tfr("build", source, *arguments, "-o", out, "--order", "source", "--jobs", 1)
        assert (done.returncode, done.stdout.count("written")) == (0, 1), done.stderr
        with tfr.open(out) as ds:
            return list(ds)

    return run


def save_image(path: Path, size: tuple[int, int] = (60, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


def save_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_build_voc_seg_maps_numbers_of_masks(build: Any, run_tfr: Run, tmp_path: Path) -> None:
    save_image(tmp_path / "v/JPEGImages/a.jpg")
    (tmp_path / "v/SegmentationClass").mkdir()
    mask = np.zeros((40, 60), np.uint8)
    mask[:10] = 200
    Image.fromarray(mask).save(tmp_path / "v/SegmentationClass/a.png")
    failed = run_tfr("build", "voc-seg", tmp_path / "v", "-o", tmp_path / "x")
    assert failed.returncode == 3
    assert "got 200 (0: 75 %, 200: 25 %)" in failed.stderr
    assert "if 200 is a class: --map 200=1    if it is none: --ignore 200\n" in failed.stderr
    [row] = build("voc-seg", tmp_path / "v", "--map", "200=1", "--keys", "image/segmentation/class/encoded=label_raw")
    assert np.unique(np.asarray(Image.open(io.BytesIO(row["label_raw"])))).tolist() == [0, 1]


def test_build_voc_det_cuts_boxes(build: Any, tmp_path: Path) -> None:
    save_image(tmp_path / "a.jpg")
    box = "<bndbox><xmin>30</xmin><ymin>0</ymin><xmax>90</xmax><ymax>20</ymax></bndbox>"
    save_text(tmp_path / "a.xml", f"<annotation><object><name>cat</name>{box}</object></annotation>")
    [row] = build("voc-det", tmp_path, "--boxes", "clip", "--label-offset", 5)
    assert (row["image/object/bbox/xmax"].tolist(), row["image/object/class/label"].tolist()) == ([1.0], [5])


def test_build_coco_with_masks(build: Any, tmp_path: Path) -> None:
    save_image(tmp_path / "pics/a.jpg")
    content = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "categories": [{"id": 7, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 9, 9], "segmentation": [[0, 0, 9, 0, 9, 9]]}
        ],
    }
    path = save_text(tmp_path / "c.json", json.dumps(content))
    [row] = build("coco", path, "--image-root", tmp_path / "pics", "--masks")
    assert row["image/object/class/label"].tolist() == [7]
    assert Image.open(io.BytesIO(row["image/object/mask"][0])).size == (60, 40)


def test_build_yolo_takes_a_set(build: Any, tmp_path: Path) -> None:
    for split in ("train", "val"):
        save_image(tmp_path / f"y/images/{split}/{split}.jpg")
        save_text(tmp_path / f"y/labels/{split}/{split}.txt", "0 .5 .5 .2 .2\n")
    save_text(tmp_path / "y/classes.txt", "cat\n")
    [row] = build("yolo", tmp_path / "y", "--set", "val")
    assert row["image/filename"] == b"val.jpg"


def test_build_table_types_floats_and_missing(build: Any, run_tfr: Run, tmp_path: Path) -> None:
    path = save_text(tmp_path / "t.csv", "id;x;y\n007;0.1;NA\n008;0.5;3\n")
    failed = run_tfr("build", "table", path, "-o", tmp_path / "x.tfrecord", "--missing", "NA")
    assert failed.returncode == 3
    assert "round them: --floats float32" in failed.stderr
    rows = build("table", path, "--floats", "float32", "--missing", "NA", "--type", "y=text")
    assert rows == [{"id": b"007", "x": np.float32(0.1)}, {"id": b"008", "x": 0.5, "y": b"3"}]


def test_build_frames_of_a_table(build: Any, run_tfr: Run, tmp_path: Path) -> None:
    path = save_text(tmp_path / "t.csv", "clip,t,x,who\na,2,5,me\na,1,6,me\n")
    [row] = build("frames", path, "--clip-column", "clip", "--order-column", "t", "--context", "who")
    assert row["context"] == {"clip": b"a", "who": b"me"}
    assert np.concatenate([np.atleast_1d(frame) for frame in row["feature_lists"]["x"]]).tolist() == [6, 5]
    failed = run_tfr("build", "frames", path, "-o", tmp_path / "x")
    assert failed.returncode == 2
    assert "a table of frames expected --clip-column" in failed.stderr


def test_build_frames_of_folders(build: Any, tmp_path: Path) -> None:
    for number in (2, 10):
        save_image(tmp_path / f"clips/walk/a/{number}.png", (number, 4))
    [row] = build("frames", tmp_path / "clips", "--frame-rate", 10, "--resize", "4x4", "--encode", "png")
    assert [int(stamp) for stamp in row["feature_lists"]["image/timestamp"]] == [0, 100_000]
    assert row["context"]["clip/label/string"] == b"walk"


def test_build_tfrecord_of_two_files(build: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with tfr.Writer(tmp_path / f"{name}.tfrecord") as writer:
            writer.write({"name": name})
    rows = build("tfrecord", tmp_path / "b.tfrecord", tmp_path / "a.tfrecord")
    assert [row["name"] for row in rows] == [b"b", b"a"]


def test_build_webdataset_of_a_tar(build: Any, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, data in (("a.txt", b"hi"), ("a.cls", b"3")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    assert build("webdataset", tmp_path / "x.tar") == [{"__key__": b"a", "image/class/label": 3, "text": b"hi"}]


def test_build_bad_column_is_not_counted_as_an_input(run_tfr: Run, tmp_path: Path) -> None:
    path = save_text(tmp_path / "t.csv", "x\n0.1\n2\n3\n")
    failed = run_tfr("build", "table", path, "-o", tmp_path / "x.tfrecord")
    assert failed.stderr.startswith("tfr: 1 problem in 3 inputs, nothing was written\n")


def test_build_image_with_two_bad_boxes_is_one_bad_input(run_tfr: Run, tmp_path: Path) -> None:
    boxes = "".join(
        f"<object><name>cat</name><bndbox><xmin>30</xmin><ymin>0</ymin><xmax>{x}</xmax><ymax>20</ymax></bndbox></object>"
        for x in (90, 91, 92, 93, 94)
    )
    for name, objects in (("a", boxes), ("b", "")):
        save_image(tmp_path / f"in/{name}.jpg")
        save_text(tmp_path / f"in/{name}.xml", f"<annotation>{objects}</annotation>")
    failed = run_tfr("build", "voc-det", tmp_path / "in", "-o", tmp_path / "x")
    assert failed.stderr == (
        "tfr: 1 of 2 inputs is bad, nothing was written\n"
        "  5 times, the first: box (30, 0, 90, 20) is outside its image, 60x40 - at a.xml, line 1; a.xml, line 1; "
        "a.xml, line 1 and 2 more\n"
        "    cut them to the image: --boxes clip    leave them out: --boxes drop\n"
        "  list every one: --dry-run --format json\n"
        "  repair or remove them    or leave them out: --on-bad skip\n"
    )
    done = run_tfr("build", "voc-det", tmp_path / "in", "-o", tmp_path / "x", "--on-bad", "skip")
    assert done.returncode == 1
    assert "2 found, 1 written, 1 skipped\n" in done.stdout
    assert len((tmp_path / "x/skipped.jsonl").read_text().splitlines()) == 5


def test_build_class_folders_inside_a_class_names_the_folder_above(run_tfr: Run, tmp_path: Path) -> None:
    for number in range(5):
        save_image(tmp_path / f"in/cat/{number}.jpg")
    failed = run_tfr("build", "class-folders", tmp_path / "in/cat", "-o", tmp_path / "x")
    assert failed.stderr.splitlines()[:3] == [
        "tfr: 5 of 5 inputs are bad, nothing was written",
        "  5 images are not in a class folder - at 0.jpg; 1.jpg; 2.jpg and 2 more",
        f"    did you mean the folder above: {tmp_path / 'in'}",
    ]


def test_build_whose_inputs_are_all_bad_says_why_with_skip_too(run_tfr: Run, tmp_path: Path) -> None:
    for number in range(5):
        save_image(tmp_path / f"in/{number}.jpg")
    failed = run_tfr("build", "class-folders", tmp_path / "in", "-o", tmp_path / "x", "--on-bad", "skip")
    assert failed.returncode == 3
    assert failed.stderr.splitlines()[0] == "tfr: 5 of 5 inputs are bad, nothing was written"
    assert "5 images are not in a class folder" in failed.stderr
    assert failed.stderr.splitlines()[-2].startswith("    did you mean the folder above")
    assert failed.stderr.endswith("  list every one: --dry-run --format json\n")


def test_build_of_a_table_without_header_is_noted_with_the_float_error(run_tfr: Run, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n4.7,3.2,virginica\n")
    failed = run_tfr("build", "table", tmp_path / "x.csv", "-o", tmp_path / "out")
    assert failed.returncode == 3
    assert failed.stderr.count("keep them as tensors: --floats float64") == 2
    assert failed.stderr.splitlines()[-1] == (
        "    the first line, taken as names of columns, looks like the rows below it; "
        "if it has no header, name its columns: --columns A,B,..."
    )
    assert "correct them" not in failed.stderr
    typed = run_tfr("build", "table", tmp_path / "x.csv", "-o", tmp_path / "out", "--no-header")
    assert typed.returncode == 2
    assert "names of its columns: --columns a,b,c" in typed.stderr
    assert "--no-header" not in run_tfr("build", "table", "--help").stdout
