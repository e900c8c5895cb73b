"""Verbs that reshape, on real files by other programs: the same records come out, or a clear refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit import tools
from tfrkit.errors import NotATFRecordError
from tfrkit.ops.reshape.sample import cat_rows, tail_rows

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
MANIFEST = CORPUS / "MANIFEST.json"
ENTRIES = [e for e in json.loads(MANIFEST.read_text()) if e["kind"] == "record"] if MANIFEST.exists() else []
TFRECORDS = [entry for entry in ENTRIES if entry["records"] is not None]
FOREIGN = [entry for entry in ENTRIES if entry["records"] is None]

pytestmark = pytest.mark.skipif(not ENTRIES, reason="the corpus of real files is not beside this checkout")


def name_of(entry: dict[str, Any]) -> str:
    return str(entry["file"]).rsplit("/", 1)[-1]


@pytest.mark.parametrize("entry", TFRECORDS, ids=name_of)
def test_every_record_comes_out_again(entry: dict[str, Any], tmp_path: Path) -> None:
    path = CORPUS / entry["file"]
    records = list(tfrkit.open(path).records())
    mixed = tools.shuffle(path, tmp_path / "mixed", seed=1)
    assert sorted(tfrkit.open([file.path for file in mixed.files]).records()) == sorted(records)
    cut = tools.reshard(path, tmp_path / "cut", shard_size="100KB")
    assert list(tfrkit.open([file.path for file in cut.files]).records()) == records
    packed = tools.convert(path, tmp_path / "packed.tfrecord", compression="zlib")
    assert list(tfrkit.open(packed.files[0].path).records()) == records
    assert tools.sample(path, tmp_path / "all.tfrecord", 10**9).records == len(records)


@pytest.mark.parametrize("entry", TFRECORDS, ids=name_of)
def test_rows_are_shown_to_the_last(entry: dict[str, Any]) -> None:
    path = CORPUS / entry["file"]
    assert sum(1 for _ in cat_rows(path)) == entry["records"]
    assert len(list(tail_rows(path, 3))) == min(3, entry["records"])


@pytest.mark.parametrize("entry", FOREIGN, ids=name_of)
def test_foreign_file_is_refused(entry: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(NotATFRecordError, match="expected a TFRecord, got"):
        tools.merge(CORPUS / entry["file"], tmp_path / "out.tfrecord")
    assert list(tmp_path.iterdir()) == []
