"""TFDS folders: tfrkit reads what tensorflow-datasets stored, with the dtypes, shapes and class names it declared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tfrkit as tfr

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tfds = pytest.importorskip("tensorflow_datasets")

pytestmark = pytest.mark.filterwarnings("ignore")  # TFDS's own

FOLDERS = [
    ("google+trax/trax/data/testdata/para_crawl/ende/1.2.0", "train"),
    ("octo-models+octo/tests/debug_dataset/bridge_dataset/1.0.0", "val"),
    ("tensorflow+datasets/tensorflow_datasets/robotics/dummy_data/bridge/1.0.0", "train"),
]


def skip_decoding(feature: Any) -> Any:
    """Return decoders that leave images encoded, at any depth."""
    if isinstance(feature, tfds.features.Image):
        return tfds.decode.SkipDecoding()
    if isinstance(feature, tfds.features.Dataset):
        return skip_decoding(feature.feature)
    if isinstance(feature, tfds.features.FeaturesDict):
        decoders = {name: skip_decoding(inner) for name, inner in feature.items()}
        return {name: decoder for name, decoder in decoders.items() if decoder} or None
    return None


def flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield (name as stored, values) of a TFDS example; steps of a nested dataset are stacked."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flatten(inner, f"{prefix}/{name}" if prefix else name)
    elif isinstance(value, tf.data.Dataset):
        steps = [dict(flatten(step, prefix)) for step in value]
        for name in steps[0] if steps else ():
            yield name, np.stack([step[name] for step in steps])
    elif isinstance(value, tf.RaggedTensor):
        yield prefix, np.asarray(value.flat_values.numpy())
    elif value.dtype == tf.string:
        yield prefix, np.array(value.numpy(), object)  # NumPy's own bytes dtype would drop NULs at the end
    else:
        yield prefix, np.asarray(value.numpy())


def assert_equal(name: str, found: Any, expected: np.ndarray) -> None:
    """Compare values in stored order; bytes by content, numbers also by dtype."""
    if expected.dtype == object:
        values = [found] if isinstance(found, bytes) else list(np.asarray(found, object).reshape(-1))
        assert values == expected.reshape(-1).tolist(), name
        return
    array = np.asarray(found)
    if array.ndim > 0:
        assert array.dtype == expected.dtype, name
    np.testing.assert_array_equal(array.reshape(-1), expected.reshape(-1), err_msg=name)


@pytest.mark.parametrize(("folder", "split"), FOLDERS, ids=[Path(folder).parts[0] for folder, _ in FOLDERS])
def test_corpus_folder_reads_as_tfds_reads_it(corpus, folder, split):
    builder = tfds.builder_from_directory(corpus / folder)
    decoders = skip_decoding(builder.info.features)
    dataset = builder.as_dataset(split=split, decoders=decoders, shuffle_files=False)
    ds = tfr.open(corpus / folder / f"*-{split}.tfrecord*")
    count = 0
    for row, example in zip(ds, dataset, strict=True):
        expected = dict(flatten(example))
        assert row.keys() == expected.keys()
        for name, value in row.items():
            assert_equal(name, value, expected[name])
        count += 1
    assert count == len(ds) == builder.info.splits[split].num_examples


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the builder of a dataset that TFDS stored just now, with most of its feature types."""
    features = tfds.features.FeaturesDict(
        {
            "label": tfds.features.ClassLabel(names=["cat", "dog", "owl"]),
            "text": tfds.features.Text(),
            "flag": np.bool_,
            "byte": tfds.features.Scalar(np.uint8),
            "wide": tfds.features.Scalar(np.float64),
            "count": np.int64,
            "box": tfds.features.BBoxFeature(),
            "matrix": tfds.features.Tensor(shape=(2, 3), dtype=np.float32),
            "small": tfds.features.Tensor(shape=(4,), dtype=np.int16),
            "image": tfds.features.Image(shape=(4, 5, 3), encoding_format="png"),
            "ids": tfds.features.Sequence(np.int64),
            "words": tfds.features.Sequence(tfds.features.Text()),
            "objects": tfds.features.Sequence({"id": np.int32, "bbox": tfds.features.BBoxFeature()}),
        }
    )
    rng = np.random.default_rng(3)

    def generate() -> Iterator[dict[str, Any]]:
        for index in range(20):
            many = index % 4
            yield {
                "label": index % 3,
                "text": f"Größe {index}",
                "flag": index % 2 == 0,
                "byte": index,
                "wide": index / 3,
                "count": -index,
                "box": tfds.features.BBox(0.0, 0.25, 0.5, 1.0),
                "matrix": rng.random((2, 3), np.float32),
                "small": rng.integers(-9, 9, 4).astype(np.int16),
                "image": rng.integers(0, 255, (4, 5, 3), np.uint8),
                "ids": rng.integers(0, 2**40, many),
                "words": [f"w{word}" for word in range(many)],
                "objects": [{"id": number, "bbox": tfds.features.BBox(0.0, 0.0, 0.5, 0.5)} for number in range(many)],
            }

    return store(tmp_path_factory.mktemp("tfds"), features, list(generate()))


def store(folder: Path, features: Any, examples: list[dict[str, Any]]) -> Any:
    """Write one split with TFDS's sequential writer and return its builder."""
    (folder / "sample" / "1.0.0").mkdir(parents=True)
    identity = tfds.core.dataset_info.DatasetIdentity(
        name="sample",
        version=tfds.core.Version("1.0.0"),
        data_dir=str(folder / "sample" / "1.0.0"),
        module_name="",
    )
    info = tfds.core.DatasetInfo(builder=identity, features=features)
    writer = tfds.core.SequentialWriter(info, max_examples_per_shard=8)
    writer.initialize_splits(["train"])
    writer.add_examples({"train": examples})
    writer.close_all()
    return tfds.builder_from_directory(folder / "sample" / "1.0.0")


def test_stored_values_and_dtypes_are_equal(stored):
    dataset = stored.as_dataset(split="train", decoders=skip_decoding(stored.info.features), shuffle_files=False)
    ds = tfr.open(stored.data_dir)
    for row, example in zip(ds, dataset, strict=True):
        expected = dict(flatten(example))
        assert row.keys() == expected.keys()
        for name, value in row.items():
            assert_equal(name, value, expected[name])


def test_class_names_and_shapes_are_honoured(stored):
    schema = tfr.open(stored.data_dir).schema
    assert schema.features["label"].classes == ("cat", "dog", "owl")
    assert schema.features["matrix"].shape == (2, 3)
    assert schema.features["box"].shape == (4,)
    assert schema.features["flag"].dtype == "bool"
    assert schema.features["image"].logical == "image"


def test_batches_are_equal(stored):
    dataset = stored.as_dataset(split="train", decoders=skip_decoding(stored.info.features), shuffle_files=False)
    expected = [dict(flatten(example)) for example in dataset]
    (batch,) = tfr.open(stored.data_dir).batch(100)
    for name in ("label", "flag", "byte", "wide", "count", "box", "matrix", "small"):
        column = np.stack([example[name] for example in expected])
        assert batch[name].dtype == column.dtype, name
        np.testing.assert_array_equal(batch[name], column, err_msg=name)
