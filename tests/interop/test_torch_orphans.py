"""Workers whose parent was killed before they were ready."""

from __future__ import annotations

import os

import pytest

from tfrkit.feeds.torch import _start_worker


def test_worker_whose_parent_is_gone_ends() -> None:
    pid = os.fork()
    if pid == 0:
        _start_worker(os.getpid(), None, 0)  # no process is its own parent
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_worker_with_its_parent_calls_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    _start_worker(os.getppid(), print, 3)
    assert capsys.readouterr().out == "3\n"
