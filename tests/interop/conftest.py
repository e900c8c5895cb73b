"""Tests against real TensorFlow; without it installed none of them are collected."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORPUS = HERE.parents[2] / "shared" / "corpus"

# The tests of this folder import `oracle.py`, which is not in a package.
sys.path.insert(0, str(HERE))
pytest.register_assert_rewrite("both")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

if importlib.util.find_spec("tensorflow") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    with warnings.catch_warnings():
        # Warnings are errors, except those from importing other packages.
        warnings.simplefilter("ignore")
        import tensorflow as tf

        tf.get_logger().setLevel("ERROR")


@pytest.fixture
def seed() -> int:
    """A new seed for each test, shown with a failure; ``TFRKIT_SEED=n`` repeats one."""
    number = int(os.environ.get("TFRKIT_SEED", random.SystemRandom().randrange(2**32)))
    print(f"TFRKIT_SEED={number}")
    return number


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real files, where the checkout has one."""
    if not CORPUS.is_dir():
        pytest.skip("no corpus beside the checkout")
    return CORPUS
