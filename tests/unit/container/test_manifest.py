from __future__ import annotations

import json

import pytest

from tfrkit.container.manifest import find_manifest, read_manifest, write_manifest
from tfrkit.errors import ContainerError


def test_manifest_reads_back_what_was_written(tmp_path):
    path = str(tmp_path / "tfrkit.json")
    write_manifest(path, {"name": "x", "shards": []})
    content = read_manifest(path)
    assert content is not None
    assert (content["format"], content["version"], content["name"]) == ("tfrkit.dataset", 1, "x")


def test_missing_manifest_is_none(tmp_path):
    assert read_manifest(str(tmp_path / "tfrkit.json")) is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": "other", "version": 1}', '{"format": "tfrkit.dataset"}']
)
def test_manifest_that_is_something_else_raises(tmp_path, content):
    (tmp_path / "tfrkit.json").write_text(content)
    with pytest.raises(ContainerError, match="manifest"):
        read_manifest(str(tmp_path / "tfrkit.json"))


def test_manifest_is_found_by_a_shard_it_lists(tmp_path):
    write_manifest(str(tmp_path / "tfrkit.json"), {"shards": [{"name": "a"}]})
    assert find_manifest(str(tmp_path / "a")) is not None
    assert find_manifest(str(tmp_path / "b")) is None


def test_manifest_of_a_single_file_lies_in_index(tmp_path):
    write_manifest(str(tmp_path / "_index/a.tfrecord.tfrkit.json"), {"shards": [{"name": "a.tfrecord"}]})
    assert find_manifest(str(tmp_path / "a.tfrecord")) is not None


@pytest.mark.parametrize("shards", [None, 5, ["a"], [{"name": 3}], {}])
def test_manifest_with_odd_shards_is_not_found(tmp_path, shards):
    (tmp_path / "tfrkit.json").write_text(json.dumps({"format": "tfrkit.dataset", "version": 1, "shards": shards}))
    assert find_manifest(str(tmp_path / "a")) is None
