"""Building into each store: the same files as on disk, resumed after a kill, one builder at a time."""

from __future__ import annotations

import csv
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import boto3
import pytest
from contents import fill, read_folder, read_place
from places import KEYS, WRITABLE, Place
from servers import FaultServer, Started

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.build.task import JoinTask
from tfrkit.build.upload_task import UploadTask
from tfrkit.storage.options import given_options
from tfrkit.testing.commands import run_command

BUILD = ["build", "table", "{source}", "-o", "{out}", "--split", "train=.8,test=.2", "--shards", "train=3,test=1"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "rows.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text"])
        rows.writerows([number, f"row {number} " * 40] for number in range(300))
    return path


@pytest.mark.parametrize("name", WRITABLE)
def test_build_writes_the_same_files_to_each_server_as_to_disk(
    make_place: Callable[[str], Place], source: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    assert run_command(fill(BUILD, source, tmp_path / "out")).exit_code == 0
    ran = run_command([*fill(BUILD, source, f"{place.address}/out"), *place.words()])
    assert (ran.exit_code, ran.stderr) == (0, "seed 0\n")
    assert read_place(place, "out/") == read_folder(tmp_path / "out")


@pytest.mark.parametrize("name", ["s3-moto", "az-azurite", "gs-fault"])
def test_parts_write_the_same_files_to_a_server_as_one_build_to_disk(
    make_place: Callable[[str], Place], source: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    assert run_command(fill(BUILD, source, tmp_path / "out")).exit_code == 0
    running = [start([*fill(BUILD, source, f"{place.address}/out"), "--part", f"{part}/3"], place) for part in range(3)]
    texts = [process.communicate(timeout=300)[0].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], texts
    assert read_place(place, "out/") == read_folder(tmp_path / "out")


def start(words: list[str], place: Place) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tfrkit", *words, *place.words()]
    return subprocess.Popen(command, env=os.environ | KEYS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize(("words", "num_shards"), [(["--jobs", "1"], 8), (["--jobs", "2", "--compression", "gzip"], 4)])
def test_build_killed_at_random_moments_resumes_to_the_same_objects(
    moto: Started, make_place: Callable[[str], Place], source: Path, tmp_path: Path, words: list[str], num_shards: int
) -> None:
    place = make_place("s3-moto")
    build = [*BUILD[:5], "--shards", str(num_shards), *words]
    assert run_command(fill(build, source, tmp_path / "out")).exit_code == 0
    whole = read_folder(tmp_path / "out")
    chance = random.Random(int(os.environ.get("TFR_KILL_SEED", "1")))
    times = int(os.environ.get("TFR_KILLS", "3"))
    num_unfinished = 0
    for number in range(times):
        out = f"{place.address}/{number}/out"
        while True:
            process = start(fill(build, source, out), place)
            wait_for(process, partial(place.names_below, f"{number}/"))
            time.sleep(chance.uniform(0, 0.5))
            process.kill()
            process.communicate()
            found = read_place(place, f"{number}/out/")
            if "tfrkit.json" not in found:
                num_unfinished += 1
            else:
                assert {name: found.get(name) for name in whole} == whole
            if chance.random() < 0.6:  # else it is killed again
                break
        ran = run_command([*fill(build, source, out), *place.words()])
        assert ran.exit_code == 0, ran.stderr
        assert read_place(place, f"{number}/out/") == whole
        place.remove(f"{number}/")  # the server would become slow
    assert num_unfinished >= times // 3


def wait_for(process: subprocess.Popen[bytes], is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while process.poll() is None and not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_two_builders_at_once_give_one_whole_dataset(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    builds = [[*BUILD[:5], "--shards", "2"], [*BUILD[:5], "--shards", "3"]]
    wholes = []
    for number, build in enumerate(builds):
        run_command(fill(build, source, tmp_path / str(number) / "out"))
        wholes.append(read_folder(tmp_path / str(number) / "out"))
    fault_server.set_faults(latency=0.01)
    for number, pair in enumerate([(0, 1), (0, 0), (1, 0)]):
        out = f"{place.address}/{number}/out"
        both = [start(fill(builds[one], source, out), place) for one in pair]
        texts = [process.communicate()[0].decode() for process in both]
        codes = [process.returncode for process in both]
        assert 0 in codes, texts
        for code, text in zip(codes, texts, strict=True):
            assert code == 0 or "another process writes this folder" in text or "made from other inputs" in text
        assert read_place(place, f"{number}/out/") in (wholes[pair[0]], wholes[pair[1]])
        assert pair[0] == pair[1] or codes.count(0) == 1
    assert fault_server.uploads() == []


def test_second_build_finds_the_dataset_finished_and_another_plan_is_refused(
    make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-moto")
    words = [*fill(BUILD, source, f"{place.address}/out"), *place.words()]
    run_command(words)
    ran = run_command(words)
    assert (ran.exit_code, "already there, made from the same inputs" in ran.stdout) == (0, True)
    ran = run_command([*words, "--seed", "3"])
    assert ran.exit_code == 3
    assert "a finished dataset exists, made from other inputs or options" in ran.stderr
    assert "seed was 0, is 3" in ran.stderr


def test_force_replaces_a_dataset_and_leaves_none_of_its_files(
    make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-moto")
    run_command([*fill(BUILD, source, f"{place.address}/out"), *place.words()])
    other = [*BUILD[:5], "--shards", "2"]
    ran = run_command([*fill(other, source, f"{place.address}/out"), "--force", *place.words()])
    assert (ran.exit_code, ran.stderr) == (0, "")
    run_command(fill(other, source, tmp_path / "out"))
    assert read_place(place, "out/") == read_folder(tmp_path / "out")


def test_force_over_an_unfinished_build_leaves_none_of_its_shards(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    words = [*fill(BUILD, source, f"{place.address}/out"), *place.words()]
    fault_server.set_faults(deny=1, only="^PUT .*00002-of")
    ran = run_command(words)
    assert ran.exit_code == 3
    assert "refuses access" in ran.stderr
    assert "finished shards are kept" in ran.stderr
    fault_server.set_faults()
    assert any(".done.json" in name for name in place.names())
    ran = run_command([*words, "--seed", "3"])
    assert "an unfinished build exists, started with other inputs or options" in ran.stderr
    other = [*BUILD[:5], "--shards", "2"]
    ran = run_command([*fill(other, source, f"{place.address}/out"), "--force", *place.words()])
    assert ran.exit_code == 0
    run_command(fill(other, source, tmp_path / "out"))
    assert read_place(place, "out/") == read_folder(tmp_path / "out")


def test_one_file_is_built_with_its_sidecars(make_place: Callable[[str], Place], source: Path, tmp_path: Path) -> None:
    place = make_place("s3-moto")
    words = ["build", "table", str(source), "-o"]
    run_command([*words, str(tmp_path / "out" / "x.tfrecord.gz")])
    ran = run_command([*words, f"{place.address}/out/x.tfrecord.gz", *place.words()])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert read_place(place, "out/") == read_folder(tmp_path / "out")
    ran = run_command([*words, f"{place.address}/out/x.tfrecord.gz", *place.words()])
    assert ran.exit_code == 0


def test_faults_of_the_store_do_not_change_the_result(
    fault_server: FaultServer,
    make_place: Callable[[str], Place],
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = make_place("s3-fault")
    run_command(fill(BUILD, source, tmp_path / "out"))
    monkeypatch.setattr(LIMITS, "stall_seconds", 1.0)
    for seed in range(3):
        fault_server.set_faults(slow_down=0.05, cut=0.02, stall=0.01, flip=0.001, lost=0.02, seed=seed)
        ran = run_command([*fill(BUILD, source, f"{place.address}/{seed}/out"), *place.words()])
        assert (ran.exit_code, ran.stderr) == (0, "seed 0\n")
        fault_server.set_faults()
        assert read_place(place, f"{seed}/out/") == read_folder(tmp_path / "out")


def test_keys_are_in_no_message_journal_task_or_object_of_a_build(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-fault")
    words = [*fill(BUILD, source, f"{place.address}/out"), *place.words()]
    said = ""
    for faults in ({"deny": 1.0}, {"deny": 1, "only": "^PUT .*00002-of"}, {"slow_down": 0.3}):
        fault_server.set_faults(**faults)
        ran = run_command(words)
        said += ran.stdout + ran.stderr
        fault_server.set_faults()
        said += "".join((place.fetch(name) or b"").decode("latin-1") for name in place.names())
    with place.used():
        address = f"{place.address}/x"
        task = UploadTask(JoinTask("x", 1), address, given_options([address]))
        said += repr(task) + pickle.dumps(task).decode("latin-1")
    assert place.address in said
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AZURE_STORAGE_ACCOUNT_KEY"):
        assert KEYS[name] not in said
    assert "Signature" not in said


def test_build_with_bad_inputs_leaves_nothing(make_place: Callable[[str], Place], tmp_path: Path) -> None:
    place = make_place("s3-moto")
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "x.jpg").write_bytes(b"no picture")
    ran = run_command(["build", "class-folders", str(tmp_path / "in"), "-o", f"{place.address}/out", *place.words()])
    assert ran.exit_code == 3
    assert place.names() == []


def test_build_in_python_from_rows_can_be_read_back(make_place: Callable[[str], Place]) -> None:
    place = make_place("s3-fault")
    with place.used():
        rows = [{"x": number, "label": number % 2} for number in range(100)]
        report = tfr.build(rows, f"{place.address}/numbers/", splits={"test": 0.1}, seed=0)
        assert report.written == 100
        ds = tfr.open(f"{place.address}/numbers/")
        assert sorted(row["x"] for row in ds) == list(range(100))
        assert len(ds["test"]) == 10


def test_clean_removes_an_unfinished_build_and_its_uploads(
    moto: Started, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-moto")
    words = [*fill([*BUILD[:5], "--shards", "8"], source, f"{place.address}/out"), *place.words()]
    process = start(words[: -len(place.words())], place)
    wait_for(process, lambda: [name for name in place.names() if ".done.json" in name])
    process.kill()
    process.communicate()
    boto = boto3.client("s3", endpoint_url=moto.url)
    for key in (f"{place.folder}out/out-train.tfrecord-00007-of-00008", f"{place.folder}other/x"):
        boto.create_multipart_upload(Bucket="bucket", Key=key)
    ran = run_command([*words, "--clean"])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "of an unfinished build, 1 unfinished uploads" in ran.stdout
    assert place.names() == []
    left = boto.list_multipart_uploads(Bucket="bucket", Prefix=place.folder)["Uploads"]
    assert [upload["Key"] for upload in left] == [f"{place.folder}other/x"]
    assert "nothing to remove" in run_command([*words, "--clean"]).stdout


def test_resumed_build_aborts_uploads_of_the_killed_one(
    moto: Started, make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-moto")
    words = [*fill([*BUILD[:5], "--shards", "8"], source, f"{place.address}/out"), *place.words()]
    process = start(words[: -len(place.words())], place)
    wait_for(process, lambda: [name for name in place.names() if ".done.json" in name])
    process.kill()
    process.communicate()
    boto = boto3.client("s3", endpoint_url=moto.url)
    boto.create_multipart_upload(Bucket="bucket", Key=f"{place.folder}out/out-train.tfrecord-00007-of-00008")
    assert run_command(words).exit_code == 0
    assert "Uploads" not in boto.list_multipart_uploads(Bucket="bucket", Prefix=place.folder)
