"""A press of Tab in real shells: bash, zsh and fish, each in a terminal of its own (`make shells-test`)."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Python 3.12 warns of a fork in a process with threads, as those of pytest-xdist are; the child runs a shell at once.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of forkpty.*:DeprecationWarning")

TFR = [sys.executable, "-m", "tfrkit"]
SHELLS = ("bash", "zsh", "fish")
TO_START, TO_END = "\x01", "\x05"


class Terminal:
    """A shell in a pseudo terminal, with the completion script loaded."""

    def __init__(self, shell: str, folder: Path) -> None:
        script = folder / f"tfr.{shell}"
        script.write_bytes(subprocess.run([*TFR, "completion", shell], check=True, capture_output=True).stdout)
        (folder / ".zshrc").write_text(f"autoload -Uz compinit; compinit -u; source {script}\n", encoding="utf-8")
        (folder / "bashrc").write_text(f"source {script}\n", encoding="utf-8")
        command = {
            "bash": ["bash", "--noprofile", "--rcfile", str(folder / "bashrc"), "-i"],
            "zsh": ["zsh", "-i"],
            "fish": ["fish", "--private", "-C", f"source {script}"],
        }[shell]
        home = {name: str(folder) for name in ("HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        env = {
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "INPUTRC": "/dev/null",
            "PS1": "$ ",
            **home,
        }
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, env)
        self._number = 0
        self.run("true")

    def run(self, line: str) -> str:
        """Type a line, with Tab as it is, and return it as it was when Enter would have been pressed."""
        self._number += 1
        os.write(self._fd, line.encode())
        if line.endswith("\t"):
            time.sleep(0.5)
        # The shell itself prints the completed line: as an argument of echo.
        mark = f"mark{self._number}"
        os.write(self._fd, f"{TO_START}echo {mark}'<{TO_END}>'\r".encode())
        return self._wait_for(rf"{mark}<(.*?)>")

    def _wait_for(self, pattern: str) -> str:
        seen, until = "", time.monotonic() + 60
        while time.monotonic() < until:
            if select.select([self._fd], [], [], 1)[0]:
                seen += os.read(self._fd, 65536).decode(errors="replace")
            match = re.search(pattern, seen)
            if match:
                return match[1].strip()
        raise AssertionError(f"no answer within a minute: {seen!r}")

    def close(self) -> None:
        os.close(self._fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=SHELLS, scope="module")
def terminal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed: tests/shells/install_tools.sh")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "captchas-00000-of-00002.tfrecord").touch()
    opened = Terminal(request.param, folder)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("tfr inf", "tfr info"),
        ("tfr resh", "tfr reshard"),
        ("tfr build cla", "tfr build class-folders"),
        ("tfr export parq", "tfr export parquet"),
        ("tfr info --end", "tfr info --endpoint"),
        ("tfr build class-folders --label", "tfr build class-folders --label-offset"),
        ("tfr head --format cs", "tfr head --format csv"),
        ("tfr build yolo --engine r", "tfr build yolo --engine ray"),
        ("tfr completion ba", "tfr completion bash"),
        ("tfr info capt", "tfr info captchas-00000-of-00002.tfrecord"),
        ("tfr verify --deep capt", "tfr verify --deep captchas-00000-of-00002.tfrecord"),
    ],
)
def test_tab_completes(terminal: Terminal, typed: str, completed: str) -> None:
    assert terminal.run(f"{typed}\t") == completed
