"""Verbs on Ray and Dask give the results of threads of one machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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


def test_count_equals_that_of_one_machine(dataset, engine):
    assert tfr.tools.count(dataset, engine=engine) == tfr.tools.count(dataset)


def test_verify_equals_that_of_one_machine(dataset, engine):
    here = tfr.tools.verify(dataset, sha256=True).to_json()
    assert not here["ok"]
    assert tfr.tools.verify(dataset, sha256=True, engine=engine).to_json() == here


def test_commands_print_the_same_with_relative_paths(dataset, dask_client):
    on_cluster = ["--engine", "dask", "--engine-address", dask_client.scheduler.address]
    for verb, *options in (["count"], ["verify"]):
        command = [sys.executable, "-m", "tfrkit", verb, dataset.name, "--format", "json", *options]
        here = subprocess.run(command, cwd=dataset.parent, capture_output=True, text=True, check=False)
        there = subprocess.run([*command, *on_cluster], cwd=dataset.parent, capture_output=True, text=True, check=False)
        assert json.loads(there.stdout) == json.loads(here.stdout)
        assert there.returncode == here.returncode
