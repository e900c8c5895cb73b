"""A short run of `part_kills.py`, with a fixed seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are waited for by their descriptors")
SCRIPT = Path(__file__).parent / "part_kills.py"


@pytest.mark.resources
@pytest.mark.parametrize("verb", ["count", "sql to csv", "reshard to a file"])
def test_killed_part_is_run_again_and_gives_the_result_of_one_machine(verb: str) -> None:
    if verb.startswith("sql"):
        pytest.importorskip("duckdb")
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--times", "1", "--seed", "1", "--only", verb], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{verb}: 1 runs of killed parts, 0 wrong" in ran.stdout
