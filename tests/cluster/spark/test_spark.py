"""TFRecords in the real Spark, on Java, read and written without TensorFlow: `make spark`."""

from __future__ import annotations

import os
import sys

import pytest
from cluster_rows import build_rows, make_row, read_rows

import tfrkit as tfr

pytest.importorskip("pyspark", reason="needs make spark")


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")

    import tfrkit.spark

    session.dataSource.register(tfrkit.spark.TFRecords)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_rows(tmp_path_factory.mktemp("spark") / "rows", shards=3)


def load(spark, folder, **options):
    return spark.read.format("tfrecords").options(**options).load(str(folder))


def test_columns_and_rows_are_those_of_the_files(spark, folder):
    frame = load(spark, folder)
    assert dict(frame.dtypes) == {
        "image": "binary",
        "name": "string",
        "rare": "bigint",
        "var": "array<bigint>",
        "vec": "array<bigint>",
        "x": "bigint",
        "y": "float",
    }
    assert frame.count() == 500
    (total,) = frame.selectExpr("sum(x)").first()
    assert total == sum(range(500))
    row = frame.filter("x = 98").first()
    assert (row.rare, row["var"], row.vec, bytes(row.image), row.y) == (None, [0, 1], [1, 2, 98], b"\xff\xd8\0\0", 98.0)
    assert "tensorflow" not in sys.modules


def test_frame_is_whole_after_a_filtered_read(spark, folder):
    frame = load(spark, folder)
    assert frame.filter("x < 10").count() == 10
    assert frame.count() == 500


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x < 10 and name = 'n1'", lambda row: row["x"] < 10 and row["name"] == "n1"),
        ("name in ('n1', 'n2') and not x = 1", lambda row: row["name"] in ("n1", "n2") and row["x"] != 1),
        ("rare <> 99 or name like 'n3%'", lambda row: row.get("rare", 99) != 99 or row["name"] == "n3"),
        ("rare is not null and y > 200", lambda row: "rare" in row and row["y"] > 200),
    ],
)
def test_pushed_filters_give_the_rows_of_spark(spark, folder, condition, expected):
    found = load(spark, folder, push_filters="true").filter(condition).select("x").collect()
    assert sorted(row.x for row in found) == [row["x"] for row in map(make_row, range(500)) if expected(row)]


def test_masks_are_made_for_integers_and_texts_only(spark):
    import pyarrow
    from pyspark.sql.datasource import EqualTo, GreaterThan, In, Not

    from tfrkit.spark import _make_mask

    schema = pyarrow.schema({"i": pyarrow.int64(), "s": pyarrow.string(), "f": pyarrow.float32()})
    batch = pyarrow.record_batch({"i": [1, None, 3], "s": ["a", "b", None], "f": [1.0, 2.0, 3.0]}, schema=schema)
    assert _make_mask(GreaterThan(("f",), 1.0), schema) is None
    assert _make_mask(EqualTo(("s", "t"), "a"), schema) is None
    assert _make_mask(EqualTo(("i",), "a"), schema) is None
    assert _make_mask(Not(EqualTo(("i",), 1)), schema)(batch).to_pylist() == [False, None, True]
    assert _make_mask(In(("s",), ("a", "c")), schema)(batch).to_pylist() == [True, False, None]


def test_written_files_hold_the_rows_and_are_replaced_by_overwrite(spark, folder, tmp_path):
    frame = load(spark, folder)
    frame.write.format("tfrecords").mode("append").save(str(tmp_path / "out"))
    assert tfr.tools.verify(tmp_path / "out").ok
    assert read_rows(tmp_path / "out") == read_rows(folder)
    with pytest.raises(Exception, match="the output exists already"):
        frame.write.format("tfrecords").mode("append").save(str(tmp_path / "out"))
    write = frame.limit(7).coalesce(1).write.format("tfrecords").option("compression", "gzip")
    write.mode("overwrite").save(str(tmp_path / "out"))
    assert len(tfr.open(tmp_path / "out")) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_aborted_write_leaves_nothing(spark, folder, tmp_path):
    frame = load(spark, folder).selectExpr("if(x = 333, raise_error('row 333 is bad'), x) as x")
    with pytest.raises(Exception, match="row 333 is bad"):
        frame.write.format("tfrecords").mode("append").save(str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_unknown_option_is_refused(spark, folder):
    with pytest.raises(Exception, match="option expected one of path, verify"):
        load(spark, folder, colour="red").count()
