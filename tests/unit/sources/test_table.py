"""Tables: column types, floats, columns with a role, tables in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tables import kinds_of, rows_of, save, scan_text

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.sources.table import Table

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
    assert scan.notes[1:] == ["columns without any value, left out: 'void'"]
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
        (["\u0131nf", "\u0131nf"], "text"),
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
    assert problem.hint == 'take all as text: types={"a": "text"}'
    assert kinds_of(scan_text(tmp_path, text, types={"a": "text"})) == {"a": "bytes", "b": "bytes"}


@pytest.mark.parametrize(
    "gaps", [["NA"], ["NA"] * 9, ["null", "NULL", "?"], ["<NA>"], ["unknown", "-"], ["#N/A", "NA"]]
)
@pytest.mark.parametrize("number", ["1", "1.5"])
def test_table_words_for_missing_among_numbers_stop_the_build(
    tmp_path: Path, way: str, number: str, gaps: list[str]
) -> None:
    scan = scan_text(tmp_path, "\n".join(["a", number, *gaps]))
    [problem] = scan.problems
    assert problem.blocking
    assert f"numbers, got text: {gaps[0]!r} at line 3" in problem.reason
    shown = ", ".join(f'"{gap}"' for gap in sorted(set(gaps)))
    assert problem.hint == f'take them as missing: missing=[{shown}]    take all as text: types={{"a": "text"}}'
    assert rows_of(scan_text(tmp_path, "\n".join(["a,b", f"{number},x", *(f"{gap},y" for gap in gaps)]), missing=gaps))
    assert scan_text(tmp_path, "\n".join(["a", number, *gaps]), types={"a": "text"}).notes == []


def test_table_text_column_of_words_for_missing_without_numbers_is_text(tmp_path: Path, way: str) -> None:
    scan = scan_text(tmp_path, "a\nNA\nnone\n")
    assert (rows_of(scan), scan.notes) == ([{"a": b"NA"}, {"a": b"none"}], [])


def test_table_numbers_in_a_column_of_text_are_noted(tmp_path: Path, way: str) -> None:
    text = "a,b,c\n1,x,7\nx,y,7\n2,5,7\nNA,z,7\n"
    scan = scan_text(tmp_path, text)
    assert [row["a"] for row in rows_of(scan)] == [b"1", b"x", b"2", b"NA"]
    [note] = scan.notes
    assert note == (
        "columns of text with some numbers, which stay text: 'a' (2 of 4 cells), 'b' (1 of 4 cells); "
        'confirm it: types={"a": "text", "b": "text"}'
    )
    assert scan_text(tmp_path, text, types={"a": "text", "b": "text"}).notes == []


def test_table_mixed_columns_beyond_five_are_counted(tmp_path: Path, way: str) -> None:
    [note] = scan_text(tmp_path, f"{','.join('abcdefg')}\n{','.join('1234567')}\n{','.join('xxxxxxx')}\n").notes
    assert "'e' (1 of 2 cells), and 2 more; confirm" in note


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["00123", "+7", " 5 ", "-01"], "int64", [123, 7, 5, -1]),
        (["00.5", "+7", " 1e3 ", "007"], "float", [0.5, 7, 1000, 7]),
    ],
)
def test_table_given_type_takes_numbers_in_other_forms(
    tmp_path: Path, way: str, cells: list[str], kind: str, values: list[float]
) -> None:
    scan = scan_text(tmp_path, "\n".join(["a", *cells]), types={"a": kind})
    assert (scan.problems, [row["a"] for row in rows_of(scan)]) == ([], values)


@pytest.mark.parametrize("cell", ["x", "1 2", "1_000", "１", "0x1f", "", "--5"])
def test_table_given_type_refuses_text(tmp_path: Path, way: str, cell: str) -> None:
    scan = scan_text(tmp_path, f"a,b\n1,1\n{cell},1\n", types={"a": "int64"})
    assert bool(scan.problems) == bool(cell)


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
    assert {problem.hint for problem in scan.problems} == {"name the folder where paths start: image_root=..."}


def test_table_file_that_is_missing_suggests_a_name(tmp_path: Path) -> None:
    save(tmp_path / "table.csv", "a\n1\n")
    with pytest.raises(SourceError, match=r"no such file, expected a CSV, .*tabel.csv\n  did you mean .*table.csv"):
        Table(tmp_path / "tabel.csv").scan(str(tmp_path))
    with pytest.raises(SourceError, match="expected a CSV, JSON lines, Parquet or Arrow file, got a folder"):
        Table(tmp_path).scan(str(tmp_path))
