"""What runs on a worker of a cluster: check that it fits the driver, then run one task.

A call has two parts. The terms are plain values and are checked before the second part, the pickled task, is opened: a
worker with another version of tfrkit might not even be able to open it. Every answer is a plain value, too, so that
the engine never wraps an exception of ours in one of its own.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from tfrkit import _native  # noqa: F401 - loads the core
from tfrkit._version import VERSION


class Terms(NamedTuple):
    """What a worker must have in common with the driver.

    `sees` are paths that must exist. `tokens` are files with their exact content, which shows that a path is the
    same folder on both machines. Relative paths of a task start at `folder`; "" if it has none.
    """

    version: str
    core: tuple[str, str]
    folder: str
    sees: tuple[str, ...]
    tokens: tuple[tuple[str, bytes], ...]


class WorkerReply(NamedTuple):
    """The answer of a worker: the result or the exception of a task, or the reason why it was refused."""

    kind: Literal["done", "failed", "refused"]
    content: Any
    counts: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0


def make_terms(*, sees: Sequence[str] = (), tokens: Sequence[tuple[str, bytes]] = (), is_local: bool = True) -> Terms:
    """Return the terms of this process; without `is_local` the tasks use no local path."""
    return Terms(VERSION, identify_core(), os.getcwd() if is_local else "", tuple(sees), tuple(tokens))


@cache
def identify_core() -> tuple[str, str]:
    """Return the file name of the native core, which names its platform, and a digest of its bytes."""
    path = str(sys.modules["tfrkit._core"].__file__)
    with open(path, "rb") as file:
        return os.path.basename(path), hashlib.file_digest(file, "sha256").hexdigest()[:16]


def run_call(terms: Sequence[Any], payload: bytes, pickler: str) -> tuple[Any, ...]:
    """Check the terms, run the task, and return an `WorkerReply` as a plain tuple.

    `pickler` is the module that opens `payload`: the one that comes with the engine.
    """
    return tuple(_answer(terms, payload, pickler))


def _answer(terms: Sequence[Any], payload: bytes, pickler: str) -> WorkerReply:
    reason = find_difference(Terms(*terms))
    if reason is not None:
        return WorkerReply("refused", f"{socket.gethostname()}, process {os.getpid()}: {reason}")
    # Workers of an engine start in folders of their own.
    if terms[2] and os.getcwd() != terms[2]:
        os.chdir(terms[2])
    loads, dumps = import_module(pickler).loads, import_module(pickler).dumps
    counts = [0, 0, 0]

    def tick(num_items: int, nbytes: int, num_bad: int) -> None:
        counts[0] += num_items
        counts[1] += nbytes
        counts[2] += num_bad

    started = time.monotonic()
    try:
        result = loads(payload).run(tick)
    except BaseException as error:
        if not isinstance(error, Exception):
            raise
        try:
            loads(dumps(error))
        except (TypeError, AttributeError, ValueError):  # an error that cannot be sent
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return WorkerReply("failed", error)
    return WorkerReply("done", result, (counts[0], counts[1], counts[2]), time.monotonic() - started)


def find_difference(terms: Terms) -> str | None:
    """Return why this process must not run a task with these terms; None if it may."""
    if terms.version != VERSION:
        return f"tfrkit {VERSION}, expected {terms.version} as on the driver"
    core = identify_core()
    # Cores of different platforms cannot be compared; the version has to do.
    if core[0] == terms.core[0] and core[1] != terms.core[1]:
        return f"another native core of tfrkit {VERSION}, {core[1]}, expected {terms.core[1]} as on the driver"
    for path in filter(None, (terms.folder, *terms.sees)):
        if not os.path.exists(path):
            return f"does not see {path}"
    for path, content in terms.tokens:
        try:
            with open(path, "rb") as file:
                is_same = file.read() == content
        except OSError:
            is_same = False
        if not is_same:
            return f"does not see {os.path.dirname(path)}, where this job keeps its files"
    return None
