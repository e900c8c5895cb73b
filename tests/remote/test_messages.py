"""What a user reads when an address, a server or a key is wrong: the address, the reason, and what to do next."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from places import Place
from servers import FaultServer, Started, find_port

import tfrkit as tfr
from tfrkit.testing.commands import run_command

_SECONDS = 30.0


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "source.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write({"id": 1})
    return path


def read_message(*words: object) -> str:
    begun = time.monotonic()
    ran = run_command([str(word) for word in words])
    assert ran.exit_code == 3, ran.stderr
    assert time.monotonic() - begun < _SECONDS
    assert "Traceback" not in ran.stderr
    return ran.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["info", "s3://nobucket/x.tfrecord"],
        ["info", "s3://nobucket/folder/"],
        ["count", "s3://nobucket/x-*"],
        ["merge", "{source}", "-o", "s3://nobucket/x.tfrecord"],
        ["reshard", "{source}", "-o", "s3://nobucket/x/", "--shards", "2"],
        ["export", "csv", "{source}", "-o", "s3://nobucket/x.csv"],
        ["count", "{source}", "--part", "0/2", "--parts", "s3://nobucket/meet"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_missing_bucket_is_named_with_the_server(moto: Started, source: Path, words: list[str]) -> None:
    text = read_message(*(word.format(source=source) for word in words), "--endpoint", moto.url)
    assert "no such bucket - at s3://nobucket\n" in text
    assert f"check its name, and the server, {moto.url}" in text


def test_missing_object_is_named_with_the_way_to_list(make_place: Callable[[str], Place]) -> None:
    place = make_place("s3-moto")
    text = read_message("info", f"{place.address}/none.tfrecord", *place.words())
    assert f"no such object or folder - at {place.address}/none.tfrecord\n  list what is there: aws s3 ls" in text
    text = read_message("info", f"{place.address}/none-*", *place.words())
    assert f"no object matches - at {place.address}/none-*\n  list what is there: aws s3 ls {place.address}/" in text


def test_file_that_a_web_server_does_not_have_is_named(make_place: Callable[[str], Place]) -> None:
    place = make_place("http-nginx")
    text = read_message("info", f"{place.address}/none.tfrecord")
    assert f"the server has no such file - at {place.address}/none.tfrecord\n  check the address" in text


@pytest.mark.parametrize("words", [["info", "s3://bucket/x.tfrecord"], ["merge", "{source}", "-o", "s3://bucket/x/"]])
def test_server_that_is_not_there_is_named(source: Path, words: list[str]) -> None:
    server = f"http://127.0.0.1:{find_port()}"
    text = read_message(*(word.format(source=source) for word in words), "--endpoint", server)
    assert "no connection to the store, tried 4 times - at s3://bucket" in text
    assert f"check the network, and the server, {server}" in text


def test_web_server_that_is_not_there_is_named() -> None:
    address = f"http://127.0.0.1:{find_port()}/x.tfrecord"
    text = read_message("info", address)
    assert f"no connection to the store, tried 4 times - at {address}\n  check the network and the address" in text


def test_refused_access_is_named_with_what_keys_need(
    fault_server: FaultServer, make_place: Callable[[str], Place], source: Path
) -> None:
    place = make_place("s3-fault")
    place.put("x.tfrecord", source.read_bytes())
    fault_server.set_faults(deny=1)
    text = read_message("info", f"{place.address}/x.tfrecord", *place.words())
    assert f"the store refuses access (status 403) - at {place.address}/x.tfrecord\n  public data" in text
    fault_server.set_faults(deny=1, only="^PUT ")
    text = read_message("merge", source, "-o", f"{place.address}/y.tfrecord", *place.words())
    assert f"cannot write, the store refuses access (status 403) - at {place.address}/" in text
    assert "keys that may write there" in text


def test_missing_profile_is_named_with_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moto: Started
) -> None:
    (tmp_path / "keys").write_text("[work]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    text = read_message("info", "s3://bucket/x.tfrecord", "--profile", "nope", "--endpoint", moto.url)
    assert "no profile 'nope'" in text
    assert "profiles there: work" in text
