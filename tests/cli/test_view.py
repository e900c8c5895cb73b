"""`tfr view`: its address, its end, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tfrkit.testing.commands import run_command

COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()", "view"]
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture
def start(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    running: list[subprocess.Popen[str]] = []

    def start(*options: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, str(sample), "--no-browser", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_address_answers_with_its_token_only_and_ctrl_c_ends_cleanly(start: Any, number: signal.Signals) -> None:
    process = start("--where", "label = 1", "--record", "3", "--lang", "zh")
    address = read_line(process)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}&where=label\+%3D\+1&record=3&lang=zh", address)
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(address) as page:
        assert page.status == 200 and "token" not in page.url
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address.split("?")[0])
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert process.returncode == (0 if number == signal.SIGINT else 143)
    assert out == ""


def test_tunnel_is_printed_over_ssh(start: Any) -> None:
    process = start(SSH_CONNECTION="10.0.0.1 5000 10.0.0.2 2222", USER="ada")
    line = read_line(process)
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/", read_line(process))
    assert line == f"on your machine: ssh -N -L {port}:127.0.0.1:{port} -p 2222 ada@10.0.0.2"


def test_idle_server_ends(start: Any) -> None:
    process = start("--idle", "0.001")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("http://127.0.0.1:")


def test_other_address_needs_a_name(tfr, sample: Path) -> None:
    ran = tfr("view", sample, "--host", "0.0.0.0", code=2)
    assert ran.err.startswith(
        "tfr: host '0.0.0.0' is not loopback, and browsers need a name for it\n  name it: --allow-host"
    )


def test_taken_port_is_one_message(tfr, sample: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = tfr("view", sample, "--port", str(port), "--no-browser", code=3)
    assert ran.err == f"tfr: cannot listen on 127.0.0.1 port {port}, address already in use\n"


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_missing_extra_is_one_line_with_the_command(
    sample: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    ran = run_command(["view", str(sample), "--no-browser", "--idle", "0.001"])
    assert ran.exit_code == 3
    assert ran.stderr == f"tfr: {missing} is not installed\n  install it: pip install 'tfrkit[view]'\n"
