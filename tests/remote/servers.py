"""Real servers on free ports of this machine: started, waited for, stopped.

A program that is missing fails the tests: `make remote-test` installs all of them.
"""

from __future__ import annotations

import base64
import ctypes
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, Self, TypeVar

from fault_server import Faults

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
AZURITE = HERE.parents[1] / "build" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
# The account of every Azurite, published in its documentation.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# Not real, and long enough to be found in whatever a command writes.
S3_KEY, S3_SECRET = "AKIATESTTESTTESTTEST", "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEY0"
# A busy machine takes its time to start a server.
_READY_SECONDS = 180.0
_TRIES = 3


@dataclass(frozen=True)
class Reply:
    """Answer of a plain request."""

    status: int
    headers: dict[str, str]
    body: bytes


class Started:
    """A server process; a context manager that stops it."""

    def __init__(self, command: Sequence[str | Path], *, port: int, log: Path, ready: str = "/") -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=_end_with_parent,
            )
        self._wait(ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def request(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Reply:
        """Make one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body or None, headers=dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())
        finally:
            connection.close()

    def _wait(self, ready: str) -> None:
        end = time.monotonic() + _READY_SECONDS
        while True:
            try:
                self.request("GET", ready)
                if self._process.poll() is None:  # else another program has the port
                    return
            except OSError:
                pass
            if self._process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(f"no server on port {self.port}:\n{self._log.read_text()}")
            time.sleep(0.02)


def start_anywhere(start: Callable[[int], T]) -> T:
    """Start a server on a free port; on another one if a program was quicker to take it."""
    for number in range(_TRIES):
        try:
            return start(find_port())
        except RuntimeError:
            if number == _TRIES - 1:
                raise
    raise AssertionError


def _end_with_parent() -> None:
    """Let the kernel end this process when its parent ends, however that ends. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class FaultServer(Started):
    """The server of `fault_server.py`."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        port = port or find_port()
        command = [sys.executable, HERE / "fault_server.py", str(port)]
        super().__init__(command, port=port, log=folder / f"fault-{port}.log", ready="/_control/log")

    def set_faults(self, **faults: Any) -> None:
        """Set all faults; those not named are off."""
        self._control("faults", asdict(Faults(**faults)))

    def read_log(self) -> list[dict[str, Any]]:
        """Return all requests since the last `clear_log`: request, range, status, nbytes, time, fault, if_match."""
        log: list[dict[str, Any]] = self._control("log")
        return log

    def clear_log(self) -> None:
        self._control("clear_log")

    def reset(self) -> None:
        """Forget objects, faults and log."""
        self._control("reset")

    def mount(self, bucket: str, folder: str | Path) -> int:
        """Serve the files below a folder as a bucket; return their number."""
        num_files: int = self._control("mount", {"bucket": bucket, "folder": str(folder)})
        return num_files

    def read_keys(self) -> dict[str, int]:
        """Return the sizes of all objects by "bucket/key"."""
        found: dict[str, int] = self._control("keys")
        return found

    def uploads(self) -> list[str]:
        """Return the keys of multipart uploads that were neither completed nor aborted."""
        found: list[str] = self._control("uploads")
        return found

    def _control(self, verb: str, given: object = None) -> Any:
        return json.loads(self.request("PUT", f"/_control/{verb}", body=json.dumps(given).encode()).body)


def start_moto(folder: Path) -> Started:
    """Start moto's S3."""

    def start(port: int) -> Started:
        command = [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)]
        return Started(command, port=port, log=folder / f"moto-{port}.log", ready="/moto-api/")

    return start_anywhere(start)


def start_azurite(folder: Path) -> Started:
    """Start the blob service of Azurite."""
    if not AZURITE.exists():
        raise RuntimeError(f"azurite is missing, expected at {AZURITE}: make remote-test installs it")

    def start(port: int) -> Started:
        command = [AZURITE, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"]
        command += ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return Started(command, port=port, log=folder / f"azurite-{port}.log")

    return start_anywhere(start)


def start_nginx(folder: Path, root: Path) -> Started:
    """Start an nginx that serves the files below `root`."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(program):
        raise RuntimeError("nginx is missing: make remote-test installs it")

    def start(port: int) -> Started:
        prefix = folder / f"nginx-{port}"
        prefix.mkdir()
        settings = f"""
            daemon off; worker_processes 2; pid {prefix}/pid; error_log {prefix}/error.log; {_nginx_user()}
            events {{ worker_connections 1024; }}
            http {{
                access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
                default_type binary/octet-stream;
                client_body_temp_path {prefix}/body; proxy_temp_path {prefix}/proxy; fastcgi_temp_path {prefix}/fastcgi;
                uwsgi_temp_path {prefix}/uwsgi; scgi_temp_path {prefix}/scgi;
                server {{ listen 127.0.0.1:{port}; root {root}; }}
            }}
        """
        (prefix / "nginx.conf").write_text(settings)
        command = [program, "-p", prefix, "-c", prefix / "nginx.conf"]
        return Started(command, port=port, log=prefix / "stdout.log")

    return start_anywhere(start)


def _nginx_user() -> str:
    # Workers of a root nginx change to another user, which may not read the folders of a test.
    return "user root;" if os.getuid() == 0 else ""


def find_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def make_container(azurite: Started, name: str) -> None:
    """Make a container of Azurite, with the signature that Azure requires."""
    when = formatdate(usegmt=True)
    path = f"/{AZURITE_ACCOUNT}/{name}"
    # Eleven empty headers, then those of Azure, then the path: the account comes twice, as Azurite's path has it too.
    lines = ["PUT", *[""] * 11, f"x-ms-date:{when}", "x-ms-version:2021-12-02"]
    lines += [f"/{AZURITE_ACCOUNT}{path}", "restype:container"]
    digest = hmac.digest(base64.b64decode(AZURITE_KEY), "\n".join(lines).encode(), "sha256")
    headers = {"x-ms-date": when, "x-ms-version": "2021-12-02", "Content-Length": "0"}
    headers["Authorization"] = f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    reply = azurite.request("PUT", f"{path}?restype=container", headers=headers)
    if reply.status != 201:
        raise RuntimeError(f"cannot make a container, {reply.status} {reply.body.decode()}")
