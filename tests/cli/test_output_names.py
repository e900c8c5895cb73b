"""`-o train.record` is one file for every verb that can write one, and a folder for none."""

from __future__ import annotations

import numpy as np
import pytest

from tfrkit.container.names import SHARD_SUFFIXES

VERBS = {
    "merge": ["merge", "a.tfrecord"],
    "reshard": ["reshard", "a.tfrecord", "--shards", "1"],
    "shuffle": ["shuffle", "a.tfrecord"],
    "convert": ["convert", "a.tfrecord"],
    "sample": ["sample", "a.tfrecord", "-n", "5"],
    "repair": ["repair", "a.tfrecord"],
    "sql": ["sql", "select * from 'a.tfrecord'"],
    "build arrays": ["build", "arrays", "a.npz"],
    "build tfrecord": ["build", "tfrecord", "a.tfrecord"],
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("suffix", ["record", "tfrec"])
def test_every_verb_writes_one_file_of_that_name(tfr, tmp_path, verb, suffix):
    np.savez(tmp_path / "a.npz", x=np.arange(5))
    tfr("build", "arrays", "a.npz", "-o", "a.tfrecord")
    tfr(*VERBS[verb], "-o", f"out.{suffix}")
    assert (tmp_path / f"out.{suffix}").is_file()
    assert tfr("count", f"out.{suffix}", "--format", "json").json["records"] == 5


@pytest.mark.parametrize("suffix", SHARD_SUFFIXES)
def test_build_writes_one_file_for_every_suffix(tfr, tmp_path, suffix):
    np.savez(tmp_path / "a.npz", x=np.arange(5))
    tfr("build", "arrays", "a.npz", "-o", f"train.{suffix}")
    assert (tmp_path / f"train.{suffix}").is_file()
    assert (tmp_path / "_index" / f"train.{suffix}.tfrkit.json").is_file()


def test_split_refuses_the_name_of_one_file(tfr, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.arange(5))
    tfr("build", "arrays", "a.npz", "-o", "a.tfrecord")
    ran = tfr("split", "a.tfrecord", "-o", "b.record", "--split", "train=.8,test=.2", code=2)
    assert "b.record" in ran.err
    assert not (tmp_path / "b.record").exists()
