"""TFRecords in the real Ray Data, read and written without TensorFlow."""

from __future__ import annotations

import sys

import pytest
from cluster_rows import build_rows, read_rows

import tfrkit as tfr
from tfrkit.errors import StorageError
from tfrkit.testing.corruption import flip

# Ray Data warns about itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def data(ray_nodes):
    return pytest.importorskip("ray.data", reason="needs ray[data]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_rows(tmp_path_factory.mktemp("ray") / "rows", shards=4)


def test_rows_are_those_of_the_files(data, folder):
    from tfrkit.ray import TFRecords

    found = data.read_datasource(TFRecords(folder))
    assert found.count() == 500
    assert sorted(found.schema().names) == ["image", "name", "rare", "var", "vec", "x", "y"]
    rows = {row["x"]: row for row in found.take_all()}
    assert rows[99]["rare"] == 99
    assert rows[98]["rare"] is None
    assert list(rows[98]["var"]) == [0, 1]
    assert bytes(rows[98]["image"]) == b"\xff\xd8\0\0"
    assert "tensorflow" not in sys.modules


def test_only_the_chosen_features_are_read(data, folder):
    from tfrkit.ray import TFRecords

    found = data.read_datasource(TFRecords(folder, features=["x", "name"]))
    assert sorted(found.schema().names) == ["name", "x"]
    assert found.sum("x") == sum(range(500))


def test_damage_is_an_error_of_the_dataset(data, folder, tmp_path):
    from tfrkit.ray import TFRecords

    path = tmp_path / "bad.tfrecord"
    source = min(folder.glob("*.tfrecord-*")).read_bytes()
    path.write_bytes(flip(source, len(source) // 2))
    with pytest.raises(Exception, match="checksum mismatch"):
        data.read_datasource(TFRecords(path)).take_all()
    kept = data.read_datasource(TFRecords(path, on_error="skip")).count()
    assert 0 < kept < 500


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_written_files_hold_the_rows(data, folder, tmp_path, compression):
    from tfrkit.ray import TFRecords, TFRecordsSink

    found = data.read_datasource(TFRecords(folder))
    found.write_datasink(TFRecordsSink(tmp_path / "out", compression=compression))
    assert tfr.tools.verify(tmp_path / "out", sha256=False).ok
    assert read_rows(tmp_path / "out") == read_rows(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_failed_write_leaves_nothing(data, folder, tmp_path):
    from tfrkit.ray import TFRecords, TFRecordsSink

    def fail(row):
        if row["x"] == 333:
            raise RuntimeError("row 333 is bad")
        return row

    with pytest.raises(Exception, match="row 333 is bad"):
        data.read_datasource(TFRecords(folder)).map(fail).write_datasink(TFRecordsSink(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_existing_output_is_refused_and_replaced_by_force(data, folder, tmp_path):
    from tfrkit.ray import TFRecords, TFRecordsSink

    tfr.build([{"x": 1}], tmp_path / "out", jobs=1)
    with pytest.raises(StorageError, match="the output exists already"):
        TFRecordsSink(tmp_path / "out")
    data.read_datasource(TFRecords(folder)).write_datasink(TFRecordsSink(tmp_path / "out", force=True))
    assert read_rows(tmp_path / "out") == read_rows(folder)
