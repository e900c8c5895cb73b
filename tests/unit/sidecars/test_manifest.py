from __future__ import annotations

import json

import pytest

from tfrkit.errors import ContainerError, SchemaError
from tfrkit.sidecars.manifest import Manifest, ShardEntry, fingerprint_entries, read_manifest, write_manifest


def test_manifest_reads_back_what_was_written(tmp_path):
    path = str(tmp_path / "tfrkit.json")
    write_manifest(path, {"name": "x", "shards": [], "files": ["classes.txt"], "recipe": {"source": "table"}})
    manifest = read_manifest(path)
    assert manifest is not None
    assert (manifest.content["format"], manifest.content["version"]) == ("tfrkit.dataset", 1)
    assert (manifest.name, manifest.source_kind, manifest.files) == ("x", "table", {"classes.txt"})


def test_missing_manifest_is_none(tmp_path):
    assert read_manifest(str(tmp_path / "tfrkit.json")) is None
    assert read_manifest(str(tmp_path / "no" / "tfrkit.json")) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff{}", b'{"format": "other", "version": 1}', b'{"format": "tfrkit.dataset"}']
)
def test_manifest_that_is_something_else_raises(tmp_path, content):
    (tmp_path / "tfrkit.json").write_bytes(content)
    with pytest.raises(ContainerError, match="manifest"):
        read_manifest(str(tmp_path / "tfrkit.json"))


@pytest.mark.parametrize(
    ("row", "entry"),
    [
        ({"split": "train", "records": 3, "nbytes": 5, "sha256": "a" * 64}, ShardEntry("train", 3, 5, "a" * 64)),
        ({}, ShardEntry(None, None, None, None)),
        ({"split": 3, "records": -1, "nbytes": True, "sha256": "x"}, ShardEntry(None, None, None, None)),
    ],
)
def test_entry_leaves_out_what_is_not_as_it_should_be(row, entry):
    assert Manifest("p", {"shards": [{"name": "a", **row}]}).entries == {"a": entry}


@pytest.mark.parametrize("shards", [None, 5, ["a"], [{"name": 3}], {}, [{"name": "../a"}], [{"name": ".."}]])
def test_manifest_with_odd_shards_lists_none(shards):
    assert Manifest("p", {"shards": shards}).entries == {}


def test_manifest_with_an_invalid_schema_raises_on_access():
    with pytest.raises(SchemaError, match="schema JSON"):
        _ = Manifest("p", {"schema": json.loads('{"format": "other"}')}).schema


def test_entries_without_a_checksum_have_no_fingerprint() -> None:
    whole = fingerprint_entries([(10, "a" * 64), (20, "b" * 64)])
    assert whole is not None and whole.startswith("m") and len(whole) == 17
    assert whole != fingerprint_entries([(20, "b" * 64), (10, "a" * 64)])
    assert fingerprint_entries([(10, "a" * 64), (20, None)]) is None
    assert fingerprint_entries([(None, "a" * 64)]) is None
