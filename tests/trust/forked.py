"""Run `tfr` in a forked child, with one system call that fails, a signal at a chosen moment, or a resource limit.

A fork costs milliseconds where a new interpreter costs a third of a second: that is what makes it possible to try
every call of every command. The parent imports no package that starts threads.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CALLS = ("write", "sync", "rename", "link", "open", "map", "read", "unlink", "mkdir", "truncate")
PATH_MAX = 4096
NOT_IN_MAIN = 70  # the exit code of a child that ended before or after it was the command


class Control(ctypes.Structure):
    """The control block of preload.c."""

    _fields_ = (
        ("armed", ctypes.c_int),
        ("call", ctypes.c_int),
        ("at", ctypes.c_long),
        ("error", ctypes.c_int),
        ("lasting", ctypes.c_int),
        ("counts", ctypes.c_long * len(CALLS)),
        ("root", ctypes.c_char * PATH_MAX),
    )


@dataclass(frozen=True)
class Fault:
    """The `at`-th `call` fails with `error`; 0 means that it reads or writes less than asked for."""

    call: str
    at: int
    error: int
    lasting: bool = False


@dataclass
class Outcome:
    """What a run of a command did."""

    code: int
    output: str
    messages: str
    seconds: float
    counts: dict[str, int] = field(default_factory=dict)


def restart_with_preload(folder: Path) -> None:
    """Run this script again under the preload library, unless it is loaded already."""
    if "TFRKIT_FAULTS" in os.environ:
        return
    library, control = folder / "preload.so", folder / "control"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, HERE / "preload.c", "-ldl"], check=True)
    control.write_bytes(bytes(ctypes.sizeof(Control)))
    os.environ.update(TFRKIT_FAULTS=str(control), LD_PRELOAD=str(library))
    os.execv(sys.executable, [sys.executable, *sys.argv])


class Runner:
    """Runs commands below `root`; system calls on other files never fail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Imported once, here: what is tried is the command, not the start of the interpreter.
        from tfrkit.testing.commands import find_commands

        find_commands()
        self._control: Control | None = None
        if path := os.environ.get("TFRKIT_FAULTS"):
            with open(path, "r+b") as file:
                self._control = Control.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(Control)))
            self._control.root = os.fsencode(root)

    def run(
        self,
        arguments: list[str],
        folder: Path,
        *,
        fault: Fault | None = None,
        signal_after: tuple[int, float] | None = None,
        prepare: Callable[[], object] | None = None,
        timeout: float = 60,
    ) -> Outcome:
        """Run `tfr ARGUMENTS` in `folder`. `prepare` is called in the child first, for example to set a limit."""
        outputs = [self.root.parent / "stdout", self.root.parent / "stderr"]
        sys.stdout.flush()
        self._arm(fault)
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                _be_tfr(arguments, folder, outputs, prepare)
            finally:  # a signal came before or after it: never run the code of the parent
                os._exit(NOT_IN_MAIN)
        code = _wait(child, begun, signal_after, timeout)
        outcome = Outcome(code, *(path.read_text(errors="replace") for path in outputs), time.monotonic() - begun)
        if self._control is not None:
            self._control.armed = 0
            outcome.counts = dict(zip(CALLS, self._control.counts, strict=True))
        return outcome

    def _arm(self, fault: Fault | None) -> None:
        if self._control is None:
            return
        self._control.call = CALLS.index(fault.call) if fault else 0
        self._control.at = fault.at if fault else 0
        self._control.error = fault.error if fault else 0
        self._control.lasting = bool(fault and fault.lasting)
        for number in range(len(CALLS)):
            self._control.counts[number] = 0
        self._control.armed = 1


def _be_tfr(arguments: list[str], folder: Path, outputs: list[Path], prepare: Callable[[], object] | None) -> None:
    """Be the command: never returns."""
    code = NOT_IN_MAIN
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        # Outside of the folder that counts, so that they never fail.
        for path, descriptor in zip(outputs, (1, 2), strict=True):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = ["tfr", *arguments]
        os.environ.update(HOME=str(folder), XDG_CACHE_HOME=str(folder / ".cache"), TMPDIR=str(folder / ".tmp"))
        if prepare is not None:
            prepare()
        from tfrkit_start import main

        main()
        code = 0
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else 0
    except BaseException:  # noqa: BLE001  (the trace is the finding)
        traceback.print_exc()
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 71
        os._exit(code)


def _wait(child: int, begun: float, signal_after: tuple[int, float] | None, timeout: float) -> int:
    """Wait for the child and all processes of its group; return its exit code, negative for a signal."""
    descriptor = os.pidfd_open(child)
    try:
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        if signal_after is not None:
            number, seconds = signal_after
            if not ready.poll(seconds * 1000):
                signal.pidfd_send_signal(descriptor, number)
        if not ready.poll(timeout * 1000):
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise TimeoutError(f"still running after {time.monotonic() - begun:.0f} s")
    finally:
        os.close(descriptor)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _wait_for_group(child, timeout)
    return code


def _wait_for_group(group: int, timeout: float) -> None:
    """Wait until the workers of a killed command have noticed and ended."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    os.killpg(group, signal.SIGKILL)
    raise TimeoutError(f"workers still running {timeout:.0f} s after the command ended")
