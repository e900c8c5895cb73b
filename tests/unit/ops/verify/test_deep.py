from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit import sources
from tfrkit.errors import StorageError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.features.spec import Spec
from tfrkit.ops.verify.result import Verification
from tfrkit.ops.verify.verify import verify
from tfrkit.sidecars.manifest import write_manifest
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def photo(seed: int, size: tuple[int, int] = (48, 64), mode: str = "RGB") -> Image.Image:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
    return coarse.resize((size[1], size[0]), Image.Resampling.BICUBIC).convert(mode)


def encode(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def row(seed: int, **changes: Any) -> dict[str, Any]:
    """A record as the builders write it."""
    values: dict[str, Any] = {
        "image/encoded": encode(photo(seed)),
        "image/format": "png",
        "image/height": 48,
        "image/width": 64,
        "image/channels": 3,
        "image/class/label": seed % 3,
        "image/class/text": ("apple", "orange", "pear")[seed % 3],
    }
    return {**values, **{name.replace("__", "/"): value for name, value in changes.items()}}


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tfrkit.Writer(path, **options) as writer:
        for values in rows:
            writer.write(values)
    return path


def write_classes(folder: Path, names: str = "apple\norange\npear\n") -> None:
    (folder / "classes.txt").write_text(names)


def found(result: Verification, *kinds: str) -> list[tuple[str, int | None, str]]:
    return [
        (finding.kind, finding.record, finding.cause)
        for finding in result.findings
        if not kinds or finding.kind in kinds
    ]


def test_sound_dataset_is_ok_and_lists_the_checks(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [row(seed) for seed in range(6)])
    write_classes(tmp_path)
    result = verify(tmp_path, deep=True)
    assert found(result) == []
    assert result.notes[-1] == ("looked at: image 'image/encoded', label 'image/class/label' (0 to 2 by classes.txt)")


def test_plain_verify_does_not_look_into_records(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [row(0), row(1, image__encoded=b"junk")])
    assert verify(tmp_path).ok


# --- images


@pytest.mark.parametrize(
    ("image", "cause"),
    [
        (encode(photo(1))[:-40], "feature 'image/encoded' PNG is truncated"),
        (encode(photo(1), "JPEG")[:-200], "feature 'image/encoded' JPEG of 64x48 is truncated"),
        (b"", "feature 'image/encoded' expected an image, got 0 bytes"),
        (b"not an image at all", "feature 'image/encoded' expected an image, got 19 bytes"),
    ],
)
@pytest.mark.parametrize("ignore", [(), ("near_duplicate", "leak", "duplicate")])
def test_image_that_does_not_decode_is_found(tmp_path: Path, image: bytes, cause: str, ignore: tuple[str, ...]) -> None:
    rows = [row(seed) for seed in range(6)]
    rows[4].update({"image/encoded": image, "image/format": "jpeg" if image[:1] == b"\xff" else "png"})
    path = write(tmp_path / "a.tfrecord", rows)
    result = verify(path, deep=True, ignore=ignore)
    ((kind, record, text),) = found(result)
    assert (kind, record) == ("image", 4)
    assert text.startswith(cause)
    assert result.findings[0].offset == frame_offsets(path.read_bytes())[4]


@pytest.mark.parametrize(
    ("change", "kind", "cause"),
    [
        ({"image__height": 47}, "size", "image expected 64x47 as its features say, got 64x48"),
        (
            {"image__width": 48, "image__height": 64},
            "size",
            "image expected 48x64 as its features say, got 64x48; height and width are swapped",
        ),
        ({"image__channels": 1}, "size", "image expected gray as its features say, got RGB"),
        ({"image__format": "jpeg"}, "image", "image expected JPEG as feature 'image/format' says, got PNG"),
        ({"image__format": "raw"}, None, None),
    ],
)
def test_facts_about_an_image_are_held_against_it(
    tmp_path: Path, change: dict[str, Any], kind: str | None, cause: str | None
) -> None:
    write(tmp_path / "a.tfrecord", [row(0), row(1, **change), row(2)])
    assert found(verify(tmp_path, deep=True)) == ([] if kind is None else [(kind, 1, cause)])


def with_orientation(image: Image.Image, kind: str, orientation: int) -> bytes:
    exif = image.getexif()
    exif[0x0112] = orientation
    return encode(image, kind, exif=exif)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_size_is_that_of_the_image_as_stored_whatever_its_exif_orientation(tmp_path: Path, kind: str) -> None:
    turned = {"image__encoded": with_orientation(photo(0), kind, 6), "image__format": kind.lower()}
    write(tmp_path / "a.tfrecord", [row(0, **turned), row(0, **turned, image__height=64, image__width=48)])
    cause = (
        "image expected 48x64 as its features say, got 64x48; "
        "48x64 is the image turned by its EXIF orientation 6, which is not applied"
    )
    assert found(verify(tmp_path, deep=True), "size", "image") == [("size", 1, cause)]


@pytest.mark.parametrize(
    ("orientation", "why"),
    [
        (6, "48x64 is the image turned by its EXIF orientation 6, which is not applied"),
        (3, "height and width are swapped"),
    ],
)
def test_mask_of_the_other_orientation_is_found(tmp_path: Path, orientation: int, why: str) -> None:
    masks = [encode(Image.new("L", size)) for size in ((64, 48), (48, 64))]
    rows = [
        {
            "image/encoded": with_orientation(photo(seed), "JPEG", orientation),
            "image/segmentation/class/encoded": mask,
        }
        for seed, mask in enumerate(masks)
    ]
    write(tmp_path / "a.tfrecord", rows)
    cause = f"mask expected the size of its image, 64x48, got 48x64; {why}"
    assert found(verify(tmp_path, deep=True), "mask", "image") == [("mask", 1, cause)]


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "1", "I;16"])
def test_images_of_every_mode_decode(tmp_path: Path, mode: str) -> None:
    image = (
        Image.fromarray((np.arange(48 * 64).reshape(48, 64) * 9).astype(np.uint16))
        if mode == "I;16"
        else photo(1, mode="RGB")
    )
    data = encode(image if mode == "I;16" else image.convert(mode))
    channels = {"L": 1, "LA": 2, "P": 3, "RGBA": 4, "1": 1, "I;16": 1}[mode]
    write(tmp_path / "a.tfrecord", [row(0), row(1, image__encoded=data, image__channels=channels)])
    assert found(verify(tmp_path, deep=True)) == []


