"""Tables: column types, missing cells, lines of errors; fast and slow paths agree."""

from __future__ import annotations

import json
import pickle
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.codec.columns import BytesColumn, Ragged
from tfrkit.codec.encode_columns import rows_of_columns
from tfrkit.codec.tensor_proto import decode_tensor
from tfrkit.errors import SourceError
from tfrkit.features.spec import Spec
from tfrkit.sources import table_text
from tfrkit.sources.base import Scan
from tfrkit.sources.cell_types import CELL_KINDS
from tfrkit.sources.column_spool import ColumnSpool, ColumnWriter
from tfrkit.sources.csv_file import find_separator, open_csv
from tfrkit.sources.table import Table

try:
    import pyarrow
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet
except ImportError:
    pyarrow = None

needs_arrow = pytest.mark.skipif(pyarrow is None, reason="pyarrow is not installed")


@pytest.fixture(params=["slow", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """CSV with the csv module, and by the core, which falls back to it."""
    if request.param != "native":
        monkeypatch.setattr(table_text, "spool_typed", lambda *_: None)
    return str(request.param)


def save(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def scan_text(tmp_path: Path, text: str | bytes, name: str = "t.csv", **options: Any) -> Scan:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return Table(save(tmp_path / name, text), **options).scan(str(scratch))


def rows_of(scan: Scan, numbers: list[int] | None = None) -> list[dict[str, Any]]:
    reader: Any = pickle.loads(pickle.dumps(scan.reader))  # as it comes to a worker
    if hasattr(reader, "read"):
        return [reader.read(scan.items.item(number)) for number in range(scan.items.size)]
    picked = np.arange(scan.items.size) if numbers is None else np.array(numbers, np.int64)
    rows = list(rows_of_columns(reader.read_columns(picked)))
    return [{name: plain(value) for name, value in row.items()} for row in rows]


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def kinds_of(scan: Scan) -> dict[str, str]:
    assert scan.schema is not None
    return {name: spec.kind + "?" * spec.optional for name, spec in scan.schema.features.items()}


# --- types of CSV columns


def test_table_types_are_found_over_whole_columns(tmp_path: Path, way: str) -> None:
    text = "id,zip,age,x,note,void\n1,00123,34,0.5,hello,\n2,04567,,1.25,,\n3,99999,7,-2,日本,\n"
    scan = scan_text(tmp_path, text)
    assert kinds_of(scan) == {"id": "int64", "zip": "bytes", "age": "int64?", "x": "float", "note": "bytes?"}
    assert rows_of(scan) == [
        {"id": 1, "zip": b"00123", "age": [34], "x": 0.5, "note": b"hello"},
        {"id": 2, "zip": b"04567", "x": 1.25},
        {"id": 3, "zip": b"99999", "age": [7], "x": -2.0, "note": "日本".encode()},
    ]
    assert scan.notes == ["columns without any value, left out: 'void'"]
    assert scan.order == "source"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "-7", "9223372036854775807", "-9223372036854775808"], "int64"),
        (["1", "2.5"], "float"),
        (["1", ".5", "-0.0", "1e3", "+1.5", "5.", "-0"], "float"),
        (["nan", "inf", "-Infinity", "1"], "float"),
        (["007", "012"], "text"),
        (["+49", "+1"], "text"),
        (["0x1f", "0x2f"], "text"),
        (["00.5", "01.5"], "text"),
        (["true", "false"], "text"),
        (["1_000", "2_000"], "text"),
        ([" 1", " 2"], "text"),
        (["１", "２"], "text"),
        (["a", "1984", "b"], "text"),
        (["2024-01-01", "2024-01-02"], "text"),
    ],
)
def test_table_cell_is_a_number_only_if_the_number_says_all(
    tmp_path: Path, way: str, cells: list[str], kind: str
) -> None:
    scan = scan_text(tmp_path, "x,pad\n" + "".join(f"{cell},1\n" for cell in cells), floats="float32")
    assert scan.problems == []
    assert kinds_of(scan)["x"] == ("bytes" if kind == "text" else kind)
    if kind == "text":
        assert [row["x"] for row in rows_of(scan)] == [cell.encode() for cell in cells]


def test_table_text_among_numbers_is_named_with_its_lines(tmp_path: Path, way: str) -> None:
    text = 'a,b\n1,"x\ny"\n2,z\nthree,z\n4,z\nfive,z\n6,z\n'
    scan = scan_text(tmp_path, text)
    [problem] = scan.problems
    assert problem.blocking
    assert problem.key.endswith("t.csv, column 'a'")
    assert problem.reason == "expected whole numbers, got text: 'three' at line 5; 'five' at line 7"
    assert problem.hint == "take all as text: --type a=text"
    assert kinds_of(scan_text(tmp_path, text, types={"a": "text"})) == {"a": "bytes", "b": "bytes"}


