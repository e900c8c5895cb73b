from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tfrkit.features.schema_json import from_json
from tfrkit.ops.schema import make_schema_text
from tfrkit.testing.reference import encode_example, write_frames


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = [encode_example({b"label": ("int64", [number]), b"name": ("bytes", [b"x"])}) for number in range(3)]
    (tmp_path / "a.tfrecord").write_bytes(write_frames(rows))
    return tmp_path / "a.tfrecord"


def test_json_reads_back_as_the_schema(path: Path) -> None:
    schema = from_json(json.loads(make_schema_text(path, "json")[0]))
    assert schema.names == ("label", "name")


@pytest.mark.parametrize("style", ["tf", "dali", "vahidk"])
def test_source_is_python_that_names_every_feature(path: Path, style: str) -> None:
    source, _ = make_schema_text(path, style)  # type: ignore[arg-type]
    ast.parse(source)
    assert "'label'" in source
    assert "'name'" in source


@pytest.mark.parametrize("style", ["tfds", "pbtxt", "arrow"])
def test_text_names_every_feature(path: Path, style: str) -> None:
    text, _ = make_schema_text(path, style)  # type: ignore[arg-type]
    assert "label" in text
    assert "name" in text


def test_style_that_does_not_exist_raises(path: Path) -> None:
    with pytest.raises(ValueError, match="style expected one of json, .*, got 'xml'"):
        make_schema_text(path, "xml")  # type: ignore[arg-type]
