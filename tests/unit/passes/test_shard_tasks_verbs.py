"""Verbs on an engine give the results and the bytes of one machine; worker processes stand in for a cluster."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import CorruptRecordError, MissingFeatureError, StorageError
from tfrkit.ops.reshape import shuffle_on_workers
from tfrkit.testing.corruption import flip


@pytest.fixture(autouse=True)
def _cluster(use_processes):
    """Two processes in place of a cluster."""
    use_processes(2)


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


@pytest.fixture(scope="module")
def stored(dataset, tmp_path_factory):
    """The dataset in a compression, made once."""

    def store(compression):
        folder = tmp_path_factory.getbasetemp() / f"stored-{compression}"
        if not folder.exists():
            tfr.tools.convert(dataset, folder, compression=compression)
        return folder

    return store


def read_tree(folder):
    """The bytes of all files but locks, and reports, which hold a duration."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("report.json", ".lock")
    }


def require_same(verb, source, tmp_path, *arguments, **options):
    """Run a verb here and on workers; the files and the results are equal, and nothing else is left."""
    work = getattr(tfr.tools, verb)
    made = {}
    for engine in ("local", "ray"):
        folder = tmp_path / engine
        folder.mkdir()
        result = work(source, folder / "out", *arguments, engine=engine, **options).to_json()
        made[engine] = read_tree(folder), json.dumps(result).replace(str(folder), "")
    assert made["ray"][0].keys() == made["local"][0].keys()
    assert made["ray"] == made["local"]
    return made["local"][0]


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


COMPRESSIONS = ["none", "gzip", "zstd"]


class TestConvert:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"compression": "gzip"},
            {"drop": ["image"], "rename": {"x": "number"}},
            {"cast": {"label": "float"}, "compression": "zstd"},
        ],
    )
    def test_files_are_those_of_one_machine(self, dataset, tmp_path, options):
        assert len(require_same("convert", dataset, tmp_path, **options)) > 8

    def test_one_file(self, dataset, tmp_path):
        path = min(dataset.glob("*.tfrecord-*"))
        for engine in ("local", "ray"):
            tfr.tools.convert(path, tmp_path / f"{engine}.tfrecord.gz", engine=engine)
        here, there = ((tmp_path / f"{engine}.tfrecord.gz").read_bytes() for engine in ("local", "ray"))
        assert there == here

    def test_name_that_no_record_has_is_refused_and_nothing_is_left(self, dataset, tmp_path):
        with pytest.raises(MissingFeatureError, match="nome"):
            tfr.tools.convert(dataset, tmp_path / "out", drop=["nome"], engine="ray")
        assert list(tmp_path.iterdir()) == []

    def test_first_damage_is_raised_and_nothing_is_left(self, damaged, tmp_path):
        (tmp_path / "there").mkdir()
        errors = []
        for engine in ("local", "dask"):
            with pytest.raises(CorruptRecordError, match="nothing was written") as caught:
                tfr.tools.convert(damaged, tmp_path / "there" / "out", engine=engine)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        assert list((tmp_path / "there").iterdir()) == []

    def test_standard_output_is_refused(self, dataset):
        with pytest.raises(ValueError, match="workers of a cluster write files, got standard output"):
            tfr.tools.convert(min(dataset.glob("*.tfrecord-*")), "-", engine="ray")


class TestReshard:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("options", [{"shards": 1}, {"shards": 3}, {"shards": 9}, {"shard_size": "20KB"}])
    def test_files_are_those_of_one_machine(self, stored, tmp_path, compression, options):
        require_same("reshard", stored(compression), tmp_path, **options)

    def test_one_file(self, dataset, tmp_path):
        for engine in ("local", "ray"):
            tfr.tools.reshard(dataset, tmp_path / f"{engine}.tfrecord", shards=1, engine=engine)
        here, there = ((tmp_path / f"{engine}.tfrecord").read_bytes() for engine in ("local", "ray"))
        assert there == here

    def test_without_an_index(self, dataset, tmp_path):
        for path in dataset.glob("*.tfrecord-*"):
            (tmp_path / "bare").mkdir(exist_ok=True)
            (tmp_path / "bare" / path.name).write_bytes(path.read_bytes())
        require_same("reshard", tmp_path / "bare", tmp_path, shards=5)

    def test_output_is_replaced(self, dataset, tmp_path):
        for engine in ("local", "ray"):
            tfr.tools.reshard(dataset, tmp_path / engine / "out", shards=2, engine="local")
            tfr.tools.reshard(dataset, tmp_path / engine / "out", shards=5, force=True, engine=engine)
        assert read_tree(tmp_path / "ray") == read_tree(tmp_path / "local")
        assert not list((tmp_path / "ray" / "out").glob(".*"))

    def test_first_damage_is_raised(self, damaged, tmp_path):
        errors = []
        for engine in ("local", "dask"):
            with pytest.raises(CorruptRecordError, match="nothing was written") as caught:
                tfr.tools.reshard(damaged, tmp_path / "out", shards=7, engine=engine)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


