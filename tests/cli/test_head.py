"""`tfr head`: shortened text, complete JSON, no control characters."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import math
import struct
from pathlib import Path

import pytest

from tfrkit.testing.reference import encode_example, encode_tensor, write_frames


def write_example(path: Path, features: dict[bytes, object], copies: int = 1) -> None:
    path.write_bytes(write_frames([encode_example(features)] * copies))  # type: ignore[arg-type]


def test_head_text_shows_images_by_size_and_cuts_lists(tfr, sample: Path) -> None:
    ran = tfr("head", "sample.tfrecord", "-n", "7")
    assert sum(line.startswith("record ") for line in ran.lines) == 7
    assert "PNG 12x7" in ran.out
    assert "[0, 1, 2, 3, 4, 5, 6, 7, … 18 values]" in ran.out
    assert '"grüße 3"' in ran.out
    assert ran.err == ""


def test_head_default_is_five_rows(tfr, sample: Path) -> None:
    assert len(tfr("head", "sample.tfrecord", "--format", "jsonl").lines) == 5


def test_head_more_than_there_are_gives_all(tfr, sample: Path) -> None:
    assert len(tfr("head", "sample.tfrecord", "-n", "99", "--format", "jsonl").lines) == 10


def test_head_zero_rows_is_nothing(tfr, sample: Path) -> None:
    assert tfr("head", "sample.tfrecord", "-n", "0", "--format", "jsonl").out == ""
    assert tfr("head", "sample.tfrecord", "-n", "0", "--format", "json").json == []


@pytest.mark.parametrize("number", ["-1", "many", "1.5"])
def test_head_wrong_number_exits_2(tfr, sample: Path, number: str) -> None:
    assert "-n" in tfr("head", "sample.tfrecord", "-n", number, code=2).err


def test_head_jsonl_gives_everything(tfr, sample: Path) -> None:
    rows = [json.loads(line) for line in tfr("head", "sample.tfrecord", "-n", "10", "--format", "jsonl").lines]
    assert [row["label"] for row in rows] == list(range(10))
    assert rows[3]["weight"] == 0.75
    assert rows[9]["tokens"] == list(range(27))
    assert rows[2]["text"] == "grüße 2"
    assert "text" not in rows[4]
    assert base64.b64decode(rows[0]["image"]["base64"]).startswith(b"\x89PNG")


def test_head_json_is_a_list_of_the_same_rows(tfr, sample: Path) -> None:
    lines = tfr("head", "sample.tfrecord", "--format", "jsonl").lines
    assert tfr("head", "sample.tfrecord", "--format", "json").json == [json.loads(line) for line in lines]


def test_head_csv_has_every_column_and_empty_cells_for_absent(tfr, sample: Path) -> None:
    table = list(csv.DictReader(io.StringIO(tfr("head", "sample.tfrecord", "-n", "6", "--format", "csv").out)))
    assert set(table[0]) == {"image", "label", "weight", "tokens", "text"}
    assert table[4]["text"] == ""
    assert table[2]["tokens"] == "[0, 1, 2, 3, 4, 5]"


def test_head_gzip_and_stdin_give_the_same(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "sample.gz").write_bytes(gzip.compress(sample.read_bytes()))
    wanted = tfr("head", "sample.tfrecord", "--format", "jsonl").out
    assert tfr("head", "sample.gz", "--format", "jsonl").out == wanted
    assert tfr("head", "-", "--format", "jsonl", stdin=sample.read_bytes()).out == wanted


def test_head_sequence_example_has_two_parts(tfr, sequences: Path) -> None:
    rows = tfr("head", "sequences.tfrecord", "--format", "json").json
    assert [set(row) for row in rows] == [{"context", "feature_lists"}] * 3
    assert rows[1]["context"]["name"] == "clip 1"
    assert rows[2]["feature_lists"]["frame"] == [[2, 0], [2, 1], [2, 2]]
    text = tfr("head", "sequences.tfrecord").out
    assert "context.name" in text
    assert "feature_lists.frame" in text
    assert "context/name" in tfr("head", "sequences.tfrecord", "--format", "csv").lines[0]


def test_head_raw_records_are_shown_as_records(tfr, raw: Path) -> None:
    assert tfr("head", "lines.tfrecord", "--format", "json").json == [
        {"record": "first line"},
        {"record": "second line"},
        {"record": {"base64": base64.b64encode(b"\xff\x00\x01\x02").decode()}},
    ]
    assert 'record  "first line"' in tfr("head", "lines.tfrecord").out


def test_head_tensor_keeps_dtype_and_shape(tfr, tmp_path: Path) -> None:
    content = struct.pack("<6d", 0, 1, 2, 3, 4, 5)
    write_example(tmp_path / "t.tfrecord", {b"x": ("bytes", [encode_tensor(2, (2, 3), content)])})
    assert tfr("head", "t.tfrecord", "--format", "json").json == [
        {"x": {"tensor": {"dtype": "float64", "shape": [2, 3], "values": [0, 1, 2, 3, 4, 5]}}}
    ]
    assert "float64 2x3 [0.0, 1.0" in tfr("head", "t.tfrecord").out


def test_head_no_kind_empty_and_absent_stay_apart(tfr, tmp_path: Path) -> None:
    rows = [{b"a": None}, {b"a": ("int64", [])}, {b"b": ("int64", [1, 2])}]
    (tmp_path / "k.tfrecord").write_bytes(write_frames([encode_example(row) for row in rows]))
    assert tfr("head", "k.tfrecord", "--format", "json").json == [{"a": None}, {"a": []}, {"b": [1, 2]}]


def test_head_nan_and_infinity_are_valid_json(tfr, tmp_path: Path) -> None:
    write_example(tmp_path / "n.tfrecord", {b"x": ("float", [math.nan, math.inf, -math.inf, 1.0])})

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    line = tfr("head", "n.tfrecord", "--format", "jsonl").out
    row = json.loads(line, parse_constant=refuse)
    assert row == {"x": [{"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, 1.0]}


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\x9b31m[red]x[/red]\r\n"


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "csv"])
def test_head_hostile_text_and_names_cannot_reach_the_terminal(tfr, tmp_path: Path, form: str) -> None:
    name = text = HOSTILE.encode()
    write_example(tmp_path / "h.tfrecord", {name: ("bytes", [text]), b"nul\0": ("int64", [1])})
    out = tfr("head", "h.tfrecord", "--format", form).out
    assert not set(out) & set("\x1b\x07\r\x9b\u202e\x00")
    assert "[red]x[/red]" in out
    if form == "jsonl":
        assert json.loads(out)[HOSTILE] == HOSTILE


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "csv"])
def test_head_name_that_is_not_utf8_is_shown_harmlessly(tfr, tmp_path: Path, form: str) -> None:
    write_example(tmp_path / "h.tfrecord", {b"\xff\x1b": ("int64", [1])})
    assert "\x1b" not in tfr("head", "h.tfrecord", "--format", form).out


def test_head_damaged_record_shows_what_came_before(tfr, sample: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[-6] ^= 1
    sample.write_bytes(data)
    ran = tfr("head", "sample.tfrecord", "-n", "10", "--format", "jsonl", code=3)
    assert len(ran.lines) == 9
    assert "payload checksum" in ran.err
    assert "record 9" in ran.err


def test_head_empty_file_is_no_rows(tfr, tmp_path: Path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    ran = tfr("head", "empty.tfrecord")
    assert ran.out == ""
    assert ran.err == "no records\n"
