"""Reading through a store that fails, changes or is used after a fork: the right rows or a clear error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from places import KEYS, Place
from servers import FaultServer

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.container.writer import frame_records
from tfrkit.errors import CorruptRecordError, StorageError
from tfrkit.storage.pace import count_requests

ROWS, SHARDS = 400, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 4 shards of 3 MB, made by a build."""
    folder = tmp_path_factory.mktemp("made")
    for number in range(SHARDS):
        with tfr.Writer(folder / f"x.tfrecord-{number:05d}-of-{SHARDS:05d}", index=True) as writer:
            for row in range(ROWS):
                place = number * ROWS + row
                writer.write({"id": place, "data": place.to_bytes(4, "little") * 2000})
    return folder


@pytest.fixture
def place(fault_server: FaultServer, make_place: Callable[[str], Place], folder: Path) -> Iterator[Place]:
    place = make_place("s3-fault")
    fault_server.mount(f"bucket/{place.folder.rstrip('/')}", folder)
    with place.used():
        yield place


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 KiB, and stalls that are given up after one second: many requests in a short test."""
    names = {"block_nbytes": 64 << 10, "first_block_nbytes": 16 << 10, "stall_seconds": 1.0}
    for name, value in names.items():
        monkeypatch.setattr(LIMITS, name, value)


def read_ids(address: str) -> list[int]:
    return [row["id"] for row in tfr.open(address)]


@pytest.mark.usefixtures("quick")
def test_pass_over_a_failing_store_gives_every_row(fault_server: FaultServer, place: Place) -> None:
    before = count_requests()
    fault_server.set_faults(slow_down=0.05, cut=0.03, stall=0.02, flip=0.001, only="^GET", seed=3)
    rows = [(row["id"], row["data"]) for row in tfr.open(place.address)]
    assert rows == [(number, number.to_bytes(4, "little") * 2000) for number in range(ROWS * SHARDS)]
    after = count_requests()
    seen = {entry["fault"] for entry in fault_server.read_log()}
    assert {"slow_down", "cut", "stall"} <= seen
    assert after["retries"] > before["retries"]
    assert after["busy"] > before["busy"]


def test_body_that_breaks_off_again_is_continued(
    fault_server: FaultServer, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request of a range takes the body whole; after it broke off, the next ones keep what arrives."""
    monkeypatch.setattr(LIMITS, "request_tries", 50)
    monkeypatch.setattr(LIMITS, "retry_seconds", 0.001)
    place.put("large.tfrecord", frame_records([bytes(10_000)] * 700))
    before = count_requests()["resumed"]
    for seed in range(30):
        fault_server.set_faults(cut=0.4, only="^GET .*/large", seed=seed)
        assert sum(map(len, tfr.open(f"{place.address}/large.tfrecord").records())) == 7_000_000
        if count_requests()["resumed"] > before:
            return
    raise AssertionError("no body was continued")


@pytest.mark.usefixtures("quick")
def test_flipped_bytes_in_transit_are_fetched_again(fault_server: FaultServer, place: Place) -> None:
    before = count_requests()["fetched_again"]
    fault_server.set_faults(flip=0.05, only="^GET /bucket/f[0-9]+/x", seed=5)
    ds = tfr.open(place.address)
    assert [ds[number]["id"] for number in range(0, ROWS * SHARDS, 40)] == list(range(0, ROWS * SHARDS, 40))
    assert read_ids(place.address) == list(range(ROWS * SHARDS))
    assert "flip" in {entry["fault"] for entry in fault_server.read_log()}
    assert count_requests()["fetched_again"] > before


def test_byte_that_is_wrong_in_the_store_is_damage(place: Place, folder: Path) -> None:
    [first, *_] = sorted(folder.glob("x.tfrecord-*"))
    data = bytearray(first.read_bytes())
    data[100_000] ^= 1
    place.put("damaged.tfrecord", bytes(data))
    with pytest.raises(CorruptRecordError, match=r"damaged\.tfrecord"):
        read_ids(f"{place.address}/damaged.tfrecord")


