"""Incomplete shard sets: reading commands warn, writing commands stop."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTE = "2 of 3 shards, missing train-00001-of-00003.tfrecord - at data/train-*-of-00003.tfrecord"


@pytest.fixture
def gap(shards: Path) -> Path:
    (shards / "train-00001-of-00003.tfrecord").unlink()
    return shards


@pytest.mark.parametrize(
    "command",
    [
        ("count", "data"),
        ("head", "data", "-n", "1"),
        ("tail", "data", "-n", "1"),
        ("sample", "data", "-n", "1"),
        ("diff", "data", "data"),
        ("sql", "select count(*) from 'data'"),
        ("repair", "data", "-o", "repaired/", "--force"),
        ("index", "data"),
    ],
)
@pytest.mark.usefixtures("gap")
def test_reading_commands_name_the_missing_shard(tfr, command: tuple[str, ...]) -> None:
    ran = tfr(*command)
    assert f"note: {NOTE}" in ran.err.splitlines()
    assert tfr(*command, "--quiet").err == ""


@pytest.mark.usefixtures("gap")
def test_info_notes_which_shard_is_missing(tfr) -> None:
    assert f"note: {NOTE}" in tfr("info", "data").lines


WRITING = {
    "reshard": ("reshard", "data", "-o", "out/", "--shards", "1"),
    "merge": ("merge", "data", "-o", "out.tfrecord"),
    "split": ("split", "data", "-o", "out/", "--split", "a=.5,b=.5"),
    "shuffle": ("shuffle", "data", "-o", "out/"),
    "sample": ("sample", "data", "-n", "2", "-o", "out.tfrecord"),
    "convert": ("convert", "data", "-o", "out/", "--compression", "gzip"),
    "build tfrecord": ("build", "tfrecord", "data", "-o", "out/", "--progress", "none"),
    "export csv": ("export", "csv", "data", "-o", "out.csv"),
    "export jsonl": ("export", "jsonl", "data", "-o", "out.jsonl"),
}


@pytest.mark.parametrize("name", WRITING)
def test_writing_commands_refuse_an_incomplete_set_by_default(tfr, gap: Path, name: str) -> None:
    before = sorted(path.name for path in gap.parent.iterdir())
    ran = tfr(*WRITING[name], code=3)
    assert ran.err.splitlines() == [
        "tfr: expected all 3 shards of the set, got 2, missing train-00001-of-00003.tfrecord "
        "- at data/train-*-of-00003.tfrecord",
        "  continue without them: --incomplete",
    ]
    assert sorted(path.name for path in gap.parent.iterdir()) == before
    assert NOTE in tfr(*WRITING[name], "--incomplete").err
