"""Tables as Parquet and Arrow files, and in memory."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import rows_of, save

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.sources.table import Table

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet
except ImportError:
    pyarrow = None

needs_arrow = pytest.mark.skipif(pyarrow is None, reason="pyarrow is not installed")


# --- Parquet, Arrow, memory


@needs_arrow
@pytest.mark.parametrize("form", ["parquet", "arrow", "memory"])
def test_table_arrow_types_become_features(tmp_path: Path, form: str) -> None:
    table = pyarrow.table(
        {
            "i": pyarrow.array([1, None, 3], pyarrow.int8()),
            "b": pyarrow.array([True, False, True]),
            "f": pyarrow.array([0.5, 1.5, None], pyarrow.float32()),
            "s": ["x", "", None],
            "y": pyarrow.array([b"\xff", b"", b"z"], pyarrow.large_binary()),
            "d": pyarrow.array(["u", "v", "u"]).dictionary_encode(),
            "l": pyarrow.array([[1, 2], [], None], pyarrow.list_(pyarrow.int64())),
            "t": pyarrow.array([["p"], ["q", "r"], []]),
            "st": pyarrow.array([{"k": 1, "m": "a"}, None, {"k": 3, "m": None}]),
            "n": pyarrow.nulls(3),
        }
    )
    source: Any = table
    if form == "parquet":
        source = str(tmp_path / "t.parquet")
        pyarrow.parquet.write_table(table, source, row_group_size=2)
    elif form == "arrow":
        source = str(tmp_path / "t.feather")
        pyarrow.feather.write_feather(table, source, chunksize=2)
    scratch = tmp_path / "s"
    scratch.mkdir()
    scan = Table(source).scan(str(scratch))
    assert scan.problems == []
    assert scan.notes == ["columns without any value, left out: 'n'"]
    assert rows_of(scan) == [
        {
            "i": [1], "b": 1, "f": [0.5], "s": b"x", "y": b"\xff", "d": b"u", "l": [1, 2], "t": [b"p"],
            "st/k": [1], "st/m": b"a",
        },
        {"b": 0, "f": [1.5], "s": b"", "y": b"", "d": b"v", "l": [], "t": [b"q", b"r"]},
        {"i": [3], "b": 1, "y": b"z", "d": b"u", "t": [], "st/k": [3]},
    ]  # fmt: skip
    assert rows_of(scan, [2, 0])[1]["t"] == [b"p"]


@needs_arrow
def test_table_unsupported_arrow_types_are_named_until_excluded(tmp_path: Path) -> None:
    import datetime
    import decimal

    table = pyarrow.table(
        {
            "when": [datetime.datetime(2024, 1, 2, 3, 4, 5)],
            "price": [decimal.Decimal("1.50")],
            "day": pyarrow.array([datetime.date(1970, 1, 3)]),
            "deep": [[[1]]],
        }
    )
    scan = Table(table).scan(str(tmp_path))
    assert [problem.key for problem in scan.problems] == [
        f"a table in memory, column {name!r}" for name in ("when", "price", "day", "deep")
    ]
    assert scan.problems[0].reason.startswith(
        "is of type timestamp[us], which records cannot store; tfrkit.sources.table("
    )
    wanted = {"when": "text", "price": "float", "day": "int64"}
    scan = Table(table.drop_columns(["deep"]), types=wanted).scan(str(tmp_path))
    assert rows_of(scan) == [{"when": b"2024-01-02 03:04:05.000000", "price": 1.5, "day": 2}]


@needs_arrow
@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (lambda: pyarrow.array([1, 2**63], pyarrow.uint64()), "signed 64-bit integers, got 9223372036854775808"),
        (lambda: pyarrow.array([[1], [2, None]]), "list expected values, got a null inside"),
    ],
)
def test_table_arrow_value_that_does_not_fit_is_named_with_its_row(tmp_path: Path, column: Any, reason: str) -> None:
    [problem] = Table(pyarrow.table({"a": column()})).scan(str(tmp_path)).problems
    assert problem.key == "a table in memory, row 1, column 'a'"
    assert reason in problem.reason


@needs_arrow
@pytest.mark.parametrize("name", ["s", "s.x"], ids=["by column", "with a point in a name"])
def test_table_parquet_columns_read_separately_form_rows(tmp_path: Path, name: str) -> None:
    num_rows = 1000
    columns: dict[str, Any] = {f"c{index}": [index * row for row in range(num_rows)] for index in range(20)}
    columns[name] = [{"x": row, "t": f"t{row}" if row % 3 else None} for row in range(num_rows)]
    columns["nothing"] = [None] * num_rows
    columns["flag"] = [row % 2 == 0 if row % 5 else None for row in range(num_rows)]
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=300)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    scan = Table(path).scan(str(scratch))
    assert scan.notes == ["columns without any value, left out: 'nothing'"]
    rows = rows_of(scan)
    assert len(rows) == num_rows
    for row in (0, 299, 300, 299 + 1, num_rows - 1):
        expected = {f"c{index}": index * row for index in range(20)} | {f"{name}/x": row}
        expected |= {f"{name}/t": f"t{row}".encode()} if row % 3 else {}
        expected |= {"flag": [int(row % 2 == 0)]} if row % 5 else {}
        assert rows[row] == expected


@needs_arrow
def test_table_parquet_values_that_do_not_fit_are_named_for_each_column(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    numbers = [0] * 900 + [1 << 63, 5]
    large = pyarrow.array(numbers, pyarrow.uint64())
    lists = pyarrow.array([[1]] * 10 + [[1, None]] + [[2]] * 891)
    pyarrow.parquet.write_table(pyarrow.table({"a": large, "b": lists, "c": numbers[::-1][:1] * 902}), path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    problems = Table(path).scan(str(scratch)).problems
    assert [problem.key for problem in problems] == [f"{path}, row 900, column 'a'", f"{path}, row 10, column 'b'"]


@needs_arrow
@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (pyarrow and pyarrow.array([[[1]]]), "convert it to numbers, text, or lists of these, or leave it out"),
        (
            pyarrow and pyarrow.array([Decimal("1.5")]),
            "tfrkit.sources.table(data, types={'a': 'float'}) or types={'a': 'text'} makes it one",
        ),
        (
            pyarrow and pyarrow.array([1], pyarrow.date32()),
            "tfrkit.sources.table(data, types={'a': 'text'}) or types={'a': 'int64'} makes it one",
        ),
    ],
    ids=["lists of lists", "decimals", "dates"],
)
def test_table_arrow_type_no_record_holds_comes_with_what_helps(tmp_path: Path, column: Any, advice: str) -> None:
    [problem] = Table(pyarrow.table({"a": column})).scan(str(tmp_path)).problems
    assert problem.reason.endswith(f", which records cannot store; {advice}")


@needs_arrow
def test_table_parquet_value_that_cannot_become_what_is_wanted_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = [str(row) for row in range(100_000)]
    texts[77_777] = "x"
    pyarrow.parquet.write_table(pyarrow.table({"a": texts, "b": [[[1]]] * len(texts)}), path)
    with pytest.raises(SourceError, match="2 problems found, nothing was written") as caught:
        tfr.build(Table(path, types={"a": "int64", "b": "text"}), tmp_path / "out", jobs=1)
    assert "row 77777, column 'a': cannot become int64, failed to parse string: 'x'" in str(caught.value)
    assert "row 0, column 'b': cannot become text, unsupported cast from list" in str(caught.value)


@needs_arrow
def test_table_parquet_page_that_does_not_fit_its_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pyarrow.table({"a": range(10_000)})
    pyarrow.parquet.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[20_000] ^= 1
    path.write_bytes(data)
    with pytest.raises(SourceError, match="not a valid Parquet or Arrow file"):
        Table(path).scan(str(tmp_path))


@needs_arrow
def test_table_damaged_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a valid Parquet or Arrow file"):
        Table(save(tmp_path / "t.parquet", b"PAR1 nonsense")).scan(str(tmp_path))


def test_table_parquet_without_pyarrow_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pyarrow is not installed\n  install it: pip install 'tfrkit\[arrow\]'"):
        Table(save(tmp_path / "t.parquet", b"PAR1")).scan(str(tmp_path))


def test_table_dict_of_columns(tmp_path: Path) -> None:
    data = {"a": np.arange(3, dtype=np.int32), "x": np.array([0.5, 1, 2]), "s": ["p", None, "r"], "k": [1, None, 3]}
    scan = Table(data).scan(str(tmp_path))
    assert rows_of(scan) == [
        {"a": 0, "x": 0.5, "s": b"p", "k": [1]},
        {"a": 1, "x": 1.0},
        {"a": 2, "x": 2.0, "s": b"r", "k": [3]},
    ]
    with pytest.raises(SourceError, match="columns expected one length, got a 1, b 2"):
        Table({"a": [1], "b": [1, 2]}).scan(str(tmp_path))
    with pytest.raises(SourceError, match="column 'a' expected values of the same type, got int64 and text"):
        Table({"a": [1, "x"]}).scan(str(tmp_path))
    with pytest.raises(TypeError, match="table expected a file, .* got int"):
        Table(5).scan(str(tmp_path))


def test_table_fingerprint_of_memory_follows_its_values(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    scans = [
        Table({"a": values}).scan(str(folder)) for values, folder in zip(([1, 2], [1, 2], [1, 3]), folders, strict=True)
    ]
    assert scans[0].fingerprint == scans[1].fingerprint != scans[2].fingerprint