def test_table_many_offenders_are_counted(tmp_path: Path, way: str) -> None:
    cells = ["1"] * 100 + ["x"] * 40 + ["2"] * 100
    scan = scan_text(tmp_path, "a\n" + "\n".join(cells))
    assert "'x' at line 102; 'x' at line 103" in scan.problems[0].reason
    assert "and 35 more" in scan.problems[0].reason


def test_table_integer_too_large_is_named(tmp_path: Path, way: str) -> None:
    [problem] = scan_text(tmp_path, "a\n1\n9223372036854775808\n").problems
    assert problem.reason.startswith("expected signed 64-bit integers, got larger: '9223372036854775808' at line 3")


@pytest.mark.parametrize("cell", ["9007199254740993", "1e400", "123456789012345678901"])
def test_table_number_that_no_float_holds_is_named(tmp_path: Path, way: str, cell: str) -> None:
    [problem] = scan_text(tmp_path, f"a\n0.5\n{cell}\n", floats="float64").problems
    assert problem.reason.startswith(f"expected numbers that float64 holds, got others: '{cell}' at line 3")


def test_table_wanted_types_are_held_against_the_cells(tmp_path: Path, way: str) -> None:
    assert kinds_of(scan_text(tmp_path, "a\n1\n2\n", types={"a": "float"})) == {"a": "float"}
    [problem] = scan_text(tmp_path, "a\n1\n2.5\n", types={"a": "int64"}).problems
    assert problem.reason.startswith("expected whole numbers, got others: '2.5' at line 3")
    with pytest.raises(SourceError, match="no column 'aeg', did you mean 'age'"):
        scan_text(tmp_path, "age\n1\n", types={"aeg": "text"})
    with pytest.raises(ValueError, match="type of 'a' expected one of int64, float, text, got 'date'"):
        Table("t.csv", types={"a": "date"})


# --- floats


def test_table_floats_that_would_be_rounded_ask_for_a_choice(tmp_path: Path, way: str) -> None:
    text = "a,x\n1,0.5\n2,0.1\n3,0.2\n"
    [problem] = scan_text(tmp_path, text).problems
    assert problem.blocking
    assert problem.key.endswith("t.csv, line 3, column 'x'")
    assert problem.reason == "float32 would round 0.1 to 0.10000000149011612, as would 1 more"
    assert problem.hint == 'round them: floats="float32"    keep them as tensors: floats="float64"'


def test_table_floats_float32_rounds(tmp_path: Path, way: str) -> None:
    scan = scan_text(tmp_path, "x\n0.1\n\n0.5\n", floats="float32")
    assert rows_of(scan) == [{"x": np.float32(0.1)}, {"x": 0.5}]


def test_table_floats_float64_keeps_every_digit_as_a_tensor(tmp_path: Path, way: str) -> None:
    scan = scan_text(tmp_path, "x,y\n0.1,1\n,2\n0.5,3\n", floats="float64")
    assert scan.schema is not None
    assert (scan.schema["x"].encoding, scan.schema["x"].dtype) == ("tensor_proto", "float64")
    path = tmp_path / "x.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write_columns(scan.reader.read_columns(np.arange(3)))  # type: ignore[union-attr]
    with tfr.open(path) as ds:
        rows = list(ds)
    assert rows[0]["x"] == np.float64(0.1)
    assert "x" not in rows[1]


def test_table_float_too_large_for_float32_is_never_infinite(tmp_path: Path, way: str) -> None:
    [problem] = scan_text(tmp_path, "x\n1e300\n1.5\n", floats="float32").problems
    assert problem.reason == "float32 cannot represent 1e+300"
    assert problem.hint == 'keep them as tensors: floats="float64"'


# --- the form of CSV


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\r\n1,x\r\n", [{"a": 1, "b": b"x"}]),
        ("a,b\r1,x\r2,y\r", [{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}]),
        ("a,b\n1,x", [{"a": 1, "b": b"x"}]),
        ("a,b\n\n1,x\n\n", [{"a": 1, "b": b"x"}]),
        ('a,b\n1,"x,""y"""\n', [{"a": 1, "b": b'x,"y"'}]),
        ('a,b\n1,"x\ny"\n2,z\n', [{"a": 1, "b": b"x\ny"}, {"a": 2, "b": b"z"}]),
        ("a,b\n1,5'11\"\n", [{"a": 1, "b": b"5'11\""}]),
        ('a,b\n1,x"y\n', [{"a": 1, "b": b'x"y'}]),
        ("\ufeffa,b\n1,x\n", [{"a": 1, "b": b"x"}]),
        ("a;b\n1;x,y\n", [{"a": 1, "b": b"x,y"}]),
        ("a\tb\n1\tx\n", [{"a": 1, "b": b"x"}]),
        ('"a,1","b\nc"\n1,x\n', [{"a,1": 1, "b\nc": b"x"}]),
        (",b\n1,x\n", [{"column_1": 1, "b": b"x"}]),
        ("a,b\nx\0y,1\n", [{"a": b"x\0y", "b": 1}]),
        ("a\n1\n\n2\n", [{"a": 1}, {"a": 2}]),
    ],
)
def test_table_csv_forms_are_read(tmp_path: Path, way: str, text: str, rows: list[dict[str, Any]]) -> None:
    assert rows_of(scan_text(tmp_path, text)) == rows


