"""TensorFlow reads and TFDS loads the output of the reshape verbs."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfrkit as tfr
from tfrkit import tools

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tfds = pytest.importorskip("tensorflow_datasets")

pytestmark = pytest.mark.filterwarnings("ignore")  # TFDS's own


def read(paths: list[str] | str, compression: str = "") -> list[bytes]:
    return list(tf.data.TFRecordDataset(paths, compression_type=compression).as_numpy_iterator())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Several megabytes, so that a compressed stream has several blocks."""
    rng = np.random.default_rng(0)
    path = tmp_path / "in.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(3000):
            tokens = rng.integers(0, 50, 300)
            writer.write({"label": number % 10, "tokens": tokens, "noise": rng.bytes(1000)})
    return path


@pytest.mark.parametrize("level", ["default", "fast", "small"])
@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_blocks_deflated_in_parallel_are_one_stream_to_tensorflow(source, tmp_path, compression, level):
    out = tmp_path / "out.tfrecord"
    tools.convert(source, out, compression=compression, level=level)
    assert out.stat().st_size > 3 << 20
    assert read(str(out), compression.upper()) == read(str(source))


def test_default_size_is_that_of_tensorflow(source, tmp_path):
    tools.convert(source, tmp_path / "ours.tfrecord", compression="gzip")
    with tf.io.TFRecordWriter(str(tmp_path / "theirs"), tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
        for record in read(str(source)):
            writer.write(record)
    ours, theirs = (tmp_path / "ours.tfrecord").stat().st_size, (tmp_path / "theirs").stat().st_size
    assert ours < 1.01 * theirs


def test_split_and_shuffled_folder_loads_with_tfds(source, tmp_path):
    tools.split(source, tmp_path / "digits", {"train": 0.8, "test": 0.2}, stratify="label", shards=3)
    tools.shuffle(tmp_path / "digits", tmp_path / "mixed", seed=5)
    tools.reshard(tmp_path / "mixed", tmp_path / "few", shards=1)
    labels = {}
    for name in ("digits", "mixed", "few"):
        builder = tfds.builder_from_directory(tmp_path / name)
        assert builder.info.name == "digits"
        assert {split: info.num_examples for split, info in builder.info.splits.items()} == {"train": 2400, "test": 600}
        rows = tfds.as_numpy(builder.as_dataset(split="test", shuffle_files=False))
        labels[name] = [int(row["label"]) for row in rows]
    # TFDS interleaves shards, so the order is not compared.
    assert sorted(labels["digits"]) == sorted(labels["mixed"]) == sorted(labels["few"])


def test_edited_records_parse(source, tmp_path):
    tools.convert(
        source, tmp_path / "out.tfrecord", drop=["noise"], rename={"label": "class"}, cast={"tokens": "float"}
    )
    spec = {"class": tf.io.FixedLenFeature([], tf.int64), "tokens": tf.io.FixedLenFeature([300], tf.float32)}
    ours = list(tfr.open(source))
    for number, record in enumerate(read(str(tmp_path / "out.tfrecord"))[:200]):
        parsed = tf.io.parse_single_example(record, spec)
        assert int(parsed["class"]) == ours[number]["label"]
        np.testing.assert_array_equal(parsed["tokens"].numpy(), np.asarray(ours[number]["tokens"], np.float32))
        assert set(tf.train.Example.FromString(record).features.feature) == {"class", "tokens"}