def test_raw_pixels_are_held_against_their_size(tmp_path: Path) -> None:
    pixels = [np.asarray(photo(seed)).tobytes() for seed in range(4)]
    pixels[2] = pixels[2][:-1]
    rows = [{"image_raw": data, "height": 48, "width": 64, "channels": 3} for data in pixels]
    write(tmp_path / "a.tfrecord", rows)
    assert found(verify(tmp_path, deep=True)) == [("size", 2, "pixels expected 64x48x3, got 9,215 values")]


def test_empty_images_are_found_and_are_no_copies(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [{"image/encoded": b"", "image/height": 4, "image/width": 4}] * 2)
    cause = "feature 'image/encoded' expected an image, got nothing"
    assert found(verify(tmp_path, deep=True)) == [("image", 0, cause), ("image", 1, cause)]


def test_frames_of_a_sequence_are_decoded(tmp_path: Path) -> None:
    frames = [encode(photo(seed)) for seed in range(3)]
    rows = [
        {"context": {"id": number}, "feature_lists": {"image/encoded": frames if number != 1 else [frames[0], b"x"]}}
        for number in range(3)
    ]
    write(tmp_path / "a.tfrecord", rows)
    result = found(verify(tmp_path, deep=True), "image")
    assert [record for _, record, _ in result] == [1]


