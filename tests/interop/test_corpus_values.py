"""Every readable file of the corpus: counts as its manifest says, values as TensorFlow parses them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
import tensorflow as tf
from conftest import CORPUS

import tfrkit as tfr

MANIFEST = CORPUS / "MANIFEST.json"
RECORD_FILES = [
    entry for entry in (json.loads(MANIFEST.read_text()) if MANIFEST.exists() else []) if entry["kind"] == "record"
]
READABLE = [entry for entry in RECORD_FILES if entry["records"] is not None]
KINDS = {"Example": "example", "SequenceExample": "sequence_example"}


def label_of(entry: dict[str, Any]) -> str:
    return "/".join(Path(entry["file"]).parts[-2:])


@pytest.fixture
def alone(tmp_path, corpus):
    """Return a function that copies a file out of its folder, whose features.json would give it a schema."""

    def copy(entry: dict[str, Any]) -> Path:
        return Path(shutil.copy(corpus / entry["file"], tmp_path))

    return copy


def assert_feature_equal(name: str, value: Any, expected: oracle.Plain, spec: Any) -> None:
    if spec.encoding == "tensor_proto" and expected[0] is not None:
        tensor = tf.io.parse_tensor(expected[1][0], tf.dtypes.as_dtype(spec.dtype)).numpy()
        assert np.asarray(value).shape == tensor.shape, name
        assert np.asarray(value).tobytes() == tensor.tobytes(), name
    else:
        assert oracle.plain_value(value) == expected, name


def assert_row_equal(row: dict[str, Any], expected: dict[str, oracle.Plain], specs: Any) -> None:
    assert row.keys() == expected.keys()
    for name, value in row.items():
        assert_feature_equal(name, value, expected[name], specs[name])


@pytest.mark.parametrize("entry", READABLE, ids=label_of)
def test_count_and_payloads_are_equal(alone, entry):
    path = alone(entry)
    records = tfr.open(path).records()
    assert len(records) == entry["records"]
    assert list(records) == oracle.read_with_tensorflow(path, entry["compression"])


@pytest.mark.parametrize("entry", [entry for entry in READABLE if entry["payload"] == "Example"], ids=label_of)
def test_example_values_are_equal(alone, entry):
    path = alone(entry)
    ds = tfr.open(path)
    assert ds.kind == "example"
    payloads = oracle.read_with_tensorflow(path, entry["compression"])
    for row, payload in zip(ds, payloads, strict=True):
        assert_row_equal(row, oracle.plain_example(payload), ds.schema.features)


@pytest.mark.parametrize("entry", [entry for entry in READABLE if entry["payload"] == "Example"], ids=label_of)
def test_example_columns_are_equal(alone, entry):
    path = alone(entry)
    ds = tfr.open(path)
    listed = [name for name, spec in ds.schema.features.items() if spec.encoding == "list"]
    found = [row for batch in ds.select(listed).batch(256) for row in oracle.plain_columns(batch)]
    payloads = oracle.read_with_tensorflow(path, entry["compression"])
    expected = [
        {name: value for name, value in oracle.plain_example(payload).items() if name in listed} for payload in payloads
    ]
    assert found == expected


@pytest.mark.parametrize("entry", [entry for entry in READABLE if entry["payload"] == "SequenceExample"], ids=label_of)
def test_sequence_example_values_are_equal(alone, entry):
    path = alone(entry)
    ds = tfr.open(path)
    assert ds.kind == "sequence_example"
    payloads = oracle.read_with_tensorflow(path, entry["compression"])
    specs = ds.schema.feature_lists
    for row, payload in zip(ds, payloads, strict=True):
        context, lists = oracle.plain_sequence(payload)
        assert_row_equal(row["context"], context, ds.schema.features)
        assert row["feature_lists"].keys() == lists.keys()
        for name, steps in lists.items():
            for value, expected in zip(row["feature_lists"][name], steps, strict=True):
                assert_feature_equal(name, value, expected, specs[name])


@pytest.mark.parametrize(
    "entry", [entry for entry in READABLE if entry["payload"] not in KINDS and entry["records"]], ids=label_of
)
def test_other_payloads_are_raw(alone, entry):
    assert tfr.open(alone(entry)).kind == "raw"


@pytest.mark.parametrize("entry", [entry for entry in RECORD_FILES if entry["records"] is None], ids=label_of)
def test_decoys_are_refused(alone, entry):
    path = alone(entry)
    with pytest.raises(tfr.errors.NotATFRecordError, match=path.name):
        list(tfr.open(path).records())
