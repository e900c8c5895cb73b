"""`make demo` works in any folder and stops at the first failed check."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import tfrkit as tfr

EXAMPLES = Path(__file__).parents[2] / "examples"
NUM_IMAGES = 60


def run_demo(folder: Path, script: Path = EXAMPLES / "demo.py") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script), str(NUM_IMAGES)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_demo_runs_over_an_old_one_and_leaves_what_it_says(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    (demo / "captcha").mkdir(parents=True)
    (demo / "captcha" / "old-train.tfrecord-00000-of-00001").write_bytes(b"from an earlier run")
    (demo / "mine.txt").write_text("not of the demo")
    done = run_demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "demo/captcha: 60 found, 60 written, 0 skipped",
        "ok, 60 records",
        "every byte of the 4 files is the same.",
        "{'train': 48, 'test': 12}",
        "gives the other 4",
        "3 findings, 21 records readable",
        "The other 21 of 24 records are there, byte for byte.",
    ):
        assert line in done.stdout
    assert len(tfr.open(str(demo / "captcha"))) == 60
    assert len(tfr.open(str(demo / "repaired.tfrecord"))) == 21
    for name in ("sheet.png", "damaged.png"):
        with Image.open(demo / name) as image:
            assert image.width == 842
    assert (demo / "mine.txt").read_text() == "not of the demo"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        # A byte that is not damaged; texts that differ from the file names.
        ("] ^= 0x40", "] ^= 0x00", "demo failed: verify says '2 findings"),
        ("path.name: path.name[:5]", "path.name: path.name[:4]", "demo failed: labels are"),
    ],
)
def test_demo_stops_at_the_first_failed_check(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    source = (EXAMPLES / "demo.py").read_text(encoding="utf-8")
    assert source.count(old) == 1
    script = tmp_path / "demo.py"
    script.write_text(source.replace(old, new), encoding="utf-8")
    done = run_demo(tmp_path, script)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Done in" not in done.stdout
