"""The DuckDB instance of this process: started by the first query and reused.

Starting one takes as long as reading 50 MB of records, because DuckDB builds its catalog of functions each time.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit.ops.query.limits import parse_memory, require_address_space
from tfrkit.storage.temporaries import make_scratch

# A query is untrusted text. It can use our tables only: no other files, no network, no extensions, no variables of
# this program, and it cannot change these settings.
_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "errors_as_json": "true",
    "lock_configuration": "true",
}
# Share of the free disk space that may be used for spilling.
_SPILL_SHARE = 0.5


@contextmanager
def defer_signals() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM after the block.

    Their handlers raise exceptions, which DuckDB turns into others or, while it is imported, into the end of the
    process.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    arrived: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


def import_duckdb() -> ModuleType:
    """Import DuckDB, or raise an ImportError with the command that installs it."""
    require_address_space()
    with defer_signals():
        return import_or_explain("duckdb", "sql")


class QueryEngine:
    """A running DuckDB. It is closed and its folder is removed when the last reference is dropped."""

    def __init__(self, duckdb: Any, memory: int) -> None:
        # Data that does not fit into memory is spilled here, not into the current folder.
        scratch = make_scratch("tfrkit-sql")
        weakref.finalize(self, scratch.remove)
        self.memory = memory
        self.spill = int(shutil.disk_usage(scratch.path).free * _SPILL_SHARE)
        limits = {
            "memory_limit": f"{memory}B",
            "temp_directory": scratch.path,
            "max_temp_directory_size": f"{self.spill}B",
        }
        with defer_signals():
            self._connection = duckdb.connect(":memory:", config={**_SETTINGS, **limits})

    def connect(self) -> Any:
        """Open a separate connection; its tables are not visible to others."""
        with defer_signals():
            return self._connection.cursor()


_lock = threading.Lock()
_idle: list[QueryEngine] = []  # the shared engine; empty before the first query and after a fork


def get_engine(duckdb: Any, memory: int | None = None) -> QueryEngine:
    """Return the shared engine of this process, or a new one if a memory limit is given.

    Keep a reference to it as long as one of its connections is used.
    """
    if memory is not None:
        return QueryEngine(duckdb, parse_memory(memory))
    _register()
    with _lock:
        if not _idle:
            _idle.append(QueryEngine(duckdb, parse_memory(None)))
        return _idle[0]


@cache
def _register() -> None:
    atexit.register(_idle.clear)
    if hasattr(os, "register_at_fork"):  # not on every system
        os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)


def _before_fork() -> None:
    """Drop the engine: a forked process does not have its threads, and would crash at exit if it had an engine."""
    _lock.acquire()
    _idle.clear()
