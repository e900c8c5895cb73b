"""Interrupts during start-up, while modules are being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_during_imports_ends_quietly(tmp_path: Path, number: int, code: int) -> None:
    # A stand-in for NumPy that blocks, to hold the command in its imports.
    (tmp_path / "numpy.py").write_text("import sys\nprint('importing', flush=True)\nsys.stdin.read()\n")
    command = start(tmp_path, lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert command.stdout is not None
    assert command.stdout.readline() == b"importing\n"
    command.send_signal(number)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err) == (code, b"", b"")


def test_interrupts_that_are_ignored_stay_so(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import sys\nprint('importing', flush=True)\nsys.stdin.read()\nsys.exit(7)\n")
    command = start(tmp_path, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert command.stdout is not None
    assert command.stdout.readline() == b"importing\n"
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=60)
    assert command.returncode == 7


def start(folder: Path, prepare: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "from tfrkit_start import main; main()", "--version"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=prepare,  # type: ignore[arg-type]
    )


def test_the_command_starts_there() -> None:
    assert 'tfr = "tfrkit_start:main"' in (ROOT / "pyproject.toml").read_text()


def test_package_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "tfrkit", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tfrkit ")
