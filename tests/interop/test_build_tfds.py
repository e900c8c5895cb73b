"""Folders we build load with `tfds.builder_from_directory`, with images, classes and splits right."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import tfrkit as tfr
from tfrkit import sources

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tfds = pytest.importorskip("tensorflow_datasets")

pytestmark = pytest.mark.filterwarnings("ignore")  # TFDS's own


def load(folder: Path, split: str = "train"):
    builder = tfds.builder_from_directory(folder)
    return builder, list(tfds.as_numpy(builder.as_dataset(split=split, shuffle_files=False)))


def picture(seed: int, width: int = 12, height: int = 10) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8))


@pytest.fixture
def flowers(tmp_path):
    for name in ("rose", "tulip"):
        (tmp_path / "in" / name).mkdir(parents=True)
        for number in range(6):
            picture(number, 12 + number).save(tmp_path / "in" / name / f"{number}.png")
    return tmp_path / "in"


def test_class_folders_load_with_images_names_and_splits(flowers, tmp_path):
    tfr.build(sources.class_folders(flowers), tmp_path / "flowers", splits={"test": 4}, shards=2, jobs=1)
    builder, examples = load(tmp_path / "flowers")
    label = builder.info.features["image/class/label"]
    assert label.names == ["rose", "tulip"]
    assert {name: split.num_examples for name, split in builder.info.splits.items()} == {"train": 8, "test": 4}
    for example in examples + load(tmp_path / "flowers", "test")[1]:
        file = flowers / example["image/filename"].decode()
        np.testing.assert_array_equal(example["image/encoded"], np.asarray(Image.open(file)))
        assert label.int2str(example["image/class/label"]) == file.parent.name


def test_order_in_tfds_is_that_of_the_records(flowers, tmp_path):
    tfr.build(sources.class_folders(flowers), tmp_path / "out", shards=3, jobs=1)
    _, examples = load(tmp_path / "out")
    ours = [row["image/filename"] for row in tfr.open(tmp_path / "out")]
    assert [example["image/filename"] for example in examples] == ours


def test_mixed_formats_and_channels_decode(tmp_path):
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    picture(0).save(folder / "0.png")
    picture(1).save(folder / "1.jpg")
    picture(2).convert("L").save(folder / "2.png")
    picture(3).convert("RGBA").save(folder / "3.png")
    tfr.build(sources.class_folders(tmp_path / "in"), tmp_path / "out", jobs=1)
    _, examples = load(tmp_path / "out")
    assert {example["image/encoded"].shape for example in examples} == {(10, 12, 3)}


def test_sixteen_bit_pngs_keep_their_levels(tmp_path):
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    levels = np.arange(20, dtype=np.uint16).reshape(4, 5) * 3000
    Image.fromarray(levels).save(folder / "0.png")
    tfr.build(sources.class_folders(tmp_path / "in"), tmp_path / "out", jobs=1)
    _, (example,) = load(tmp_path / "out")
    assert example["image/encoded"].dtype == np.uint16
    np.testing.assert_array_equal(example["image/encoded"][..., 0], levels)


@pytest.fixture
def captchas(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(12):
        picture(number, 16, 6).save(tmp_path / "in" / f"{number:02d}aZ7_{number}.png")
    return tmp_path / "in"


def test_captchas_load_with_raw_pixels_and_one_label_a_character(captchas, tmp_path):
    images = sources.ImageOptions(resize=(24, 18), gray=True)
    source = sources.file_names(captchas, r"^(?P<text>.{5})", images)
    tfr.build(source, tmp_path / "captcha", splits={"test": 4}, seed=0, jobs=1)
    builder, examples = load(tmp_path / "captcha")
    names = builder.info.features["label0"].names
    for example in examples:
        file = captchas / example["filename"].decode()
        expected = np.asarray(Image.open(file).resize((24, 18)).convert("L"))
        np.testing.assert_array_equal(example["image"][..., 0], expected)
        assert "".join(names[example[f"label{head}"]] for head in range(5)) == file.name[:5]
        assert example["label/text"].decode() == file.name[:5]
        assert example["label/ids"].tolist() == [example[f"label{head}"] for head in range(5)]


def test_class_from_names_loads_with_its_text(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("apple1", "orange1", "apple2"):
        picture(3).save(tmp_path / "in" / f"{name}.png")
    tfr.build(sources.file_names(tmp_path / "in", r"^(?P<class>[a-z]+)"), tmp_path / "out", jobs=1)
    builder, examples = load(tmp_path / "out")
    for example in examples:
        assert builder.info.features["label"].int2str(example["label"]).encode() == example["label/text"]


def test_label_offset_keeps_ids_within_the_classes(flowers, tmp_path):
    tfr.build(sources.class_folders(flowers, label_offset=1), tmp_path / "out", jobs=1)
    builder, examples = load(tmp_path / "out")
    assert builder.info.features["image/class/label"].num_classes == 3
    assert {example["image/class/label"] for example in examples} == {1, 2}


def test_rows_of_an_iterable_load(tmp_path):
    rows = [{"x": number, "v": np.array([number, 0.5], np.float32), "name": f"n{number}"} for number in range(10)]
    tfr.build(rows, tmp_path / "out", splits={"test": 3}, jobs=1)
    _, examples = load(tmp_path / "out")
    assert len(examples) == 7
    for example in examples:
        assert example["v"].tolist() == [float(example["x"]), 0.5]
        assert example["name"] == f"n{example['x']}".encode()


def test_shard_with_all_inputs_skipped_is_valid(flowers, tmp_path):
    """An empty shard still counts as one of N."""
    expected = tfr.build(sources.class_folders(flowers), tmp_path / "probe", shards=12, jobs=1)
    assert expected.written == 12
    first = next(iter(tfr.open(tmp_path / "probe")))["image/filename"].decode()
    (flowers / first).write_bytes(b"")
    tfr.build(sources.class_folders(flowers), tmp_path / "out", shards=12, on_bad="skip", jobs=1)
    _, examples = load(tmp_path / "out")
    assert len(examples) == 11


def test_plain_tensorflow_reads_the_shards(captchas, tmp_path):
    tfr.build(sources.file_names(captchas, r"^(?P<text>.{5})"), tmp_path / "out", shards=3, jobs=1)
    files = sorted(str(path) for path in (tmp_path / "out").glob("out-train*"))
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label/ids": tf.io.FixedLenFeature([5], tf.int64)}
    seen = []
    for record in tf.data.TFRecordDataset(files):
        parsed = tf.io.parse_single_example(record, spec)
        image = tf.io.decode_image(parsed["image"]).numpy()
        seen.append(bytes(image))
        assert parsed["label/ids"].shape == (5,)
    files = [np.asarray(Image.open(io.BytesIO(path.read_bytes()))).tobytes() for path in sorted(captchas.iterdir())]
    assert sorted(seen) == sorted(files)
