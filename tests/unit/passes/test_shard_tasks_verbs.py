"""Verbs on an engine give the results and the bytes of one machine; worker processes stand in for a cluster."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit.engines.local import LocalEngine
from tfrkit.errors import CorruptRecordError
from tfrkit.passes import shard_tasks
from tfrkit.testing.corruption import flip


class Processes(LocalEngine):
    is_local = False


@pytest.fixture(autouse=True)
def _cluster(monkeypatch):
    """Two processes in place of a cluster."""
    opened = contextlib.nullcontext(Processes(2))
    monkeypatch.setattr(shard_tasks, "open_engine", lambda name, **_: opened)


def make_rows(number):
    picture = io.BytesIO()
    for index in range(number):
        picture.seek(0)
        picture.truncate()
        Image.new("RGB", (8 + index % 5, 8), (index % 256, 0, 0)).save(picture, "PNG")
        yield {
            "x": index,
            "y": np.float32(index / 3),
            "name": f"n{index % 11}",
            "label": index % 3,
            "image": picture.getvalue(),
            "some": list(range(index % 4)),
        }


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verbs") / "rows"
    tfr.build(make_rows(3000), folder, shards=4, splits={"test": 0.25}, jobs=1)
    return folder


@pytest.fixture
def damaged(dataset, tmp_path):
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(dataset, folder)
    for number in (1, 2):
        path = sorted(folder.glob("*.tfrecord-*"))[number]
        data = path.read_bytes()
        path.write_bytes(flip(data, len(data) // 2))
    return folder


class TestStats:
    @pytest.mark.parametrize("options", [{}, {"features": ["label", "name"]}])
    def test_equals_that_of_threads(self, dataset, options):
        here = tfr.tools.stats(dataset, **options).to_json()
        assert tfr.tools.stats(dataset, engine="ray", **options).to_json() == here

    def test_damage_is_skipped_and_listed_as_by_threads(self, damaged):
        here = tfr.tools.stats(damaged, on_error="skip").to_json()
        assert here["skipped"] == 2
        assert json.dumps(tfr.tools.stats(damaged, on_error="skip", engine="ray").to_json()) == json.dumps(here)

    def test_first_damage_is_raised(self, damaged):
        with pytest.raises(CorruptRecordError) as here:
            tfr.tools.stats(damaged)
        with pytest.raises(CorruptRecordError) as there:
            tfr.tools.stats(damaged, engine="dask")
        assert str(there.value) == str(here.value)

    def test_report_has_the_same_bytes(self, dataset, tmp_path):
        for engine in ("local", "ray"):
            tfr.tools.stats(dataset, html=tmp_path / f"{engine}.html", engine=engine)
        here, there = ((tmp_path / f"{engine}.html").read_bytes() for engine in ("local", "ray"))
        assert there == here


def test_deep_verify_finds_copies_as_on_one_machine(damaged):
    here = tfr.tools.verify(damaged, deep=True).to_json()
    assert here["counts"]["duplicate"] > 0
    assert here["counts"]["leak"] > 0
    assert tfr.tools.verify(damaged, deep=True, engine="ray").to_json() == here