def test_table_csv_ragged_rows_are_all_named_and_the_rest_is_kept(tmp_path: Path, way: str) -> None:
    scan = scan_text(tmp_path, 'a,b\nx,2\n1,2,3\n4\n"5\n5",6\n7\n8,9\n')
    assert [(problem.key.partition("t.csv, ")[2], problem.reason) for problem in scan.problems] == [
        ("line 3", "row expected 2 cells, got 3"),
        ("line 4", "row expected 2 cells, got 1"),
        ("line 7", "row expected 2 cells, got 1"),
    ]
    assert [row["b"] for row in rows_of(scan)] == [2, 6, 9]


def test_table_csv_line_of_a_cell_counts_ragged_rows_and_line_feeds(tmp_path: Path, way: str) -> None:
    scan = scan_text(tmp_path, 'a,b\n1\n"x\nx",1\ny,2\nz,0.1\n')
    assert [problem.key.partition("t.csv, ")[2] for problem in scan.problems] == ["line 2", "line 6, column 'b'"]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b"", "header with names of columns, got an empty file"),
        (b"\na,b\n", "got an empty first line"),
        (b"a,a\n1,2\n", "columns expected different names, got twice 'a'"),
        (b'a,b\n"x,1\n', "not valid CSV, unexpected end of data - at .*t.csv, line 2"),
        (b'a,b\n"x"y,1\n', "not valid CSV, .* - at .*t.csv, line 2"),
        (b"a,b\n\xff,1\n", "expected utf-8 text, got byte 0xff .*\n.*encoding="),
        (b"\x1f\x8b\x08\x00a", "expected text, got a compressed file"),
    ],
)
def test_table_csv_that_is_not_sound_is_refused(tmp_path: Path, way: str, text: bytes, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        scan_text(tmp_path, text)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_table_csv_encoding_that_is_named_is_read(tmp_path: Path, way: str, encoding: str) -> None:
    scan = scan_text(tmp_path, "a\nKäse\n".encode(encoding), encoding=encoding)
    assert rows_of(scan) == [{"a": "Käse".encode()}]


def test_table_csv_without_header_takes_the_given_names(tmp_path: Path, way: str) -> None:
    assert rows_of(scan_text(tmp_path, "1,x\n2,y\n", columns=["n", "s"])) == [{"n": 1, "s": b"x"}, {"n": 2, "s": b"y"}]


def test_table_csv_without_any_value_is_refused(tmp_path: Path, way: str) -> None:
    with pytest.raises(SourceError, match="no column holds any value - at .*t.csv"):
        scan_text(tmp_path, "a,b\n,\n,\n")


def test_table_csv_words_for_missing_are_missing(tmp_path: Path, way: str) -> None:
    assert rows_of(scan_text(tmp_path, "a,b\nNA,x\n2,\n", missing=["NA"])) == [{"b": b"x"}, {"a": [2]}]


def test_table_csv_cell_longer_than_the_modules_limit(tmp_path: Path, way: str) -> None:
    long = "x" * 200_000
    assert rows_of(scan_text(tmp_path, f"a,b\n1,{long}\n")) == [{"a": 1, "b": long.encode()}]


def test_table_csv_line_feeds_at_the_seams_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "csv_rows", 7)
    rows = [{"a": number, "b": b"x\n" * (number % 5) + b"y,z"} for number in range(500)]
    text = "a,b\n" + "".join(f'{row["a"]},"{row["b"].decode()}"\n' for row in rows)  # type: ignore[attr-defined]
    assert rows_of(scan_text(tmp_path, text)) == rows


def test_find_separator_counts_outside_of_quotes() -> None:
    assert [find_separator(line) for line in ("a,b", "a;b,c;d", '"a;b",c', "a|b", "a", "a\tb")] == list(",;,|,\t")


_CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "7", "-7", "007", "+7", "-0", "-0.0", "1.5", "-.5", "5.", ".", "-", "1e5", "1e400", "0x1f"]
    ),
    st.sampled_from(["nan", "inf", "NA", " 5", "5 ", "x", "i9", "1.0000000000000002", "123456789.123456789", "1e15"]),
    st.sampled_from([str(sign * (1 << bits) + more) for bits in (53, 63) for sign in (1, -1) for more in (-1, 0, 1)]),
    st.integers().map(str),
    st.floats(allow_nan=False).map(repr),
    st.text('ab0.-e "日\r\n', max_size=4),
)


