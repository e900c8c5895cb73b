"""Workers whose parent was killed while they started."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tfrkit.feeds.torch import _start_worker


def test_worker_whose_parent_is_gone_ends() -> None:
    # No process is its own parent.
    code = "import os; from tfrkit.feeds.torch import _start_worker; _start_worker(os.getpid(), None, 0); os._exit(0)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 1


def test_worker_with_its_parent_calls_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    _start_worker(os.getppid(), print, 3)
    assert capsys.readouterr().out == "3\n"
