"""One command, and what must hold after a run of it that failed, was killed, or met a limit.

Success only with the right output; otherwise one message that names a file, no traceback, nothing half-visible. Then
the same command again gives the right output and leaves nothing over.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from commands import make_inputs
from forked import Outcome, Runner, restart_with_preload

from tfrkit.storage.transaction import PENDING

Tree = dict[str, bytes]


def read_tree(folder: Path) -> Tree:
    """All files, hidden ones too, except locks, which stay, and the caches of the user."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and path.name != ".lock" and not name.startswith((".cache", ".tmp")):
            found[name] = remove_times(path.read_bytes()) if path.name == "report.json" else path.read_bytes()
    return found


def remove_times(report: bytes) -> bytes:
    """The report of a build without its measured times and rates, which differ each time."""
    return re.sub(rb'"(\w*(?:seconds|per_second))": [0-9.e+-]+', rb'"\1": 0', report)


def keep_visible(tree: Tree) -> Tree:
    """The files that users and readers see: not temporary files, not the journal of a build."""
    return {name: data for name, data in tree.items() if not any(part[0] in "._" for part in Path(name).parts)}


class Trial:
    """One command: its inputs, its right output, and what it must never do."""

    def __init__(self, name: str, arguments: list[str], runner: Runner, inputs: Path) -> None:
        self.name, self.arguments, self._runner, self._inputs = name, arguments, runner, inputs
        self.folder = runner.root / "here"
        self._before = read_tree(inputs)
        whole = self.start()
        if whole.code not in (0, 1) or "Traceback" in whole.messages:
            raise SystemExit(f"{name}: does not work at all: exit {whole.code}: {whole.messages}")
        self.whole, self._after = whole, read_tree(self.folder)

    def start(self, **how: Any) -> Outcome:
        """Run the command in a new copy of the inputs; `how` as in `Runner.run`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._inputs, self.folder, copy_function=os.link if not self.changes_inputs else shutil.copy)
        (self.folder / ".tmp").mkdir()
        return self._runner.run(self.arguments, self.folder, **how)

    @property
    def changes_inputs(self) -> bool:
        return "--in-place" in self.arguments

    def find_wrong_end(self, got: Outcome) -> str | None:
        """Return what is wrong after a run that met a failure."""
        if "Traceback" in got.messages:
            return f"traceback: {got.messages.strip().splitlines()[-1]}\n{got.messages}"
        if got.code == self.whole.code:
            # Of a command that writes, the text has sizes and times; what it wrote is compared.
            if self._after == self._before and got.output != self.whole.output:
                return f"exit {got.code}, but the text is another one"
            now = read_tree(self.folder)
            if keep_visible(now) != keep_visible(self._after):
                return f"exit {got.code}, but the output is wrong: {self._compare(self._after)}"
            return None if now == self._after else self._find_wrong_next()
        if self.arguments[0] == "verify" and got.code == 1 and self._find_wrong_message(got.output) is None:
            return None  # a shard that cannot be read is what it is there to find
        if got.code not in (3, -signal.SIGKILL, 128 + signal.SIGINT, 128 + signal.SIGTERM):
            return f"exit {got.code}: {got.messages.strip()}"
        return (
            (self._find_wrong_message(got.messages.strip()) if got.code == 3 else None)
            or self._find_half_visible()
            or self._find_wrong_next()
        )

    def is_clean(self) -> bool:
        """Whether all files are those from before the run, or those from after a whole one."""
        return read_tree(self.folder) in (self._before, self._after)

    def find_leftovers(self) -> str | None:
        """Return the files that a command should have removed; a build keeps its journal for the next run."""
        if self.arguments[0] == "build" or self.is_clean():
            return None
        return f"leftovers: {self._compare(self._before)}"

    def _find_wrong_message(self, message: str) -> str | None:
        if not message:
            return "no message"
        if "out of memory" in message or "another thread" in message or "worker process" in message:
            return None  # no file is to blame
        names = {part for name in {**self._before, **self._after} for part in Path(name).parts} | {"here", "/out"}
        if not any(name in message for name in names):
            return f"message without a file: {message}"
        return None

    def _is_pending(self) -> bool:
        """Whether the old files of a change in place could not be put back: readers say so, the next run does it."""
        return (self.folder / "d" / PENDING).is_dir() and (
            "a change of this folder was interrupted" in self._runner.run(["info", "d"], self.folder).messages
        )

    def _find_half_visible(self) -> str | None:
        if self._is_pending():
            return None
        now = keep_visible(read_tree(self.folder))
        # A build leaves finished shards for the next run, but no manifest.
        is_journaled = self.arguments[0] == "build" and "out/tfrkit.json" not in now
        is_part = all(self._after.get(name) == data for name, data in now.items() if name not in self._before)
        if now in (keep_visible(self._before), keep_visible(self._after)) or (is_journaled and is_part):
            return None
        return f"half-visible: {self._compare(self._before)}"

    def _find_wrong_next(self) -> str | None:
        """Run the command again, without a fault: the output is right and nothing is left over."""
        again = self.arguments
        is_whole = keep_visible(read_tree(self.folder)) == keep_visible(self._after) != keep_visible(self._before)
        if is_whole and not self._is_pending():
            # The output is whole: it is not replaced without being asked, and a change is not made twice.
            again = ["edit", "d", "--restore"] if self.changes_inputs else [*again, "--force"]
        after = self._runner.run(again, self.folder)
        if after.code != self.whole.code:
            return f"the next run ends with {after.code}: {after.messages.strip()}"
        if read_tree(self.folder) != self._after:
            return f"the next run leaves or lacks: {self._compare(self._after)}"
        return None

    def _compare(self, wanted: Tree) -> str:
        now = read_tree(self.folder)
        return ", ".join(sorted(name for name in now.keys() | wanted.keys() if now.get(name) != wanted.get(name)))


def run_trials(
    add_options: Callable[[argparse.ArgumentParser], object],
    commands: Iterable[tuple[str, list[str]]],
    list_wrong: Callable[[Trial, argparse.Namespace, random.Random], Iterator[tuple[str, str | None]]],
    *,
    what: str,
    preload: bool = False,
) -> int:
    """Try each command; print what is wrong and a last line with the figures. Return an exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", default="", help="commands whose name has this text")
    parser.add_argument("--show", type=int, default=3, help="how many findings of one kind to print")
    add_options(parser)
    options = parser.parse_args()
    base = Path(os.environ.setdefault("TFRKIT_TRUST", tempfile.mkdtemp(prefix="tfrkit-trust-")))
    base.chmod(0o755)  # other users run commands in it, too
    if preload:
        restart_with_preload(base)
    try:
        print(*(f"{name} {value}" for name, value in vars(options).items() if value != ""), sep=", ", flush=True)
        (base / "inputs").mkdir()
        make_inputs(base / "inputs")
        (base / "work").mkdir()
        runner, chooser, begun = Runner(base / "work"), random.Random(options.seed), time.monotonic()
        findings: collections.Counter[str] = collections.Counter()
        num_tried = 0
        for name, arguments in commands:
            if options.only not in name and options.only != arguments[0]:
                continue
            trial = Trial(name, arguments, runner, base / "inputs")
            num_before, num_wrong = num_tried, findings.total()
            for case, wrong in list_wrong(trial, options, chooser):
                num_tried += 1
                if wrong is None:
                    continue
                kind = f"{name}: {wrong.splitlines()[0][:60]}"
                findings[kind] += 1
                if findings[kind] <= options.show:
                    print(f"  {name}: {case}: {wrong}", flush=True)
            print(f"{name}: {num_tried - num_before} {what}, {findings.total() - num_wrong} wrong", flush=True)
        print(f"{num_tried} {what} in {time.monotonic() - begun:.0f} s, {findings.total()} wrong")
        return 1 if findings else 0
    finally:
        shutil.rmtree(base, ignore_errors=True)