class TestShuffle:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("options", [{}, {"shards": 7, "seed": 3}, {"shards": 1}])
    def test_files_are_those_of_one_machine(self, stored, tmp_path, compression, options):
        require_same("shuffle", stored(compression), tmp_path, **options)

    def test_many_buckets_and_runs(self, dataset, tmp_path, monkeypatch):
        monkeypatch.setattr(LIMITS, "min_shuffle_nbytes", 0)
        monkeypatch.setattr(LIMITS, "max_buckets", 10_000)
        monkeypatch.setattr(LIMITS, "run_stretch_nbytes", 100)
        require_same("shuffle", dataset, tmp_path, shards=3, memory=100_000)

    def test_large_records_are_gathered(self, tmp_path, monkeypatch):
        monkeypatch.setattr(shuffle_on_workers, "RunTask", None)
        rows = [{"x": number, "blob": bytes([number % 256]) * 40_000} for number in range(300)]
        tfr.build(rows, tmp_path / "large", shards=5, splits={"test": 0.2}, jobs=1)
        require_same("shuffle", tmp_path / "large", tmp_path, shards=4)

    def test_one_file(self, dataset, tmp_path):
        for engine in ("local", "ray"):
            tfr.tools.shuffle(dataset, tmp_path / f"{engine}.tfrecord", engine=engine)
        here, there = ((tmp_path / f"{engine}.tfrecord").read_bytes() for engine in ("local", "ray"))
        assert there == here

    def test_empty_shards(self, tmp_path):
        (tmp_path / "in").mkdir()
        for number in range(3):
            (tmp_path / "in" / f"x-{number:05d}-of-00003.tfrecord").write_bytes(b"")
        require_same("shuffle", tmp_path / "in", tmp_path)

    def test_first_damage_is_raised_and_nothing_is_left(self, damaged, tmp_path):
        (tmp_path / "there").mkdir()
        for engine in ("local", "dask"):
            with pytest.raises(CorruptRecordError, match="nothing was written"):
                tfr.tools.shuffle(damaged, tmp_path / "there" / "out", engine=engine)
        assert list((tmp_path / "there").iterdir()) == []


class TestExport:
    @pytest.mark.parametrize("verb", ["export_jsonl", "export_csv"])
    @pytest.mark.parametrize("options", [{}, {"select": ["label", "some"]}])
    def test_folder_of_splits_has_the_bytes_of_one_machine(self, dataset, tmp_path, verb, options):
        made = {}
        for engine in ("local", "ray"):
            (tmp_path / engine).mkdir()
            result = getattr(tfr.tools, verb)(dataset, f"{tmp_path / engine}/out/", engine=engine, **options).to_json()
            made[engine] = read_tree(tmp_path / engine), json.dumps(result).replace(str(tmp_path / engine), "")
        assert len(made["local"][0]) == 2
        assert made["ray"] == made["local"]

    @pytest.mark.parametrize("verb", ["export_jsonl", "export_csv"])
    def test_features_of_the_last_shard_and_other_records_are_there(self, tmp_path, verb):
        (tmp_path / "in").mkdir()
        for number in range(3):
            with tfr.Writer(tmp_path / "in" / f"x-{number:05d}-of-00003.tfrecord") as writer:
                for index in range(40):
                    writer.write({"b": index, **({"a": [number, index]} if number == 2 and index % 2 else {})})
                    if number == 1 and index == 7:
                        writer.write_record(b"no Example")
        for engine in ("local", "ray"):
            getattr(tfr.tools, verb)(tmp_path / "in", tmp_path / f"{engine}.txt", engine=engine)
        assert (tmp_path / "ray.txt").read_bytes() == (tmp_path / "local.txt").read_bytes()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "local.txt", "ray.txt"]

    def test_damage_is_raised_and_nothing_is_left(self, damaged, tmp_path):
        (tmp_path / "there").mkdir()
        errors = []
        for engine in ("local", "ray"):
            with pytest.raises(CorruptRecordError, match="checksum") as caught:
                tfr.tools.export_jsonl(damaged, tmp_path / "there" / "out.jsonl", engine=engine)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]
        assert list((tmp_path / "there").iterdir()) == []

    def test_standard_output_is_refused(self, dataset):
        with pytest.raises(StorageError, match="cannot write jsonl of workers to standard output"):
            tfr.tools.export_jsonl(dataset, "-", engine="ray")
