"""Builds and verbs on Ray and Dask between buckets: the bytes of one machine, and no keys in tasks."""

from __future__ import annotations

import itertools

import pytest
from conftest import SECRET, WRITING_VERBS

import tfrkit as tfr
from tfrkit.engines.dask import DaskCluster
from tfrkit.engines.ray import RayCluster

_numbers = itertools.count()


@pytest.fixture
def folder(bucket):
    """An empty folder of the bucket; tfrkit of this process knows its server."""
    tfr.tools.use_storage(endpoint=bucket.url)
    yield f"s3://bucket/f{next(_numbers)}"
    tfr.tools.use_storage()


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "rows"
    rows = [{"x": number, "name": f"n{number % 11}", "label": number % 3} for number in range(4000)]
    tfr.build(rows, path, shards=4, splits={"test": 0.25}, jobs=1)
    return path


def put(client, address, path):
    for file in sorted(path.rglob("*")):
        if file.is_file():
            key = f"{address.removeprefix('s3://bucket/')}/{file.relative_to(path)}"
            client.put_object(Bucket="bucket", Key=key, Body=file.read_bytes())


def read(client, address):
    """The objects below an address, but the report, which holds a duration, and the manifest, which holds versions."""
    prefix = f"{address.removeprefix('s3://bucket/')}/"
    found = client.list_objects_v2(Bucket="bucket", Prefix=prefix).get("Contents", [])
    names = [row["Key"] for row in found if not row["Key"].endswith(("report.json", "tfrkit.json"))]
    return {name.removeprefix(prefix): client.get_object(Bucket="bucket", Key=name)["Body"].read() for name in names}


def read_local(path):
    left_out = ("report.json", "tfrkit.json", ".lock")
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name not in left_out]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def show_images(folder):
    from PIL import Image

    for number in range(90):
        (folder / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (number, 7, 9)).save(folder / "ab"[number % 2] / f"{number:03}.png")


def test_build_between_buckets_equals_one_machine_and_sends_no_keys(tmp_path, engine, folder, client, monkeypatch):
    show_images(tmp_path / "in")
    put(client, f"{folder}/in", tmp_path / "in")
    sent = []
    for cluster in (RayCluster, DaskCluster):
        original = cluster.dump

        def spy(self, task, original=original):
            sent.append(original(self, task))
            return sent[-1]

        monkeypatch.setattr(cluster, "dump", spy)
    tfr.build(tfr.sources.class_folders(tmp_path / "in"), tmp_path / "d", shards=5)
    report = tfr.build(tfr.sources.class_folders(f"{folder}/in"), f"{folder}/d", shards=5, engine=engine)
    assert report.written == 90
    here, there = read_local(tmp_path / "d"), read(client, f"{folder}/d")
    assert {name: data for name, data in there.items() if ".tfrecord" in name} == {
        name: data for name, data in here.items() if ".tfrecord" in name
    }
    assert there.keys() == here.keys()
    assert tfr.tools.verify(f"{folder}/d").ok
    assert len(sent) >= 5
    assert not any(SECRET.encode() in payload for payload in sent)


def test_table_built_into_a_bucket_equals_one_machine(tmp_path, engine, folder, client):
    rows = "id,name\n" + "".join(f"{n},name {n}\n" for n in range(5000))
    client.put_object(Bucket="bucket", Key=f"{folder.removeprefix('s3://bucket/')}/t.csv", Body=rows.encode())
    (tmp_path / "t.csv").write_text(rows)
    tfr.build(tfr.sources.table(str(tmp_path / "t.csv")), tmp_path / "d", shards=3)
    tfr.build(tfr.sources.table(f"{folder}/t.csv"), f"{folder}/d", shards=3, engine=engine)
    here, there = read_local(tmp_path / "d"), read(client, f"{folder}/d")
    assert [there[name] for name in here if ".tfrecord-" in name] == [
        here[name] for name in here if ".tfrecord-" in name
    ]


@pytest.mark.parametrize(("verb", "options"), WRITING_VERBS)
def test_verbs_between_buckets_give_the_bytes_of_one_machine(sound, engine, folder, client, tmp_path, verb, options):
    put(client, f"{folder}/rows", sound)
    work = getattr(tfr.tools, verb)
    name = "out.csv" if verb == "export_csv" else "out"
    work(sound, tmp_path / "here" / name, **options)
    work(f"{folder}/rows", f"{folder}/there/{name}", engine=engine, **options)
    here, there = read_local(tmp_path / "here"), read(client, f"{folder}/there")
    named = ("dataset_info.json",)  # it names the inputs
    assert {name: data for name, data in there.items() if not name.endswith(named)} == {
        name: data for name, data in here.items() if not name.endswith(named)
    }
    if verb == "reshard":  # over an output that is there, through the disk of this process
        work(f"{folder}/rows", f"{folder}/there/{name}", engine=engine, shards=3, force=True)
        assert tfr.tools.verify(f"{folder}/there/{name}").ok


def test_verbs_that_read_answer_as_on_one_machine(sound, engine, folder, client):
    put(client, folder, sound)
    assert tfr.tools.count(folder, engine=engine) == tfr.tools.count(folder)
    assert tfr.tools.verify(folder, deep=True, engine=engine).to_json() == tfr.tools.verify(folder, deep=True).to_json()
    assert tfr.tools.stats(folder, engine=engine).to_json() == tfr.tools.stats(folder).to_json()
    query = f"select label, count(*), sum(x) from '{folder}/*.tfrecord-*' group by 1 order by 1"
    assert list(tfr.sql(query, engine=engine).tuples()) == list(tfr.sql(query).tuples())
