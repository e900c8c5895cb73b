"""Time and memory limits of a query, and its interruption."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from tfrkit._platform import find_address_space
from tfrkit.outputs.sizes import parse_size

T = TypeVar("T")

MIN_MEMORY = 32_000_000
# Share of the memory this process may use: our own decoding threads and other programs need the rest.
_MEMORY_SHARE = 0.5
_ASK_SECONDS = 0.05
# With less address space DuckDB ends the process while it starts, instead of raising an error.
_MIN_ADDRESS_SPACE = 768 << 20


def parse_memory(memory: int | str | None) -> int:
    """Return the memory limit of a query in bytes: as given, or half of what this process may use."""
    if memory is None:
        return max(MIN_MEMORY, int(find_memory() * _MEMORY_SHARE))
    if isinstance(memory, bool) or not isinstance(memory, (int, str)):
        raise TypeError(f"memory expected a number of bytes or a size such as '2GB', got {memory!r}")
    nbytes = parse_size(memory) if isinstance(memory, str) else memory
    if nbytes < MIN_MEMORY:
        raise ValueError(f"memory expected at least {MIN_MEMORY // 10**6}MB, got {memory}")
    return nbytes


def parse_timeout(timeout: float | None) -> float | None:
    """Return the timeout in seconds, or None for no limit; raises an error if it is not a positive number."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout expected a number of seconds, got {timeout!r}")
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout expected more than 0 seconds, got {timeout}")
    return min(float(timeout), threading.TIMEOUT_MAX)


def find_memory() -> int:
    """Return the bytes of memory this process may use: all of the machine, or the limit of a container or process."""
    bounds = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    bounds += find_address_space()
    for path in _list_cgroup_files():
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            bounds.append(int(file.read()))  # or "max"
    return min(bound for bound in bounds if bound > 0)


def require_address_space() -> None:
    """Raise `MemoryError` if a limit of this process (`ulimit -v`) leaves too little for DuckDB to start."""
    limits = find_address_space()
    if not limits:
        return
    limit = limits[0]
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return  # not on every system
    if limit - used < _MIN_ADDRESS_SPACE:
        raise MemoryError(
            f"out of memory: a query needs {_MIN_ADDRESS_SPACE >> 20} MiB of address space, "
            f"the limit of this process (ulimit -v) leaves {max(0, limit - used) >> 20} MiB"
        )


def _list_cgroup_files() -> list[str]:
    """List the files that hold the memory limits of this process's control group and its parents."""
    files = ["/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"]
    with contextlib.suppress(OSError, UnicodeError), open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            number, _, place = line.rstrip("\n").split(":", 2)
            while number == "0" and place not in ("", "/"):
                files.append(f"/sys/fs/cgroup{place}/memory.max")
                place = os.path.dirname(place)
    return files


class QueryWatch:
    """Runs calls into DuckDB that can be stopped by Ctrl-C and by a timeout.

    Calls run on a separate thread while the caller waits, because only a thread that runs Python code receives
    signals. Time counts while calls run, not between them.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.is_over = False
        self._left = timeout
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Start a new run of the query, with the full timeout."""
        self._left = self.timeout
        self.is_over = False
        self.stop_timer()

    def call(self, function: Callable[[], T], connections: Sequence[Any]) -> T:
        """Call `function`, which uses these connections; return its result or raise its error, also when stopped."""
        if self._left is None and threading.current_thread() is not threading.main_thread():
            return function()  # only the main thread receives signals
        started = time.monotonic()
        with ThreadPoolExecutor(1, thread_name_prefix="tfrkit-query") as executor:
            future = executor.submit(function)
            try:
                if not wait([future], self._left).done:
                    self.is_over = True
            finally:
                # Interrupt repeatedly: a query that has not started yet ignores it.
                while not future.done():
                    for connection in connections:
                        connection.interrupt()
                    wait([future], _ASK_SECONDS)
        if self._left is not None:
            self._left = max(0.0, self._left - (time.monotonic() - started))
        return future.result()

    def start_timer(self, connection: Any) -> None:
        """Interrupt a connection when the time is up, for results that other code fetches."""
        self.stop_timer()
        if self.timeout is not None:
            self._timer = threading.Timer(self.timeout, self._end, [connection])
            self._timer.daemon = True
            self._timer.start()

    def stop_timer(self) -> None:
        """Cancel the timer."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _end(self, connection: Any) -> None:
        self.is_over = True
        connection.interrupt()
