"""Kill parts of verbs (`--part I/N`) at random moments, run the same parts again, and compare with one machine.

python tests/trust/part_kills.py [--times 100] [--seed N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from commands import make_inputs
from forked import Outcome, Runner
from trial import Tree, read_tree

NUM_PARTS = 2
_MEET = "meet"
_WITH_JOBS = ("stats", "verify", "convert", "reshard", "shuffle")
_MAX_TURNS = 4  # a verb has three steps at most

_GROUPS = "select label, count(*) as n, sum(number)::bigint as s from 'd' group by 1 order by 1"
_CHOSEN = "select * from 'd' where number % 3 = 1"
COMMANDS: dict[str, list[str]] = {
    "count": ["count", "d", "--json"],
    "stats": ["stats", "d", "--json"],
    "verify": ["verify", "d", "--json"],
    "verify --sha256": ["verify", "d", "--sha256", "--json"],
    "verify --deep": ["verify", "d", "--deep", "--json"],
    "sql": ["sql", _GROUPS, "--json"],
    "sql to csv": ["sql", _GROUPS, "-o", "out.csv"],
    "sql to tfrecord": ["sql", _CHOSEN, "-o", "out.tfrecord"],
    "convert": ["convert", "d", "-o", "out/", "--compression", "gzip"],
    "reshard": ["reshard", "d", "-o", "out/", "--shards", "4"],
    "reshard to a file": ["reshard", "d", "-o", "out.tfrecord", "--shards", "1"],
    "shuffle": ["shuffle", "d", "-o", "out/", "--shards", "2", "--seed", "1"],
    "export csv": ["export", "csv", "d", "-o", "out.csv"],
    "export jsonl": ["export", "jsonl", "d", "-o", "out/"],
}


def read_outputs(folder: Path) -> Tree:
    return {name: data for name, data in read_tree(folder).items() if name.startswith(("out", "."))}


@dataclass
class Verb:
    """One verb: its result on one machine, and how long each part takes."""

    name: str
    arguments: list[str]
    runner: Runner
    inputs: Path

    def __post_init__(self) -> None:
        self.folder = self.runner.root / "here"
        self._begin()
        self.whole = self.runner.run(self.arguments, self.folder)
        if self.whole.code:
            raise SystemExit(f"{self.name}: does not work at all: exit {self.whole.code}: {self.whole.messages}")
        self.expected = read_outputs(self.folder)
        self._begin()
        self.seconds = max(self.run(part, "1").seconds for part in (*range(NUM_PARTS), 0))

    def _begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.inputs, self.folder, copy_function=os.link)
        (self.folder / ".tmp").mkdir()

    def run(self, part: int, jobs: str, *, after: float | None = None) -> Outcome:
        words = [*self.arguments, "--part", f"{part}/{NUM_PARTS}", "--parts", _MEET]
        words += ["--jobs", jobs] if self.name.startswith(_WITH_JOBS) else []
        kill = None if after is None else (signal.SIGKILL, after)
        return self.runner.run(words, self.folder, signal_after=kill)

    def find_wrong(self, chooser: random.Random) -> str | None:
        """Run all parts, each killed before it is run again, until there is a result; return what is wrong then."""
        self._begin()
        jobs, is_done, writes = chooser.choice("12"), False, "-o" in self.arguments
        story: list[str] = []
        for turn in range(_MAX_TURNS * NUM_PARTS):
            if is_done:
                break
            part = turn % NUM_PARTS
            after = chooser.uniform(0, 1.1 * self.seconds)
            killed = self.run(part, jobs, after=after)
            story.append(f"part {part} after {after:.3f} s: {killed.code}")
            got = self.run(part, jobs)
            if got.code or "Traceback" in killed.messages + got.messages:
                return f"{'; '.join(story)}; again: exit {got.code}: {got.messages.strip()}"
            if got.output and not writes and got.output != self.whole.output:
                return f"{'; '.join(story)}: another result: {got.output.strip()[:400]}"
            is_done = bool(got.output) or "another part has written" in got.messages
        if not is_done:
            return f"{'; '.join(story)}: no part gave the result"
        now = read_outputs(self.folder)
        if now != self.expected:
            wrong = sorted(
                name for name in now.keys() | self.expected.keys() if now.get(name) != self.expected.get(name)
            )
            return f"{'; '.join(story)}: other files: {', '.join(wrong)}"
        left = [path.name for path in (self.folder / _MEET).iterdir() if path.is_dir() or path.suffix == ".begun"]
        return f"{'; '.join(story)}: left: {', '.join(left)}" if left else None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=100, help="runs of all parts of each verb")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", default="", help="verbs whose name has this text")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="tfrkit-parts-"))
    print(f"times {options.times}, seed {options.seed}", flush=True)
    num_wrong, begun = 0, time.monotonic()
    try:
        (base / "inputs").mkdir()
        make_inputs(base / "inputs")
        (base / "work").mkdir()
        runner, chooser = Runner(base / "work"), random.Random(options.seed)
        for name, arguments in COMMANDS.items():
            if options.only not in name:
                continue
            verb = Verb(name, arguments, runner, base / "inputs")
            found = [wrong for _ in range(options.times) if (wrong := verb.find_wrong(chooser)) is not None]
            for wrong in found[:3]:
                print(f"  {name}: {wrong}", flush=True)
            print(f"{name}: {options.times} runs of killed parts, {len(found)} wrong", flush=True)
            num_wrong += len(found)
        print(f"{time.monotonic() - begun:.0f} s, {num_wrong} wrong")
        return 1 if num_wrong else 0
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
