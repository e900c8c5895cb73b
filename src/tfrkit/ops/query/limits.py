"""Time and memory limits of a query, and its interruption."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from tfrkit.outputs.sizes import parse_size

T = TypeVar("T")

MIN_MEMORY = 32 << 20
# Of the memory this process may use: our own threads, which decode, and other programs need some too.
_MEMORY_SHARE = 0.5
_ASK_SECONDS = 0.05


def parse_memory(memory: int | str | None) -> int:
    """Memory limit of a query: as given, or half of that of this process."""
    if memory is None:
        return max(MIN_MEMORY, int(find_memory() * _MEMORY_SHARE))
    if isinstance(memory, bool) or not isinstance(memory, (int, str)):
        raise TypeError(f"memory expected a number of bytes or a size such as '2GB', got {memory!r}")
    nbytes = parse_size(memory) if isinstance(memory, str) else memory
    if nbytes < MIN_MEMORY:
        raise ValueError(f"memory expected at least {MIN_MEMORY >> 20}MiB, got {memory}")
    return nbytes


def parse_timeout(timeout: float | None) -> float | None:
    """Seconds, or None for no end."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout expected a number of seconds, got {timeout!r}")
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout expected more than 0 seconds, got {timeout}")
    return min(float(timeout), threading.TIMEOUT_MAX)


def find_memory() -> int:
    """Bytes this process may use: those of the machine, or fewer where a container or a limit says so."""
    bounds = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    bounds += [bound for bound in resource.getrlimit(resource.RLIMIT_AS) if bound != resource.RLIM_INFINITY]
    for path in _list_cgroup_files():
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            bounds.append(int(file.read()))  # or "max"
    return min(bound for bound in bounds if bound > 0)


def _list_cgroup_files() -> list[str]:
    """Where the limits of this process's control groups are, its own and those around it."""
    files = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"]
    with contextlib.suppress(OSError, UnicodeError), open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            number, _, place = line.rstrip("\n").split(":", 2)
            while number == "0" and place not in ("", "/"):
                files.append(f"/sys/fs/cgroup{place}/memory.max")
                place = os.path.dirname(place)
    return files


class Watch:
    """Runs calls into DuckDB so that they can be stopped: by Ctrl-C at once, and when their time is up.

    They run on a separate thread while the caller waits: only a thread that runs Python code receives a signal. Time
    counts while calls run, not between them.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.is_over = False
        self._left = timeout
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """A new run of the query, with all of its time."""
        self._left = self.timeout
        self.is_over = False
        self.stop_timer()

    def call(self, function: Callable[[], T], connections: Sequence[Any]) -> T:
        """What `function` gives, which uses these connections; what it raises, where it was stopped too."""
        if self._left is None and threading.current_thread() is not threading.main_thread():
            return function()  # no signal comes here
        started = time.monotonic()
        with ThreadPoolExecutor(1, thread_name_prefix="tfrkit-query") as executor:
            future = executor.submit(function)
            try:
                if not wait([future], self._left).done:
                    self.is_over = True
            finally:
                # Asked again and again: a query that is about to begin does not hear it yet.
                while not future.done():
                    for connection in connections:
                        connection.interrupt()
                    wait([future], _ASK_SECONDS)
        if self._left is not None:
            self._left = max(0.0, self._left - (time.monotonic() - started))
        return future.result()

    def start_timer(self, connection: Any) -> None:
        """Stop what a connection does when the time is up, for results that others fetch."""
        self.stop_timer()
        if self.timeout is not None:
            self._timer = threading.Timer(self.timeout, self._end, [connection])
            self._timer.daemon = True
            self._timer.start()

    def stop_timer(self) -> None:
        """Let it run."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _end(self, connection: Any) -> None:
        self.is_over = True
        connection.interrupt()
