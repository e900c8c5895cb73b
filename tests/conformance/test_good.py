"""Golden files written by TensorFlow, against the values that went into them; see good/PROVENANCE.md."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.testing import reference

GOOD = Path(__file__).parent / "good"
CASES = json.loads((GOOD / "cases.json").read_text())
TABLES = CASES["tables"]
# One name with a different kind in each record: a file, but not a table.
MIXED = "empty_and_unset"


@pytest.fixture(params=CASES["cases"], ids=lambda case: case["file"])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


@pytest.fixture
def table(case: dict[str, Any]) -> dict[str, Any]:
    return dict(TABLES[case["table"]])


@pytest.fixture
def ds(case: dict[str, Any]) -> Iterator[tfr.Dataset]:
    with tfr.open(GOOD / case["file"]) as dataset:
        yield dataset


def spell(kind: str, values: Any) -> list[str]:
    """Values as cases.json spells them."""
    if kind == "bytes":
        return [value.hex() for value in values]
    if kind == "float":
        return [struct.pack(">f", value).hex() for value in values]
    return [str(value) for value in values]


def spell_feature(feature: reference.Feature) -> dict[str, Any]:
    return {"kind": None, "values": []} if feature is None else {"kind": feature[0], "values": spell(*feature)}


def spell_features(features: reference.Features) -> dict[str, Any]:
    return {name.decode(): spell_feature(feature) for name, feature in features.items()}


def as_list(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.reshape(-1).tolist())
    return value if isinstance(value, list) else [value]


def check_row(row: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert set(row) == set(wanted)
    for name, feature in wanted.items():
        if feature["kind"] is None:
            assert row[name] is None, name
        else:
            assert row[name] is not None, name
            assert spell(feature["kind"], as_list(row[name])) == feature["values"], name


# --- every file


def test_file_is_the_one_of_the_provenance_note(case: dict[str, Any]) -> None:
    noted = dict(re.findall(r"\| `(\S+)` \| \d+ \| ([0-9a-f]{64}) \|", (GOOD / "PROVENANCE.md").read_text()))
    assert hashlib.sha256((GOOD / case["file"]).read_bytes()).hexdigest() == noted[case["file"]]


def test_compression_and_count_are_found(case: dict[str, Any], ds: tfr.Dataset) -> None:
    shard = Shard.open(str(GOOD / case["file"]))
    assert shard.compression == case["compression"]
    shard.close()
    assert len(ds) == case["records"]
    assert sum(1 for _ in ds.records()) == case["records"]


def test_records_hold_the_values_that_went_in(table: dict[str, Any], ds: tfr.Dataset) -> None:
    """Frames by the fast reader, messages by the reference one: checks the files themselves."""
    records = list(ds.records())
    if table["kind"] == "raw":
        assert [record.hex() for record in records] == table["rows"]
    elif table["kind"] == "example":
        assert [spell_features(reference.parse_example(record)) for record in records] == table["rows"]
    else:
        for record, wanted in zip(records, table["rows"], strict=True):
            context, lists = reference.parse_sequence_example(record)
            assert spell_features(context) == wanted["context"]
            frames = {name.decode(): [spell_feature(frame) for frame in value] for name, value in lists.items()}
            assert frames == wanted["feature_lists"]


def test_kind_is_found(case: dict[str, Any], table: dict[str, Any], ds: tfr.Dataset) -> None:
    if case["table"] != "raw_empty_records" and table["rows"]:
        # An empty record is a valid Example and a valid message of any other type.
        assert ds.kind == table["kind"]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES["cases"] if TABLES[case["table"]]["kind"] == kind and case["table"] != MIXED]


@pytest.mark.parametrize("case", of_kind("example"), ids=lambda case: case["file"])
def test_example_rows_are_the_ones_that_went_in(table: dict[str, Any], ds: tfr.Dataset) -> None:
    tensors = table.get("tensors", {})
    rows = list(ds)
    assert len(rows) == len(table["rows"])
    for number, (row, wanted) in enumerate(zip(rows, table["rows"], strict=True)):
        plain = {name: value for name, value in row.items() if name not in tensors}
        check_row(plain, {name: feature for name, feature in wanted.items() if name not in tensors})
        assert repr(ds[number]) == repr(row)
        for name, tensor in tensors.items():
            check_tensor(row[name], tensor)


def check_tensor(value: Any, tensor: dict[str, Any]) -> None:
    assert list(value.shape) == tensor["shape"]
    if tensor["dtype"] == "string":
        assert [item.hex() for item in value.reshape(-1).tolist()] == tensor["strings"]
        return
    content = bytes.fromhex(tensor["content"])
    if tensor["dtype"] == "bfloat16":  # bfloat16 is missing in NumPy: the upper half of a float32
        content = b"".join(b"\0\0" + content[k : k + 2] for k in range(0, len(content), 2))
    assert value.dtype == ("float32" if tensor["dtype"] == "bfloat16" else tensor["dtype"])
    assert value.tobytes() == content


@pytest.mark.parametrize("case", of_kind("sequence_example"), ids=lambda case: case["file"])
def test_sequence_rows_are_the_ones_that_went_in(table: dict[str, Any], ds: tfr.Dataset) -> None:
    rows = list(ds)
    assert len(rows) == len(table["rows"])
    for row, wanted in zip(rows, table["rows"], strict=True):
        check_row(row["context"], wanted["context"])
        assert set(row["feature_lists"]) == set(wanted["feature_lists"])
        for name, frames in wanted["feature_lists"].items():
            got = row["feature_lists"][name]
            assert len(got) == len(frames)
            for frame, spelled in zip(got, frames, strict=True):
                if spelled["kind"] is None:
                    assert frame is None
                else:
                    assert spell(spelled["kind"], as_list(frame)) == spelled["values"]


def test_name_of_several_kinds_is_named() -> None:
    with (
        tfr.open(GOOD / f"{MIXED}.tfrecord") as ds,
        pytest.raises(TfrkitError, match=r"feature 'a' .*(bytes|float|int64)"),
    ):
        list(ds)


def test_verify_finds_nothing_in_any() -> None:
    result = tfr.verify([GOOD / case["file"] for case in CASES["cases"]])
    assert result.findings == []
    assert result.records == sum(case["records"] for case in CASES["cases"])


def test_tensors_of_every_dtype_are_written_again_byte_for_byte(tmp_path: Path) -> None:
    with tfr.open(GOOD / "tensors.tfrecord") as ds:
        with tfr.Writer(tmp_path / "again.tfrecord", schema=ds.schema) as writer:
            for row in ds:
                writer.write(row)
        with tfr.open(tmp_path / "again.tfrecord") as again:
            stored, written = ([reference.parse_example(bytes(one)) for one in some.records()] for some in (ds, again))
            assert written == stored


@pytest.mark.parametrize("case", of_kind("example"), ids=lambda case: case["file"])
def test_rows_written_again_hold_the_same_values(
    case: dict[str, Any], table: dict[str, Any], ds: tfr.Dataset, tmp_path: Path
) -> None:
    path = tmp_path / "again.tfrecord"
    with tfr.Writer(path, compression=case["compression"], schema=ds.schema) as writer:
        for row in ds:
            writer.write(row)
    with tfr.open(path) as again:
        records = [spell_features(reference.parse_example(record)) for record in again.records()]
    assert records == table["rows"]