def test_every_feature_of_images_is_decoded(tmp_path: Path) -> None:
    write(
        tmp_path / "a.tfrecord", [row(seed, thumb=encode(photo(seed + 9))) for seed in range(5)] + [row(7, thumb=b"x")]
    )
    assert found(verify(tmp_path, deep=True))[0][:2] == ("image", 5)


# --- labels


@pytest.mark.parametrize("label", [-1, 3, 2**40])
def test_label_outside_the_classes_is_found(tmp_path: Path, label: int) -> None:
    write(tmp_path / "a.tfrecord", [row(0), row(1), row(2, image__class__label=label)])
    write_classes(tmp_path)
    assert found(verify(tmp_path, deep=True)) == [
        ("label", 2, f"feature 'image/class/label' expected 0 to 2 as classes.txt says, got {label}")
    ]


def test_label_that_is_not_its_text_is_found(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [row(0), row(1, image__class__text="pear")])
    write_classes(tmp_path)
    assert found(verify(tmp_path, deep=True)) == [
        ("label", 1, "feature 'image/class/text' expected 'orange', the name of 1, got 'pear'")
    ]


def test_label_without_class_names_is_not_checked(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [row(0, image__class__label=-7), row(1)])
    assert found(verify(tmp_path, deep=True)) == []


def test_classes_that_start_at_one_leave_no_room_for_zero(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [row(1), row(2), row(0)])
    write_classes(tmp_path, "1:orange\n2:pear\n")
    assert [text for _, _, text in found(verify(tmp_path, deep=True))] == [
        "feature 'image/class/label' expected 1 to 2 as classes.txt says, got 0"
    ]


def test_labels_of_characters_are_held_against_the_charset(tmp_path: Path) -> None:
    rows = [{"image": encode(photo(seed)), "label0": seed, "label1": 9, "label/ids": [seed, 9]} for seed in range(4)]
    rows[2].update({"label1": 10, "label/ids": [2, 10]})
    write(tmp_path / "a.tfrecord", rows)
    (tmp_path / "charset.txt").write_text("0123456789")
    assert {text for _, _, text in found(verify(tmp_path, deep=True))} == {
        "feature 'label1' expected 0 to 9 as charset.txt says, got 10",
        "feature 'label/ids' expected 0 to 9 as charset.txt says, got 10",
    }


def test_classes_of_the_manifest_come_first(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [row(0), row(2)])
    write_classes(tmp_path)
    schema = Schema({"image/class/label": Spec("int64", logical="class_label", classes=("apple", "orange"))})
    write_manifest(str(tmp_path / "tfrkit.json"), {"schema": to_json(schema), "shards": [{"name": path.name}]})
    assert found(verify(tmp_path, deep=True)) == [
        ("label", 1, "feature 'image/class/label' expected 0 to 1 as the schema says, got 2")
    ]


