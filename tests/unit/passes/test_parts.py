"""Parts of a verb, run one after the other or at once, give the result of one machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import CorruptRecordError, OtherPartsError, StorageError
from tfrkit.ops.count import CountTask
from tfrkit.passes import parts
from tfrkit.passes.parts import digest_work
from tfrkit.testing.corruption import flip
from tfrkit.tools import Part


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "rows"
    rows = [
        {"x": number, "y": np.float32(number / 3), "name": f"n{number % 7}", "label": number % 3, "some": [1] * 3}
        for number in range(600)
    ]
    tfr.build(rows, folder, shards=3, splits={"test": 0.25}, jobs=1)
    return folder


@pytest.fixture(autouse=True)
def _one_process(monkeypatch):
    """Tasks run in this process, which is faster."""
    monkeypatch.setattr(parts, "count_cores", lambda: 1)


def read_tree(folder):
    """The bytes of all files but locks."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def run_parts(work, folder, *, count=3, steps=1):
    """Run all parts in turn until one returns the result, which takes a turn of all parts for each step."""
    for turn in range(steps):
        for index in range(count):
            try:
                found = work(Part(f"{index}/{count}", str(folder)))
            except OtherPartsError as error:
                assert f"part {index}/{count} is done, " in str(error)
                continue
            assert turn == steps - 1
            return found
    raise AssertionError("no part returned the result")


PRINTING = {
    "count": (lambda address, **how: tfr.tools.count(address, **how), 1),
    "verify": (lambda address, **how: tfr.tools.verify(address, **how).to_json(), 1),
    "verify --sha256": (lambda address, **how: tfr.tools.verify(address, sha256=True, **how).to_json(), 2),
    "verify --deep": (lambda address, **how: tfr.tools.verify(address, deep=True, **how).to_json(), 3),
    "stats": (lambda address, **how: tfr.tools.stats(address, **how).to_json(), 1),
    "sql": (
        lambda address, **how: list(
            tfr.sql(
                f"select label, name, count(*), sum(x) from '{address}' group by 1, 2 order by 1, 2", **how
            ).tuples()
        ),
        1,
    ),
    "sql of rows": (
        lambda address, **how: list(
            tfr.sql(f"select x, y, name, \"some\" from '{address}' where x % 100 = 1 order by x", **how).tuples()
        ),
        1,
    ),
}


@pytest.mark.parametrize("verb", PRINTING)
def test_result_is_that_of_one_machine(verb, dataset, tmp_path):
    work, steps = PRINTING[verb]
    found = run_parts(lambda part: work(dataset, engine=part), tmp_path / "meet", steps=steps)
    assert found == work(dataset)


WRITING = {
    "convert": ({"compression": "gzip", "drop": ["name"], "jobs": 1}, 1),
    "reshard": ({"shards": 5, "jobs": 1}, 1),
    "shuffle": ({"seed": 5, "shards": 4, "jobs": 1}, 1),
    "shuffle of small records": ({"seed": 5, "shards": 4, "jobs": 1}, 2),
    "export_csv": ({}, 2),
    "export_jsonl": ({}, 2),
}


@pytest.mark.parametrize("verb", WRITING)
def test_files_have_the_bytes_of_one_machine(verb, dataset, tmp_path, monkeypatch):
    options, steps = WRITING[verb]
    work = getattr(tfr.tools, verb.partition(" ")[0])
    monkeypatch.setattr(LIMITS, "run_stretch_nbytes", 64)  # a run for each source shard
    monkeypatch.setattr("tfrkit.ops.reshape.shuffle.can_gather", lambda sources: verb == "shuffle")
    work(dataset, tmp_path / "here" / "out", **options)
    run_parts(
        lambda part: work(dataset, tmp_path / "there" / "out", engine=part, **options), tmp_path / "meet", steps=steps
    )
    assert read_tree(tmp_path / "there") == read_tree(tmp_path / "here")
    assert not [path for path in (tmp_path / "meet").iterdir() if path.is_dir()], "intermediate files are left"
    with pytest.raises(OtherPartsError, match="another part has written the output"):
        work(dataset, tmp_path / "there" / "out", engine=Part("0/3", str(tmp_path / "meet")), **options)


