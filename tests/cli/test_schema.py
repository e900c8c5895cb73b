"""`tfr schema`: how the command prints; the formats are tested in tests/unit/features."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tfrkit.testing.reference import encode_example, write_frames

STYLES = ["json", "tfds", "pbtxt", "arrow", "tf", "dali", "vahidk"]


@pytest.mark.parametrize("style", STYLES)
def test_schema_text_names_every_feature(tfr, sample: Path, style: str) -> None:
    ran = tfr("schema", "sample.tfrecord", "--as", style)
    for name in ("image", "label", "weight", "tokens", "text"):
        assert name in ran.out
    assert ran.err == ""


def test_schema_default_is_json(tfr, sample: Path) -> None:
    assert tfr("schema", "sample.tfrecord").json == tfr("schema", "sample.tfrecord", "--as", "json").json


@pytest.mark.parametrize("style", STYLES)
def test_schema_formats_carry_the_same_schema(tfr, sample: Path, style: str) -> None:
    text = tfr("schema", "sample.tfrecord", "--as", style).out
    document = tfr("schema", "sample.tfrecord", "--as", style, "--format", "json").json
    assert document["as"] == style
    wanted = json.loads(text) if style in ("json", "tfds") else text.rstrip("\n")
    found = document["schema"]
    assert (found.rstrip("\n") if isinstance(found, str) else found) == wanted
    assert json.loads(tfr("schema", "sample.tfrecord", "--as", style, "--format", "jsonl").out) == document
    assert tfr("schema", "sample.tfrecord", "--as", style, "--format", "csv").lines[0] == "as,schema"


@pytest.mark.parametrize("style", ["tf", "dali", "vahidk"])
def test_schema_source_compiles(tfr, sample: Path, style: str) -> None:
    compile(tfr("schema", "sample.tfrecord", "--as", style).out, "spec.py", "exec")


def test_schema_unknown_style_exits_2(tfr, sample: Path) -> None:
    assert "pbtxt" in tfr("schema", "sample.tfrecord", "--as", "xml", code=2).err


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """More than 32 MiB, so that the schema is inferred from a sample."""
    blob = b"x" * 8000
    records = [encode_example({b"blob": ("bytes", [blob]), b"number": ("int64", [index])}) for index in range(5000)]
    (tmp_path / "large.tfrecord").write_bytes(write_frames(records))
    return tmp_path / "large.tfrecord"


def test_schema_of_a_sample_says_of_how_many_records(tfr, large: Path) -> None:
    ran = tfr("schema", large.name, "--as", "tf")
    [note] = ran.err.splitlines()
    assert re.fullmatch(r"note: from [\d,]+ records; all of them: --infer all", note)
    assert ".." in ran.out
    assert all(line.endswith(" in a sample") for line in ran.lines if ".." in line)
    tfr("index", large.name)
    assert " of 5,000 records; all of them: --infer all" in tfr("schema", large.name).err
    whole = tfr("schema", large.name, "--as", "tf", "--infer", "all")
    assert whole.err == ""
    assert "0..4999" in whole.out
    assert "in a sample" not in whole.out
    assert tfr("schema", large.name, "--quiet").err == ""
