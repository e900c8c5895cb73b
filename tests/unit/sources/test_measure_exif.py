"""One rule for image, boxes, masks and sizes: all refer to the stored pixels.

Each picture shows the same scene: a bright rectangle on black. It is stored in all eight EXIF orientations, and
annotated either upright, as tools that apply EXIF do, or on the pixels as stored, as tools that do not.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageOps

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.images.resize import turn_upright
from tfrkit.sources import ImageOptions
from tfrkit.tools import export_coco, export_voc, export_yolo, sheet, verify

Exif = Literal["keep", "apply", "fail"]
Array = np.ndarray[Any, Any]

WIDTH, HEIGHT = 48, 32
SCENE = np.zeros((HEIGHT, WIDTH), np.uint8)
SCENE[4:20, 8:24] = 250
FILES = [(f"{form}{orientation}", form, orientation) for orientation in range(1, 9) for form in ("jpg", "png")]
UNDO = {6: 8, 8: 6}
_ANNOTATED = (
    "14 turned images have annotations, which are taken as made on the upright image; "
    'made on the stored pixels? use exif="keep"'
)


class Shot(NamedTuple):
    """A picture file: its name, its orientation, and the scene as its annotation sees it."""

    name: str
    orientation: int
    seen: Array

    @property
    def stem(self) -> str:
        return self.name.partition(".")[0]

    @property
    def box(self) -> tuple[int, int, int, int]:
        return find_box(self.seen)


def find_box(scene: Array) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(scene.any(axis=1)), np.flatnonzero(scene.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def shoot(folder: Path, *, annotated: Exif) -> list[Shot]:
    """Sixteen pictures; shown upright, each is the scene."""
    folder.mkdir(parents=True)
    shots = []
    for stem, form, orientation in FILES:
        stored = np.ascontiguousarray(turn_upright(SCENE, UNDO.get(orientation, orientation)))
        exif = Image.Exif()
        exif[0x0112] = orientation
        name = f"{stem}.{form}"
        Image.fromarray(np.repeat(stored[:, :, None], 3, axis=2)).save(folder / name, exif=exif, quality=95)
        shots.append(Shot(name, orientation, SCENE if annotated == "apply" else stored))
    return shots


def make_class_folders(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    shoot(root / "a", annotated=annotated)
    return tfr.sources.class_folders(root, images=images)


def make_file_names(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    shoot(root, annotated=annotated)
    return tfr.sources.file_names(root, label="(?P<class>[a-z]+)", images=images)


def make_voc_seg(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    (root / "SegmentationClass").mkdir(parents=True)
    for shot in shoot(root / "JPEGImages", annotated=annotated):
        Image.fromarray((shot.seen > 0).astype(np.uint8)).save(root / f"SegmentationClass/{shot.stem}.png")
    return tfr.sources.voc_seg(root, images=images)


def make_voc_det(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    (root / "Annotations").mkdir(parents=True)
    for shot in shoot(root / "JPEGImages", annotated=annotated):
        # VOC counts pixels from 1.
        sides = "".join(
            f"<{side}>{value}</{side}>" for side, value in zip(("xmin", "ymin", "xmax", "ymax"), shot.box, strict=True)
        )
        height, width = shot.seen.shape
        (root / f"Annotations/{shot.stem}.xml").write_text(
            f"<annotation><filename>{shot.name}</filename><size><width>{width}</width><height>{height}</height></size>"
            f"<object><name>car</name><bndbox>{sides}</bndbox></object></annotation>"
        )
    return tfr.sources.voc_det(root, images=images)


def make_coco(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    listed, objects = [], []
    for number, shot in enumerate(shoot(root / "images", annotated=annotated), 1):
        height, width = shot.seen.shape
        listed.append({"id": number, "file_name": shot.name, "width": width, "height": height})
        xmin, ymin, xmax, ymax = shot.box
        outline = [xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]
        objects.append(
            {
                "id": number,
                "image_id": number,
                "category_id": 1,
                "bbox": [xmin, ymin, xmax - xmin, ymax - ymin],
                "segmentation": [outline],
                "area": (xmax - xmin) * (ymax - ymin),
                "iscrowd": 0,
            }
        )
    content = {"images": listed, "annotations": objects, "categories": [{"id": 1, "name": "car"}]}
    (root / "instances.json").write_text(json.dumps(content))
    return tfr.sources.coco(root / "instances.json", image_root=str(root / "images"), masks=True, images=images)


def make_yolo(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    (root / "labels").mkdir(parents=True)
    (root / "classes.txt").write_text("car\n")
    for shot in shoot(root / "images", annotated=annotated):
        height, width = shot.seen.shape
        xmin, ymin, xmax, ymax = shot.box
        parts = ((xmin + xmax) / 2 / width, (ymin + ymax) / 2 / height, (xmax - xmin) / width, (ymax - ymin) / height)
        (root / f"labels/{shot.stem}.txt").write_text(f"0 {' '.join(map(str, parts))}\n")
    return tfr.sources.yolo(root, images=images)


def make_table(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    shots = shoot(root / "images", annotated=annotated)
    (root / "rows.csv").write_text("path\n" + "".join(f"{shot.name}\n" for shot in shots))
    return tfr.sources.table(root / "rows.csv", image_column="path", image_root=str(root / "images"), images=images)


def make_webdataset(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    shots = shoot(root / "images", annotated=annotated)
    with tarfile.open(root / "x.tar", "w") as archive:
        for shot in shots:
            archive.add(root / "images" / shot.name, shot.name)
    return tfr.sources.webdataset(str(root / "x.tar"), images=images)


def make_frames(root: Path, annotated: Exif, images: ImageOptions) -> Any:
    for shot in shoot(root / "shots", annotated=annotated):
        (root / f"clips/{shot.stem}").mkdir(parents=True)
        (root / "shots" / shot.name).rename(root / f"clips/{shot.stem}/0.{shot.name[-3:]}")
    return tfr.sources.frames(root / "clips", images=images)


MAKERS: dict[str, Callable[[Path, Exif, ImageOptions], Any]] = {
    "class-folders": make_class_folders,
    "file-names": make_file_names,
    "voc-seg": make_voc_seg,
    "voc-det": make_voc_det,
    "coco": make_coco,
    "yolo": make_yolo,
    "table": make_table,
    "webdataset": make_webdataset,
    "frames": make_frames,
}


def build(tmp_path: Path, kind: str, exif: Exif, annotated: Exif | None = None, **options: Any) -> Any:
    """The report of a build into tmp_path / "out"."""
    source = MAKERS[kind](tmp_path / "in", annotated or exif, ImageOptions(exif=exif, **options))
    return tfr.build(source, tmp_path / "out", jobs=1, order="source")


def read(out: Path) -> list[dict[str, Any]]:
    """Rows with what every source has under one name: pixels, height, width, and where it has them box and masks."""
    ds = tfr.open(out)
    name = next(name for name in ("image/encoded", "image") if name in ds.schema)
    mask = next((n for n in ("image/segmentation/class/encoded", "image/object/mask") if n in ds.schema), None)
    rows = []
    plain = list(ds)
    for row, given in zip(ds.decode(**{name: True, **({mask: True} if mask else {})}), plain, strict=True):
        flat = {**row["context"], **row["feature_lists"]} if "context" in row else row
        bare = {**given["context"], **given["feature_lists"]} if "context" in given else given
        one: dict[str, Any] = {"pixels": flat[name], "data": bare[name]}
        if "context" in row:
            one = {key: value[0] for key, value in one.items()}
        prefix = "" if name == "image" else "image/"
        one |= {"size": (int(flat[f"{prefix}height"]), int(flat[f"{prefix}width"]))}
        if mask is not None:
            one["mask"] = flat[mask][0] if mask == "image/object/mask" else flat[mask]
        if "image/object/bbox/xmin" in flat:
            one["box"] = [float(flat[f"image/object/bbox/{side}"][0]) for side in ("xmin", "ymin", "xmax", "ymax")]
        rows.append(one)
    return rows


def check_parts(row: dict[str, Any]) -> None:
    """Size, box and mask refer to the stored pixels."""
    pixels = np.asarray(row["pixels"])
    bright = pixels[:, :, 0] > 128
    assert row["size"] == pixels.shape[:2]
    if "box" in row:
        height, width = pixels.shape[:2]
        box = np.array(row["box"]) * (width, height, width, height)
        # VOC's corners may be one pixel off, by the count it begins with.
        assert np.abs(box - find_box(bright)).max() <= 1
    if "mask" in row:
        mask = np.asarray(row["mask"])
        assert mask.shape == pixels.shape[:2]
        assert ((mask > 0) == bright).mean() > 0.95


@pytest.mark.parametrize("kind", MAKERS)
def test_kept_pictures_are_stored_untouched_with_parts_in_stored_coordinates(tmp_path: Path, kind: str) -> None:
    report = build(tmp_path, kind, "keep")
    rows = read(tmp_path / "out")
    files = {path.read_bytes(): path for path in (tmp_path / "in").rglob("*") if path.suffix in (".jpg", ".png")}
    assert len(rows) == len(FILES)
    for row in rows:
        check_parts(row)
        image = Image.open(files[row["data"]])
        assert np.array_equal(row["pixels"], np.asarray(image))
    assert [note for note in report.notes if "EXIF" in note] == [
        'images with an EXIF orientation, pixels taken as stored: 14 of 16; to store them upright use exif="apply"'
    ]


@pytest.mark.parametrize("kind", MAKERS)
def test_applied_pictures_are_upright_with_parts_of_the_upright_picture(tmp_path: Path, kind: str) -> None:
    report = build(tmp_path, kind, "apply")
    rows = read(tmp_path / "out")
    paths = [path for path in (tmp_path / "in").rglob("*.*") if path.suffix in (".jpg", ".png")]
    untouched = {path.read_bytes() for path in paths}
    assert len(rows) == len(FILES)
    for row in rows:
        check_parts(row)
        image = Image.open(io.BytesIO(row["data"]))
        assert row["size"] == (HEIGHT, WIDTH)
        assert image.getexif().get(0x0112, 1) == 1
        if image.format == "PNG":
            assert np.array_equal(row["pixels"], np.repeat(SCENE[:, :, None], 3, axis=2))
        else:
            shown = [np.asarray(ImageOps.exif_transpose(Image.open(path))) for path in paths if path.suffix == ".jpg"]
            assert min(np.abs(one.astype(int) - row["pixels"]).mean() for one in shown) < 1
    assert sum(row["data"] in untouched for row in rows) == 2
    assert "images turned by their EXIF orientation: 14 of 16" in report.notes
    said = [note for note in report.notes if "turned images have annotations" in note]
    assert said == ([_ANNOTATED] if kind in ("voc-seg", "voc-det", "coco", "yolo") else [])


@pytest.mark.parametrize("exif", ["keep", "apply"])
@pytest.mark.parametrize("kind", MAKERS)
def test_pixels_made_anew_follow_the_same_rule(tmp_path: Path, kind: str, exif: Exif) -> None:
    build(tmp_path, kind, exif, encode="png")
    for row in read(tmp_path / "out"):
        check_parts(row)
        assert exif == "keep" or row["size"] == (HEIGHT, WIDTH)


@pytest.mark.parametrize("kind", MAKERS)
def test_pictures_with_an_orientation_are_bad_inputs_where_they_fail(tmp_path: Path, kind: str) -> None:
    source = MAKERS[kind](tmp_path / "in", "keep", ImageOptions(exif="fail"))
    with pytest.raises(SourceError, match="14 of 16 inputs are bad") as caught:
        tfr.build(source, tmp_path / "out", jobs=1)
    assert all("image expected upright, got EXIF orientation" in problem.reason for problem in caught.value.problems)
    report = tfr.build(source, tmp_path / "out", jobs=1, on_bad="skip")
    assert (report.written, len(report.skipped)) == (2, 14)


@pytest.mark.parametrize(("exif", "annotated", "named"), [("keep", "apply", "apply"), ("apply", "keep", "keep")])
@pytest.mark.parametrize("kind", ["voc-seg", "voc-det", "coco"])
def test_annotation_of_the_other_orientation_names_the_option(
    tmp_path: Path, kind: str, exif: Exif, annotated: Exif, named: str
) -> None:
    with pytest.raises(SourceError, match="8 of 16 inputs are bad") as caught:
        build(tmp_path, kind, exif, annotated)
    assert len(caught.value.problems) == 8  # the orientations that swap height and width
    for problem in caught.value.problems:
        assert "EXIF orientation" in problem.reason
        assert f'exif="{named}"' in problem.hint


def test_changed_choice_is_detected(tmp_path: Path) -> None:
    build(tmp_path, "class-folders", "keep")
    source = tfr.sources.class_folders(tmp_path / "in", images=ImageOptions(exif="apply"))
    with pytest.raises(tfr.errors.StorageError, match='images exif was "keep", is "apply"'):
        tfr.build(source, tmp_path / "out", jobs=1, order="source")
    manifest = json.loads((tmp_path / "out/tfrkit.json").read_text())
    assert manifest["recipe"]["options"]["images"]["exif"] == "keep"


def test_dry_run_counts_pictures_with_an_orientation(tmp_path: Path) -> None:
    source = make_class_folders(tmp_path / "in", "keep", ImageOptions())
    report = tfr.build(source, tmp_path / "out", dry_run=True, jobs=1)
    assert any("pixels taken as stored: 14 of 16" in note for note in report.notes)


def test_mask_with_its_own_orientation_is_turned_with_its_image(tmp_path: Path) -> None:
    root = tmp_path / "in"
    (root / "SegmentationClass").mkdir(parents=True)
    for shot in shoot(root / "JPEGImages", annotated="keep"):
        exif = Image.Exif()
        exif[0x0112] = shot.orientation
        mask = Image.fromarray((shot.seen > 0).astype(np.uint8))
        mask.save(root / f"SegmentationClass/{shot.stem}.png", exif=exif)
    tfr.build(tfr.sources.voc_seg(root, images=ImageOptions(exif="apply")), tmp_path / "out", jobs=1)
    for row in read(tmp_path / "out"):
        check_parts(row)
        assert row["size"] == (HEIGHT, WIDTH)
    (root / "JPEGImages/jpg1.jpg").rename(root / "JPEGImages/jpg2.jpg")
    (root / "JPEGImages/png1.png").rename(root / "JPEGImages/png2.png")
    with pytest.raises(SourceError, match="inputs are bad") as caught:
        tfr.build(tfr.sources.voc_seg(root, images=ImageOptions(exif="fail")), tmp_path / "other", jobs=1)
    assert "mask expected upright, got EXIF orientation 2" in str([p.reason for p in caught.value.problems])


# --- readers


@pytest.mark.parametrize("exif", ["keep", "apply"])
@pytest.mark.parametrize("kind", ["voc-seg", "voc-det", "coco", "class-folders"])
def test_deep_check_finds_nothing_wrong_with_what_was_built(tmp_path: Path, kind: str, exif: Exif) -> None:
    build(tmp_path, kind, exif)
    result = verify(tmp_path / "out", deep=True, ignore=("near_duplicate", "duplicate"))
    assert result.findings == []


def test_decode_turns_a_kept_picture_only_when_requested(tmp_path: Path) -> None:
    build(tmp_path, "class-folders", "keep")
    ds = tfr.open(tmp_path / "out")
    shapes = {row["image/encoded"].shape for row in ds.decode(image=True)}
    assert shapes == {(HEIGHT, WIDTH, 3), (WIDTH, HEIGHT, 3)}
    for row in ds.decode(image={"exif": "apply"}):
        assert row["image/encoded"].shape == (HEIGHT, WIDTH, 3)
        assert np.abs(row["image/encoded"][:, :, 0].astype(int) - SCENE).mean() < 3


@pytest.mark.parametrize(("export", "kind"), [(export_voc, "voc-det"), (export_coco, "coco"), (export_yolo, "yolo")])
def test_exported_annotations_come_back_the_same(tmp_path: Path, export: Any, kind: str) -> None:
    build(tmp_path, kind, "keep")
    export(tmp_path / "out", tmp_path / "exported")
    again = {
        "voc-det": tfr.sources.voc_det,
        "coco": tfr.sources.coco,
        "yolo": tfr.sources.yolo,
    }[kind](tmp_path / "exported")
    tfr.build(again, tmp_path / "back", jobs=1, order="source")
    rows = read(tmp_path / "back")
    assert len(rows) == len(FILES)
    for row in rows:
        check_parts(row)


def test_sheet_shows_pixels_as_stored(tmp_path: Path) -> None:
    build(tmp_path, "class-folders", "keep")
    report = sheet(tmp_path / "out", tmp_path / "sheet.png", count=16, columns=4, size=48)
    assert report.ok
    page = np.asarray(Image.open(tmp_path / "sheet.png").convert("RGB"))
    rows = read(tmp_path / "out")
    from tfrkit.pictures.tiles import SheetLayout

    for place, row in enumerate(rows):
        x, y = SheetLayout(16, 4, 48).locate(place)
        height, width = row["pixels"].shape[:2]
        left, top = x + (48 - width) // 2, y + (48 - height) // 2
        assert np.array_equal(page[top : top + height, left : left + width], row["pixels"])
