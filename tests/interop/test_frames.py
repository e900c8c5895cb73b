"""pandas, polars and Hugging Face datasets hold what our rows hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import arrow_rows
import datasets
import numpy as np
import pandas
import PIL.Image
import polars
import pytest
from test_corpus_values import READABLE, label_of

import tfrkit as tfr
from tfrkit import Spec
from tfrkit.feeds.arrow import to_arrow
from tfrkit.feeds.frames import to_pandas, to_polars
from tfrkit.feeds.huggingface import to_hf
from tfrkit.testing.corruption import flip

EXAMPLES = [entry for entry in READABLE if entry["payload"] in ("Example", "SequenceExample")]


@pytest.fixture
def examples(tmp_path: Path, seed: int) -> tfr.Dataset:
    return arrow_rows.write_examples(tmp_path / "a.tfrecord", random.Random(seed), 40, arrow_rows.all_specs())


@pytest.fixture
def sequences(tmp_path: Path, seed: int) -> tfr.Dataset:
    return arrow_rows.write_sequences(tmp_path / "s.tfrecord", random.Random(seed), 30)


@pytest.fixture
def damaged(tmp_path: Path) -> tfr.Dataset:
    path = tmp_path / "broken.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write_columns({"id": np.arange(1000)})
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) // 2))
    return tfr.open(path, schema={"id": "int64"})


def assert_columns_equal(found: list[Any], expected: list[Any], name: str) -> None:
    assert [arrow_rows.plain(value) for value in found] == expected, name


# -- polars ------------------------------------------------------------------------------------------------------------


def test_polars_holds_every_kind_of_column(examples: tfr.Dataset) -> None:
    frame = to_polars(arrow_rows.stream_of(examples))
    expected = arrow_rows.expected_rows(examples)
    for name in examples.schema.names:
        assert_columns_equal(frame[name].to_list(), [row[name] for row in expected], name)
    assert frame.schema["float/table"] == polars.Array(polars.Float32, (2, 3))
    assert frame.schema["tensor/uint8/table"] == polars.Array(polars.UInt8, (2, 3))
    assert frame.schema["int/some"] == polars.List(polars.Int64)
    assert frame.schema["text/one"] == polars.String
    assert frame.schema["bytes/one?"] == polars.Binary


def test_polars_holds_sequence_examples_as_structs(sequences: tfr.Dataset) -> None:
    frame = to_polars(arrow_rows.stream_of(sequences))
    assert [arrow_rows.plain(row) for row in frame.to_dicts()] == arrow_rows.expected_rows(sequences)


def test_polars_takes_the_dataset_itself(examples: tfr.Dataset) -> None:
    frame = polars.DataFrame(examples)
    assert frame["label"].to_list() == [row["label"] for row in examples]


@pytest.mark.parametrize("entry", EXAMPLES, ids=label_of)
def test_polars_holds_the_corpus(corpus: Path, entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "alone.tfrecord"
    path.write_bytes((corpus / entry["file"]).read_bytes())
    ds = tfr.open(path)
    frame = to_polars(arrow_rows.stream_of(ds))
    assert [arrow_rows.plain(row) for row in frame.to_dicts()] == arrow_rows.expected_rows(ds)


def test_polars_damage_is_raised_as_it_was(damaged: tfr.Dataset) -> None:
    with pytest.raises(tfr.errors.CorruptRecordError, match="broken.tfrecord, record .*, byte"):
        to_polars(arrow_rows.stream_of(damaged))
    with pytest.raises(Exception, match="CorruptRecordError: .*broken.tfrecord, record .*, byte"):
        polars.DataFrame(arrow_rows.stream_of(damaged))


def test_polars_with_zero_rows_has_the_columns() -> None:
    specs = arrow_rows.all_specs()
    frame = to_polars(to_arrow(lambda: iter(()), tfr.Schema(specs)))
    assert frame.shape == (0, len(specs))


# -- pandas ------------------------------------------------------------------------------------------------------------


def read_cells(series: pandas.Series) -> list[Any]:
    """The cells of a column, None for missing ones; a stored NaN is not missing."""
    if isinstance(series.array, (pandas.arrays.IntegerArray, pandas.arrays.FloatingArray, pandas.arrays.BooleanArray)):
        return [
            None if missing else value for value, missing in zip(series.array._data, series.array._mask, strict=True)
        ]
    if series.dtype == "str":
        return [None if value is pandas.NA or value != value else value for value in series]
    return list(series)


def assert_frame_equal(frame: pandas.DataFrame, ds: tfr.Dataset) -> None:
    parts: dict[str, Any] = {"context": ds.schema.features, "feature_lists": ds.schema.feature_lists}
    expected = arrow_rows.expected_rows(ds)
    assert len(frame) == len(expected)
    for part, specs in parts.items():
        rows = [row.get(part) for row in expected] if ds.schema.kind == "sequence_example" else expected
        for name, spec in specs.items():
            column = f"feature_lists.{name}" if part == "feature_lists" and name in ds.schema.features else name
            arrow_name = name.replace("\0", "\\x00")
            cells = read_cells(frame[column])
            if column != "image" and spec.encoding != "list" and spec.dtype == "complex64":
                continue  # an array here, serialized bytes in Arrow
            if spec.kind == "bytes" and spec.encoding == "list" and len(spec.shape) > 1:
                continue
            assert_columns_equal(cells, [row[arrow_name] for row in rows], name)


def test_pandas_holds_every_kind_of_column(examples: tfr.Dataset) -> None:
    frame = to_pandas(arrow_rows.stream_of(examples))
    assert list(frame) == list(examples.schema.names)
    assert_frame_equal(frame, examples)
    dtypes = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert dtypes["int/one"] == "int64"
    assert dtypes["int/one?"] == "Int64"
    assert dtypes["float/one"] == "float32"
    assert dtypes["float/one?"] == "Float32"
    assert dtypes["bool/one"] == "bool"
    assert dtypes["bool/one?"] == "boolean"
    assert dtypes["byte/one?"] == "UInt8"
    assert dtypes["tensor/float16/one?"] == "Float32"
    assert dtypes["text/one"] == dtypes["text/one?"] == "str"
    assert dtypes["bytes/one"] == dtypes["int/three"] == dtypes["text/some"] == "object"


def test_pandas_big_integers_next_to_missing_ones_stay_exact() -> None:
    column = tfr.Ragged(np.array([2**63 - 1]), np.array([0, 0, 1]), np.array([0, 2], np.uint8))
    frame = to_pandas(to_arrow(lambda: iter([{"x": column}]), tfr.Schema({"x": Spec("int64", optional=True)})))
    assert frame["x"].isna().tolist() == [True, False]
    assert frame["x"][1] == 2**63 - 1


def test_pandas_holds_sequence_examples_as_columns(sequences: tfr.Dataset) -> None:
    frame = to_pandas(arrow_rows.stream_of(sequences))
    names = ["id", "note", "both", "action", "position", "words", "tokens", "feature_lists.both", "frame", "matrix"]
    assert list(frame) == names
    assert_frame_equal(frame, sequences)


@pytest.mark.parametrize("entry", EXAMPLES, ids=label_of)
def test_pandas_holds_the_corpus(corpus: Path, entry: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "alone.tfrecord"
    path.write_bytes((corpus / entry["file"]).read_bytes())
    ds = tfr.open(path)
    assert_frame_equal(to_pandas(arrow_rows.stream_of(ds)), ds)


def test_pandas_damage_is_raised_as_it_was(damaged: tfr.Dataset) -> None:
    with pytest.raises(tfr.errors.CorruptRecordError, match="broken.tfrecord, record .*, byte"):
        to_pandas(arrow_rows.stream_of(damaged))


def test_pandas_text_that_is_not_utf8_names_feature_and_row(tmp_path: Path) -> None:
    with tfr.Writer(tmp_path / "a.tfrecord") as writer:
        for index in range(30):
            writer.write({"word": b"\xff" if index == 25 else b"ok"})
    ds = tfr.open(tmp_path / "a.tfrecord", schema={"word": "text"})
    with pytest.raises(tfr.errors.SchemaError, match="feature 'word' expected text, got .* - at row 25"):
        to_pandas(arrow_rows.stream_of(ds))


def test_pandas_with_zero_rows_has_the_columns() -> None:
    specs = arrow_rows.all_specs()
    frame = to_pandas(to_arrow(lambda: iter(()), tfr.Schema(specs)))
    assert frame.shape == (0, len(specs))
    assert str(frame.dtypes["int/one?"]) == "Int64"


# -- Hugging Face ------------------------------------------------------------------------------------------------------


def plain_hf(value: Any) -> Any:
    """Images as their stored bytes, other values unchanged."""
    if isinstance(value, dict):
        return value["bytes"] if value.keys() == {"bytes", "path"} else {name: plain_hf(v) for name, v in value.items()}
    if isinstance(value, list):
        return [plain_hf(item) for item in value]
    return arrow_rows.plain(value)


def decode_nothing(features: Any) -> Any:
    """The same features with images as they are stored."""
    if isinstance(features, datasets.Image):
        return datasets.Image(decode=False)
    if isinstance(features, dict):
        return {name: decode_nothing(feature) for name, feature in features.items()}
    if isinstance(features, datasets.LargeList):
        return datasets.LargeList(decode_nothing(features.feature))
    if isinstance(features, datasets.List):
        return datasets.List(decode_nothing(features.feature), length=features.length)
    return features


@pytest.mark.parametrize("streaming", [False, True])
def test_hf_holds_every_kind_of_column(examples: tfr.Dataset, streaming: bool) -> None:
    made = to_hf(arrow_rows.stream_of(examples), streaming=streaming)  # type: ignore[call-overload]
    assert made.features["label"] == datasets.ClassLabel(names=["cat", "dog"])
    assert made.features["image"] == datasets.Image()
    assert made.features["int/three"] == datasets.List(datasets.Value("int64"), length=3)
    plain_features = datasets.Features(decode_nothing(made.features))
    rows = (
        made.cast(plain_features)
        if streaming
        else datasets.Dataset(made.data, datasets.DatasetInfo(features=plain_features))
    )
    assert [plain_hf(dict(row)) for row in rows] == arrow_rows.expected_rows(examples)


@pytest.mark.parametrize("streaming", [False, True])
def test_hf_decodes_images_on_row_access(sequences: tfr.Dataset, streaming: bool) -> None:
    made = to_hf(arrow_rows.stream_of(sequences), streaming=streaming)  # type: ignore[call-overload]
    frames = [row["feature_lists"]["frame"] for row in made]
    expected = [row["feature_lists"]["frame"] for row in sequences]
    assert [len(images) for images in frames] == [len(images) for images in expected]
    image = next(image for images in frames for image in images)
    assert isinstance(image, PIL.Image.Image)
    assert image.size == (4, 3)


def test_hf_streams_every_pass_anew(examples: tfr.Dataset) -> None:
    made = to_hf(arrow_rows.stream_of(examples), streaming=True).select_columns(["label"])
    labels = [row["label"] for row in examples]
    assert [row["label"] for row in made] == [row["label"] for row in made] == labels
    assert [row["label"] for row in made.skip(10).take(5)] == labels[10:15]


@pytest.mark.parametrize("streaming", [False, True])
def test_hf_damage_is_raised_as_it_was(damaged: tfr.Dataset, streaming: bool) -> None:
    with pytest.raises(tfr.errors.CorruptRecordError, match="broken.tfrecord, record .*, byte"):
        list(to_hf(arrow_rows.stream_of(damaged), streaming=streaming))  # type: ignore[call-overload]


def test_hf_with_zero_rows_has_the_columns() -> None:
    specs = {"label": Spec("int64", logical="class_label", num_classes=3), "image": Spec("bytes", logical="image")}
    made = to_hf(to_arrow(lambda: iter(()), tfr.Schema(specs)))
    assert made.num_rows == 0
    assert made.features["label"].num_classes == 3


def test_hf_labels_that_class_label_would_refuse_stay_numbers() -> None:
    labels = {"mask": Spec("int64", logical="class_label", classes=("a", "b"), ignore=255)}
    made = to_hf(to_arrow(lambda: iter([{"mask": np.array([0, 255])}]), tfr.Schema(labels)))
    assert made.features["mask"] == datasets.Value("int64")
    assert made["mask"][:] == [0, 255]