@settings(max_examples=300)
@given(
    kinds=st.lists(
        st.sampled_from([st.integers(-99, 99).map(str), st.floats(-9, 9, width=32).map(repr), st.just("word"), _CELLS]),
        min_size=1,
        max_size=3,
    ),
    data=st.data(),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_table_csv_by_the_core_is_what_the_slow_way_reads(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[Any], data: st.DataObject, line_end: str
) -> None:
    rows = data.draw(st.lists(st.tuples(*(st.one_of(kind, st.just("")) for kind in kinds)), max_size=12))
    extra = data.draw(st.sampled_from(["", "", "", line_end, "1,2,3,4,5", "NA"]))
    types = data.draw(st.dictionaries(st.sampled_from("abc"[: len(kinds)]), st.sampled_from(CELL_KINDS)))
    lines = [",".join("abc"[: len(kinds)]), *(",".join(row) for row in rows), extra]
    text = line_end.join(lines) + data.draw(st.sampled_from(["", line_end]))
    check_both_ways(tmp_path_factory.mktemp("csv"), text, types=types)


def check_both_ways(folder: Path, text: str, **options: Any) -> None:
    """The core, with stretches of a few bytes, gives the rows, problems, notes or the error of the csv module."""

    def read(native: bool) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LIMITS, "csv_nbytes", 16)
            if not native:
                patch.setattr(table_text, "spool_typed", lambda *_: None)
            try:
                scan = scan_text(folder, text, missing=["NA"], floats="float32", **options)
            except SourceError as error:
                return str(error)
            return kinds_of(scan), repr(rows_of(scan)) if not scan.problems else scan.problems, scan.notes

    assert read(native=True) == read(native=False)


def quote(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


_INNER = st.text('ab5",;\r\n é', max_size=6)
# Sound cells: quoted, or plain with quotes after their first character.
_SOUND_CELLS = {
    "int64": st.integers(-99, 99).map(str).flatmap(lambda cell: st.sampled_from([cell, quote(cell)])),
    "float": st.sampled_from(["0.5", '"0.5"', "5", '"5"', '"-1.25"', '""', "", "NA", '"NA"']),
    "text": st.one_of(_INNER.map(quote), st.sampled_from(["word", 'w"x"', ' "y"', '"word"', "", '""', '"NA"'])),
    "lines": st.lists(st.sampled_from(["1,2", "x", '"q"', "7,0.5,a"]), min_size=2).map("\n".join).map(quote),
}


@settings(max_examples=300)
@given(
    kinds=st.lists(st.sampled_from(sorted(_SOUND_CELLS)), min_size=1, max_size=3),
    data=st.data(),
    line_end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_table_csv_quoted_cells_by_the_core_are_what_the_slow_way_reads(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], data: st.DataObject, line_end: str, mark: str
) -> None:
    rows = data.draw(st.lists(st.tuples(*(_SOUND_CELLS[kind] for kind in kinds)), max_size=12))
    header = data.draw(st.tuples(*(st.sampled_from([name, f'"{name}"', f'"{name}\n{name}"']) for name in "abc")))
    # One time in three a row that is not sound: ragged, text after a quote, an unclosed quote.
    bad = data.draw(st.sampled_from(["", "", "", "", "", "", '1,"2,3",4,5', '"x"y', '"x']))
    lines = [",".join(header[: len(kinds)]), *(",".join(row) for row in rows)]
    lines.insert(data.draw(st.integers(1, len(lines))), bad)
    check_both_ways(
        tmp_path_factory.mktemp("csv"), mark + line_end.join(lines) + data.draw(st.sampled_from(["", line_end]))
    )


@settings(max_examples=300)
@given(text=st.text('""",,\n\n\r5a .', max_size=40), has_header=st.booleans())
def test_table_csv_any_quotes_by_the_core_are_what_the_slow_way_reads(
    tmp_path_factory: pytest.TempPathFactory, text: str, has_header: bool
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    check_both_ways(folder, "a,b\n" + text if has_header else text, columns=None if has_header else ["a", "b"])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,x\n\n2,y", [{"a": 1, "b": b"x"}, {"a": 2, "b": b"y"}]),
        ("\ufeffa,b\r\n1,x\r\n", [{"a": 1, "b": b"x"}]),
        ('"a","b"\n1,0.5\n', [{"a": 1, "b": 0.5}]),
        ("a;b\n-9223372036854775808;\n9223372036854775807;\n", [{"a": -(1 << 63)}, {"a": (1 << 63) - 1}]),
        ("a\nx\x00y\n", [{"a": b"x\0y"}]),
        ("a,b\nNA,1\n5,NA\n", [{"b": [1]}, {"a": [5]}]),
        ('a,b\r\n"1","x,""y"""\r\n"2",z"z', [{"a": 1, "b": b'x,"y"'}, {"a": 2, "b": b'z"z'}]),
        ('a,b\n1,"x\r\ny\n"\n2,"z"\n', [{"a": 1, "b": b"x\r\ny\n"}, {"a": 2, "b": b"z"}]),
        ('"a\n1","b"\n"",x\n"NA",y\n5,z\n', [{"b": b"x"}, {"b": b"y"}, {"a\n1": [5], "b": b"z"}]),
        ('a\n""\n\n"x"\n', [{}, {"a": b"x"}]),
    ],
    ids=[
        "empty line",
        "mark and carriage returns",
        "quoted header",
        "ends of int64",
        "zero byte",
        "missing",
        "quotes",
        "line ends in quotes",
        "line end in header",
        "quoted empty cell",
    ],
)
def test_table_csv_sound_cells_are_read_by_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, rows: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(table_text, "_spool_cells", lambda *_: pytest.fail("taken as text"))
    assert rows_of(scan_text(tmp_path, text, missing=["NA"])) == rows


