from __future__ import annotations

import pytest

from tfrkit.container.names import SHARD_SUFFIXES, is_shard_name, resembles_shard_name, strip_output_suffix


@pytest.mark.parametrize("suffix", SHARD_SUFFIXES)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_every_suffix_is_that_of_a_shard_and_of_an_output(suffix, packed):
    name = f"train.{suffix}{packed}"
    assert is_shard_name(name) and resembles_shard_name(name)
    assert strip_output_suffix(f"a/{name}") == "a/train"


@pytest.mark.parametrize("name", ["x-00000-of-00002", "x.record-00000-of-00002", "00001-of-00002.gz"])
def test_numbered_name_is_a_shard_and_no_output_file(name):
    assert is_shard_name(name)
    assert strip_output_suffix("x.record-00000-of-00002") is None


@pytest.mark.parametrize("name", ["recorder.py", "x.recordings", "records", "x.csv", "train.tfrecorder"])
def test_other_names_are_no_shards(name):
    assert not is_shard_name(name)
    assert strip_output_suffix(name) is None


def test_name_with_a_suffix_in_its_middle_resembles_one():
    assert resembles_shard_name("train.record_1") and resembles_shard_name("x.tfrec-old")
    assert not resembles_shard_name("x.recordings")
