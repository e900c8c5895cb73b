"""Images as files: the same bytes, under safe names, in folders of classes and splits."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import CodecError, CorruptRecordError, MissingFeatureError, SchemaError, StorageError
from tfrkit.ops.export.images import export_images
from tfrkit.testing.corruption import flip, frame_offsets

MakeImages = Callable[..., Path]


def encode(color: Any = (255, 0, 0), size: tuple[int, int] = (8, 6), mode: str = "RGB", format: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, format=format)
    return file.getvalue()


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with tfrkit.Writer(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return path


def read_tree(root: Path) -> dict[str, bytes | None]:
    """Path below the root → bytes, None for a folder."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


# --- round trips


@pytest.mark.parametrize("out", ["out", "out.tfrecord"])
def test_class_folders_come_out_as_they_went_in(tmp_path: Path, make_images: MakeImages, out: str) -> None:
    names = ["cat/1.png", "cat/deep/er/1.jpg", "cat/2.JPG", "dog/1.png", "dog/ü 3.webp", "a dog/x.gif", "b/noext"]
    root = make_images([name for name in names if "." in name])
    (root / "b").mkdir()
    (root / "b" / "noext").write_bytes(encode(format="JPEG"))
    (root / "a dog" / "lies.jpg").write_bytes(encode(format="PNG"))
    (root / "empty").mkdir()
    tfrkit.build(tfrkit.sources.class_folders(root), tmp_path / out, jobs=1)
    report = export_images(tmp_path / out, tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(root)
    assert (report.records, report.files, report.ok, report.num_renamed) == (8, 8, True, 0)
    assert report.nbytes == sum(len(data) for data in read_tree(root).values() if data is not None)


def test_split_folders_come_out_as_they_went_in(tmp_path: Path, make_images: MakeImages) -> None:
    root = make_images([f"{split}/{label}/{n}.png" for split in ("train", "test") for label in "ab" for n in range(3)])
    tfrkit.build(tfrkit.sources.class_folders(root, split_folders=True), tmp_path / "out", jobs=1)
    export_images(tmp_path / "out", tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(root)


def test_splits_of_a_build_are_folders_around_the_classes(tmp_path: Path, make_images: MakeImages) -> None:
    root = make_images([f"{label}/{number}.png" for label in ("train", "cat") for number in range(10)])
    source = tfrkit.sources.class_folders(root, classes=["cat", "train"])
    tfrkit.build(source, tmp_path / "out", splits={"test": 4}, jobs=1)
    export_images(tmp_path / "out", tmp_path / "back")
    tree = {name: data for name, data in read_tree(tmp_path / "back").items() if data is not None}
    joined = {name.partition("/")[2]: data for name, data in tree.items()}
    assert joined == {name: data for name, data in read_tree(root).items() if data is not None}
    assert {name.partition("/")[0] for name in tree} == {"train", "test"}
    assert sum(name.startswith("test/") for name in tree) == 4


# --- what is an image


@pytest.mark.parametrize(
    ("format", "suffix"),
    [("PNG", "png"), ("JPEG", "jpg"), ("WEBP", "webp"), ("GIF", "gif"), ("BMP", "bmp"), ("TIFF", "tif")],
)
def test_encoded_image_keeps_its_bytes_and_gets_its_suffix(tmp_path: Path, format: str, suffix: str) -> None:
    data = encode(format=format)
    export_images(write(tmp_path / "a", [{"image": data}]), tmp_path / "out")
    assert read_tree(tmp_path / "out") == {f"000000.{suffix}": data}


RED = np.full((5, 6, 3), (255, 0, 0), np.uint8)


@pytest.mark.parametrize(
    ("row", "pixels"),
    [
        ({"image_raw": RED.tobytes(), "height": 5, "width": 6, "channels": 3}, RED),
        ({"image_raw": RED.tobytes(), "height": 5, "width": 6}, RED),
        ({"data": RED.tobytes(), "shape": [5, 6, 3]}, RED),
        ({"image": RED}, RED),
        ({"image": np.moveaxis(RED, 2, 0)}, RED),
        ({"image": RED[:, :, 0]}, RED[:, :, 0]),
        ({"image": RED[:, :, 0].astype(np.uint16) * 257}, RED[:, :, 0].astype(np.uint16) * 257),
        ({"image/pixels": RED.reshape(-1).astype(np.int64), "image/height": 5, "image/width": 6}, RED),
    ],
    ids=["sizes", "no-channels", "shape", "tensor", "channels-first", "gray", "16-bit", "list"],
)
def test_raw_pixels_become_a_png_of_the_same_pixels(tmp_path: Path, row: dict[str, Any], pixels: Any) -> None:
    report = export_images(write(tmp_path / "a", [row]), tmp_path / "out")
    with Image.open(tmp_path / "out" / "000000.png") as image:
        assert np.array_equal(np.asarray(image), pixels)
    assert report.notes == []


def test_floats_become_levels_and_a_note(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": RED.astype(np.float32) / 255}])
    report = export_images(source, tmp_path / "out")
    with Image.open(tmp_path / "out" / "000000.png") as image:
        assert np.array_equal(np.asarray(image), RED)
    assert report.notes == [
        "images with numbers that PNG cannot store, written in 256 levels: 1; their values: tfr export npz"
    ]


def test_name_of_raw_pixels_gets_the_suffix_of_what_is_written(tmp_path: Path) -> None:
    rows = [{"image_raw": RED.tobytes(), "height": 5, "width": 6, "filename": "x/a.jpg"}]
    export_images(write(tmp_path / "a", rows), tmp_path / "out")
    assert (tmp_path / "out" / "x" / "a.png").is_file()


def test_mask_becomes_a_palette_png_next_to_the_images(tmp_path: Path) -> None:
    numbers = np.array([[0, 1], [255, 20]], np.uint8)
    gray = io.BytesIO()
    Image.fromarray(numbers).save(gray, "PNG")
    row = {
        "image/encoded": encode(size=(2, 2)),
        "image/filename": "a.png",
        "image/segmentation/class/encoded": gray.getvalue(),
    }
    export_images(write(tmp_path / "a", [row]), tmp_path / "out")
    assert set(read_tree(tmp_path / "out")) == {"images", "images/a.png", "masks", "masks/a.png"}
    with Image.open(tmp_path / "out" / "masks" / "a.png") as image:
        assert image.mode == "P"
        assert np.array_equal(np.asarray(image), numbers)
        assert image.convert("RGB").getpixel((1, 0)) == (128, 0, 0)


def test_frames_of_a_clip_are_a_folder(tmp_path: Path) -> None:
    frames = [encode((number, 0, 0)) for number in range(3)]
    row = {
        "context": {"clip/media_id": "run/7", "clip/label/string": "run"},
        "feature_lists": {"image/encoded": frames},
    }
    export_images(write(tmp_path / "a", [row]), tmp_path / "out")
    tree = {name: data for name, data in read_tree(tmp_path / "out").items() if data is not None}
    assert tree == {f"run/7/{number:06d}.png": data for number, data in enumerate(frames)}


# --- names


def test_hostile_names_stay_inside_and_are_reported(tmp_path: Path) -> None:
    names = ["../../evil.png", "/abs/evil.png", "a/../../b.png", "nul\0.png", "A.png", "a.PNG", "same.png", "same.png"]
    rows = [{"image": encode((number, 0, 0)), "image/filename": name} for number, name in enumerate(names)]
    (tmp_path / "deep" / "er").mkdir(parents=True)
    report = export_images(write(tmp_path / "a", rows), tmp_path / "deep" / "er" / "out")
    written = {name for name, data in read_tree(tmp_path).items() if data is not None} - {"a"}
    assert all(name.startswith("deep/er/out/") for name in written)
    assert len(written) == len(names)
    assert report.num_renamed == 6
    assert ("../../evil.png", "evil.png") in report.renamed
    assert ("same.png", "same-2.png") in report.renamed
    assert ("a.PNG", "a-2.PNG") in report.renamed


def test_hostile_class_is_one_folder_inside(tmp_path: Path) -> None:
    rows = [{"image": encode(), "image/class/text": "../up", "image/filename": "1.png"}]
    export_images(write(tmp_path / "a", rows), tmp_path / "out")
    assert set(read_tree(tmp_path / "out")) == {".._up", ".._up/1.png"}


def test_links_in_the_place_of_the_output_are_not_followed_out(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").symlink_to(tmp_path / "elsewhere")
    rows = [{"image": encode(), "image/filename": "x/1.png"}]
    with pytest.raises(StorageError, match="a link leads out of the output folder"):
        export_images(write(tmp_path / "a", rows), tmp_path / "out", force=True)
    assert read_tree(tmp_path / "elsewhere") == {}


def test_ids_get_a_suffix_and_file_names_stay_to_the_letter(tmp_path: Path) -> None:
    rows = [{"image": encode(), "id": "seven", "filename2": "no-suffix"}]
    source = write(tmp_path / "a", rows)
    export_images(source, tmp_path / "out")
    assert set(read_tree(tmp_path / "out")) == {"seven.png"}
    export_images(source, tmp_path / "out2", name="filename2")
    assert set(read_tree(tmp_path / "out2")) == {"no-suffix"}


# --- labels


def test_class_names_next_to_the_file_are_folders(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("0:apple\n1:orange\n")
    rows = [{"image": encode((number, 0, 0)), "label": number % 2} for number in range(3)]
    export_images(write(tmp_path / "a", rows), tmp_path / "out")
    assert {name for name in read_tree(tmp_path / "out") if "/" in name} == {
        "apple/000000.png",
        "orange/000001.png",
        "apple/000002.png",
    }


def test_labels_that_are_no_classes_go_to_labels_csv(tmp_path: Path, make_images: MakeImages) -> None:
    root = make_images(["ab12.png", "cd,3.png"])
    tfrkit.build(tfrkit.sources.file_names(root, label="^(?P<text>.{4})"), tmp_path / "out", jobs=1)
    export_images(tmp_path / "out", tmp_path / "back")
    tree = read_tree(tmp_path / "back")
    table = tree.pop("labels.csv")
    assert table is not None
    rows = sorted(csv.reader(io.StringIO(table.decode())))
    assert rows == [["ab12.png", "ab12"], ["cd,3.png", "cd,3"], ["file", "label/text"]]
    assert tree == read_tree(root)


def test_flat_layout_lists_the_classes(tmp_path: Path, make_images: MakeImages) -> None:
    root = make_images(["cat/1.png", "dog/2.png"])
    tfrkit.build(tfrkit.sources.class_folders(root), tmp_path / "x.tfrecord", jobs=1)
    export_images(tmp_path / "x.tfrecord", tmp_path / "out", layout="flat", name="image/filename")
    text = (tmp_path / "out" / "labels.csv").read_text()
    assert sorted(text.splitlines()) == ["cat/1.png,cat", "dog/2.png,dog", "file,image/class/text"]


# --- what cannot be done


def test_record_without_an_image_stops_or_is_listed(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"image": encode(), "n": 1},
        {"n": 2},
        {"image": b"", "n": 3},
        {"image": b"text", "n": 4},
    ]
    source = write(tmp_path / "a", [*rows, *rows[:1] * 4])
    offsets = frame_offsets(source.read_bytes())
    with pytest.raises(CodecError, match=f"got none - at .*a, record 1, byte {offsets[1]}\n  leave such"):
        export_images(source, tmp_path / "out", image="image")
    assert not (tmp_path / "out").exists()
    report = export_images(source, tmp_path / "out", image="image", on_bad="skip")
    assert [(finding.record, finding.offset) for finding in report.skipped] == [(n, offsets[n]) for n in (1, 2, 3)]
    assert (report.records, report.ok) == (5, False)
    assert set(read_tree(tmp_path / "out")) == {f"{number:06d}.png" for number in (0, 4, 5, 6, 7)}


def test_damage_is_reported_before_anything_is_written(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode()} for _ in range(5)])
    data = source.read_bytes()
    source.write_bytes(flip(data, frame_offsets(data)[3] + 20))
    with pytest.raises(CorruptRecordError, match=r"record 3, byte \d+\n"):
        export_images(source, tmp_path / "out", on_bad="skip")
    assert sorted(read_tree(tmp_path)) == ["a"]


def test_dataset_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no feature looks like an image, there is 'x'"):
        export_images(write(tmp_path / "a", [{"x": 1}]), tmp_path / "out")
    with pytest.raises(MissingFeatureError, match="no feature 'imge', did you mean 'image'"):
        export_images(write(tmp_path / "a", [{"image": encode()}]), tmp_path / "out", image="imge")
    with pytest.raises(MissingFeatureError, match="no feature 'nme'"):
        export_images(tmp_path / "a", tmp_path / "out", name="nme")


def test_empty_dataset_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    with pytest.raises(StorageError, match="expected at least one record, got none"):
        export_images(tmp_path / "a.tfrecord", tmp_path / "out")


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="layout expected 'auto' or 'flat', got 'x'"):
        export_images(tmp_path, tmp_path / "out", layout="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_bad expected 'fail' or 'skip', got 'x'"):
        export_images(tmp_path, tmp_path / "out", on_bad="x")  # type: ignore[arg-type]


def test_other_image_features_are_reported(tmp_path: Path) -> None:
    source = write(tmp_path / "a", [{"image": encode(), "left": encode(), "thumb": encode()}])
    report = export_images(source, tmp_path / "out")
    assert report.notes == ["images of other features are not written, another can be chosen: 'left', 'thumb'"]
