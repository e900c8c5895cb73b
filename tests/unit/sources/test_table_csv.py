"""Tables as CSV: its forms, damaged files, and the core against the slow way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import kinds_of, rows_of, save, scan_text

from tfrkit._limits import LIMITS
from tfrkit.errors import SourceError
from tfrkit.sources import table_text
from tfrkit.sources.cell_types import CELL_KINDS
from tfrkit.sources.csv_file import find_separator, open_csv
from tfrkit.sources.table import Table

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
    """The core, with stretches of a few bytes, gives the rows, problems, notes or the error of the csv module.

    Its guesses are based on all rows, or on the first one.
    """

    def read(native: bool, is_hasty: bool = False) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LIMITS, "csv_nbytes", 16)
            if is_hasty:
                patch.setattr(LIMITS, "csv_sample_places", 1)
                patch.setattr(LIMITS, "csv_sample_rows", 1)
            if not native:
                patch.setattr(table_text, "spool_typed", lambda *_: None)
            try:
                scan = scan_text(folder, text, missing=["NA"], floats="float32", **options)
            except SourceError as error:
                return str(error)
            return kinds_of(scan), repr(rows_of(scan)) if not scan.problems else scan.problems, scan.notes

    slow = read(native=False)
    assert read(native=True) == slow
    assert read(native=True, is_hasty=True) == slow


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
        ("a\n1\nnull\nx\n2\n", [{"a": b"1"}, {"a": b"null"}, {"a": b"x"}, {"a": b"2"}]),
        ("a\nnull\n-\n", [{"a": b"null"}, {"a": b"-"}]),
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
        "numbers among text",
        "words for missing",
    ],
)
def test_table_csv_sound_cells_are_read_by_the_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, rows: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(table_text, "_spool_cells", lambda *_: pytest.fail("taken as text"))
    assert rows_of(scan_text(tmp_path, text, missing=["NA"])) == rows


@pytest.mark.parametrize(
    ("usual", "late", "types", "kind", "problem"),
    [
        (["7"], ["NA"], {}, None, "expected whole numbers, got text: 'NA' at line 991"),
        (["7", "0.5"], ["NA"], {}, None, "expected numbers, got text: 'NA' at line 991"),
        (["7"], ["NA", "x"], {}, None, "expected whole numbers, got text: 'NA' at line 991; 'x' at line 992"),
        (["7"], ["0.5"], {}, "float", None),
        (["9007199254740993"], ["0.5"], {}, None, "expected numbers that float64 holds, got others: '900719925474099"),
        (["7"], ["9223372036854775808"], {}, None, "expected signed 64-bit integers, got larger: '92233720368547758"),
        (["0.5"], ["nan", "-inf"], {}, "float", None),
        (["7"], ["0.5"], {"a": "int64"}, None, "expected whole numbers, got others: '0.5' at line 991"),
        (["7"], ["007"], {"a": "int64"}, "int64", None),
        (["7"], ["x"], {"a": "float"}, None, "expected numbers, got text: 'x' at line 991"),
        ([""], ["7"], {}, "int64?", None),
        ([""], ["x"], {}, "bytes?", None),
        (["NA", "7", "7", "7"], ["7"], {}, None, "expected whole numbers, got text: 'NA' at line 2; 'NA' at line 6;"),
    ],
)
def test_table_csv_late_cell_of_another_kind_is_found_by_the_core(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    usual: list[str],
    late: list[str],
    types: dict[str, str],
    kind: str | None,
    problem: str | None,
) -> None:
    monkeypatch.setattr(LIMITS, "csv_nbytes", 64)
    monkeypatch.setattr(LIMITS, "csv_sample_nbytes", 64)
    monkeypatch.setattr(table_text, "_spool_cells", lambda *_: pytest.fail("read cell by cell"))
    cells = [usual[row % len(usual)] for row in range(1000)]
    cells[989 : 989 + len(late)] = late
    text = "a,b\n" + "".join(f"{cell},{row}\n" for row, cell in enumerate(cells))
    scan = scan_text(tmp_path, text, types=types)
    if problem is not None:
        assert [(found.key, found.blocking) for found in scan.problems] == [(f"{tmp_path}/t.csv, column 'a'", True)]
        assert problem in scan.problems[0].reason
        return
    assert kinds_of(scan) == {"a": kind, "b": "int64"}
    rows = rows_of(scan)
    assert len(rows) == 1000
    assert [row["b"] for row in rows] == list(range(1000))


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