@pytest.mark.usefixtures("quick")
def test_object_replaced_while_it_is_read_is_an_error_that_names_it_and_never_a_mixture(
    fault_server: FaultServer, place: Place, tmp_path: Path
) -> None:
    for name, value in (("one", 1), ("two", 2)):
        with tfr.Writer(tmp_path / name) as writer:
            for _ in range(60):
                writer.write({"value": value, "data": bytes([value]) * 5000})
        place.put(name, (tmp_path / name).read_bytes())
    one = (tmp_path / "one").read_bytes()
    num_errors = num_whole = 0
    for number in range(200):
        place.put("x.tfrecord", one)
        fault_server.set_faults(swaps={f"bucket/{place.folder}x.tfrecord": [number % 16, f"bucket/{place.folder}two"]})
        values: list[int] = []
        try:
            values.extend(row["value"] for row in tfr.open(f"{place.address}/x.tfrecord"))
            num_whole += 1
        except StorageError as error:
            assert re.search(
                r"replaced since it was opened, version \S+ at first, \S+ now - at \S+/x\.tfrecord", str(error)
            )
            num_errors += 1
        assert len(set(values)) <= 1
    assert num_errors >= 100
    assert num_whole >= 10


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_worker_process_reads_the_right_rows_or_raises_and_never_hangs(place: Place, how: str) -> None:
    code = f"""
        import multiprocessing
        import tfrkit as tfr
        from tfrkit.errors import StorageError
        from tfrkit.tools import use_storage

        def work(ds, results):
            try:
                results.put([ds[number]["id"] for number in (1, 500, 1500)])
            except StorageError as error:
                results.put(str(error))

        if __name__ == "__main__":
            use_storage(endpoint={place.options["endpoint"]!r})
            ds = tfr.open({place.address!r})
            assert ds[0]["id"] == 0
            context = multiprocessing.get_context({how!r})
            results = context.Queue()
            workers = [context.Process(target=work, args=(ds, results)) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                print(results.get(timeout=240))
            for worker in workers:
                worker.join()
    """
    path = place_script(code)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, env=os.environ | KEYS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip()
    if how == "spawn":
        assert lines.splitlines() == ["[1, 500, 1500]"] * 4
    else:
        assert lines.count("[1, 500, 1500]") == 4 or lines.count("forked from one that had read remote files") == 4


def place_script(code: str) -> str:
    """Write a script to a file: a spawned process imports it."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(textwrap.dedent(code))
        return file.name


@pytest.mark.parametrize(
    "words",
    [
        ["info", "{path}"],
        ["verify", "{path}/missing.tfrecord"],
        ["head", "{path}/x.tfrecord-00000-of-00004", "--format", "json"],
        ["verify", "{path}", "--format", "json", "--report", "{out}"],
    ],
)
def test_keys_are_in_nothing_that_a_command_writes(
    fault_server: FaultServer, place: Place, tmp_path: Path, run_tfr: Callable[..., subprocess.CompletedProcess[str]],
    words: list[str],
) -> None:  # fmt: skip
    for faults in ({}, {"deny": 1.0}, {"slow_down": 0.5}):
        fault_server.set_faults(**faults)
        given = [word.format(path=place.address, out=tmp_path / f"report-{len(faults)}.json") for word in words]
        home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = run_tfr(*given, *place.words(), env=os.environ | KEYS | home)
        require_no_secret(done.stdout + done.stderr)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            require_no_secret(path.read_bytes().decode("latin-1"))


def test_keys_and_signatures_are_in_no_repr_pickle_or_message(place: Place) -> None:
    import pickle

    ds = tfr.open(place.address)
    require_no_secret(repr(ds) + pickle.dumps(ds).decode("latin-1"))
    signed = f"{place.options['endpoint']}/bucket/{place.folder}none.tfrecord?X-Amz-Signature=verysecretsignature"
    with pytest.raises(StorageError) as caught:
        read_ids(signed)
    assert "verysecretsignature" not in str(caught.value) + repr(caught.value)


def require_no_secret(text: str) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AZURE_STORAGE_ACCOUNT_KEY"):
        assert KEYS[name] not in text
    assert "Signature=" not in text
