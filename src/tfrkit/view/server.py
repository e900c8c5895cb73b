"""Run the viewer: a server on a thread, its address, and its end."""

from __future__ import annotations

import html
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tfrkit._optional import import_or_explain
from tfrkit.errors import Step, StorageError, misuse
from tfrkit.storage.base import describe_os_error
from tfrkit.view.guard import LOOPBACK, Guard, Rules
from tfrkit.view.notebooks import Notebook, find_notebook
from tfrkit.view.viewer import Options, Viewer

# Pages of a notebook that may frame the viewer.
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_TOKEN_NBYTES = 16
_NOTEBOOK_MINUTES = 30.0
_LOOK_SECONDS = 0.1


class Server:
    """A running viewer. `address` opens it; `stop` ends it."""

    def __init__(
        self,
        sets: Sequence[Sequence[str]],
        options: Options = Options(),  # noqa: B008 (frozen)
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_hosts: Sequence[str] = (),
        idle_minutes: float | None = None,
        notebook: Notebook | None = None,
    ) -> None:
        """Open the datasets and start the server; raises before anything runs if that fails."""
        uvicorn: Any = import_or_explain("uvicorn", "view")
        import_or_explain("starlette", "view")
        self.is_local = host in ("127.0.0.1", "::1", "localhost")
        if not self.is_local and not allow_hosts:
            raise misuse(
                f"host {host!r:.64} is not loopback, and browsers need a name for it",
                Step("name it: {allow_host}", allow_host=...),
            )
        self.viewer = Viewer(sets, options)
        from tfrkit.view.app import make_app

        try:
            self._socket = _bind(host, port)
        except OSError as error:
            self.viewer.close()
            raise StorageError(f"cannot listen on {host} port {port}, {describe_os_error(error)}") from None
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        names = tuple(dict.fromkeys([*LOOPBACK, *(name.lower() for name in allow_hosts)]))
        self.notebook = notebook or Notebook(())
        self._rules = Rules(
            secrets.token_hex(_TOKEN_NBYTES),
            self.port,
            names,
            self.notebook.ancestors,
            has_proxy=self.notebook.has_proxy,
        )
        self._options = options
        self._clock = _Clock(Guard(make_app(self.viewer), self._rules))
        config = uvicorn.Config(
            self._clock,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        # Not the main thread: there the server would take over the handling of signals.
        self._has_ended = threading.Event()
        threading.Thread(target=self._run, name="tfrkit-view", daemon=True).start()
        self._idle_seconds = None if idle_minutes is None else 60 * idle_minutes
        _wait_until(lambda: self._server.started or self._has_ended.is_set(), _START_SECONDS)

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/?{urlencode({'token': self._rules.token, **self._list_start()})}"

    @property
    def framed_address(self) -> str:
        """The address for a frame in a notebook, where cookies do not work."""
        start = self._list_start()
        path = f"{self._rules.token}/" + (f"?{urlencode(start)}" if start else "")
        return self.notebook.find_address(self.port, path)

    @property
    def tunnel(self) -> str | None:
        """The command that forwards the port to another machine, if this one is used over SSH."""
        connection = os.environ.get("SSH_CONNECTION", "").split()
        if len(connection) != 4:
            return None
        user = os.environ.get("USER") or os.environ.get("LOGNAME") or "user"
        port = "" if connection[3] == "22" else f"-p {connection[3]} "
        return f"ssh -N -L {self.port}:127.0.0.1:{self.port} {port}{user}@{connection[2]}"

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._has_ended.set()

    def wait(self) -> None:
        """Wait until the server ends, or until it was idle for too long."""
        # An event: a signal during `Thread.join` makes Python take the thread for ended.
        while not self._has_ended.wait(_LOOK_SECONDS):
            if self._idle_seconds is not None and self._clock.idle_seconds > self._idle_seconds:
                return

    def stop(self) -> None:
        """End the server and close the files."""
        self.viewer.streams.stop()  # else the server would wait for its answers
        self._server.should_exit = True
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it would report every stream that ends here
        self._has_ended.wait(_STOP_SECONDS)
        self._socket.close()
        self.viewer.close()

    def _list_start(self) -> dict[str, Any]:
        options = self._options
        given = {"where": options.where, "record": options.record, "lang": options.lang}
        return {name: value for name, value in given.items() if value is not None}


class Frame:
    """A viewer in a notebook: displayed by its repr, stopped by `stop` or when it was idle for too long."""

    def __init__(self, server: Server, height: int) -> None:
        self._server = server
        self._height = height
        threading.Thread(target=self._end_when_idle, name="tfrkit-idle", daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the page, for another window."""
        return self._server.framed_address

    def stop(self) -> None:
        """End the server."""
        self._server.stop()

    def _end_when_idle(self) -> None:
        self._server.wait()
        self._server.stop()

    def __repr__(self) -> str:
        return f"Viewer at {self.address}"

    def _repr_html_(self) -> str:
        address, notebook = html.escape(self.address), self._server.notebook
        if notebook.is_colab:
            return self._serve_colab()
        tunnel = self._server.tunnel
        note = ""
        if notebook.base is not None:
            note = "<p>empty? the server needs a proxy: <code>pip install jupyter-server-proxy</code></p>"
        elif tunnel is not None:
            note = f"<p>empty? forward the port first: <code>{html.escape(tunnel)}</code></p>"
        frame = f'<iframe src="{address}" width="100%" height="{self._height}" frameborder="0"></iframe>'
        return f'{frame}<p><a href="{address}" target="_blank">open in a window</a></p>{note}'

    def _serve_colab(self) -> str:
        output: Any = sys.modules["google.colab"].output
        path = self.address.split("/", 3)[3]
        output.serve_kernel_port_as_iframe(self._server.port, path=f"/{path}", height=str(self._height))
        return ""


def open_frame(paths: Sequence[str], *, where: str | None, record: int | None, height: int) -> Frame:
    """Start a viewer for a notebook."""
    return Frame(
        Server([paths], Options(where, record), idle_minutes=_NOTEBOOK_MINUTES, notebook=find_notebook()), height
    )


class _Clock:
    """ASGI application that notes when the last request ended."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._num_running = 0
        self._last = time.monotonic()

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self._num_running else time.monotonic() - self._last

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._num_running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._num_running -= 1
            self._last = time.monotonic()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio switches the delay of small packets off; an answer would take 40 ms longer.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def _wait_until(is_met: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_met() and time.monotonic() < end:
        time.sleep(0.005)
