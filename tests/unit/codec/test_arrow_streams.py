"""Tables of other libraries, by Arrow's stream, into `build` and `Writer.write_columns`."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.codec.arrow_streams import is_table
from tfrkit.errors import FeatureKindError, MissingFeatureError, ShapeError, SourceError

pa = pytest.importorskip("pyarrow")


class Frame:
    """A DataFrame of another library: it exports an Arrow stream, and iterating it yields something else."""

    def __init__(self, table: Any, *, batch_rows: int = 2) -> None:
        self._table, self._batch_rows = table, batch_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        batches = self._table.to_batches(max_chunksize=self._batch_rows)
        return pa.RecordBatchReader.from_batches(self._table.schema, batches).__arrow_c_stream__()

    def __iter__(self) -> Any:
        return iter(self._table.column_names)


def make_table() -> Any:
    return pa.table(
        {
            "id": pa.array([1, 2, 3, 4, 5], pa.int32()),
            "gap": [1, None, 3, None, 5],
            "name": ["a", None, "größe", "", "e"],
            "blob": [b"\xff", b"", None, b"x", b"y"],
            "score": pa.array([0.5, None, 1.5, 2.0, float("nan")], pa.float64()),
            "flag": [True, False, None, True, False],
            "tokens": [[1, 2], [], None, [3], [4]],
            "words": [["a"], ["b", "c"], [], None, ["d"]],
            "kind": pa.array(["x", "y", "x", "y", "x"]).dictionary_encode(),
            "inner": [{"a": 1}, {"a": 2}, None, {"a": None}, {"a": 5}],
            "nothing": pa.nulls(5),
        }
    )


ROWS: list[dict[str, Any]] = [
    {"id": 1, "gap": 1, "name": b"a", "blob": b"\xff", "score": 0.5, "flag": 1, "tokens": [1, 2], "words": [b"a"]},
    {"id": 2, "name": None, "blob": b"", "flag": 0, "tokens": [], "words": [b"b", b"c"]},
    {"id": 3, "gap": 3, "name": "größe".encode(), "score": 1.5, "words": []},
    {"id": 4, "name": b"", "blob": b"x", "score": 2.0, "flag": 1, "tokens": [3]},
    {"id": 5, "gap": 5, "name": b"e", "blob": b"y", "score": float("nan"), "flag": 0, "tokens": [4], "words": [b"d"]},
]


def read(path: Path) -> list[dict[str, Any]]:
    lists = ("tokens", "words")
    return [
        {
            name: list(np.atleast_1d(value)) if name in lists else value
            for name, value in row.items()
            if value is not None
        }
        for row in tfrkit.open(path)
    ]


@pytest.fixture(params=["table", "frame", "columns", "batches"])
def data(request: pytest.FixtureRequest) -> Any:
    table = make_table()
    if request.param == "columns":
        return {name: table[name] for name in table.column_names if name != "inner"}
    made = {"table": table, "frame": Frame(table), "batches": table.to_reader()}
    return made[request.param]


def check(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == len(ROWS)
    for row, expected in zip(rows, ROWS, strict=True):
        wanted = {name: value for name, value in expected.items() if value is not None}
        np.testing.assert_equal({name: row[name] for name in row if name in expected}, wanted)


def test_table_is_built_with_gaps_that_stay_gaps(tmp_path: Path, data: Any) -> None:
    report = tfrkit.build(data, tmp_path / "x.tfrecord")
    rows = read(tmp_path / "x.tfrecord")
    check(rows)
    assert [row["kind"] for row in rows] == [b"x", b"y", b"x", b"y", b"x"]
    assert "columns without any value, left out: 'nothing'" in report.notes


def test_table_is_written_as_columns(tmp_path: Path, data: Any) -> None:
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write_columns(data)
        assert writer.num_records == 5
    check(read(tmp_path / "x.tfrecord"))


@pytest.mark.parametrize("floats", ["float32", "float64"])
def test_writer_and_build_write_the_same_records(tmp_path: Path, floats: Any) -> None:
    table = make_table().append_column("fine", pa.array([0.1, None, 0.3, 1e300 if floats == "float64" else 1, 0.5]))
    table = table.append_column("fines", pa.array([[0.1], [], None, [0.3, 0.4], [1.0]]))
    tfrkit.build(table, tmp_path / "a.tfrecord", floats=floats)
    with tfrkit.Writer(tmp_path / "b.tfrecord", floats=floats) as writer:
        writer.write_columns(Frame(table))
    built, written = (list(tfrkit.open(tmp_path / f"{name}.tfrecord").records()) for name in "ab")
    assert built == written


def test_floats_that_would_round_hint_uses_python_options(tmp_path: Path) -> None:
    table = pa.table({"x": [0.5, 0.1, None]})
    with pytest.raises(SourceError, match=r'row 1, column \'x\': float32 would round 0.1 .*\n.*floats="float32"'):
        tfrkit.build(table, tmp_path / "x.tfrecord")
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        with pytest.raises(ValueError, match=r'feature \'x\' would round 0.1 .*\n.*floats="float32"'):
            writer.write_columns(table)
        assert writer.num_records == 0


def test_schema_checks_rows_of_a_table(tmp_path: Path) -> None:
    table = pa.table({"x": [1, 2], "label": [0, 1]})
    schema = {"x": "float", "label": tfrkit.Spec("int64", logical="class_label", classes=("cat", "dog"))}
    with pytest.raises(MissingFeatureError, match="no feature 'label' in the schema - at row 0"):
        tfrkit.build(table, tmp_path / "x.tfrecord", schema={"x": "float"})
    tfrkit.build(table, tmp_path / "x.tfrecord", schema=schema)
    assert tfrkit.open(tmp_path / "x.tfrecord")[1] == {"x": 2.0, "label": 1}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            lambda: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
            "different names, got twice 'a' - at a tab",
        ),
        (lambda: pa.table({"a": [[[1]]]}), "'a'.* is of type list.*, which records cannot store"),
        (lambda: pa.table({"a": [datetime.date(2020, 1, 1)]}), "'a'.* is of type date32.*, which records cannot store"),
        (
            lambda: pa.table({"a": [decimal.Decimal("1.5")]}),
            "'a'.* is of type decimal128.*, which records cannot store",
        ),
        (
            lambda: pa.table({"a": pa.array([1, 2**63], pa.uint64())}),
            "'a'.*expected signed 64-bit integers, got",
        ),
        (lambda: pa.table({"a": [[1], [2, None]]}), "'a'.*list expected values, got a null inside"),
        (lambda: pa.chunked_array([[1, 2]]), r'expected a table, got one column \(ChunkedArray\) .*\n.*{"x": column}'),
        (lambda: {"a": pa.chunked_array([[1, 2]]), "b": [1]}, "columns expected one length, got a 2, b 1"),
        (lambda: {"a": pa.chunked_array([[1, 2]]), "b": [1, "x"]}, "column 'b' cannot become one of Arrow, "),
    ],
)
def test_column_that_no_record_holds_is_named(tmp_path: Path, table: Any, message: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){message}"):
        tfrkit.build(table(), tmp_path / "x.tfrecord")
    with tfrkit.Writer(tmp_path / "y.tfrecord") as writer:
        with pytest.raises(SourceError, match=f"(?s){message}"):
            writer.write_columns(table())
        assert writer.num_records == 0


def test_dates_and_decimals_are_made_numbers_or_text_by_types(tmp_path: Path) -> None:
    table = pa.table({"day": [datetime.date(2020, 1, 2)], "price": [decimal.Decimal("1.50")]})
    with pytest.raises(
        SourceError, match=r"(?s)sources.table\(data, types={'day': 'text'}\).*types={'price': 'float'}"
    ):
        tfrkit.build(table, tmp_path / "x.tfrecord")
    source = tfrkit.sources.table(table, types={"day": "text", "price": "float"})
    tfrkit.build(source, tmp_path / "x.tfrecord")
    assert list(tfrkit.open(tmp_path / "x.tfrecord")) == [{"day": b"2020-01-02", "price": 1.5}]


def with_index(*index: Any) -> Any:
    table = pa.table({"x": [1, 2, 3], "__index_level_0__": [7, 8, 9], "__index_level_1__": [7, 8, 9]})
    return table.replace_schema_metadata({"pandas": json.dumps({"index_columns": list(index)})})


def test_index_without_a_name_is_left_out(tmp_path: Path) -> None:
    report = tfrkit.build(with_index("__index_level_0__", "__index_level_1__"), tmp_path / "x.tfrecord")
    assert tfrkit.open(tmp_path / "x.tfrecord").columns == ["x"]
    assert "the table's index has no name and was left out" in report.notes
    nameless = {"kind": "range", "name": None, "start": 0, "stop": 3, "step": 1}
    tfrkit.build(with_index(nameless), tmp_path / "y.tfrecord")
    assert tfrkit.open(tmp_path / "y.tfrecord").columns == ["x"]


def test_index_with_a_name_is_a_column_also_where_pandas_keeps_it_as_a_range(tmp_path: Path) -> None:
    ranged = with_index({"kind": "range", "name": "id", "start": 5, "stop": 11, "step": 2})
    tfrkit.build(Frame(ranged, batch_rows=2), tmp_path / "x.tfrecord")
    assert list(tfrkit.open(tmp_path / "x.tfrecord")) == [{"x": 1, "id": 5}, {"x": 2, "id": 7}, {"x": 3, "id": 9}]


def test_dataset_is_rows_and_no_table(tmp_path: Path) -> None:
    """Through Arrow, tensors and the kinds of features would be lost."""
    tfrkit.build([{"x": np.zeros((2, 2), np.uint8), "y": 1.5}], tmp_path / "a.tfrecord")
    ds = tfrkit.open(tmp_path / "a.tfrecord")
    assert not is_table(ds) and is_table(ds.to_arrow())
    tfrkit.build(ds, tmp_path / "b.tfrecord")
    assert list(tfrkit.open(tmp_path / "b.tfrecord").records()) == list(ds.records())


def test_dictionary_of_string_views_is_decoded(tmp_path: Path) -> None:
    """As polars keeps its categories."""
    values = pa.array(["cat", "dog"], pa.string_view())
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), values)
    tfrkit.build(pa.table({"x": [1, 2, 3], "kind": column}), tmp_path / "x.tfrecord")
    assert [row.get("kind") for row in tfrkit.open(tmp_path / "x.tfrecord")] == [b"cat", None, b"dog"]


def test_many_rows_are_written_in_bulk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrkit.Writer, "write", lambda *_: pytest.fail("written row by row"))
    numbers = np.arange(100_000)
    gaps = pa.array(numbers / 2, mask=numbers % 3 == 0)
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write_columns(pa.table({"id": numbers, "half": gaps, "name": [f"n{n}" for n in numbers % 7]}))
    ds = tfrkit.open(tmp_path / "x.tfrecord")
    assert len(ds) == 100_000 and ds[99_999] == {"id": 99_999, "name": b"n4"} and ds[5]["half"] == 2.5


def test_columns_that_fail_in_a_later_batch_leave_no_rows(tmp_path: Path) -> None:
    table = pa.table({"x": [[1], [2], [3, None]]})
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        with pytest.raises(SourceError, match="a null inside - at a table in memory, row 0 of its batch"):
            writer.write_columns(Frame(table, batch_rows=1))
        assert writer.num_records == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"s": "a"}, {"s": float("nan")}], r"expected bytes as in rows before, got NaN - at row 1\n  .*pass None"),
        (
            [{"s": float("nan")}, {"s": "a"}],
            r"expected float as in rows before, got bytes - at row 1\n  NaN is a float;",
        ),
        ([{"s": decimal.Decimal(1)}], r"got Decimal - at row 0\n  .*str\(value\)"),
        ([{"s": datetime.datetime(2020, 1, 1)}], r"got datetime - at row 0\n  .*isoformat"),
    ],
)
def test_rows_of_a_table_name_what_does_not_fit(tmp_path: Path, rows: Any, message: str) -> None:
    with pytest.raises((FeatureKindError, TypeError), match=f"feature 's' .*{message}"):
        tfrkit.build(rows, tmp_path / "x.tfrecord")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"s": ["a", float("nan")]}, r"got NaN and text - at a table in memory, row 1\n  where NaN means no value"),
        ({"s": 1}, r"column 's' expected values of many rows, got int .*\n  rows go into a list"),
        ({"s": "abc"}, "column 's' expected values of many rows, got str"),
        ({"s": [np.zeros((2, 2))]}, r"expected one value per row, got an array of \(1, 2, 2\) .*\n  .*sources.arrays"),
    ],
)
def test_dict_of_columns_names_what_does_not_fit(tmp_path: Path, columns: Any, message: str) -> None:
    with pytest.raises((SourceError, ShapeError), match=message):
        tfrkit.build(columns, tmp_path / "x.tfrecord")


def test_dict_of_columns_is_a_table(tmp_path: Path) -> None:
    tfrkit.build({"x": np.arange(3), "name": ["a", None, "c"]}, tmp_path / "x.tfrecord")
    assert list(tfrkit.open(tmp_path / "x.tfrecord")) == [{"x": 0, "name": b"a"}, {"x": 1}, {"x": 2, "name": b"c"}]


def test_dict_with_an_array_of_two_dimensions_is_read_as_arrays(tmp_path: Path) -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    tfrkit.build({"x": pixels, "y": np.array([3, 4])}, tmp_path / "x.tfrecord")
    rows = list(tfrkit.open(tmp_path / "x.tfrecord"))
    assert [row["y"] for row in rows] == [3, 4]
    assert np.array_equal([row["x"] for row in rows], pixels)
