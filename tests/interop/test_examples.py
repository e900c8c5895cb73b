"""The framework examples run, learn, and resume after being killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TIMEOUT = 300


def start(name: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", str(EXAMPLES / name), "--folder", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Spinning threads would take the core from working ones.
        env={**os.environ, "OMP_WAIT_POLICY": "passive", "JAX_PLATFORMS": "cpu"},
    )


def finish(child: subprocess.Popen[str]) -> str:
    output, errors = child.communicate(timeout=TIMEOUT)
    assert child.returncode == 0, errors[-4000:]
    return output


def accuracy_in(output: str) -> float:
    match = re.search(r"accuracy: ([\d.]+)%", output)
    assert match, output
    return float(match[1])


def test_killed_captcha_training_resumes_and_learns(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    child = start("captcha_torch.py", tmp_path)
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("saved after step 120,"):  # in the middle of the second epoch
            break
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=TIMEOUT)
    assert child.returncode == -signal.SIGKILL
    output = finish(start("captcha_torch.py", tmp_path))
    resumed = re.search(r"resumed after step (\d+): epoch 1, row (\d+)", output)
    assert resumed, output
    step, row = int(resumed[1]), int(resumed[2])
    assert step >= 120
    assert row == (step - 85) * 32  # 2,700 captchas are 85 batches of 32
    assert f"saved after step {step}," not in output
    assert "saved after step 240," in output
    assert accuracy_in(output) > 80


def test_segmentation_masks_stay_class_numbers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    output = finish(start("segmentation_feed.py", tmp_path, "--scenes", "60"))
    assert re.findall(r"class +(\d+):", output) == ["0", "1", "2", "255"]


def test_jax_loop_learns_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    output = finish(start("jax_loop.py", tmp_path))
    assert accuracy_in(output) > 80
    assert "resumed after 5 batches" in output
