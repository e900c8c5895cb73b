"""Real datasets by other tools, built and read back: annotations, masks, tables and records keep their values."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit import sources
from tfrkit.build.run import build
from tfrkit.errors import SourceError

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
LABELME = CORPUS / "wkentaro+labelme" / "examples"
DATUMARO = CORPUS / "openvinotoolkit+datumaro" / "tests" / "assets"
SUSHI = CORPUS / "Jwata+sushi_detector_dataset"
RECORDER = CORPUS / "google+tensorflow-recorder"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus folder ../shared/corpus is not here")


def build_rows(source: Any, tmp_path: Path, **options: Any) -> list[dict[str, Any]]:
    out = tmp_path / "out.tfrecord"
    report = build(source, out, jobs=1, **options)
    with tfr.open(out) as ds:
        rows = list(ds)
    assert report.written == len(rows)
    return rows


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["image/filename"].decode(): row for row in rows}


# --- Pascal VOC


def test_voc_det_sushi_equals_the_records_its_author_made(tmp_path: Path) -> None:
    rows = by_name(build_rows(sources.voc_det(str(SUSHI / "@2a4de42b")), tmp_path))
    with tfr.open(SUSHI / "@cf40be37/data/train.record") as ds:
        theirs = by_name(list(ds))
    assert len(rows) == 3
    for name, row in rows.items():
        theirs_row = theirs[name]
        for feature, value in theirs_row.items():
            ours = row[feature]
            if isinstance(ours, list):
                [ours] = ours
            assert np.asarray(ours).item() == value, (name, feature)
        assert row["image/key/sha256"].decode() == hashlib.sha256(theirs_row["image/encoded"]).hexdigest()


def test_voc_det_labelme_takes_class_ids_from_class_names_txt(tmp_path: Path) -> None:
    rows = by_name(build_rows(sources.voc_det(str(LABELME / "bbox_detection/data_dataset_voc")), tmp_path))
    row = rows["2011_000003.jpg"]
    assert row["image/object/class/text"] == [b"person", b"person"]
    assert row["image/object/class/label"].tolist() == [15, 15]
    np.testing.assert_array_equal(row["image/object/bbox/xmin"], np.float32([191 / 500, 365 / 500]))
    np.testing.assert_array_equal(row["image/object/bbox/ymax"], np.float32([329.36900369003695 / 338, 333 / 338]))


def test_voc_det_datumaro_takes_sets_from_imagesets(tmp_path: Path) -> None:
    report = build(sources.voc_det(str(DATUMARO / "voc_dataset/voc_dataset1")), tmp_path / "out", jobs=1)
    assert {name: split["records"] for name, split in report.splits.items()} == {"train": 1}
    with tfr.open(tmp_path / "out") as ds:
        row = ds[0]
    assert row["image/object/class/label"].tolist() == [8, 15]  # cat, person; parts of a person are not objects
    assert row["image/object/truncated"].tolist() == [1, 0]
    assert row["image/object/view"] == [b"Unspecified", b""]


def test_voc_seg_labelme_palette_indices_survive(tmp_path: Path) -> None:
    root = LABELME / "semantic_segmentation/data_dataset_voc"
    rows = by_name(build_rows(sources.voc_seg(str(root)), tmp_path))
    seen = {}
    for name, row in rows.items():
        stored = Image.open(io.BytesIO(row["image/segmentation/class/encoded"]))
        assert stored.mode == "L"
        original = np.asarray(Image.open(root / "SegmentationClass" / name.replace(".jpg", ".png")))
        assert np.array_equal(np.asarray(stored), original)
        seen[name] = np.unique(original).tolist()
        assert row["image/encoded"] == (root / "JPEGImages" / name).read_bytes()
    assert seen == {"2011_000003.jpg": [0, 5, 15, 255], "2011_000006.jpg": [0, 9, 15, 18, 255]}


def test_voc_seg_keys_of_the_tutorial_are_reached_by_renaming(tmp_path: Path) -> None:
    root = LABELME / "semantic_segmentation/data_dataset_voc"
    keys = {
        "image/encoded": "image_raw",
        "image/segmentation/class/encoded": "label_raw",
        "image/height": "height",
        "image/width": "width",
    }
    source = sources.voc_seg(str(root), images=sources.ImageOptions(encode="raw"))
    rows = build_rows(source, tmp_path, keys=keys)
    for row in rows:
        label = np.frombuffer(row["label_raw"], np.uint8).reshape(row["height"], row["width"])
        assert set(np.unique(label).tolist()) <= {*range(21), 255}
        assert len(row["image_raw"]) == row["height"] * row["width"] * 3


def test_voc_seg_datumaro_colours_need_the_colour_map(tmp_path: Path) -> None:
    root = str(DATUMARO / "voc_dataset/voc_dataset1")
    with pytest.raises(SourceError, match="which has colours"):
        build(sources.voc_seg(root), tmp_path / "x", jobs=1)
    [row] = build_rows(sources.voc_seg(root, colormap="voc"), tmp_path)
    mask = np.asarray(Image.open(io.BytesIO(row["image/segmentation/class/encoded"])))
    colors = np.asarray(Image.open(DATUMARO / "voc_dataset/voc_dataset1/SegmentationClass/2007_000001.png"))
    assert mask.shape == colors.shape[:2]
    assert len(np.unique(mask)) == len(np.unique(colors.reshape(-1, 3), axis=0))


# --- COCO


# Pixels of each object's mask, counted with pycocotools 2.0.11.
LABELME_AREAS = {
    "2011_000003.jpg": [15448, 16966, 815],
    "2011_000025.jpg": [102322, 15670, 7124],
    "2011_000006.jpg": [14935, 11554, 7399, 44276, 964, 13701],
}


def test_coco_labelme_masks_are_those_of_the_reference(tmp_path: Path) -> None:
    path = LABELME / "instance_segmentation/data_dataset_coco/annotations.json"
    source = sources.coco(str(path), masks=True, image_root=str(LABELME / "bbox_detection/data_dataset_voc"))
    rows = by_name(build_rows(source, tmp_path))
    counted = {
        name: [int(np.asarray(Image.open(io.BytesIO(data))).sum()) for data in row["image/object/mask"]]
        for name, row in rows.items()
    }
    assert counted == {f"JPEGImages/{name}": areas for name, areas in LABELME_AREAS.items()}


def test_coco_roboflow_folder_is_a_split(tmp_path: Path) -> None:
    report = build(sources.coco(str(DATUMARO / "roboflow_dataset/coco")), tmp_path / "out", jobs=1)
    assert list(report.splits) == ["val"]
    with tfr.open(tmp_path / "out") as ds:
        row = ds[0]
    assert row["image/object/class/label"].tolist() == [1, 2]
    assert row["image/object/is_crowd"].tolist() == [0, 1]
    np.testing.assert_array_equal(row["image/object/bbox/xmax"], np.float32([0.1, 0.9]))


def test_coco_images_that_are_not_there_are_all_named(tmp_path: Path) -> None:
    path = LABELME / "instance_segmentation/data_dataset_coco"
    with pytest.raises(
        SourceError, match=r"3 of 3 inputs are bad(.|\n)*2011_000003(.|\n)*2011_000025(.|\n)*2011_000006"
    ):
        build(sources.coco(str(path)), tmp_path / "x", jobs=1)


# --- tables, archives, records


def test_table_recorder_csv_gives_images_labels_and_splits(tmp_path: Path) -> None:
    source = sources.table(
        str(RECORDER / "tfrecorder/test_data/data.csv"),
        image_column="image_uri",
        image_root=str(RECORDER),
        label_column="label",
        split_column="split",
    )
    report = build(source, tmp_path / "out", jobs=1)
    assert {name: split["records"] for name, split in report.splits.items()} == {"test": 2, "train": 2, "validation": 2}
    with tfr.open(tmp_path / "out") as ds:
        rows = list(ds)
    for row in rows:
        assert row["image/encoded"] == (RECORDER / row["image_uri"].decode()).read_bytes()
        assert [b"cat", b"goat"][row["label"]] == row["label/text"]
        assert row["label/text"] in row["image_uri"]


def test_tfrecord_of_every_corpus_file_keeps_its_records(tmp_path: Path) -> None:
    entries = json.loads((CORPUS / "MANIFEST.json").read_text())
    files = [CORPUS / entry["file"] for entry in entries if entry["kind"] == "record" and entry["records"]]
    small = [path for path in files if path.stat().st_size < 300_000]
    assert len(small) > 40
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for path in small:
        with tfr.open(path) as ds:
            expected = list(ds.records())
        scan = sources.tfrecord(str(path)).scan(str(scratch))
        order = np.random.default_rng(0).permutation(len(expected))
        assert list(scan.reader.read_records(order)) == [expected[number] for number in order], path  # type: ignore[union-attr]


def test_tfrecord_build_of_several_files_is_their_records(tmp_path: Path) -> None:
    paths = sorted(str(path) for path in (SUSHI / "@34dd949a/data").glob("*.record"))
    build(sources.tfrecord(paths), tmp_path / "out.tfrecord", jobs=2)
    expected = [record for path in paths for record in tfr.open(path).records()]
    assert list(tfr.open(tmp_path / "out.tfrecord").records()) == expected
    whole = Counter(tfr.open(SUSHI / "@cf40be37/data/train.record").records())
    assert Counter(expected) == whole


def test_webdataset_of_corpus_photos_keeps_their_bytes(tmp_path: Path) -> None:
    photos = sorted((SUSHI / "@2a4de42b/images").glob("*.jpg"))
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for photo in photos:
            archive.add(photo, photo.name)
    rows = build_rows(sources.webdataset(str(tmp_path / "x.tar")), tmp_path)
    assert [row["image/encoded"] for row in rows] == [photo.read_bytes() for photo in photos]
    assert [row["__key__"].decode() for row in rows] == [photo.stem for photo in photos]


def test_frames_of_corpus_photos_are_one_sequence(tmp_path: Path) -> None:
    folder = tmp_path / "clips" / "sushi"
    folder.mkdir(parents=True)
    photos = sorted((SUSHI / "@2a4de42b/images").glob("*.jpg"))
    for number, photo in enumerate(photos, 9):
        (folder / f"f{number}.jpg").write_bytes(photo.read_bytes())
    [row] = build_rows(sources.frames(str(tmp_path / "clips")), tmp_path)
    assert [bytes(frame) for frame in row["feature_lists"]["image/encoded"]] == [photo.read_bytes() for photo in photos]
    assert row["context"]["clip/length"] == 3