def test_table_csv_that_the_core_leaves_half_way_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "csv_nbytes", 64)
    lines = [f"{row},word {row}" for row in range(1000)]
    lines[990] = '7.5,"quo""ted"'
    rows = rows_of(scan_text(tmp_path, "a,b\n" + "\n".join(lines)))
    assert len(rows) == 1000
    assert rows[989:992] == [{"a": 989, "b": b"word 989"}, {"a": 7.5, "b": b'quo"ted'}, {"a": 991, "b": b"word 991"}]


def test_table_csv_lines_inside_quotes_decide_no_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A look at the middle of the file finds no quote, and takes lines of the text for rows with a fraction.
    monkeypatch.setattr(LIMITS, "csv_sample_nbytes", 100)
    text = "a,b\n0,y\n" + "".join(f'{row},"' + "0.5,x\n" * 300 + '"\n' for row in range(1, 20))
    scan = scan_text(tmp_path, text)
    assert kinds_of(scan) == {"a": "int64", "b": "bytes"}
    assert rows_of(scan)[1:] == [{"a": row, "b": b"0.5,x\n" * 300} for row in range(1, 20)]


def test_table_csv_lines_inside_quotes_fill_no_empty_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "csv_sample_nbytes", 100)
    scan = scan_text(tmp_path, "a,b\ny,\n" + ('"' + "x,z\n" * 300 + '",\n') * 20)
    assert kinds_of(scan) == {"a": "bytes"}
    assert scan.notes == ["columns without any value, left out: 'b'"]


def test_table_csv_lines_inside_quotes_with_separators_are_read_by_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_text, "_spool_cells", lambda *_: pytest.fail("taken as text"))
    scan = scan_text(tmp_path, "a,b\n" + "".join(f'{row},"this, that\nand these, those"\n' for row in range(200)))
    assert rows_of(scan) == [{"a": row, "b": b"this, that\nand these, those"} for row in range(200)]


def test_table_csv_line_ends_in_quotes_at_every_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_text, "_spool_cells", lambda *_: pytest.fail("taken as text"))
    rows = [{"a": row, "b": b'"\n' * (row % 40) + b"y,z"} for row in range(200)]
    text = "a,b\n" + "".join(f"{row['a']},{quote(row['b'].decode())}\n" for row in rows)  # type: ignore[attr-defined]
    for nbytes in range(1, 40):
        monkeypatch.setattr(LIMITS, "csv_nbytes", nbytes)
        assert rows_of(scan_text(tmp_path, text)) == rows


def test_table_csv_row_longer_than_the_limit_is_read_cell_by_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "csv_nbytes", 64)
    monkeypatch.setattr(LIMITS, "csv_row_nbytes", 256)
    rows = [{"a": row, "b": b"x" * (500 * (row == 7))} for row in range(1, 20)]
    text = "a,b\n" + "".join(f'{row["a"]},"{row["b"].decode() or "y"}"\n' for row in rows)  # type: ignore[attr-defined]
    assert [len(row["b"]) for row in rows_of(scan_text(tmp_path, text))] == [len(row["b"]) or 1 for row in rows]


def test_table_long_columns_are_decided_by_all_of_their_cells(tmp_path: Path) -> None:
    cells = ["5"] * 100_000
    cells[77_777] = "x"
    [problem] = scan_text(tmp_path, "a\n" + "\n".join(cells)).problems
    assert "'x' at line 77779" in problem.reason
    cells[77_777] = "05"
    [problem] = scan_text(tmp_path, "a\n" + "\n".join(cells)).problems
    assert "'05' at line 77779" in problem.reason
    cells[77_777] = "0.25"
    assert kinds_of(scan_text(tmp_path, "a\n" + "\n".join(cells))) == {"a": "float"}


# --- JSON lines


def test_table_json_lines_lists_inner_objects_and_missing_keys(tmp_path: Path) -> None:
    text = '{"a":1,"b":"x","c":[1,2],"d":{"e":0.5}}\n{"a":2,"c":[],"b":null,"t":["p","q"]}\n\n{"a":true,"d":{"e":1}}\n'
    scan = scan_text(tmp_path, text, "t.jsonl")
    assert kinds_of(scan) == {"a": "int64", "b": "bytes?", "c": "int64?", "d/e": "float?", "t": "bytes?"}
    assert rows_of(scan) == [
        {"a": 1, "b": b"x", "c": [1, 2], "d/e": [0.5]},
        {"a": 2, "c": [], "t": [b"p", b"q"]},
        {"a": 1, "d/e": [1.0]},
    ]


