"""Writing to each server: the same files as on disk, whole or not at all, with one writer at a time."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from at_place import AtPlace
from contents import fill, read_folder, read_place
from places import KEYS, WRITABLE, Place
from servers import FaultServer

import tfrkit as tfr
from tfrkit.errors import SidecarWarning, StaleIndexWarning, StorageError
from tfrkit.storage.base import ByteWriter
from tfrkit.storage.resolve import open_writer
from tfrkit.testing.commands import run_command
from tfrkit.testing.storage_suite import StorageTests

COMMANDS: dict[str, list[str]] = {
    "convert": ["{source}", "-o", "{out}/x.tfrecord.gz"],
    "merge": ["{source}", "{source}", "-o", "{out}/x.tfrecord"],
    "reshard": ["{source}", "-o", "{out}", "--shards", "3"],
    "shuffle": ["{source}", "-o", "{out}", "--seed", "1", "--shards", "2"],
    "split": ["{source}", "-o", "{out}", "--split", "train=.8,test=.2"],
    "sample": ["{source}", "-n", "50", "-o", "{out}/x.tfrecord"],
    "sql": ["select * from '{source}' where id % 3 = 1", "-o", "{out}/x.tfrecord"],
}


@pytest.mark.parametrize("place", WRITABLE, indirect=True)
class TestRemoteStorage(AtPlace, StorageTests):
    def fetch(self, name: str) -> bytes | None:
        return self.where.fetch(name)

    def open_writer(self, name: str) -> ByteWriter:
        return open_writer(f"{self.where.address}/{name}")

    def leftovers(self) -> list[str]:
        return self.where.names()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "source.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(300):
            writer.write({"id": number, "data": number.to_bytes(4, "little") * 500})
    return path


@pytest.mark.parametrize("name", WRITABLE)
def test_commands_write_the_same_files_to_each_server_as_to_disk(
    make_place: Callable[[str], Place], source: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    for verb, words in COMMANDS.items():
        local = tmp_path / f"{verb}-out"
        assert run_command([verb, *fill(words, source, local)]).exit_code == 0
        ran = run_command([verb, *fill(words, source, f"{place.address}/{verb}-out"), *place.words()])
        assert (verb, ran.exit_code, ran.stderr) == (verb, 0, "")
        assert read_place(place, f"{verb}-out/") == read_folder(local)


@pytest.mark.parametrize("name", WRITABLE)
def test_single_file_has_its_version_in_its_manifest(
    make_place: Callable[[str], Place], source: Path, tmp_path: Path, name: str
) -> None:
    place = make_place(name)
    address = f"{place.address}/x.tfrecord"
    assert run_command(["merge", str(source), "-o", address, *place.words()]).exit_code == 0
    manifest = json.loads(place.fetch("_index/x.tfrecord.tfrkit.json") or b"")
    assert manifest["stored_at"] == place.address
    [row] = manifest["shards"]
    assert row["etag"] == obstore.head(place.client, f"{place.folder}x.tfrecord")["e_tag"]
    with place.used():
        ds = tfr.open(address)
        assert (len(ds), ds._set.sidecars.notes) == (300, [])
    # Another object of the same size: its manifest is not of it any more.
    other = tmp_path / "other.tfrecord"
    with tfr.Writer(other) as writer:
        for number in range(300):
            writer.write({"id": number, "data": number.to_bytes(4, "big") * 500})
    assert other.stat().st_size == source.stat().st_size
    place.put("x.tfrecord", other.read_bytes())
    with place.used():
        ds = tfr.open(address)
        with pytest.warns(StaleIndexWarning):
            assert len(ds) == 300
        with pytest.warns(SidecarWarning):
            assert ds[2]["data"][:4] == b"\0\0\0\2"
        [note] = ds._set.sidecars.notes
    assert "expected the version" in note
    assert "as x.tfrecord.tfrkit.json says" in note


@pytest.mark.parametrize("name", WRITABLE)
def test_large_object_is_sent_in_parts_and_leaves_no_upload(
    make_place: Callable[[str], Place], request: pytest.FixtureRequest, name: str
) -> None:
    place = make_place(name)
    with place.used(), tfr.Writer(f"{place.address}/x.tfrecord", index=True) as writer:
        for number in range(20):
            writer.write({"id": number, "data": bytes([number]) * (1 << 20)})
    with place.used():
        ds = tfr.open(f"{place.address}/x.tfrecord")
        assert [row["data"][:3] for row in ds] == [bytes([number]) * 3 for number in range(20)]
    if name.endswith("fault"):
        server: FaultServer = request.getfixturevalue("fault_server")
        assert len([row for row in server.read_log() if "partNumber" in row["request"]]) >= 3
        assert server.uploads() == []


def test_writing_survives_slow_down_and_lost_answers(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    words = COMMANDS["reshard"]
    run_command(["reshard", *fill(words, source, tmp_path / "out")])
    for seed in range(5):
        fault_server.set_faults(slow_down=0.1, lost=0.05, seed=seed)
        ran = run_command(["reshard", *fill(words, source, f"{place.address}/{seed}/out"), *place.words()])
        assert (ran.exit_code, ran.stderr) == (0, "")
        fault_server.set_faults()
        assert read_place(place, f"{seed}/out/") == read_folder(tmp_path / "out")


def test_upload_that_fails_leaves_nothing(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-fault")
    fault_server.set_faults(deny=1, only="^PUT .*00002-of")
    ran = run_command(["reshard", *fill(COMMANDS["reshard"], source, f"{place.address}/out"), *place.words()])
    assert ran.exit_code != 0
    assert "refuses access" in ran.stderr
    fault_server.set_faults()
    assert place.names() == []
    assert fault_server.uploads() == []


def test_store_that_ignores_conditions_is_refused(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-fault")
    fault_server.set_faults(ignores_conditions=True)
    ran = run_command(["reshard", *fill(COMMANDS["reshard"], source, f"{place.address}/out"), *place.words()])
    assert ran.exit_code != 0
    assert "ignores conditions" in ran.stderr
    assert place.names() == []


def test_web_server_is_only_read(make_place: Callable[[str], Place]) -> None:
    place = make_place("http-fault")
    with place.used():
        writer = tfr.Writer(f"{place.address}/x.tfrecord")
        writer.write({"id": 1})
        with pytest.raises(StorageError, match="web servers are only read"):
            writer.close()


def start(words: list[str], place: Place) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tfrkit", *words, *place.words()]
    return subprocess.Popen(command, env=os.environ | KEYS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def test_command_killed_at_random_moments_leaves_no_manifest_without_its_shards(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    words = COMMANDS["reshard"]
    run_command(["reshard", *fill(words, source, tmp_path / "out")])
    whole = read_folder(tmp_path / "out")
    fault_server.set_faults(latency=0.02)
    chance = random.Random(1)
    num_killed = 0
    for number in range(int(os.environ.get("TFR_KILLS", "5"))):
        out = f"{place.address}/{number}/out"
        process = start(["reshard", *fill(words, source, out)], place)
        wait_for_lease(fault_server, f"{place.folder}{number}/")
        time.sleep(chance.uniform(0, 0.35))
        process.kill()
        process.communicate()
        found = read_place(place, f"{number}/out/")
        num_killed += "tfrkit.json" not in found
        if "tfrkit.json" in found:
            assert {name: found.get(name) for name in whole} == whole
        ran = run_command(["reshard", *fill(words, source, out), "--force", *place.words()])
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert read_place(place, f"{number}/out/") == whole
    assert num_killed >= 1


def wait_for_lease(server: FaultServer, folder: str) -> None:
    end = time.monotonic() + 60
    while not any(folder in key for key in server.read_keys()):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_two_writers_at_once_give_one_whole_output(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path, tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    wholes: list[Any] = []
    for shards in ("2", "3"):
        run_command(["reshard", str(source), "-o", str(tmp_path / shards / "out"), "--shards", shards])
        wholes.append(read_folder(tmp_path / shards / "out"))
    fault_server.set_faults(latency=0.01)
    for number in range(2):
        out = f"{place.address}/{number}/out"
        both = [start(["reshard", str(source), "-o", out, "--shards", shards], place) for shards in ("2", "3")]
        texts = [process.communicate()[0].decode() for process in both]
        codes = [process.returncode for process in both]
        assert codes.count(0) == 1, texts
        loser = texts[codes.index(0) - 1]
        assert "another process writes this folder" in loser or "the output is there already" in loser
        assert read_place(place, f"{number}/out/") == wholes[codes.index(0)]
