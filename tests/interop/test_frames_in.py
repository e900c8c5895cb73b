"""DataFrames and Series of pandas and polars into `build` and `Writer.write_columns`."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import tfrkit as tfr
from tfrkit.errors import SourceError

FRAME = pandas.DataFrame(
    {
        "id": [1, 2, 3],
        "name": ["a", None, "größe"],
        "text": pandas.Series(["x", float("nan"), "z"], dtype=object),
        "score": [0.5, np.nan, 2.0],
        "flag": [True, False, True],
        "tokens": [[1, 2], [], [3]],
        "gap": pandas.array([1, None, 3], "Int64"),
        "kind": pandas.Categorical(["cat", "dog", "cat"]),
    }
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": b"a", "text": b"x", "score": 0.5, "flag": 1, "tokens": [1, 2], "gap": 1, "kind": b"cat"},
    {"id": 2, "flag": 0, "tokens": [], "kind": b"dog"},
    {"id": 3, "name": "größe".encode(), "text": b"z", "score": 2.0, "flag": 1, "tokens": [3], "gap": 3, "kind": b"cat"},
]
FRAMES = {
    "pandas": lambda: FRAME,
    "polars": lambda: polars.from_pandas(FRAME),
    "pandas series": lambda: {name: FRAME[name] for name in FRAME},
    "polars series": lambda: {series.name: series for series in polars.from_pandas(FRAME)},
    "series beside a list": lambda: {**{name: FRAME[name] for name in FRAME}, "id": [1, 2, 3]},
}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [{**row, "tokens": row["tokens"].tolist()} for row in tfr.open(path)]


@pytest.mark.parametrize("kind", FRAMES)
def test_frame_is_built_and_written_alike(tmp_path: Path, kind: str) -> None:
    tfr.build(FRAMES[kind](), tmp_path / "built.tfrecord")
    with tfr.Writer(tmp_path / "written.tfrecord") as writer:
        writer.write_columns(FRAMES[kind]())
    assert rows_of(tmp_path / "built.tfrecord") == ROWS == rows_of(tmp_path / "written.tfrecord")


def test_frame_comes_back_from_what_was_built(tmp_path: Path) -> None:
    frame = FRAME[["id", "name", "flag"]].dropna()
    tfr.build(frame, tmp_path / "x.tfrecord")
    back = tfr.open(tmp_path / "x.tfrecord").to_pandas()
    assert back["name"].tolist() == ["a", "größe"] and back["id"].tolist() == [1, 3]


@pytest.mark.parametrize("values", [[1, 2, 3], [5, 1, 9], ["x", "y", "z"]])
def test_index_is_a_column_where_it_has_a_name_else_left_out(tmp_path: Path, values: list[Any]) -> None:
    frame = FRAME[["id"]].set_index(pandas.Index(values))
    tfr.build(frame, tmp_path / "nameless.tfrecord")
    assert tfr.open(tmp_path / "nameless.tfrecord").columns == ["id"]
    tfr.build(frame.rename_axis("key"), tmp_path / "named.tfrecord")
    stored = [value.encode() if isinstance(value, str) else value for value in values]
    assert [row["key"] for row in tfr.open(tmp_path / "named.tfrecord")] == stored


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pandas.DataFrame({"x": [1, "a"]}), "cannot become columns of Arrow, .*column x"),
        (
            pandas.DataFrame([[1, 2]], columns=["a", "a"]),
            "cannot become columns of Arrow, duplicate column names .*'a'",
        ),
        (pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01"])}), "column 'when'.* is of type timestamp"),
        (polars.DataFrame({"when": [datetime.date(2020, 1, 1)]}), "column 'when'.* is of type "),
        (
            polars.DataFrame({"o": polars.Series([object(), object()], dtype=polars.Object)}),
            "column 'o' holds Python objects, which records cannot store",
        ),
        (
            {"id": [1], "o": polars.Series([object()], dtype=polars.Object)},
            "column 'o' holds Python objects, which records cannot store",
        ),
        (pandas.DataFrame({"x": [1, 2**70]}, dtype=object), rf"column 'x' .*64-bit integers, got {2**70} .*row 1"),
        ({"x": pandas.Series([[2**63]])}, rf"column 'x' .*64-bit integers, got {2**63} .*row 0"),
        (pandas.DataFrame({"x": pandas.arrays.SparseArray([0, 1])}), r"column 'x' is sparse.*to_dense\(\)"),
        ({"x": pandas.Series(pandas.arrays.SparseArray([0, 1]))}, r"column 'x' is sparse.*to_dense\(\)"),
        (pandas.DataFrame(index=range(3)), "no column holds any value"),
        (pandas.DataFrame({"x": [None, None]}), "no column holds any value"),
        (polars.DataFrame({"x": [None, None]}), "no column holds any value"),
        (pandas.DataFrame({"x": [[0.5, None]]}), "column 'x'.* got a null inside"),
        (FRAME["id"], r"expected a table, got one column \(Series\)"),
    ],
)
def test_column_that_does_not_fit_is_named(tmp_path: Path, frame: Any, message: str) -> None:
    with pytest.raises(SourceError, match=f"(?s){message}"):
        tfr.build(frame, tmp_path / "x.tfrecord")
    with tfr.Writer(tmp_path / "y.tfrecord") as writer:
        with pytest.raises(SourceError, match=f"(?s){message}"):
            writer.write_columns(frame)
        writer.discard()


def test_rows_of_a_frame_name_nan(tmp_path: Path) -> None:
    with pytest.raises(
        tfr.errors.FeatureKindError, match=r"'text' expected bytes .*, got NaN - at row 1\n .*pass None"
    ):
        tfr.build(FRAME[["text"]].to_dict("records"), tmp_path / "x.tfrecord")
    with pytest.raises(TypeError, match=r"'gap' .*got NAType - at row 1\n .*pass None"):
        tfr.build([{"gap": value} for value in FRAME["gap"]], tmp_path / "x.tfrecord")


def test_frame_that_is_not_computed_yet_says_so(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"got LazyFrame\n  .*collect\(\)"):
        tfr.build(polars.from_pandas(FRAME).lazy(), tmp_path / "x.tfrecord")
    with tfr.Writer(tmp_path / "y.tfrecord") as writer, pytest.raises(TypeError, match=r"LazyFrame\n  .*collect\(\)"):
        writer.write_columns(polars.from_pandas(FRAME).lazy())


@pytest.mark.parametrize("as_series", [False, True])
def test_nan_in_a_list_is_stored(tmp_path: Path, as_series: bool) -> None:
    lists = [[0.5, float("nan")], None, np.array([np.nan, 2.0]), float("nan"), []]
    frame = pandas.DataFrame({"id": range(5), "x": lists}, index=[0.5, 1.5, 2.5, 3.5, 4.5])
    data = {"id": frame["id"], "x": frame["x"]} if as_series else frame
    tfr.build(data, tmp_path / "built.tfrecord")
    with tfr.Writer(tmp_path / "written.tfrecord") as writer:
        writer.write_columns(data)
    for name in ("built", "written"):
        rows = [row.get("x") for row in tfr.open(tmp_path / f"{name}.tfrecord")]
        assert rows[1] is None and rows[3] is None
        np.testing.assert_array_equal(rows[0], [0.5, np.nan])
        np.testing.assert_array_equal(rows[2], [np.nan, 2.0])
        assert len(rows[4]) == 0


def test_nan_of_pandas_is_absent_and_of_polars_a_value(tmp_path: Path) -> None:
    values = {"id": [1, 2], "x": [0.5, float("nan")]}
    tfr.build(pandas.DataFrame(values), tmp_path / "pandas.tfrecord")
    tfr.build(polars.DataFrame(values), tmp_path / "polars.tfrecord")
    assert "x" not in tfr.open(tmp_path / "pandas.tfrecord")[1]
    assert np.isnan(tfr.open(tmp_path / "polars.tfrecord")[1]["x"])


@pytest.mark.resources
def test_million_rows_take_seconds(tmp_path: Path) -> None:
    number = np.arange(1_000_000)
    frame = pandas.DataFrame({"id": number, "gap": np.where(number % 3, number / 2, np.nan), "name": "n"})
    start = time.process_time()
    with tfr.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write_columns(frame)
    assert time.process_time() - start < 20  # row by row it would be more; about one is measured
    assert len(tfr.open(tmp_path / "x.tfrecord")) == 1_000_000
