"""JSON lines and CSV: one line per record, everything in JSON, what spreadsheets hold in CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.errors import CorruptRecordError, MissingFeatureError, StorageError
from tfrkit.ops.export.rows import export_csv, export_jsonl, to_csv_line
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames


def write(path: Path, records: list[bytes]) -> Path:
    path.write_bytes(write_frames(records))
    return path


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def to_csv(source: Path) -> list[list[str]]:
    output = source.with_suffix(".csv")
    export_csv(source, output, force=True)
    return list(csv.reader(io.StringIO(output.read_text(), newline="")))


MIXED = [
    encode_example({b"a": ("int64", [1]), b"t": ("bytes", [b'x,"y\n']), b"l": ("int64", [1, 2])}),
    encode_example(
        {b"a": ("int64", [-(2**63)]), b"t": ("bytes", [b""]), b"l": ("int64", []), b"b": ("bytes", [b"\xff"])}
    ),
    encode_example({b"a": None, b"f": ("float", [math.nan, math.inf])}),
]


def test_jsonl_has_every_value_and_distinguishes_absent_from_empty(tmp_path: Path) -> None:
    report = export_jsonl(write(tmp_path / "a", MIXED), tmp_path / "a.jsonl")
    assert lines_of(tmp_path / "a.jsonl") == [
        {"a": 1, "t": 'x,"y\n', "l": [1, 2]},
        {"a": -(2**63), "t": "", "l": [], "b": {"base64": "/w=="}},
        {"a": None, "f": [{"float": "nan"}, {"float": "inf"}]},
    ]
    assert (report.records, report.files, report.ok) == (3, 1, True)
    assert report.nbytes == (tmp_path / "a.jsonl").stat().st_size


def test_jsonl_keeps_a_feature_that_only_a_late_record_has(tmp_path: Path) -> None:
    # Larger than the sample for the schema.
    records = [encode_example({b"a": ("bytes", [bytes(4096)])})] * 9000
    records.append(encode_example({b"a": ("bytes", [b""]), b"late": ("int64", [7])}))
    export_jsonl(write(tmp_path / "a", records), tmp_path / "a.jsonl", select=["late"])
    assert lines_of(tmp_path / "a.jsonl")[-2:] == [{}, {"late": 7}]


def test_jsonl_of_kinds_that_differ_is_as_each_record_has_it(tmp_path: Path) -> None:
    records = [encode_example({b"x": ("int64", [1])}), encode_example({b"x": ("bytes", [b"one"])})]
    records.append(encode_example({b"x": ("float", [0.5, 1.5]), b"y": ("int64", [3])}))
    export_jsonl(write(tmp_path / "a", records), tmp_path / "a.jsonl")
    assert lines_of(tmp_path / "a.jsonl") == [{"x": [1]}, {"x": ["one"]}, {"x": [0.5, 1.5], "y": 3}]


def test_jsonl_of_records_that_are_no_examples(tmp_path: Path) -> None:
    export_jsonl(write(tmp_path / "a", [b"first line", b"\xff\x00"]), tmp_path / "a.jsonl")
    assert lines_of(tmp_path / "a.jsonl") == [{"record": "first line"}, {"record": {"base64": "/wA="}}]
    some = [encode_example({b"x": ("int64", [number])}) for number in range(3)]
    export_jsonl(write(tmp_path / "b", [*some, b"no example"]), tmp_path / "b.jsonl")
    assert lines_of(tmp_path / "b.jsonl") == [{"x": 0}, {"x": 1}, {"x": 2}, {"record": "no example"}]
    assert to_csv(tmp_path / "b")[0] == ["x", "record"]
    assert to_csv(tmp_path / "b")[4] == ["", "no example"]


def test_sequence_examples_have_their_parts(tmp_path: Path) -> None:
    record = encode_sequence_example(
        {b"name": ("bytes", [b"clip"])}, {b"frame": [("int64", [1, 2]), ("int64", [3])], b"x": []}
    )
    source = write(tmp_path / "a", [record])
    export_jsonl(source, tmp_path / "a.jsonl")
    assert lines_of(tmp_path / "a.jsonl") == [
        {"context": {"name": "clip"}, "feature_lists": {"frame": [[1, 2], [3]], "x": []}}
    ]
    assert to_csv(source) == [
        ["context/name", "feature_lists/frame", "feature_lists/x"],
        ["clip", "[[1,2],[3]]", "[]"],
    ]


def test_tensors_are_written_with_dtype_and_shape(tmp_path: Path) -> None:
    with tfrkit.Writer(str(tmp_path / "a")) as writer:
        writer.write({"t": np.array([[1, 2]], np.uint8)})
    export_jsonl(tmp_path / "a", tmp_path / "a.jsonl")
    assert lines_of(tmp_path / "a.jsonl") == [{"t": {"tensor": {"dtype": "uint8", "shape": [1, 2], "values": [1, 2]}}}]


def test_csv_has_lists_as_json_and_absent_as_nothing(tmp_path: Path) -> None:
    rows = to_csv(write(tmp_path / "a", MIXED))
    assert rows[0] == ["a", "b", "f", "l", "t"]
    assert rows[1] == ["1", "", "", "[1,2]", 'x,"y\n']
    assert rows[2] == [str(-(2**63)), '{"base64":"/w=="}', "", "[]", ""]
    assert rows[3] == ["", "", '[{"float":"nan"},{"float":"inf"}]', "", ""]
    # An empty text is quoted, an absent one is not.
    assert (tmp_path / "a.csv").read_text().splitlines()[-2:] == [
        f'{-(2**63)},"{{""base64"":""/w==""}}",,[],""',
        ',,"[{""float"":""nan""},{""float"":""inf""}]",,',
    ]


def test_csv_has_single_numbers_as_numbers(tmp_path: Path) -> None:
    with tfrkit.Writer(tmp_path / "a", floats="float64") as writer:
        for number in (0.1, float("nan"), float("-inf")):
            writer.write({"wide": number, "one": np.float32(number), "list": [number]})
    assert to_csv(tmp_path / "a")[1:] == [
        ['{"tensor":{"dtype":"float64","shape":[1],"values":[0.1]}}', "0.10000000149011612", "0.1"],
        ['{"tensor":{"dtype":"float64","shape":[1],"values":[{"float":"nan"}]}}', "nan", "nan"],
        ['{"tensor":{"dtype":"float64","shape":[1],"values":[{"float":"-inf"}]}}', "-inf", "-inf"],
    ]


def test_csv_of_one_column_keeps_rows_without_a_value(tmp_path: Path) -> None:
    records = [encode_example({b"x": ("int64", [1])}), encode_example({})]
    export_csv(write(tmp_path / "a", records), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'x\n1\n""\n'


def test_csv_line_quotes_what_has_to_be() -> None:
    assert to_csv_line([" a", "b\r", True, 1.5, "ü"]) == '" a","b\r",true,1.5,ü\n'.encode()


def test_select_takes_only_some_and_suggests(tmp_path: Path) -> None:
    source = write(tmp_path / "a", MIXED)
    export_jsonl(source, tmp_path / "a.jsonl", select=["l", "a"])
    assert lines_of(tmp_path / "a.jsonl")[0] == {"l": [1, 2], "a": 1}
    with pytest.raises(MissingFeatureError, match="no feature 'A', did you mean 'a'"):
        export_jsonl(source, tmp_path / "b.jsonl", select=["A"])
    assert not (tmp_path / "b.jsonl").exists()


def test_folder_has_one_file_a_split_and_one_file_a_note(tmp_path: Path) -> None:
    for split, number in (("train", 1), ("test", 2)):
        write(tmp_path / f"x-{split}.tfrecord", [encode_example({b"x": ("int64", [number])})])
    report = export_jsonl(tmp_path / "x-*", f"{tmp_path / 'out'}/")
    assert lines_of(tmp_path / "out" / "train.jsonl") == [{"x": 1}]
    assert lines_of(tmp_path / "out" / "test.jsonl") == [{"x": 2}]
    assert (report.records, report.files) == (2, 2)
    report = export_jsonl(tmp_path / "x-*", tmp_path / "all.jsonl")
    assert lines_of(tmp_path / "all.jsonl") == [{"x": 2}, {"x": 1}]
    assert "all splits are in one file" in report.notes[0]


def test_output_is_replaced_only_with_force_and_never_a_source(tmp_path: Path) -> None:
    source = write(tmp_path / "a", MIXED)
    (tmp_path / "b").write_bytes(b"mine")
    with pytest.raises(StorageError, match="exists already"):
        export_jsonl(source, tmp_path / "b")
    with pytest.raises(StorageError, match="one of the files to read"):
        export_jsonl(source, source, force=True)
    assert (tmp_path / "b").read_bytes() == b"mine"


def test_damage_leaves_no_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a", MIXED)
    data = source.read_bytes()
    source.write_bytes(flip(data, frame_offsets(data)[1] + 13))
    with pytest.raises(CorruptRecordError, match="record 1, byte"):
        export_jsonl(source, tmp_path / "a.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_formulas_are_text_in_safe_csv_and_as_they_are_otherwise(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\uff1d1", "a=1", "1-2", "", "'x"]
    with tfrkit.Writer(tmp_path / "a") as writer:
        for number, text in enumerate(texts):
            writer.write({"=text": text, "number": -number})
    plain, safe = tmp_path / "plain.csv", tmp_path / "safe.csv"
    export_csv(tmp_path / "a", plain)
    export_csv(tmp_path / "a", safe, safe=True)
    with plain.open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["=text", *texts]
    with safe.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=text", "number"]
    assert [row[0] for row in rows] == ["'" + text for text in texts[:8]] + texts[8:]
    assert [row[1] for row in rows] == [str(-number) for number in range(len(texts))]