def test_unlabelled_records_of_tfds_are_right(tmp_path: Path) -> None:
    path = tmp_path / "d-test.tfrecord-00000-of-00001"
    write(path, [{"x": 1.0, "label": label} for label in (0, 1, -1)])
    feature = {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel"}
    features = {
        "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        "featuresDict": {"features": {"label": {**feature, "classLabel": {"numClasses": "2"}}}},
    }
    (tmp_path / "features.json").write_text(json.dumps(features))
    assert found(verify(tmp_path, deep=True)) == []
    write(path, [{"x": 1.0, "label": label} for label in (0, 1, -2)])
    assert [kind for kind, _, _ in found(verify(tmp_path, deep=True))] == ["label"]


# --- boxes


def boxes(*corners: tuple[float, float, float, float], labels: list[int] | None = None) -> dict[str, Any]:
    sides = np.array(corners, np.float32).reshape(-1, 4)
    names = ("xmin", "ymin", "xmax", "ymax")
    values = {f"image/object/bbox/{side}": sides[:, number] for number, side in enumerate(names)}
    return {**values, "image/object/class/label": np.array(labels or [1] * len(sides), np.int64)}


def test_bad_boxes_are_found(tmp_path: Path) -> None:
    good = (0.1, 0.1, 0.5, 0.9)
    rows = [
        {**row(0), **boxes(good, good)},
        {**row(1), **boxes(good, (0.5, 0.1, 0.2, 0.4))},
        {**row(2), **boxes((0.1, 0.1, 1.2, 0.4))},
        {**row(3), **boxes(good, labels=[1, 2])},
        {**row(4), **boxes()},
    ]
    write(tmp_path / "a.tfrecord", rows)
    assert [(record, text.split(",")[0]) for _, record, text in found(verify(tmp_path, deep=True))] == [
        (1, "box 1 (0.5"),
        (2, "box 0 (0.1"),
        (3, "boxes expected one label each"),
    ]


def test_boxes_in_pixels_are_held_against_the_image(tmp_path: Path) -> None:
    rows = [{**row(seed), **boxes((1, 2, 60, 40))} for seed in range(4)] + [{**row(5), **boxes((1, 2, 80, 40))}]
    write(tmp_path / "a.tfrecord", rows)
    result = verify(tmp_path, deep=True)
    assert found(result) == [("box", 4, "box 0 (1, 2, 80, 40) is outside its image, expected 64x48 pixels")]
    assert "boxes in pixels" in result.notes[-1]


def test_one_box_in_pixels_among_parts_is_found(tmp_path: Path) -> None:
    rows = [{**row(seed), **boxes((0.1, 0.2, 0.6, 0.4))} for seed in range(4)] + [{**row(5), **boxes((1, 2, 60, 40))}]
    write(tmp_path / "a.tfrecord", rows)
    assert [(kind, record) for kind, record, _ in found(verify(tmp_path, deep=True))] == [("box", 4)]


# --- masks


def mask(values: list[int], size: tuple[int, int] = (48, 64), mode: str = "L") -> bytes:
    pixels = np.resize(np.array(values, np.uint8), size)
    image = Image.fromarray(pixels)
    if mode == "P":
        image = image.convert("P")
        image.putdata(pixels.reshape(-1).tolist())
    return encode(image)


def test_bad_masks_are_found(tmp_path: Path) -> None:
    name = "image/segmentation/class/encoded"
    masks = [
        mask([0, 1, 2, 255]),
        mask([0, 1, 7, 9]),
        mask([0], size=(48, 63)),
        encode(photo(1), "JPEG"),
        mask([0, 1], mode="P"),
        mask([0, 1])[:-30],
    ]
    write(tmp_path / "a.tfrecord", [{**row(seed), name: data} for seed, data in enumerate(masks)])
    write_classes(tmp_path)
    result = found(verify(tmp_path, deep=True), "mask")
    assert [record for _, record, _ in result] == [1, 2, 3, 5]
    assert result[0][2] == "mask expected 0 to 2 as classes.txt says, or 255, got 7, 9"
    assert result[1][2] == "mask expected the size of its image, 64x48, got 63x48"


# --- copies


def test_duplicates_are_found_with_the_first_of_them(tmp_path: Path) -> None:
    rows = [row(0), row(1), row(0), row(2), row(0)]
    rows[4]["image/filename"] = "another name of the same picture"
    path = write(tmp_path / "a.tfrecord", rows)
    result = verify(path, deep=True)
    assert found(result) == [
        ("duplicate", 2, f"the same image as record 0 of {path}"),
        ("duplicate", 4, f"the same image as record 0 of {path}"),
    ]
    other = {"shard": str(path), "record": 0, "offset": 0, "record_certain": True}
    assert result.findings[0].to_json()["other"] == other
    assert result.findings[0].offset == frame_offsets(path.read_bytes())[2]
    assert verify(path, deep=True, ignore=["duplicate"]).ok


def test_near_duplicates_are_found(tmp_path: Path) -> None:
    again = encode(photo(0), "JPEG", quality=80)
    smaller = encode(photo(1).resize((32, 24), Image.Resampling.LANCZOS))
    rows = [
        row(0),
        row(1),
        row(2),
        row(0, image__encoded=again, image__format="jpeg"),
        row(1, image__encoded=smaller, image__height=24, image__width=32),
    ]
    path = write(tmp_path / "a.tfrecord", rows)
    result = verify(path, deep=True)
    assert [(kind, record) for kind, record, _ in found(result)] == [("near_duplicate", 3), ("near_duplicate", 4)]
    assert [finding.other.record for finding in result.findings if finding.other] == [0, 1]
    assert "of 256 bits of their hashes differ" in result.findings[0].cause
    assert verify(path, deep=True, ignore=["near_duplicate"]).ok


def test_pictures_of_one_layout_are_no_near_duplicates(tmp_path: Path) -> None:
    """White pages with a few letters: equal in all coarse detail."""
    from PIL import ImageDraw, ImageFont

    rows = []
    for text in ("7KQ3X", "A19ZP", "0FM2W", "LLR8T", "7KQ3Y", "B4B4B"):
        image = Image.new("RGB", (160, 60), "white")
        ImageDraw.Draw(image).text((12, 8), text, "black", font=ImageFont.load_default(40))
        rows.append({"image": encode(image), "label": text})
    write(tmp_path / "a.tfrecord", rows)
    assert found(verify(tmp_path, deep=True)) == []


def test_leak_is_reported_at_the_test_record(tmp_path: Path) -> None:
    test = write(tmp_path / "d-test-00000-of-00001.tfrecord", [row(5), row(0), row(6), row(6)])
    train = write(tmp_path / "d-train-00000-of-00001.tfrecord", [row(0), row(1), row(2)])
    again = row(2, image__encoded=encode(photo(2), "JPEG", quality=85), image__format="jpeg")
    val = write(tmp_path / "d-val-00000-of-00001.tfrecord", [again, row(0)])
    result = verify(tmp_path, deep=True)
    pairs = {
        (finding.kind, finding.shard, finding.record, finding.other.shard, finding.other.record)
        for finding in result.findings
        if finding.other is not None
    }
    assert pairs == {
        ("leak", str(test), 1, str(train), 0),
        ("duplicate", str(test), 3, str(test), 2),
        ("leak", str(val), 0, str(train), 2),
        ("leak", str(val), 1, str(train), 0),
        ("leak", str(val), 1, str(test), 1),
    }
    assert any(
        text == f"in test, the same image as record 0 of {train} in train" for _, _, text in found(result, "leak")
    )


def test_equal_records_without_pictures_are_duplicates(tmp_path: Path) -> None:
    for path, compress in ((tmp_path / "a.tfrecord", bytes), (tmp_path / "b.tfrecord.gz", gzip.compress)):
        path.write_bytes(compress(write_frames([encode_example({b"x": ("int64", [n])}) for n in (1, 2, 1, 3)])))
        assert found(verify(path, deep=True)) == [("duplicate", 2, f"the same as record 0 of {path}")]


def test_bytes_of_a_compressed_file_count_what_was_inflated(tmp_path: Path) -> None:
    data = write_frames([*(number.to_bytes(4, "little") * 4000 for number in range(300)), bytes(16_000)])
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(data))
    (finding,) = verify(path, deep=True).findings
    assert (finding.kind, finding.record, finding.offset) == ("duplicate", 300, frame_offsets(data)[300])


