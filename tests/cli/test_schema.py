"""`tfr schema`: the text itself is tested with the schema formats; here is how the command prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
