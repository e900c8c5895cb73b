from __future__ import annotations

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.sources.iterable import Rows


def test_rows_are_spooled_and_read_back_by_number(tmp_path):
    found = Rows({"x": i} for i in range(5)).scan(str(tmp_path))
    assert found.items.size == 5
    records = found.reader.read_records(np.array([4, 0]))
    with tfr.Writer(tmp_path / "check.tfrecord") as writer:
        for record in records:
            writer.write_record(record)
    assert [row["x"] for row in tfr.open(tmp_path / "check.tfrecord")] == [4, 0]


def test_equal_rows_have_equal_fingerprints(tmp_path):
    first = Rows([{"x": 1}]).scan(str(tmp_path)).fingerprint
    assert Rows(lambda: [{"x": 1}]).scan(str(tmp_path)).fingerprint == first
    assert Rows([{"x": 2}]).scan(str(tmp_path)).fingerprint != first


def test_schema_checks_rows(tmp_path):
    with pytest.raises(tfr.TfrkitError, match="no feature 'y'"):
        Rows([{"y": 1}], schema={"x": "int64"}).scan(str(tmp_path))


def test_records_of_bytes_are_taken_as_they_are(tmp_path):
    found = Rows([b"one", b""]).scan(str(tmp_path))
    assert found.reader.read_records(np.array([0, 1])) == [b"one", b""]


@pytest.mark.parametrize("value", ["folder", b"x", 5], ids=["str", "bytes", "int"])
def test_what_is_no_iterable_of_rows_raises(value):
    with pytest.raises(TypeError, match="source expected"):
        Rows(value)