def test_table_json_lines_bad_lines_are_all_named_and_left_out(tmp_path: Path) -> None:
    lines = [
        '{"a":1}',
        "nonsense",
        "[1]",
        '{"a":[null]}',
        '{"a":[{"b":1}]}',
        '{"a":"\\ud800"}',
        '{"a":1e400}',
        '{"a":2}',
    ]
    scan = scan_text(tmp_path, "\n".join(lines), "t.jsonl")
    assert [(problem.key.rpartition(", ")[2], problem.reason) for problem in scan.problems] == [
        ("line 2", "not valid JSON, expecting value"),
        ("line 3", "expected one object per line, got list"),
        ("line 4", "column 'a' expected numbers or text, got null inside a list"),
        ("line 5", "column 'a' expected numbers or text, got an object inside a list"),
        ("line 6", "column 'a' expected text that UTF-8 can encode, got half of a character"),
        ("line 7", "column 'a' expected a number that fits in float64, got a larger one"),
    ]
    assert rows_of(scan) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1, 2, "x"], "expected values of one type, got integers and text; text in lines 3"),
        ([1, 2, [3]], "expected lists or single values in all lines, got both; lists in lines 3"),
        ([1, 1 << 63], "expected signed 64-bit integers, got larger ones in lines 2"),
        ([0.5, (1 << 53) + 1], "expected numbers that fit in float64, got integers that it would round in lines 2"),
    ],
)
def test_table_json_lines_that_disagree_are_named(tmp_path: Path, values: list[Any], reason: str) -> None:
    text = "\n".join(json.dumps({"a": value}) for value in values)
    [problem] = scan_text(tmp_path, text, "t.jsonl").problems
    assert (problem.reason, problem.blocking) == (reason, True)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "key 'a' is present twice"),
        ('{"a": {"x": 1, "x": 2}}', "key 'x' is present twice"),
        ('{"a": {"x": 1}, "a/x": 2}', "key 'a/x' is present twice, as a key and as an inner one"),
        ('[{"a": 1}]', "expected one object per line, got list; jq -c"),
    ],
)
def test_table_json_line_that_would_lose_a_value_is_named(tmp_path: Path, line: str, reason: str) -> None:
    [problem] = scan_text(tmp_path, f'{{"a": 1}}\n{line}\n', "t.jsonl").problems
    assert problem.key.endswith("t.jsonl, line 2")
    assert problem.reason.startswith(reason)


def test_table_json_lines_read_what_export_writes(tmp_path: Path) -> None:
    lines = [
        '{"b":{"base64":"/w=="},"f":{"float":"nan"},"l":["x",{"base64":"/w=="}],"n":[1.5,{"float":"-inf"}],'
        '"t":{"tensor":{"dtype":"uint8","shape":[1,2],"values":[1,255]}}}',
        '{"b":"text","f":0.5,"l":[],"n":[],"t":{"tensor":{"dtype":"uint8","shape":[2,2],"values":[1,2,3,4]}}}',
    ]
    scan = scan_text(tmp_path, "\n".join(lines), "t.jsonl")
    assert scan.problems == []
    assert scan.schema is not None
    assert scan.schema["b"] == Spec("bytes", logical="bytes")
    assert scan.schema["l"] == Spec("bytes", (None,), logical="bytes")
    assert scan.schema["t"] == Spec("bytes", (None, 2), "tensor", "tensor_proto", "uint8")
    one, other = rows_of(scan)
    assert (one["b"], other["b"], one["l"], one["n"]) == (b"\xff", b"text", [b"x", b"\xff"], [1.5, float("-inf")])
    assert np.isnan(one["f"])
    assert decode_tensor(one["t"]).tolist() == [[1, 255]]


@pytest.mark.parametrize(
    ("values", "dtype", "shape"),
    [
        ([("float64", [2], [0.1, 0.2]), ("float64", [2], [0, {"float": "inf"}])], "float64", (2,)),
        ([("float64", [], [0.1]), ("float32", [], [0.5])], None, ()),
        ([("bool", [1], [True]), ("bool", [1, 1], [False])], "bool", (None,)),
        ([("object", [2], ["a", {"base64": "/w=="}])], "string", (2,)),
        ([("complex64", [1], [{"complex": [1.0, -2.0]}])], "complex64", (1,)),
        ([("uint64", [1], [(1 << 64) - 1])], "uint64", (1,)),
    ],
)
def test_table_json_lines_tensors_of_a_column(tmp_path: Path, values: Any, dtype: str | None, shape: Any) -> None:
    tensors = [dict(zip(("dtype", "shape", "values"), value, strict=True)) for value in values]
    scan = scan_text(tmp_path, "\n".join(json.dumps({"t": {"tensor": one}}) for one in tensors), "t.jsonl")
    assert scan.problems == []
    assert scan.schema is not None
    assert scan.schema["t"] == Spec("bytes", shape, "tensor", "tensor_proto", dtype)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"base64": "?"}, "base64 expected groups of four letters and digits, got '?'"),
        (("uint7", [1], [1]), "tensor expected a dtype such as uint8, got 'uint7'"),
        (("bfloat16", [1], [1]), "tensor expected a dtype that NumPy has, got bfloat16"),
        (("uint8", [-1], [1]), r"tensor expected a shape such as \[2, 3\], got \[-1\]"),
        (("uint8", [3], [1]), r"tensor of shape \(3,\) expected 3 values, got 1"),
        (("uint8", [1], [256]), "tensor of uint8 expected numbers that fit"),
        (("uint8", [1], [1.5]), "tensor of uint8 expected numbers of this type, got 1.5"),
        (("float32", [1], [0.1]), "tensor of float32 expected numbers that fit, got 0.1"),
        (("float16", [1], [1e9]), "tensor of float16 expected numbers that fit, got 1000000000.0"),
        (("object", [1], [1]), "tensor of strings expected text or base64, got 1"),
        (("complex64", [1], [1]), "tensor of complex numbers expected"),
    ],
)
def test_table_json_lines_value_that_is_none_is_named(tmp_path: Path, value: Any, reason: str) -> None:
    if isinstance(value, tuple):
        value = {"tensor": dict(zip(("dtype", "shape", "values"), value, strict=True))}
    [problem] = scan_text(tmp_path, json.dumps({"a": 1, "b": value}) + '\n{"a": 2}\n', "t.jsonl").problems
    assert problem.key.endswith("t.jsonl, line 1")
    assert re.match(f"column 'b' {reason}", problem.reason)


