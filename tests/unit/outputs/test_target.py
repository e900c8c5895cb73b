from __future__ import annotations

import os

import pytest

from tfrkit.container.names import SHARD_SUFFIXES
from tfrkit.errors import StorageError
from tfrkit.outputs.target import Target


@pytest.mark.parametrize(
    "name",
    [
        *(f"x.{suffix}" for suffix in SHARD_SUFFIXES),
        *(f"x.{suffix}.gz" for suffix in SHARD_SUFFIXES),
        *("a/x.TFRecord", "train.record", "train.RECORD", "x.gz", "x.zst"),
    ],
)
def test_name_of_a_file_is_one_file(name):
    assert Target(name).is_file
    assert Target(name).single_file == os.path.basename(name)


@pytest.mark.parametrize(
    ("name", "compression"),
    [("x.gz", "gzip"), ("x.tfrecord.zlib", "zlib"), ("x.XZ", "xz"), ("a.b.zst", "zstd"), ("x.tfrecord", None)],
)
def test_compression_follows_the_file_suffix(name, compression):
    assert Target(name).suffix_compression == compression
    assert Target(f"{name}/").suffix_compression is None


@pytest.mark.parametrize("name", ["out", "out/", "x.tfrecord/", "x.record/", "tfrecord", "record", "a.b", "x.gz/"])
def test_any_other_name_is_a_folder(name):
    assert not Target(name).is_file


def test_folder_that_is_there_is_one_whatever_its_name(tmp_path):
    (tmp_path / "x.tfrecord").mkdir()
    assert not Target(str(tmp_path / "x.tfrecord")).is_file


def test_sidecars_go_to_the_folder_or_the_index_folder_of_the_file():
    assert Target("d").sidecar("tfrkit.json") == "d/tfrkit.json"
    assert Target("d/x.tfrecord").sidecar("tfrkit.json") == "d/_index/x.tfrecord.tfrkit.json"


def test_two_files_of_one_folder_have_staging_folders_of_their_own():
    assert Target("d/x.tfrecord").staging != Target("d/y.tfrecord").staging
    assert os.path.basename(Target("d/x.tfrecord").staging).startswith("_")


@pytest.mark.parametrize(
    ("name", "compression"), [("x.tfrecord", None), ("x.tfrecord.gz", "gzip"), ("x.tfrecord.zst", "zstd"), ("d", None)]
)
def test_compression_follows_the_suffix(name, compression):
    assert Target(name).suffix_compression == compression


def test_folder_is_made_with_those_above(tmp_path):
    Target(str(tmp_path / "a/b")).require_writable()
    assert (tmp_path / "a/b").is_dir()


def test_folder_that_cannot_be_written_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(StorageError, match="cannot write, permission denied"):
        Target(str(tmp_path)).require_writable()
