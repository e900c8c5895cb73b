"""A short run of the stress script; `make stress SECONDS=600` runs it longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfrkit import _native


@pytest.mark.skipif(not _native.MAPS_ARE_GUARDED, reason="no engine on this system")
def test_short_stress_has_no_finding() -> None:
    script = Path(__file__).with_name("run.py")
    done = subprocess.run([sys.executable, script, "--seconds", "2"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("; 0 findings\n")
