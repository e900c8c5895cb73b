"""Run the blocks of one page, in order, in one folder and one interpreter.

    python -m runner.drive PAGE RESULT.json

The result has the failures and the text of the page with what was printed in place of what it shows.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.blocks import Block, Data, read_page
from runner.compare import is_shown, show_difference
from runner.data import Fixtures

# Kinds of blocks that are not run.
SHOWN_ONLY = {
    "text": "what was printed, compared with the block before it; or a drawing",
    "sh": "installs packages, which changes the environment of the reader",
    "yaml": "a file for another program",
    "bash": "a script for a cluster's scheduler",
    "json": "a file",
}
# Blocks of kinds that are run, but not these, each marked by <!-- not run: WORD -->.
NOT_RUN = {
    "gpu": "needs an NVIDIA GPU; tests/interop and benchmarks/gpu.py run the same calls on one",
    "cluster": "needs several machines; tests/cluster runs the same commands on local Ray and Dask clusters",
    "address": "needs a bucket on the internet; tests/remote runs the same on local servers",
    "tensorflow": "needs 1.5 GB of TensorFlow; tests/interop runs the same calls",
    "measurement": "numbers of one machine, on one day",
}
MAX_LINES = 45
TIMEOUT = 240


@dataclass
class Failure:
    line: int
    what: str


class PageRun:
    """One page: its folder, its names, its fixtures, and the edits that would make it true."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failures: list[Failure] = []
        self.edits: list[tuple[int, int, list[str]]] = []  # first line, line after the last, new lines; from 0
        self.names: dict[str, Any] = {"__name__": "page"}
        self.fixtures = Fixtures()
        self.shows_all = True

    def run(self) -> None:
        steps = read_page(self.path)
        self.shows_all = not any(isinstance(one, Block) and one.marks.get("outputs") == "in part" for one in steps)
        try:
            for number, step in enumerate(steps):
                if isinstance(step, Data):
                    self.fixtures.make(step.words)
                else:
                    after = steps[number + 1] if number + 1 < len(steps) else None
                    self.run_block(step, after if isinstance(after, Block) else None)
                if self.failures and self.failures[-1].what.startswith("stopped"):
                    break  # what comes after depends on it
        finally:
            self.fixtures.close()

    def run_block(self, block: Block, after: Block | None) -> None:
        if block.num_lines > MAX_LINES:
            self.fail(block.line, f"the block has {block.num_lines} lines, a reader takes in {MAX_LINES}")
        if "file" in block.marks:
            path = Path(block.marks["file"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif "not run" in block.marks:
            if block.marks["not run"] not in NOT_RUN:
                self.fail(block.line, f"reason {block.marks['not run']!r} is not one of {list(NOT_RUN)}")
        elif block.kind == "python":
            output = after if after is not None and after.kind == "text" and after.follows else None
            self.run_python(block, output)
        elif block.kind == "console":
            self.run_console(block)
        elif block.kind not in SHOWN_ONLY:
            self.fail(block.line, f"kind {block.kind!r} is not run: {[*SHOWN_ONLY, 'python', 'console']} are known")

    # ---- Python

    def run_python(self, block: Block, output: Block | None) -> None:
        printed = io.StringIO()
        try:
            code = compile("\n" * block.line + self.fixtures.rewrite(block.text), str(self.path), "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, self.names)  # noqa: S102  # that is what it is for
        except BaseException:  # noqa: BLE001  # reported with its place
            self.fail(block.line, f"stopped by an error\n{traceback.format_exc(limit=-4)}{printed.getvalue()}")
            return
        comments = find_print_comments(block.text)
        if output is not None:
            self.compare(output.line, output.text, printed.getvalue(), output.line, output.line + output.num_lines)
        elif comments:
            self.compare_comments(block, comments, printed.getvalue())
        elif printed.getvalue():
            lines = ["", "```text", *printed.getvalue().rstrip("\n").split("\n"), "```"]
            self.fail(block.line, f"the page does not show what is printed\n{printed.getvalue()}")
            self.edits.append((block.line + block.num_lines + 1, block.line + block.num_lines + 1, lines))

    def compare_comments(self, block: Block, comments: dict[int, str], printed: str) -> None:
        lines = printed.rstrip("\n").split("\n")
        if len(lines) != len(comments):
            self.fail(block.line, f"{len(comments)} lines are shown, {len(lines)} were printed\n{printed}")
            return
        source = block.text.split("\n")
        for (number, comment), line in zip(comments.items(), lines, strict=True):
            if not is_shown(comment, line):
                self.fail(block.line + number, f"the page shows {comment!r}, printed was {line!r}")
                place = block.line + number - 1
                self.edits.append((place, place + 1, [source[number - 1].removesuffix(comment) + line]))

    # ---- commands

    def run_console(self, block: Block) -> None:
        for line, command, shown in split_commands(block):
            expected_code = int(found[1]) if (found := re.search(r"# exit (\d+)$", command)) else 0
            script = self.fixtures.rewrite(command.replace("\\\n", " "))
            try:
                done = subprocess.run(
                    ["bash", "-c", script],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=TIMEOUT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                self.fail(line, f"stopped after {TIMEOUT} s: {command}")
                return
            printed = self.fixtures.unwrite(done.stdout)
            code = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell reports a signal
            if code != expected_code:
                self.fail(line, f"stopped: exit code {code}, expected {expected_code}: {command}\n{printed}")
                return
            first = line + command.count("\n")
            if shown or self.shows_all:
                self.compare(line, "".join(f"{one}\n" for one in shown), printed, first, first + len(shown))

    def compare(self, line: int, shown: str, printed: str, start: int, stop: int) -> None:
        if not is_shown(shown, printed):
            self.fail(line, f"the output differs\n{show_difference(shown, printed)}")
            self.edits.append((start, stop, printed.rstrip("\n").split("\n") if printed.strip() else []))

    def fail(self, line: int, what: str) -> None:
        self.failures.append(Failure(line, what))

    def updated(self) -> str:
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for start, stop, new in sorted(self.edits, reverse=True):
            lines[start:stop] = [line.rstrip() for line in new]
        return "\n".join(lines)


def find_print_comments(source: str) -> dict[int, str]:
    """`print(...)  # text` at the top level of a block: the text by its line, from 1."""
    lines = source.split("\n")
    found = {}
    for statement in ast.parse(source).body:
        if (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and isinstance(statement.value.func, ast.Name)
            and statement.value.func.id == "print"
        ):
            rest = lines[(statement.end_lineno or 1) - 1].encode()[statement.end_col_offset :].decode()
            if rest.strip().startswith("# "):
                found[statement.end_lineno or 1] = rest.strip().removeprefix("# ")
    return found


def split_commands(block: Block) -> list[tuple[int, str, list[str]]]:
    """(line on the page, command, lines shown after it) of a console block."""
    commands: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(block.text.rstrip("\n").split("\n"), block.line + 1):
        if line.startswith("$ "):
            commands.append((number, line[2:], []))
        elif commands and commands[-1][1].endswith("\\") and not commands[-1][2]:
            commands[-1] = commands[-1][0], f"{commands[-1][1]}\n{line}", []
        elif commands:
            commands[-1][2].append(line)
        else:
            raise ValueError(f"line {number}: a console block starts with a command, got {line!r}")
    return commands


def main() -> None:
    page, result = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, os.getcwd())
    run = PageRun(page)
    run.run()
    failures = [[failure.line, failure.what] for failure in run.failures]
    result.write_text(json.dumps({"failures": failures, "updated": run.updated()}), encoding="utf-8")


if __name__ == "__main__":
    main()
