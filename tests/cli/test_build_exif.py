"""`--exif` of `tfr build`: every source of images has it, and messages name it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr

Run = Callable[..., subprocess.CompletedProcess[str]]


def save_photo(path: Path, orientation: int) -> None:
    """60x40 as stored."""
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.new("RGB", (60, 40)).save(path, exif=exif)


def save_xml(path: Path, width: int, height: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"<annotation><filename>a.jpg</filename><size><width>{width}</width><height>{height}</height></size><object>"
        "<name>car</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>20</xmax><ymax>30</ymax></bndbox></object></annotation>"
    )


@pytest.mark.parametrize(
    "source", ["class-folders", "file-names", "voc-seg", "voc-det", "coco", "yolo", "table", "frames", "webdataset"]
)
def test_every_source_of_images_has_the_option(run_tfr: Run, source: str) -> None:
    assert "--exif keep|apply|fail" in run_tfr("build", source, "--help").stdout


def test_pictures_with_a_rotation_are_counted_and_the_option_is_named(run_tfr: Run, tmp_path: Path) -> None:
    for name, orientation in (("a", 1), ("b", 6), ("c", 3)):
        save_photo(tmp_path / f"in/x/{name}.jpg", orientation)
    done = run_tfr("build", "class-folders", tmp_path / "in", "-o", tmp_path / "kept", "--jobs", 1)
    assert done.returncode == 0
    counted = "images with an EXIF orientation, pixels taken as stored: 2 of 3; to store them upright use --exif apply"
    assert counted in done.stderr
    sizes = {(row["image/width"], row["image/height"]) for row in tfr.open(tmp_path / "kept")}
    assert sizes == {(60, 40)}
    assert "JPEG 60x40" in run_tfr("info", tmp_path / "kept").stdout
    done = run_tfr("export", "images", tmp_path / "kept", "-o", tmp_path / "exported")
    assert done.returncode == 0
    exported = {path.read_bytes() for path in (tmp_path / "exported").rglob("*.jpg")}
    assert exported == {path.read_bytes() for path in (tmp_path / "in").rglob("*.jpg")}
    command = ("build", "class-folders", tmp_path / "in", "-o", tmp_path / "turned", "--jobs", 1, "--exif", "apply")
    done = run_tfr(*command)
    assert "images turned by their EXIF orientation: 2 of 3" in done.stderr
    rows = {row["image/filename"]: row for row in tfr.open(tmp_path / "turned")}
    assert (rows[b"x/b.jpg"]["image/width"], rows[b"x/b.jpg"]["image/height"]) == (40, 60)
    assert rows[b"x/a.jpg"]["image/encoded"] == (tmp_path / "in/x/a.jpg").read_bytes()
    assert "already there" in run_tfr(*command).stdout
    other = run_tfr(*command[:-1], "keep")
    assert other.returncode == 3
    assert 'images exif was "apply", is "keep"' in other.stderr
    report = json.loads((tmp_path / "turned/report.json").read_text())
    assert "images turned by their EXIF orientation: 2 of 3" in report["notes"]


@pytest.mark.parametrize("source", ["voc-seg", "voc-det", "coco", "yolo", "csv-boxes"])
def test_help_says_on_which_picture_annotations_are_made(run_tfr: Run, source: str) -> None:
    text = " ".join(run_tfr("build", source, "--help").stdout.split())
    assert "are expected to fit the upright image; if they fit the stored pixels: --exif keep" in text


def test_picture_that_is_to_fail_is_named_and_may_be_skipped(run_tfr: Run, tmp_path: Path) -> None:
    for name, orientation in (("a", 1), ("b", 6)):
        save_photo(tmp_path / f"in/x/{name}.jpg", orientation)
    command = ("build", "class-folders", tmp_path / "in", "-o", tmp_path / "out", "--jobs", 1, "--exif", "fail")
    done = run_tfr(*command)
    assert done.returncode == 3
    assert (
        "x/b.jpg: image expected upright, got EXIF orientation 6\n"
        "    turn it: --exif apply    take it as stored: --exif keep\n"
    ) in done.stderr
    done = run_tfr(*command, "--on-bad", "skip")
    assert (done.returncode, "1 written, 1 skipped" in done.stdout) == (1, True)
    assert "\n  turn it: --exif apply" in done.stdout


def test_annotation_made_on_the_turned_picture_names_apply(run_tfr: Run, tmp_path: Path) -> None:
    save_photo(tmp_path / "in/JPEGImages/a.jpg", 6)
    save_xml(tmp_path / "in/Annotations/a.xml", 40, 60)
    command = ("build", "voc-det", tmp_path / "in", "-o", tmp_path / "out", "--jobs", 1)
    done = run_tfr(*command)
    assert done.returncode == 3
    assert (
        "Annotations/a.xml: annotation expected an image of 40x60, got one of 60x40, "
        "stored with EXIF orientation 6\n    if it was annotated upright: --exif apply\n"
    ) in done.stderr
    done = run_tfr(*command, "--dry-run")
    assert "if it was annotated upright: --exif apply" in done.stdout
    assert run_tfr(*command, "--exif", "apply").returncode == 0
    checked = run_tfr("verify", tmp_path / "out", "--deep")
    assert (checked.returncode, checked.stdout) == (0, "ok, 1 record\n")
    save_xml(tmp_path / "in/Annotations/a.xml", 60, 40)
    done = run_tfr(*command, "--exif", "apply", "--force")
    assert "turned by its EXIF orientation 6\n    if it was annotated as stored: --exif keep" in done.stderr


def test_deep_check_names_exif(run_tfr: Run, tmp_path: Path) -> None:
    save_photo(tmp_path / "a.jpg", 8)
    with tfr.Writer(tmp_path / "a.tfrecord") as writer:
        data = (tmp_path / "a.jpg").read_bytes()
        writer.write({"image/encoded": data, "image/height": 60, "image/width": 40, "image/format": "jpeg"})
    done = run_tfr("verify", tmp_path / "a.tfrecord", "--deep")
    assert done.returncode == 1
    assert (
        "image expected 40x60 as its features say, got 60x40; "
        "40x60 is the image turned by its EXIF orientation 8, which is not applied"
    ) in done.stdout


def test_decoded_pixels_and_mask_are_aligned(run_tfr: Run, tmp_path: Path) -> None:
    pixels = np.zeros((60, 60, 3), np.uint8)
    pixels[:20, :20] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "in/JPEGImages").mkdir(parents=True)
    (tmp_path / "in/SegmentationClass").mkdir()
    Image.fromarray(pixels).save(tmp_path / "in/JPEGImages/a.jpg", exif=exif, quality=95)
    Image.fromarray(pixels[:, :, 0] // 255 * 11).save(tmp_path / "in/SegmentationClass/a.png")
    assert run_tfr("build", "voc-seg", tmp_path / "in", "-o", tmp_path / "out", "--jobs", 1).returncode == 0
    mask = "image/segmentation/class/encoded"
    row = tfr.open(tmp_path / "out").decode(**{"image/encoded": (30, 30), mask: {"size": (30, 30)}})[0]
    assert np.array_equal(row["image/encoded"][:, :, 0] > 128, row[mask] == 11)
    assert set(np.unique(row[mask]).tolist()) == {0, 11}
