from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.container.codecs import Compression
from tfrkit.features.schema_json import from_json
from tfrkit.ops.schema import make_schema_text
from tfrkit.testing.reference import encode_example, write_frames


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [encode_example({b"label": ("int64", [number]), b"name": ("bytes", [b"x"])}) for number in range(3)]
    (tmp_path / "a.tfrecord").write_bytes(write_frames(rows))
    return tmp_path / "a.tfrecord"


def test_json_reads_back_as_the_schema(path: Path) -> None:
    schema = from_json(json.loads(make_schema_text(path, "json")[0]))
    assert schema.names == ("label", "name")


@pytest.mark.parametrize("style", ["tf", "dali", "vahidk"])
def test_source_is_python_that_names_every_feature(path: Path, style: str) -> None:
    source, _ = make_schema_text(path, style)  # type: ignore[arg-type]
    ast.parse(source)
    assert "'label'" in source
    assert "'name'" in source


@pytest.mark.parametrize("style", ["tfds", "pbtxt", "arrow"])
def test_text_names_every_feature(path: Path, style: str) -> None:
    text, _ = make_schema_text(path, style)  # type: ignore[arg-type]
    assert "label" in text
    assert "name" in text


def test_style_that_does_not_exist_raises(path: Path) -> None:
    with pytest.raises(ValueError, match="style expected one of json, .*, got 'xml'"):
        make_schema_text(path, "xml")  # type: ignore[arg-type]


DATASET = "# dataset = tf.data.TFRecordDataset(paths, compression_type={}).map(parse_record)"
CANNOT = "# TensorFlow cannot read {}, rewrite the files: tfr convert FILES -o out/ --compression gzip"


def list_usage(tmp_path: Path, *compressions: Compression) -> list[str]:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    paths = [tmp_path / "empty.tfrecord"]
    for name in compressions:
        paths.append(tmp_path / f"{name}.tfrecord")
        with tfr.Writer(paths[-1], compression=name) as writer:
            writer.write({"x": 1})
    return make_schema_text(paths, "tf")[0].rstrip().rpartition("\n\n")[2].splitlines()


@pytest.mark.parametrize(("compression", "known"), [("none", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")])
def test_tf_source_names_the_compression_of_the_files(tmp_path: Path, compression: str, known: str) -> None:
    assert list_usage(tmp_path, compression) == [DATASET.format(repr(known))]


def test_tf_source_says_if_files_differ_or_tensorflow_cannot_read_them(tmp_path: Path) -> None:
    assert list_usage(tmp_path, "xz") == [CANNOT.format("xz")]
    assert list_usage(tmp_path, "xz", "gzip", "none") == [
        "# the files differ in compression (none, gzip, xz), each needs a dataset of its own:",
        DATASET.format("''"),
        DATASET.format("'GZIP'"),
        CANNOT.format("xz"),
    ]