def test_table_json_lines_objects_of_the_user_stay_columns(tmp_path: Path) -> None:
    text = '{"float":"nan","base64":"x","a":{"float":1.5},"b":{"base64":2},"c":{"tensor":{"dtype":"uint8"}}}'
    scan = scan_text(tmp_path, text, "t.jsonl")
    assert rows_of(scan) == [
        {"float": b"nan", "base64": b"x", "a/float": 1.5, "b/base64": 2, "c/tensor/dtype": b"uint8"}
    ]


@pytest.mark.parametrize("wanted", ["text", "float", "int64"])
def test_table_json_lines_bytes_are_no_other_type(tmp_path: Path, wanted: str) -> None:
    [problem] = scan_text(tmp_path, '{"a":{"base64":"/w=="}}', "t.jsonl", types={"a": wanted}).problems
    assert re.match("expected .*, got bytes in lines 1", problem.reason)


def test_table_json_lines_wanted_text_takes_numbers_as_they_stand(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, '{"a":1}\n{"a":"x"}\n{"a":2.5}\n', "t.jsonl", types={"a": "text"})
    assert rows_of(scan) == [{"a": b"1"}, {"a": b"x"}, {"a": b"2.5"}]


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
        (pyarrow and pyarrow.array([[[1]]]), "make it numbers, text, or lists of these, or leave it out"),
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
    with pytest.raises(SourceError, match="column 'a' expected values of one type, got int64 and text"):
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


@pytest.mark.parametrize("name", ["", "folder"])
def test_table_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SourceError, match=r"expected a CSV, JSON lines, Parquet or Arrow file, got (nothing|a folder)"):
        Table(str(tmp_path / (name or "gone.csv"))).scan(str(tmp_path))


# --- columns with a role


def test_table_label_column_becomes_ids_and_keeps_its_text(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "label,b\ndog,1\ncat,2\n,3\ndog,4\n", label_column="label")
    assert [row.get("label") for row in rows_of(scan)] == [[1], [0], None, [1]]
    assert [row.get("label/text") for row in rows_of(scan)] == [b"dog", b"cat", None, b"dog"]
    assert scan.items.labels is not None
    assert scan.items.labels.tolist() == [1, 0, -1, 1]
    assert scan.counts == {"class": {"cat": 1, "dog": 2}}
    assert scan.label_files == {"classes.txt": "0:cat\n1:dog\n"}
    assert kinds_of(scan) == {"label": "int64?", "b": "int64", "label/text": "bytes?"}


def test_table_label_outside_the_classes_blocks_with_its_line(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "y,b\ndog,1\nemu,2\nemu,3\n", label_column="y", classes=["cat", "dog"])
    [problem] = scan.problems
    assert problem.blocking
    assert problem.key.endswith("t.csv, line 3, column 'y' and 1 more")
    assert problem.reason == "class 'emu' is not one of the 2 of the given names"


def test_table_integer_labels_stay_and_stratify(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "y\n3\n1\n3\n", label_column="y")
    assert scan.items.labels is not None
    assert scan.items.labels.tolist() == [3, 1, 3]
    assert rows_of(scan)[0] == {"y": 3}


def test_table_split_and_group_columns_number_their_values(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "s,g\nTRAIN,7\nTEST,9\nTRAIN,7\n", split_column="s", group_column="g")
    assert scan.items.split_names == ("test", "train")
    assert scan.items.splits is not None
    assert scan.items.groups is not None
    assert (scan.items.splits.tolist(), scan.items.groups.tolist()) == ([1, 0, 1], [0, 1, 0])
    [problem] = scan_text(tmp_path, "s,g\na,1\n,2\n", split_column="s").problems
    assert (problem.key.rpartition(", ")[2], problem.reason) == ("line 3", "split column 's' is empty")


