"""Locks held during a fork are released in the child."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.storage.local import LocalReader

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def run_in_child(check: Callable[[], bool]) -> bool:
    """Result of `check` in a forked process; False on a timeout."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(10)
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def test_reader_locked_at_a_fork_reads_in_the_child(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    reader = LocalReader(str(path))
    with reader._lock:
        assert run_in_child(lambda: reader.read_at(0, 3) == b"abc")
    assert reader.read_at(0, 3) == b"abc"


def test_dataset_locked_at_a_fork_gives_rows_in_the_child(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path, compression="gzip") as writer:
        writer.write({"x": 7})
    dataset = tfr.open(path)
    with dataset.records()._lock:
        assert run_in_child(lambda: dataset[0] == {"x": 7})
