"""Incomplete shard sets: named, warned about, refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.container.names import find_incomplete_sets, note_missing_shards
from tfrkit.container.shards import find_shards
from tfrkit.errors import IncompleteSetWarning, StorageError


def make(folder: Path, *names: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    paths = [str(folder / name) for name in names]
    for number, path in enumerate(paths):
        with tfrkit.Writer(path) as writer:
            writer.write({"id": number})
    return paths


def missing(*paths: str) -> list[list[str]]:
    return [list(found.missing()) for found in find_incomplete_sets(paths)]


@pytest.mark.parametrize(
    ("paths", "wanted"),
    [
        ([], []),
        (["a.tfrecord"], []),
        (["x-00000-of-00001"], []),
        (["x-00000-of-00002", "x-00001-of-00002"], []),
        (["x-00000-of-00003", "x-00002-of-00003"], [["x-00001-of-00003"]]),
        (["d/x-00001-of-00003.tfrecord.gz"], [["x-00000-of-00003.tfrecord.gz", "x-00002-of-00003.tfrecord.gz"]]),
        (["x.tfrecord-00001-of-00002"], [["x.tfrecord-00000-of-00002"]]),
        (["a-00000-of-00002", "b-00001-of-00002"], [["a-00001-of-00002"], ["b-00000-of-00002"]]),
        (["x-00000-of-00002", "x-00000-of-00003"], [["x-00001-of-00002"], ["x-00001-of-00003", "x-00002-of-00003"]]),
        (["a/x-00000-of-00002", "b/x-00001-of-00002"], [["x-00001-of-00002"], ["x-00000-of-00002"]]),
        (["x-000000-of-000002"], [["x-000001-of-000002"]]),
        (["x-00001-of-00002", "x-00001-of-00002"], [["x-00000-of-00002"]]),
        (["*-00001-of-00002"], [["*-00000-of-00002"]]),
        (["x-00007-of-00002"], []),
        (["x-0-of-2", "x-1-of-20"], []),
    ],
)
def test_missing_shards_are_derived_from_names(paths: list[str], wanted: list[list[str]]) -> None:
    assert missing(*paths) == wanted


def test_a_hundred_thousand_and_more_shards_are_counted() -> None:
    paths = [f"x-{number:06d}-of-100001" for number in range(100_001) if number != 99_999]
    assert missing(*paths) == [["x-099999-of-100001"]]


def test_the_note_names_three_and_counts_the_rest() -> None:
    assert note_missing_shards(["d/x-00001-of-00006"]) == [
        "1 of 6 shards, missing x-00000-of-00006, x-00002-of-00006, x-00003-of-00006 and 2 more - at d/x-*-of-00006"
    ]


def test_name_with_a_huge_shard_count_is_handled_quickly() -> None:
    [found] = find_incomplete_sets(["x-000000000000000000-of-999999999999999999"])
    assert found.num_missing == 999_999_999_999_999_998
    assert "and 999,999,999,999,999,995 more" in str(found)


@pytest.mark.parametrize("how", ["folder", "glob", "list", "folder of one"])
def test_opening_a_set_that_is_not_complete_warns_at_the_line_that_opens(how: str, tmp_path: Path) -> None:
    names = ["x-00000-of-00003", "x-00002-of-00003"]
    paths = make(tmp_path / "d", *(names[:1] if how == "folder of one" else names))
    address: Any = {"glob": str(tmp_path / "d" / "x-*"), "list": paths}.get(how, tmp_path / "d")
    with pytest.warns(IncompleteSetWarning, match=r"of 3 shards, missing x-00001-of-00003") as told:
        ds = tfrkit.open(address)
    assert len(ds) == len(paths)
    assert told[0].filename == __file__
    warning = told[0].message
    assert isinstance(warning, IncompleteSetWarning)
    assert "x-00001-of-00003" in warning.missing


def test_one_shard_named_alone_is_no_incomplete_set(tmp_path: Path) -> None:
    path, other = make(tmp_path, "x-00000-of-00003", "y-00000-of-00003")
    for address in (path, Path(path), os.fsencode(path), [path], iter([path]), [path, other]):
        tfrkit.open(address)
        find_shards(path, incomplete="refuse")


def test_a_complete_set_says_nothing(tmp_path: Path) -> None:
    make(tmp_path, "x-00000-of-00002", "x-00001-of-00002", "y.tfrecord")
    assert len(tfrkit.open(tmp_path)) == 3


VERBS: dict[str, Any] = {
    "reshard": lambda source, out, **options: tfrkit.tools.reshard(source, f"{out}/", shards=1, **options),
    "merge": lambda source, out, **options: tfrkit.tools.merge(source, f"{out}.tfrecord", **options),
    "split": lambda source, out, **options: tfrkit.tools.split(source, f"{out}/", {"a": 0.5, "b": 0.5}, **options),
    "shuffle": lambda source, out, **options: tfrkit.tools.shuffle(source, f"{out}/", **options),
    "sample": lambda source, out, **options: tfrkit.tools.sample(source, f"{out}.tfrecord", count=1, **options),
    "convert": lambda source, out, **options: tfrkit.tools.convert(source, f"{out}/", compression="gzip", **options),
}
EXPORTS: dict[str, Any] = {
    "csv": lambda source, out, **options: tfrkit.tools.export_csv(source, f"{out}.csv", **options),
    "jsonl": lambda source, out, **options: tfrkit.tools.export_jsonl(source, f"{out}.jsonl", **options),
    "npz": lambda source, out, **options: tfrkit.tools.export_npz(source, f"{out}.npz", **options),
    "webdataset": lambda source, out, **options: tfrkit.tools.export_webdataset(source, f"{out}.tar", **options),
}


@pytest.mark.parametrize("verb", [*VERBS, *EXPORTS])
def test_verbs_that_write_refuse_a_set_that_is_not_complete(verb: str, tmp_path: Path) -> None:
    make(tmp_path / "d", "x-00000-of-00003", "x-00002-of-00003")
    refused = r"(?s)expected all 3 shards of the set, got 2, missing x-00001-of-00003 - at .*incomplete=True"
    with pytest.raises(StorageError, match=refused):
        {**VERBS, **EXPORTS}[verb](tmp_path / "d", tmp_path / "out")
    assert os.listdir(tmp_path) == ["d"]


@pytest.mark.parametrize("verb", VERBS)
def test_writing_verbs_continue_with_a_note_when_requested(verb: str, tmp_path: Path) -> None:
    make(tmp_path / "d", "x-00000-of-00003", "x-00002-of-00003")
    made = VERBS[verb](tmp_path / "d", tmp_path / "out", incomplete=True)
    assert any("the set is not complete: 2 of 3 shards, missing x-00001-of-00003" in note for note in made.notes)


@pytest.mark.parametrize("verb", EXPORTS)
def test_exports_continue_with_a_warning_when_requested(verb: str, tmp_path: Path) -> None:
    make(tmp_path / "d", "x-00000-of-00003", "x-00002-of-00003")
    with pytest.warns(IncompleteSetWarning, match="2 of 3 shards, missing x-00001-of-00003"):
        EXPORTS[verb](tmp_path / "d", tmp_path / "out", incomplete=True)


def test_verify_names_the_missing_shard(tmp_path: Path) -> None:
    make(tmp_path / "d", "x-00000-of-00003", "x-00002-of-00003")
    found = tfrkit.verify(tmp_path / "d").findings
    assert [finding.cause for finding in found] == ["2 of 3 shards are there, missing x-00001-of-00003"]
