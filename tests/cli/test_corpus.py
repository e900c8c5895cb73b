"""Real files by other programs, if the corpus is present: every command exits cleanly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"

KINDS = {"Example": "example", "SequenceExample": "sequence_example"}


def load_entries() -> list[dict[str, Any]]:
    manifest = CORPUS / "MANIFEST.json"
    return (
        [entry for entry in json.loads(manifest.read_text()) if entry["kind"] == "record"] if manifest.exists() else []
    )


ENTRIES = load_entries()
TFRECORDS = [entry for entry in ENTRIES if entry["records"] is not None]
FOREIGN = [entry for entry in ENTRIES if entry["records"] is None]

pytestmark = pytest.mark.skipif(not ENTRIES, reason="the corpus of real files is not beside this checkout")


def name_of(entry: dict[str, Any]) -> str:
    return str(entry["file"]).rsplit("/", 1)[-1]


def test_corpus_info_agrees_with_the_manifest(tfr) -> None:
    # One process for all files, because start-up dominates.
    files = tfr("info", *(CORPUS / entry["file"] for entry in TFRECORDS), "--format", "json").json["files"]
    for entry, file in zip(TFRECORDS, files, strict=True):
        assert file["path"].endswith(entry["file"])
        assert (file["records"], file["compression"]) == (entry["records"], entry["compression"]), file
        assert not entry["records"] or file["kind"] == KINDS.get(entry["payload"], "raw"), file


@pytest.mark.parametrize("entry", TFRECORDS[::6], ids=name_of)
def test_corpus_head_prints_rows(tfr, entry: dict[str, Any]) -> None:
    path = CORPUS / entry["file"]
    assert len(tfr("head", path, "-n", "3", "--format", "jsonl").lines) == min(3, entry["records"])
    assert max(map(len, tfr("head", path, "-n", "1").lines), default=0) < 1000


def test_corpus_all_together_are_sound(tfr) -> None:
    paths = [CORPUS / entry["file"] for entry in TFRECORDS]
    total = sum(entry["records"] for entry in TFRECORDS)
    result = tfr("verify", *paths, "--format", "json", code=1).json
    assert result["records"] == total
    # Nothing is damaged; three sets are incomplete.
    assert sorted(finding["cause"].partition(",")[0] for finding in result["findings"]) == [
        "1 of 4 shards are there",
        "1 of 512 shards are there",
        "3 of 12 shards are there",
    ]
    assert tfr("count", *paths, "--format", "json").json["records"] == total


@pytest.mark.parametrize("entry", FOREIGN, ids=name_of)
def test_corpus_foreign_file_exits_3(tfr, entry: dict[str, Any]) -> None:
    ran = tfr("info", CORPUS / entry["file"], code=3)
    assert ran.out == ""
    assert name_of(entry) in ran.err