def test_part_that_was_killed_does_only_what_it_had_not_saved(dataset, tmp_path, monkeypatch):
    """A task that fails stands for the kill: results before it are saved, it and those after it are not."""
    monkeypatch.setattr(LIMITS, "part_save_seconds", 0)
    ran = []
    real = CountTask.run

    def run(self, tick):
        ran.append(self.path)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return real(self, tick)

    monkeypatch.setattr(CountTask, "run", run)
    part = Part("0/1", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        tfr.tools.count(dataset, engine=part)
    found = tfr.tools.count(dataset, engine=part)
    assert found == tfr.tools.count(dataset)
    assert len(ran) == len(found) + 1


def test_last_part_killed_while_it_puts_files_in_place_is_run_again(dataset, tmp_path, monkeypatch):
    options = {"shards": 5, "jobs": 1}
    tfr.tools.reshard(dataset, tmp_path / "here", **options)
    folder = str(tmp_path / "meet")
    with pytest.raises(OtherPartsError):
        tfr.tools.reshard(dataset, tmp_path / "there", engine=Part("0/2", folder), **options)
    with monkeypatch.context() as patch:
        patch.setattr("tfrkit.outputs.dataset.Staging.commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tfr.tools.reshard(dataset, tmp_path / "there", engine=Part("1/2", folder), **options)
    assert not (tmp_path / "there").exists()
    tfr.tools.reshard(dataset, tmp_path / "there", engine=Part("finish", folder), **options)
    assert read_tree(tmp_path / "there") == read_tree(tmp_path / "here")


def test_parts_at_once_write_one_output(dataset, tmp_path):
    """Four threads, of which two are the same part."""
    options = {"shards": 6, "jobs": 1}
    tfr.tools.reshard(dataset, tmp_path / "here", **options)
    outcomes = []

    def work(name):
        try:
            tfr.tools.reshard(dataset, tmp_path / "there", engine=Part(name, str(tmp_path / "meet")), **options)
            outcomes.append("written")
        except OtherPartsError:
            outcomes.append("other parts")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("0/3", "1/3", "1/3", "2/3")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["other parts"] * 3 + ["written"]
    assert read_tree(tmp_path / "there") == read_tree(tmp_path / "here")


SAVED = {
    "copied.tfrecord": "select * from '{}' where x % 9 = 1",
    "sums.tfrecord": "select label, sum(x)::bigint as n from '{}' group by 1 order by 1",
    "sums.csv": "select label, sum(x) as n from '{}' group by 1 order by 1",
    "rows.jsonl": "select x, name from '{}' where x < 20 order by x",
    "rows.parquet": "select x, name from '{}' where x < 20 order by x",
}


@pytest.mark.parametrize("name", SAVED)
def test_query_of_parts_that_end_at_one_moment_is_saved_once(name, dataset, tmp_path, monkeypatch):
    """Both parts have all results before one of them writes: one saves, the other reports that it is done."""
    pytest.importorskip("duckdb")
    text = SAVED[name].format(dataset)
    with tfr.sql(text) as answer:
        answer.save(tmp_path / name)
    both = threading.Barrier(2, timeout=60)
    save_results, finish_output = parts.PartWorkers._save, parts.PartWorkers.finish

    def save(self, *given):
        save_results(self, *given)
        both.wait()  # then each finds the results of both

    def finish(self):
        both.wait()
        return finish_output(self)

    monkeypatch.setattr(parts.PartWorkers, "_save", save)
    monkeypatch.setattr(parts.PartWorkers, "finish", finish)
    out = tmp_path / "there" / name
    outcomes = []

    def work(index):
        try:
            with tfr.sql(text, engine=Part(f"{index}/2", str(tmp_path / "meet"))) as answer:
                outcomes.append(answer.save(out).records)
        except OtherPartsError as error:
            outcomes.append(str(error))

    run_all = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in run_all:
        thread.start()
    for thread in run_all:
        thread.join()
    [written] = [one for one in outcomes if isinstance(one, int)]
    [other] = [one for one in outcomes if isinstance(one, str)]
    assert written == len(list(tfr.sql(text).tuples()))
    assert "another part has written the output" in other
    if name != "rows.parquet":  # its bytes have the order of threads
        assert out.read_bytes() == (tmp_path / name).read_bytes()
    assert [path.name for path in out.parent.iterdir()] == [name]


def test_query_of_a_part_that_runs_again_after_the_end_is_not_an_error(dataset, tmp_path):
    pytest.importorskip("duckdb")
    text = f"select x from '{dataset}' where x < 20 order by x"

    def save(index):
        with tfr.sql(text, engine=Part(f"{index}/2", str(tmp_path / "meet"))) as answer:
            answer.save(tmp_path / "out.csv")

    with pytest.raises(OtherPartsError, match="tasks are missing"):
        save(0)
    assert not (tmp_path / "out.csv").exists()
    save(1)
    for index in (0, 1):
        with pytest.raises(OtherPartsError, match="another part has written the output"):
            save(index)


def test_query_of_parts_over_a_file_is_refused_and_can_be_completed(dataset, tmp_path):
    pytest.importorskip("duckdb")
    (tmp_path / "out.csv").write_text("mine")
    text = f"select x from '{dataset}' where x < 20 order by x"

    def save(part, *, force=False):
        with tfr.sql(text, engine=Part(part, str(tmp_path / "meet"))) as answer:
            answer.save(tmp_path / "out.csv", force=force)

    with pytest.raises(StorageError, match="the output exists already"):
        save("0/1")
    with pytest.raises(StorageError, match="the output exists already"):
        save("finish")
    assert (tmp_path / "out.csv").read_text() == "mine"
    save("finish", force=True)
    assert (tmp_path / "out.csv").read_text().startswith("x\n0\n")


@pytest.mark.parametrize("verb", ["reshard", "export_csv", "sql"])
def test_part_killed_after_the_output_appeared_is_run_again(verb, dataset, tmp_path, monkeypatch):
    """The output is complete, and the note of it is missing."""
    pytest.importorskip("duckdb")
    out = tmp_path / "there" / ("out" if verb == "reshard" else "out.csv")

    def work(**how):
        if verb == "sql":
            with tfr.sql(f"select x from '{dataset}' where x < 20 order by x", **how) as answer:
                return answer.save(out)
        if verb == "reshard":
            return tfr.tools.reshard(dataset, out, shards=5, **how)
        return tfr.tools.export_csv(dataset, out, **how)

    with monkeypatch.context() as patch:
        patch.setattr("tfrkit.storage.shared_folder.SharedFolder.remove_file", lambda *_: None)  # a kill does not
        real = parts.SharedFolder.write

        def write(self, name, data):
            if name.endswith(".done"):
                raise KeyboardInterrupt
            real(self, name, data)

        patch.setattr(parts.SharedFolder, "write", write)
        for _ in range(2):
            with contextlib.suppress(OtherPartsError), pytest.raises(KeyboardInterrupt):
                work(engine=Part("0/1", str(tmp_path / "meet")))
    assert out.exists()
    expected = read_tree(tmp_path / "there")
    work(engine=Part("0/1", str(tmp_path / "meet")))
    assert read_tree(tmp_path / "there") == expected
    assert sorted(path.suffix for path in (tmp_path / "meet").iterdir() if "work" in path.name) == [".done", ".lock"]


def test_finish_names_what_is_missing(dataset, tmp_path):
    with pytest.raises(OtherPartsError, match="the result is not complete, 6 of 6 tasks are missing"):
        tfr.tools.count(dataset, engine=Part("finish", str(tmp_path)))


@pytest.mark.parametrize("name", ["rows", "meet-rows"])  # "meet" is where the parts meet
def test_results_of_a_file_that_changed_are_not_used(dataset, tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(dataset, folder)
    for index in range(2):
        with contextlib.suppress(OtherPartsError):
            tfr.tools.verify(folder, engine=Part(f"{index}/3", str(tmp_path / "meet")))
    path = sorted(folder.glob("*.tfrecord-*"))[0]
    path.write_bytes(flip(path.read_bytes(), 200))
    with pytest.raises(OtherPartsError, match="4 of 6 tasks are missing.*\n.*changed files"):
        tfr.tools.verify(folder, engine=Part("2/3", str(tmp_path / "meet")))


def test_error_of_a_task_is_raised_and_not_kept(dataset, tmp_path):
    folder = tmp_path / "rows"
    shutil.copytree(dataset, folder, ignore=shutil.ignore_patterns("_index"))
    path = sorted(folder.glob("*.tfrecord-*"))[2]
    path.write_bytes(flip(path.read_bytes(), path.stat().st_size // 2))
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=path.name):
            tfr.tools.convert(folder, tmp_path / "out", jobs=1, engine=Part("2/3", str(tmp_path / "meet")))


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"dict": 1}', b"\x80\x05x"])
def test_file_that_is_no_result_is_refused(dataset, tmp_path, content):
    with pytest.raises(OtherPartsError):
        tfr.tools.count(dataset, engine=Part("0/2", str(tmp_path)))
    [results] = tmp_path.iterdir()
    results.write_bytes(content)
    with pytest.raises(StorageError, match="expected results of a part, got another file"):
        tfr.tools.count(dataset, engine=Part("1/2", str(tmp_path)))


def test_digest_does_not_depend_on_the_process():
    code = (
        "from tfrkit.passes.parts import digest_work; print(digest_work([frozenset('abcdef'), {'b': 1, 'a': 2}], []))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.decode().strip() == digest_work([frozenset("abcdef"), {"a": 2, "b": 1}], [])
    assert digest_work(["ab", "c"], []) != digest_work(["a", "bc"], [])
