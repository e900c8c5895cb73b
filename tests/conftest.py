"""Shared fixtures: the corpus, the real command, and a private cache folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "corpus"

settings.register_profile(
    "tfrkit",
    deadline=None,  # a shared machine can be slow
    max_examples=60,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("tfrkit")

# A shell that starts the tests in the background ignores Ctrl-C for them and for every command that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Cached indexes go to a folder of this run, also in started commands."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("the corpus folder ../shared/corpus is not here")
    return CORPUS


@pytest.fixture
def new_threads() -> Callable[[], list[str]]:
    """Names the threads that this test started and that still run. A thread of an earlier test may end meanwhile."""
    before = set(threading.enumerate())
    return lambda: [thread.name for thread in threading.enumerate() if thread not in before]


@pytest.fixture(scope="session")
def run_tfr() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real `tfr` command."""
    command = Path(sysconfig.get_path("scripts")) / "tfr"
    if not command.exists():
        command = Path(sys.executable).with_name("tfr")

    def run(*arguments: object, timeout: float = 60, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            [str(command), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            **options,
        )

    return run
