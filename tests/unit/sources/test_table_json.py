"""Tables as JSON lines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import kinds_of, rows_of, scan_text

import tfrkit
from tfrkit.codec.tensor_proto import decode_tensor
from tfrkit.errors import SourceError
from tfrkit.features.spec import Spec
from tfrkit.sources.json_lines import LISTS_EVERYWHERE

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
        ([1, 2, "x"], "expected values of the same type, got integers and text; text in lines 3"),
        (["x", 1], "expected values of the same type, got integers and text; integers in lines 2"),
        ([1, [3]], "expected lists or single values in all lines, got both; lists in lines 2"),
        ([1, 2, [3]], "expected lists or single values in all lines, got both; lists in lines 3"),
        ([1, 1 << 63], "expected signed 64-bit integers, got larger ones in lines 2"),
        ([0.5, (1 << 53) + 1], "expected numbers that fit in float64, got integers that it would round in lines 2"),
    ],
)
def test_table_json_lines_that_disagree_are_named(tmp_path: Path, values: list[Any], reason: str) -> None:
    text = "\n".join(json.dumps({"a": value}) for value in values)
    [problem] = scan_text(tmp_path, text, "t.jsonl").problems
    assert (problem.reason, problem.blocking) == (reason, True)
    can_be_text = [3] not in values
    assert problem.hint == ('take all as text: types={"a": "text"}' if can_be_text else LISTS_EVERYWHERE)
    if can_be_text:
        assert scan_text(tmp_path, text, "t.jsonl", types={"a": "text"}).problems == []


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


def make_sequences(folder: Path) -> Path:
    """A TFRecord of SequenceExamples with every kind of value: empty, ragged, absent, NaN, bytes, tensors."""
    path = folder / "a.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(5):
            context: dict[str, Any] = {
                "id": number,
                "part": np.float32(number / 3),
                "raw": b"\xff" * number,
                "ids": np.arange(number),
                "tensor": np.full((2, number), number, np.uint8),
            }
            lists = {
                "frame": [np.arange(count) for count in range(number)],
                "score": [np.float32("nan"), np.float32(1.5)] * number,
                "image": [b"\xff\xd8" + bytes([frame]) for frame in range(number)],
                "word": ["a", ""] * number,
                "wide": [np.full(2, frame, np.float64) for frame in range(number)],
            }
            writer.write({"context": context | ({"odd": "x"} if number % 2 else {}), "feature_lists": lists})
    return path


def test_table_json_lines_of_sequence_examples_are_the_records_again(tmp_path: Path) -> None:
    path = make_sequences(tmp_path)
    tfrkit.tools.export_jsonl(path, tmp_path / "a.jsonl")
    tfrkit.build(tfrkit.sources.table(tmp_path / "a.jsonl"), tmp_path / "b.tfrecord", order="source", jobs=1)
    with tfrkit.open(path) as before, tfrkit.open(tmp_path / "b.tfrecord") as after:
        assert list(map(bytes, after.records())) == list(map(bytes, before.records()))
        assert after.schema == before.schema


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"a": 1}', "expected a SequenceExample with context and feature_lists, as in the first line"),
        ('{"context": {}, "feature_lists": {}, "c": 1}', "expected a SequenceExample with context and feature_lists"),
        ("{", "not valid JSON"),
        ('{"context": {}, "feature_lists": {"b": 5}}', "feature list 'b' expected a list of frames, got 5"),
        ('{"context": {"a": {"base64": "?"}}, "feature_lists": {}}', "column 'a' base64 expected"),
        ('{"context": {"a": 1, "a": 2}, "feature_lists": {}}', "key 'a' is present twice"),
    ],
)
def test_table_json_line_that_is_no_sequence_is_named(tmp_path: Path, line: str, reason: str) -> None:
    good = '{"context": {"a": 1}, "feature_lists": {"b": [[1], [2, 3]]}}'
    scan = scan_text(tmp_path, f"{good}\n{line}\n\n{good}\n", "t.jsonl")
    [problem] = scan.problems
    assert problem.key.endswith("t.jsonl, line 2")
    assert problem.reason.startswith(reason)
    assert (scan.items.size, scan.found) == (2, 3)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"context": {"a": 0.1}, "feature_lists": {}}', r"would round 0.1 .*, line 2\n  round it: floats=\"float32\""),
        ('{"context": {"a": 1e300}, "feature_lists": {}}', r"fits in float32.*, line 2\n  keep it exactly: floats="),
        ('{"context": {"a": "x"}, "feature_lists": {}}', r"expected float as in rows before, got bytes .*line 2"),
        ('{"context": {"a": [[1, 2], [3]]}, "feature_lists": {}}', r"ragged .*line 2"),
    ],
)
def test_table_json_sequence_that_cannot_be_stored_is_refused(tmp_path: Path, line: str, match: str) -> None:
    with pytest.raises(SourceError, match=match):
        scan_text(tmp_path, f'{{"context": {{"a": 0.5}}, "feature_lists": {{}}}}\n{line}\n', "t.jsonl")


def test_table_json_sequences_have_no_columns(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="SequenceExamples, which have no columns, got label_column"):
        scan_text(tmp_path, '{"context": {"a": 1}, "feature_lists": {}}\n', "t.jsonl", label_column="a")


def test_table_json_sequence_among_rows_is_refused(tmp_path: Path) -> None:
    lines = '{"context":1,"feature_lists":2}\n{"context": {"a": 1}, "feature_lists": {}}\n'
    with pytest.raises(SourceError, match=r"is a SequenceExample, expected a row of columns - at .*, line 2\n"):
        scan_text(tmp_path, lines, "t.jsonl")


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
