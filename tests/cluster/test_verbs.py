"""Verbs on Ray and Dask give the results of threads of one machine."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys

import pytest
from conftest import WRITING_VERBS
from deadly_part import DeadlyPart

import tfrkit as tfr
from tfrkit.testing.corruption import flip


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Eight shards, one of them damaged."""
    folder = tmp_path_factory.mktemp("verbs") / "rows"
    rows = [{"x": number, "name": f"n{number % 11}", "label": number % 3} for number in range(4000)]
    tfr.build(rows, folder, shards=4, splits={"test": 0.25}, jobs=1)
    path = folder / "rows-train.tfrecord-00001-of-00004"
    path.write_bytes(flip(path.read_bytes(), 5000))
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound") / "rows"
    rows = [{"x": number, "name": f"n{number % 11}", "label": number % 3} for number in range(4000)]
    tfr.build(rows, folder, shards=4, splits={"test": 0.25}, jobs=1)
    return folder


def test_count_equals_that_of_one_machine(dataset, engine):
    assert tfr.tools.count(dataset, engine=engine) == tfr.tools.count(dataset)


def test_verify_equals_that_of_one_machine(dataset, engine):
    here = tfr.tools.verify(dataset, sha256=True).to_json()
    assert not here["ok"]
    assert tfr.tools.verify(dataset, sha256=True, engine=engine).to_json() == here


def test_deep_verify_equals_that_of_one_machine(dataset, engine):
    here = tfr.tools.verify(dataset, deep=True).to_json()
    assert tfr.tools.verify(dataset, deep=True, engine=engine).to_json() == here


def test_stats_equal_those_of_one_machine(dataset, engine):
    here = tfr.tools.stats(dataset, on_error="skip").to_json()
    assert here["skipped"] == 1
    assert tfr.tools.stats(dataset, on_error="skip", engine=engine).to_json() == here


@pytest.mark.parametrize(("verb", "options"), WRITING_VERBS)
def test_written_files_have_the_bytes_of_one_machine(sound, engine, tmp_path, digest, verb, options):
    work = getattr(tfr.tools, verb)
    work(sound, tmp_path / "here" / "out", **options)
    work(sound, tmp_path / "there" / "out", engine=engine, **options)
    assert digest(tmp_path / "there") == digest(tmp_path / "here")


@pytest.mark.parametrize(
    "query",
    [
        "select label, name, count(*), sum(x), avg(x), min(name) from '{0}' where x > 7 group by 1, 2 order by 1, 2",
        "select x, name from '{0}' where x % 1000 = 1 order by x desc",
    ],
)
def test_queries_are_answered_as_on_one_machine(sound, engine, query):
    text = query.format(sound)
    expected = list(tfr.sql(text).tuples())
    assert expected
    assert list(tfr.sql(text, engine=engine).tuples()) == expected


def test_shuffle_survives_a_killed_worker(sound, engine, tmp_path, digest, monkeypatch):
    """One worker kills itself at its first shard; its task is run again elsewhere."""
    monkeypatch.setattr("tfrkit.ops.reshape.shuffle_on_workers.MergedPart", DeadlyPart)
    tfr.tools.shuffle(sound, tmp_path / "here" / "out", seed=5, shards=8)
    tfr.tools.shuffle(sound, tmp_path / "there" / "out", seed=5, shards=8, engine=engine)
    assert digest(tmp_path / "there") == digest(tmp_path / "here")


def test_commands_print_the_same_with_relative_paths(dataset, dask_client):
    on_cluster = ["--engine", "dask", "--engine-address", dask_client.scheduler.address]
    for verb, *options in (["count"], ["verify"], ["stats", "--on-error", "skip"]):
        command = [sys.executable, "-m", "tfrkit", verb, dataset.name, "--format", "json", *options]
        here = subprocess.run(command, cwd=dataset.parent, capture_output=True, text=True, check=False)
        there = subprocess.run([*command, *on_cluster], cwd=dataset.parent, capture_output=True, text=True, check=False)
        assert json.loads(there.stdout) == json.loads(here.stdout)
        assert there.returncode == here.returncode


def test_cluster_that_dask_starts_prints_nothing(sound):
    """Not even if the port of its page is taken."""
    command = [sys.executable, "-m", "tfrkit", "count", str(sound), "--engine", "dask", "--format", "json"]
    with socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("0.0.0.0", 8787))
            taken.listen()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["records"] == 4000
    assert done.stderr == ""
