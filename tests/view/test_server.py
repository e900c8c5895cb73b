"""The process: quick answers, and an end that leaves nothing running."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

import tfrkit
from tfrkit.batches.survey import Surveyed
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.view.work import Streams

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()", "view", "--no-browser"]


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A file whose records take a while to count and to survey."""
    path = str(tmp_path / "slow.tfrecord.gz")
    with tfrkit.Writer(path, level="fast") as writer:
        for number in range(300):
            writer.write({"label": number, "zeros": bytes(1 << 20)})
    return path


def test_small_answers_are_not_delayed(pictures: str) -> None:
    from tfrkit.view.server import Server

    server = Server([[pictures]])
    try:
        # asyncio sets TCP_NODELAY on connections of a socket with this protocol only.
        assert server._socket.proto == socket.IPPROTO_TCP
    finally:
        server.stop()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("path", ["", "api/count", "api/select?sort=label"])
def test_signal_ends_the_command_while_it_counts_and_answers(
    slow: str, number: signal.Signals, status: int, path: str
) -> None:
    command = subprocess.Popen(
        [*COMMAND, slow],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell in the background has SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert command.stdout is not None
    address = command.stdout.readline().decode().strip()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.open(address).close()
    stream = opener.open(address.partition("?")[0] + path)
    command.send_signal(number)
    _, stderr = command.communicate(timeout=60)
    stream.close()
    assert (command.returncode, stderr.strip()) == (status, b"")


def test_streams_are_asked_to_end_and_are_waited_for() -> None:
    streams, ended = Streams(), []

    def run(stop: threading.Event) -> None:
        stop.wait(60)
        ended.append(stop.is_set())

    streams.start(run)
    streams.stop()
    streams.start(run)
    streams.join(60)
    assert ended == [True, True]


def test_survey_ends_when_asked(slow: str) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError):
        Surveyed(stop=stop).add_shard(Shard.open(slow), Policy())
