"""Builds on Ray and Dask give the bytes of a build on this machine, also when workers die, stop or do not fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import RUNS, STOPPED_FACTOR, STOPPED_SECONDS
from watched_rows import WatchedRows, read_traces

import tfrkit as tfr
from tfrkit.build.journal import Journal
from tfrkit.engines import worker
from tfrkit.errors import SourceError, TfrkitError

NUM_SHARDS = 16
SIZE = 320
SECONDS = 0.02


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """The dataset as one process of this machine builds it."""
    folder = tmp_path_factory.mktemp("expected")
    tfr.build(WatchedRows(SIZE, str(folder / "traces")), folder / "rows", shards=NUM_SHARDS, jobs=1)
    return folder / "rows"


def build(tmp_path, engine, *, seconds=SECONDS, **options):
    source = WatchedRows(SIZE, str(tmp_path / "traces"), seconds, options.pop("deadly", -1))
    return tfr.build(source, tmp_path / "rows", shards=NUM_SHARDS, engine=engine, **options)


def signal_busy_worker(tmp_path, number, after):
    """Send a signal to a worker that reads, as soon as `after` rows are read; return its id in a list."""
    hit = []

    def watch():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            traces = read_traces(str(tmp_path / "traces"))
            if sum(map(len, traces.values())) >= after:
                folder = tmp_path / "traces"
                newest = max(traces, key=lambda pid: (folder / str(pid)).stat().st_mtime_ns)
                os.kill(newest, number)
                hit.append(newest)
                return
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread, hit


def test_rows_built_on_a_cluster_equal_those_of_one_process(tmp_path, engine, expected, digest):
    report = build(tmp_path, engine, seconds=0)
    assert report.written == SIZE
    assert digest(tmp_path / "rows") == digest(expected)
    # Workers read every row; on a busy machine one task may seem slow and be run twice.
    numbers = [number for read in read_traces(str(tmp_path / "traces")).values() for number in read]
    assert set(numbers) == set(range(SIZE))


@pytest.mark.parametrize("options", [{"shards": 3}, {"shards": 1}, {"shards": 3, "compression": "gzip"}])
def test_tables_built_on_a_cluster_equal_those_of_one_process(tmp_path, engine, digest, options):
    table = tmp_path / "table.csv"
    table.write_text("id,name,score\n" + "".join(f"{n},name {n},{n / 4}\n" for n in range(20_000)))
    tfr.build(tfr.sources.table(str(table)), tmp_path / "here" / "t", splits={"test": 0.1}, **options)
    tfr.build(tfr.sources.table(str(table)), tmp_path / "there" / "t", splits={"test": 0.1}, engine=engine, **options)
    assert digest(tmp_path / "there" / "t") == digest(tmp_path / "here" / "t")


def test_large_shard_is_cut_for_the_workers_and_joined(tmp_path, engine, digest):
    source = WatchedRows(200, str(tmp_path / "traces"))
    tfr.build(source, tmp_path / "here" / "t", shards=1, jobs=1)
    tfr.build(source, tmp_path / "there" / "t", shards=1, engine=engine)
    assert digest(tmp_path / "there" / "t") == digest(tmp_path / "here" / "t")


def test_relative_paths_start_at_the_folder_of_the_driver(tmp_path, engine, expected, digest, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfr.build(WatchedRows(SIZE, "traces"), "rows", shards=NUM_SHARDS, engine=engine)
    assert digest(tmp_path / "rows") == digest(expected)


def test_bad_inputs_are_listed_as_by_a_local_build(tmp_path, engine):
    for name in ("a1.png", "b1.png"):
        (tmp_path / "images").mkdir(exist_ok=True)
        (tmp_path / "images" / name).write_bytes(b"no picture")
    source = tfr.sources.file_names(str(tmp_path / "images"), label="(?P<class>[ab])")
    with pytest.raises(SourceError) as here:
        tfr.build(source, tmp_path / "here", jobs=1)
    with pytest.raises(SourceError) as there:
        tfr.build(source, tmp_path / "there", engine=engine)
    assert str(there.value) == str(here.value)
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_worker_costs_its_tasks_and_nothing_else(tmp_path, engine, expected, digest, run):
    thread, killed = signal_busy_worker(tmp_path, signal.SIGKILL, after=20 + 97 * run % 250)
    build(tmp_path, engine)
    thread.join()
    assert killed
    assert digest(tmp_path / "rows") == digest(expected)
    num_read = sum(map(len, read_traces(str(tmp_path / "traces")).values()))
    # One task was lost, and at most two more were run again.
    assert num_read <= SIZE + 3 * (SIZE // NUM_SHARDS)


def test_stopped_worker_delays_the_build_by_less_than_half(tmp_path, engine, expected, digest):
    started = time.monotonic()
    (tmp_path / "whole").mkdir()
    build(tmp_path / "whole", engine, seconds=STOPPED_SECONDS)
    seconds = time.monotonic() - started
    (tmp_path / "stopped").mkdir()
    started = time.monotonic()
    thread, stopped = signal_busy_worker(tmp_path / "stopped", signal.SIGSTOP, after=SIZE // 2)
    try:
        build(tmp_path / "stopped", engine, seconds=STOPPED_SECONDS)
        assert time.monotonic() - started <= STOPPED_FACTOR * seconds + 1
    finally:
        thread.join()
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)
    assert digest(tmp_path / "stopped" / "rows") == digest(expected)


def test_task_that_kills_its_workers_ends_the_build_by_name(tmp_path, engine):
    with pytest.raises(TfrkitError, match=r"a worker ended \(.*\) [34] times at the same task") as caught:
        build(tmp_path, engine, seconds=0, deadly=77)
    assert caught.value.shard.startswith("rows-train.tfrecord-000")
    assert not (tmp_path / "rows" / "tfrkit.json").exists()
    assert list((tmp_path / "rows" / "_build").glob("shards-*/*.done.json"))


def test_driver_that_is_killed_resumes_and_repeats_no_finished_shard(tmp_path, engine, expected, digest, request):
    """The driver is another process, connected by address."""
    if engine == "ray":
        address = request.getfixturevalue("ray_nodes").address
    else:
        address = request.getfixturevalue("dask_client").scheduler.address
    traces = tmp_path / "traces"
    code = (
        "import sys, tfrkit as tfr; from watched_rows import WatchedRows\n"
        f"tfr.build(WatchedRows({SIZE}, {str(traces)!r}, {SECONDS}), {str(tmp_path / 'rows')!r}, "
        f"shards={NUM_SHARDS}, engine={engine!r}, engine_address={address!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as driver:
        while sum(map(len, read_traces(str(traces)).values())) < SIZE // 2 and driver.poll() is None:
            time.sleep(0.01)
        driver.kill()
    assert driver.returncode == -signal.SIGKILL
    finished = {path.name for path in (tmp_path / "rows" / "_build").glob("shards-*/*.done.json")}
    assert finished
    report = build(tmp_path, engine)
    assert report.resumed >= len(finished)
    assert digest(tmp_path / "rows") == digest(expected)


def test_worker_with_another_version_is_refused_by_name(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(worker, "VERSION", "9.9.9")
    with pytest.raises(TfrkitError, match=r"a worker was refused: .*, process \d+: tfrkit .*, expected 9\.9\.9 as on"):
        build(tmp_path, engine)
    assert not list((tmp_path / "rows" / "_build").glob("shards-*/*.tfrecord*"))


def test_worker_that_does_not_see_the_output_is_refused_before_the_first_task(tmp_path, engine, monkeypatch):
    original = Journal.write_token
    monkeypatch.setattr(Journal, "write_token", lambda self: (original(self)[0], b"of another machine"))
    with pytest.raises(TfrkitError, match="does not see .*_build, where this job keeps its files"):
        build(tmp_path, engine)
    assert read_traces(str(tmp_path / "traces")) == {}


def test_command_builds_on_a_cluster(tmp_path, dask_client, digest):
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{n},{n * n}\n" for n in range(1000)))
    command = [sys.executable, "-m", "tfrkit", "build", "table", "t.csv", "--shards", "4", "--progress", "none"]
    on_cluster = ["--engine", "dask", "--engine-address", dask_client.scheduler.address]
    subprocess.run([*command, "-o", "here/t"], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([*command, "-o", "there/t", *on_cluster], cwd=tmp_path, check=True, capture_output=True)
    assert digest(tmp_path / "there" / "t") == digest(tmp_path / "here" / "t")


@pytest.mark.parametrize("run", range(RUNS))
def test_killed_ray_node_costs_its_tasks_and_nothing_else(tmp_path, ray_nodes, expected, digest, run):
    """The node that is killed is a third one, which runs two tasks at a time."""
    node = ray_nodes.add_node(num_cpus=2)
    traces = tmp_path / "traces"
    killed = []

    def kill():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if sum(map(len, read_traces(str(traces)).values())) >= 40 + 97 * run % 160:
                ray_nodes.remove_node(node, allow_graceful=False)
                killed.append(node)
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    build(tmp_path, "ray", seconds=0.05)
    thread.join()
    assert killed
    assert digest(tmp_path / "rows") == digest(expected)
    # Its two tasks were lost, and at most two more were run again.
    assert sum(map(len, read_traces(str(traces)).values())) <= SIZE + 4 * (SIZE // NUM_SHARDS)