def test_equal_records_of_any_bytes_are_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(write_frames([b"hello", b"world", b"hello"]))
    assert found(verify(path, deep=True)) == [("duplicate", 2, f"the same as record 0 of {path}")]


def test_blank_pictures_are_compared_by_their_bytes_only(tmp_path: Path) -> None:
    rows = [{"image": encode(Image.new("RGB", (40, 40), (level, level, level)))} for level in (10, 100, 200)]
    write(tmp_path / "a.tfrecord", rows)
    assert found(verify(tmp_path, deep=True)) == []


# --- odd files


def test_damage_is_reported_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [row(seed) for seed in range(5)])
    data = path.read_bytes()
    path.write_bytes(flip(data, frame_offsets(data)[2] + 50))
    assert [(kind, record) for kind, record, _ in found(verify(path, deep=True))] == [("checksum", 2)]


def test_label_of_another_kind_is_found_in_a_compressed_shard(tmp_path: Path) -> None:
    records = [encode_example({b"label": ("int64", [n % 2]), b"x": ("int64", [n])}) for n in range(2000)]
    records.append(encode_example({b"label": ("bytes", [b"0"]), b"x": ("int64", [-1])}))
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(write_frames([b"", *records])))
    write_classes(tmp_path)
    result = verify(tmp_path, deep=True)
    assert [(kind, record) for kind, record, _ in found(result)] == [("schema", 2001)]