def test_table_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no column 'lable', did you mean 'label'"):
        scan_text(tmp_path, "label\nx\n", label_column="lable")


def test_table_image_column_stores_the_bytes_of_files(tmp_path: Path) -> None:
    (tmp_path / "pics").mkdir()
    Image.new("RGB", (6, 4)).save(tmp_path / "pics/图.png")
    scan = scan_text(tmp_path, "path,y\npics/图.png,1\n,2\npics/图.png,3\n", image_column="path", label_column="y")
    first, second, third = rows_of(scan)
    assert first["image/encoded"] == (tmp_path / "pics/图.png").read_bytes()
    assert (first["image/format"], first["image/width"], first["image/height"], first["y"]) == ("png", 6, 4, 1)
    assert second == {"y": 2}
    assert third["y"] == 3
    assert scan.items.labels is not None
    assert scan.items.labels.tolist() == [1, 2, 3]


def test_table_image_column_with_empty_list_columns(tmp_path: Path) -> None:
    Image.new("RGB", (4, 3)).save(tmp_path / "a.png")
    save(tmp_path / "t.jsonl", '{"p": "a.png", "t": [], "n": []}\n{"p": "a.png", "t": ["x"], "n": [1]}\n')
    tfr.build(Table(tmp_path / "t.jsonl", image_column="p"), tmp_path / "out", jobs=1)
    rows = [{name: list(row[name]) for name in ("t", "n")} for row in tfr.open(tmp_path / "out")]
    assert rows == [{"t": [], "n": []}, {"t": [b"x"], "n": [1]}]


def test_table_image_files_that_are_missing_are_all_named(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "path\na.png\nb.png\n", image_column="path")
    assert [(problem.key.rpartition(", ")[2], problem.reason) for problem in scan.problems] == [
        ("line 2", "image 'a.png' cannot be opened, no such file or directory"),
        ("line 3", "image 'b.png' cannot be opened, no such file or directory"),
    ]
    assert scan.items.size == 0


# --- the spool


def test_column_spool_gives_rows_in_any_order(tmp_path: Path) -> None:
    writer = ColumnWriter(str(tmp_path), 0, "n", "int64")
    writer.append(np.arange(4))
    writer.append(np.arange(4, 10), missing=np.arange(4, 10) == 7)
    texts = ColumnWriter(str(tmp_path), 1, "t", "bytes", is_list=True)
    values = [[f"{i}-{j}".encode() for j in range(i % 3)] for i in range(10)]
    flat = BytesColumn.from_values([one for value in values for one in value])
    texts.append(flat, lengths=np.array([len(value) for value in values]))
    spool = ColumnSpool(str(tmp_path), [writer.close(), texts.close()], 10)
    for numbers in ([], [3], [2, 3, 4, 5], [9, 0, 7, 7, 1]):
        columns = spool.read_columns(np.array(numbers, np.int64))
        assert [list(row) for row in columns["t"]] == [values[number] for number in numbers]
        assert isinstance(columns["n"], Ragged)
        assert [row.tolist() for row in columns["n"]] == [[number] if number != 7 else [] for number in numbers]


def test_column_spool_columns_are_written_as_their_rows_are(tmp_path: Path) -> None:
    scan = scan_text(tmp_path, "a,x,s\n1,0.5,p\n,1.5,\n3,2.5,r\n")
    order = np.array([2, 0, 1])
    columns = scan.reader.read_columns(order)  # type: ignore[union-attr]
    with tfr.Writer(tmp_path / "c.tfrecord") as writer:
        writer.write_columns(columns)
    with tfr.Writer(tmp_path / "r.tfrecord") as writer:
        for row in ({"a": 3, "x": 2.5, "s": b"r"}, {"a": 1, "x": 0.5, "s": b"p"}, {"x": 1.5}):
            writer.write(row)
    assert (tmp_path / "c.tfrecord").read_bytes() == (tmp_path / "r.tfrecord").read_bytes()


def test_open_csv_separator_of_two_characters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="separator expected one character, got '::'"):
        open_csv(save(tmp_path / "t.csv", "a::b\n"), separator="::")


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        ("1,2.5\n3,4\n5,6\n", True),
        ("a.jpg,3\nb.jpg,4\n", True),
        ("name,count\na,4\n", False),
        ("name,2019\na,x\n", False),
        ("1,2\n", False),
        ("a,b\nc,d\n", False),
    ],
)
def test_table_csv_whose_first_line_looks_like_data_is_noted_once(tmp_path: Path, text: str, is_noted: bool) -> None:
    (tmp_path / "t.csv").write_text(text)
    notes = Table(str(tmp_path / "t.csv"), floats="float32").scan(str(tmp_path)).notes
    found = [note for note in notes if note.startswith("the first line, taken as names of columns, looks like")]
    assert len(found) == is_noted
    assert all(note.endswith("if it has no header, name its columns: columns=...") for note in found)
