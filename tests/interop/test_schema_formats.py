"""TFDS, tensorflow_metadata and pyarrow take the schemas we write, and agree on those they wrote."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import arrow_rows
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from google.protobuf import text_format
from PIL import Image
from tensorflow_datasets.core import utils as tfds_utils
from tensorflow_metadata.proto.v0 import schema_pb2

import tfrkit as tfr
from tfrkit.features.arrow_schema import print_arrow_schema
from tfrkit.features.schema_pbtxt import from_pbtxt, to_pbtxt
from tfrkit.features.spec import Spec
from tfrkit.features.tensor_dtypes import DTYPE_NAMES
from tfrkit.features.tfds_export import to_tfds
from tfrkit.features.tfds_json import from_tfds

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
KINDS = {"i": "int64", "u": "int64", "b": "int64", "f": "float", "O": "bytes"}


def find_corpus(pattern: str) -> list[Path]:
    return sorted(CORPUS.glob(pattern)) if CORPUS.is_dir() else []


def store_with_tfds(feature: tfds.features.FeatureConnector) -> dict[str, tuple[tuple[int | None, ...], str]]:
    """Shape and storage kind by name, as TFDS stores them."""
    stored = {}
    for name, info in tfds_utils.flatten_nest_dict(feature.get_serialized_info()).items():
        if info.sequence_rank > 1:
            inner = info.shape[info.sequence_rank :]
            stored[f"{name}/ragged_flat_values"] = ((None, *inner), KINDS[info.np_dtype.kind])
            for level in range(info.sequence_rank - 1):
                stored[f"{name}/ragged_row_lengths_{level}"] = ((None,), "int64")
        else:
            stored[name] = (tuple(info.shape), KINDS[np.dtype(info.np_dtype).kind])
    return stored


def store_with_us(schema: tfr.Schema) -> dict[str, tuple[tuple[int | None, ...], str]]:
    return {name: (spec.shape if spec.encoding == "list" else (), spec.kind) for name, spec in schema.features.items()}


@pytest.mark.parametrize("path", find_corpus("**/features.json"), ids=lambda path: path.parts[-3])
def test_tfds_agrees_on_the_stored_features(path: Path) -> None:
    def read_text(name: str) -> str | None:
        return (path.parent / name).read_text() if (path.parent / name).exists() else None

    read = from_tfds(json.loads(path.read_text()), read_text=read_text)
    assert store_with_us(read.schema) == store_with_tfds(tfds.features.FeatureConnector.from_config(str(path.parent)))
    files = to_tfds(read.schema)
    ours = tfds.features.FeatureConnector.from_json(json.loads(json.dumps(files.features)))
    assert store_with_tfds(ours) == store_with_us(read.schema)
    assert from_tfds(files.features, read_text=files.labels.get).schema == read.schema


TFDS_FEATURES = tfds.features.FeaturesDict(
    {
        "image": tfds.features.Image(shape=(None, None, 3)),
        "labeled": tfds.features.LabeledImage(labels=["a", "b"], shape=(None, None, 1)),
        "label": tfds.features.ClassLabel(names=["cat", "dog"]),
        "text": tfds.features.Text(),
        "scalar": tfds.features.Scalar(np.uint16),
        "flags": tfds.features.Tensor(shape=(2,), dtype=np.bool_),
        "wide": tfds.features.Tensor(shape=(None, 2), dtype=np.float64),
        "big": tfds.features.Tensor(shape=(), dtype=np.uint64),
        "raw": tfds.features.Tensor(shape=(2, 2), dtype=np.int16, encoding="bytes"),
        "packed": tfds.features.Tensor(shape=(None, 2), dtype=np.float64, encoding="zlib"),
        "free": tfds.features.Tensor(shape=(None, None), dtype=np.uint8, encoding="zlib"),
        "maybe": tfds.features.Tensor(shape=(), dtype=np.int64, optional=True),
        "objects": tfds.features.Sequence(
            {"bbox": tfds.features.BBoxFeature(), "id": np.int64, "words": tfds.features.Sequence(tfds.features.Text())}
        ),
        "video": tfds.features.Video(shape=(None, 4, 4, 3)),
        "audio": tfds.features.Audio(shape=(None,)),
        "nested": {"deeper": {"x": np.float32}},
        "steps": tfds.features.Dataset({"reward": np.float32}),
        "translation": tfds.features.Translation(["de", "en"]),
    }
)


def test_every_tfds_feature_class_is_read_as_tfds_stores_it(tmp_path: Path) -> None:
    TFDS_FEATURES.save_config(str(tmp_path))

    def read_text(name: str) -> str | None:
        return (tmp_path / name).read_text() if (tmp_path / name).exists() else None

    read = from_tfds(json.loads((tmp_path / "features.json").read_text()), read_text=read_text)
    assert read.notes == ()
    assert store_with_us(read.schema) == store_with_tfds(TFDS_FEATURES)
    assert read.schema["label"].classes == ("cat", "dog")
    assert read.schema["labeled"].classes == ("a", "b")
    # The old style of the same features reads the same.
    old = TFDS_FEATURES.to_json()
    assert from_tfds(old, read_text=read_text).schema == read.schema


def encode_png(mode: str, colour: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (4, 3), colour).save(buffer, "PNG")
    return buffer.getvalue()


def test_tfds_loads_a_folder_we_describe(tmp_path: Path) -> None:
    schema = tfr.Schema(
        {
            "image/encoded": Spec("bytes", logical="image", format="png"),
            "label": Spec("int64", logical="class_label", classes=("cat", "dog")),
            "image/object/bbox": Spec("float", (None, 4), logical="boxes"),
            "tokens": Spec("int64", (None,)),
            "xyz": Spec("float", (3,)),
            "text": Spec("bytes", logical="text"),
            "pixels": Spec("bytes", (2, 2), logical="tensor", encoding="raw", dtype="uint8"),
            "flag": Spec("int64", dtype="bool"),
            "weight": Spec("float", optional=True),
        }
    )
    rows = [
        {
            "image/encoded": encode_png("RGB", (index, 2, 3)),
            "label": index % 2,
            "image/object/bbox": np.full((index, 4), 0.5, np.float32),
            "tokens": np.arange(index),
            "xyz": np.array([index, 1, 2], np.float32),
            "text": f"row {index}",
            "pixels": np.full((2, 2), index, np.uint8),
            "flag": index == 1,
            **({"weight": 0.5} if index else {}),
        }
        for index in range(3)
    ]
    with tfr.Writer(tmp_path / "toy-train.tfrecord-00000-of-00001", schema=schema) as writer:
        for row in rows:
            writer.write(row)
    files = to_tfds(schema)
    assert files.notes == ()
    (tmp_path / "features.json").write_text(json.dumps(files.features))
    for name, text in files.labels.items():
        (tmp_path / name).write_text(text)
    split = {
        "name": "train",
        "shardLengths": ["3"],
        "numBytes": "1",
        "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
    }
    info = {"name": "toy", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [split]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))

    builder = tfds.builder_from_directory(str(tmp_path))
    assert builder.info.features["label"].names == ["cat", "dog"]
    loaded = list(builder.as_dataset(split="train").as_numpy_iterator())
    assert len(loaded) == 3
    for index, (row, got) in enumerate(zip(rows, loaded, strict=True)):
        assert got["image/encoded"].shape == (3, 4, 3)
        assert got["image/encoded"][0, 0].tolist() == [index, 2, 3]
        assert got["text"] == row["text"].encode()
        for name in ("label", "image/object/bbox", "tokens", "xyz", "pixels", "flag"):
            assert np.array_equal(got[name], row[name]), name
        assert got["flag"].dtype == bool
        assert got["weight"] == (0.5 if index else np.finfo(np.float32).min)


@pytest.mark.parametrize("path", find_corpus("**/*schema.pbtxt"), ids=lambda path: path.parts[-2])
def test_tensorflow_metadata_agrees_on_real_schemas(path: Path) -> None:
    text = path.read_text()
    theirs = text_format.Parse(text, schema_pb2.Schema())
    read = from_pbtxt(text)
    assert [feature.name for feature in theirs.feature if feature.type != schema_pb2.STRUCT] == list(
        read.schema.features
    )
    assert from_pbtxt(text_format.MessageToString(theirs)).schema == read.schema
    assert from_pbtxt(
        text_format.MessageToString(text_format.Parse(to_pbtxt(read.schema), schema_pb2.Schema()))
    ).schema == (read.schema)


def test_tensorflow_metadata_parses_what_we_print() -> None:
    schema = tfr.Schema(
        {
            "label": Spec("int64", logical="class_label", num_classes=10),
            "image": "image",
            "text": Spec("bytes", logical="text", optional=True),
            "xyz": ("float", (3,)),
            "tokens": ("int64", (None,)),
            "pixels": ("uint8", (28, 28)),
            'odd "name"\n\\\0é': "int64",
            "\udcff": "int64",
        },
        feature_lists={"frames": ("float", (3,)), "words": ("bytes", (None,))},
    )
    message = text_format.Parse(to_pbtxt(schema), schema_pb2.Schema())
    by_name = {feature.name: feature for feature in message.feature}
    assert list(by_name) == [*list(schema.features)[:-1], "##SEQUENCE##"]
    assert by_name["label"].int_domain.max == 9
    assert [dim.size for dim in by_name["xyz"].shape.dim] == [3]
    assert by_name["text"].presence.min_fraction == 0
    assert by_name["tokens"].presence.min_fraction == 1
    assert [feature.name for feature in by_name["##SEQUENCE##"].struct_domain.feature] == ["frames", "words"]


def test_pyarrow_prints_the_same_schema() -> None:
    dtypes = [
        "bool",
        "float16",
        "float64",
        "string",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)),
    ]
    schema = tfr.Schema(
        {
            "label": "int64",
            "weight": Spec("float", optional=True),
            "tokens": ("int64", (None,)),
            "xyz": ("float", (3,)),
            "boxes": ("float", (None, 4)),
            "text": "text",
            "image": "image",
            "never": Spec("bytes", (None,), optional=True, seen=()),
            **{f"t_{dtype}": Spec("bytes", (2, None), encoding="tensor_proto", dtype=dtype) for dtype in dtypes},
        },
        feature_lists={"frames": ("float", (2,))},
    )
    built = arrow_rows.build_schema(schema)
    lines = [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in built]
    assert print_arrow_schema(schema).splitlines() == lines


def test_tensorflow_dtype_numbers_are_ours() -> None:
    for number, name in DTYPE_NAMES.items():
        assert tf.dtypes.as_dtype(number).name == name