def test_feature_of_two_kinds_in_two_files_is_found(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", [{"v": 1}, {"v": 2}])
    write(tmp_path / "b.tfrecord", [{"v": 1.5}])
    assert found(verify(tmp_path, deep=True)) == [
        ("schema", 0, "feature 'v' expected int64 as in the other records, got float")
    ]


def test_one_record_of_another_kind_outside_the_sample_is_found(tmp_path: Path) -> None:
    plain = encode_example({b"pixels": ("bytes", [bytes(3000)]), b"rare": ("int64", [1])})
    records = [plain] * 12_000
    records[7_301] = encode_example({b"rare": ("bytes", [b"one"]), b"other": ("int64", [1])})
    records[7_302] = encode_example({b"rare": ("int64", [1]), b"other": ("float", [0.5])})
    (tmp_path / "a.tfrecord").write_bytes(write_frames(records))
    result = verify(tmp_path / "a.tfrecord", deep=True, ignore=["duplicate"])
    assert found(result) == [
        ("schema", 7_301, "feature 'rare' expected int64 as in the other records, got bytes"),
        ("schema", 7_302, "feature 'other' expected int64 as in the other records, got float"),
    ]


def test_frames_of_two_kinds_are_found(tmp_path: Path) -> None:
    frames: list[dict[str, Any]] = [{"context": {"id": n}, "feature_lists": {"v": [[1], [2]]}} for n in range(3)]
    frames[2]["feature_lists"]["v"] = [[1.5], [2.5]]
    for number, values in enumerate(frames):
        write(tmp_path / f"{number}.tfrecord", [values])
    assert found(verify(tmp_path, deep=True)) == [
        ("schema", 0, "feature 'v' expected int64 as in the other records, got float")
    ]


@pytest.mark.parametrize("data", [b"", write_frames([]), write_frames([b""] * 3)])
def test_shard_of_nothing_is_ok(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tfrecord").write_bytes(data)
    verify(tmp_path, deep=True)


def test_same_findings_on_any_number_of_threads(tmp_path: Path) -> None:
    for number in range(3):
        rows = [row(seed % 7, image__height=48 - (seed == 3)) for seed in range(number, 20)]
        write(tmp_path / f"{number}.tfrecord", rows)
    assert verify(tmp_path, deep=True, jobs=1).to_json() == verify(tmp_path, deep=True, jobs=4).to_json()


def test_pipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(write_frames([b"a"])))
    writer.start()
    with pytest.raises(StorageError, match="expected a file, got a pipe, which cannot be read a second time"):
        verify(path, deep=True)
    writer.join()


def test_built_dataset_is_ok(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(24):
        path = folder / ("apple", "orange")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        photo(number).save(path)
    tfrkit.build(sources.class_folders(folder), tmp_path / "out", splits={"train": 0.75, "test": 0.25}, jobs=1)
    result = verify(tmp_path / "out", deep=True)
    assert found(result) == []
    assert "label 'image/class/label' (0 to 1 by the schema)" in result.notes[-1]
