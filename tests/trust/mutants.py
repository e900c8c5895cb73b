"""Change one thing in the Python code, and see whether the tests notice.

python tests/trust/mutants.py [--number 15] [--room orders] [--seed N]

A mutant is a comparison, an operator, a constant or a condition that is another one. All mutants of a sample are in
one copy of the package, switched off. The tests run once with all of them off: this shows which tests pass on
unchanged code, and which of them reach which mutant. Then each mutant is switched on in a process of its own, and the
tests that reach it run until one fails. Nothing in this folder changes.

A mutant is noticed if a test fails or crashes, or if the timeout of a test ends and names it; these are counted apart.
It is not noticed if no test reaches it, or if it hangs and no timeout fires. Changes that no caller could notice are
in equivalent.txt, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import collections
import compileall
import contextlib
import copy
import functools
import hashlib
import importlib.util
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import mutant_switch
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TESTS = ROOT / "tests"
PACKAGE = Path(str(importlib.util.find_spec("tfrkit").origin)).parent  # not imported: the copy will be
EQUIVALENT = HERE / "equivalent.txt"
PYTEST = [
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-m",
    "not resources",
    "--ignore",
    str(TESTS / "view" / "browser"),
]
PLACES_PER_EXTRA = 250  # a large room has one mutant more per this many places
SECONDS = 20  # the least timeout of a test with a mutant
MAX_SECONDS = 40.0  # of tests for one mutant, as measured without it; the fastest are first
NOTICED = ("failed", "crashed", "timeout")
# Modules that run only with a package, and are left out without it: see .venv-interop and .venv-cluster.
NEEDS = {
    "codec/frame_columns.py": "pandas",
    "engines/dask.py": "distributed",
    "engines/ray.py": "ray",
    "feeds/frames.py": "pandas",
    "feeds/grain.py": "grain",
    "feeds/huggingface.py": "datasets",
    "feeds/jax.py": "jax",
    "feeds/tensorflow.py": "tensorflow",
    "feeds/tensorflow_layout.py": "tensorflow",
    "feeds/torch.py": "torch",
    "feeds/torch_device.py": "torch",
    "feeds/torch_tensors.py": "torch",
    "feeds/triton_resize.py": "triton",
    "ray.py": "ray",
    "storage/fsspec_client.py": "fsspec",
    "spark.py": "pyspark",
}
FRAMEWORKS = ["torch", "torch_device", "jax", "tf_data", "frames", "grain"] if importlib.util.find_spec("torch") else []
# Tests of rooms that are not, or not only, in tests/unit/<room>.
ELSEWHERE = {
    "cli": ["cli"],
    "dataset": ["unit/test_familiar.py"],
    "feeds": [f"interop/test_{name}.py" for name in FRAMEWORKS],
    "batches": ["unit/dataset"],
    "passes": ["unit/ops/reshape/test_rewrite.py"],
    "sidecars": ["unit/container/test_shard_table.py"],
    "sources": ["unit/build"],
    "testing": [
        *("properties/test_frames.py", "properties/test_wire.py", "unit/container", "unit/storage"),
        *("unit/feeds/test_arrow.py", "unit/feeds/test_arrow_layout.py"),
    ],
    "tfrkit": sorted(f"unit/{path.name}" for path in (TESTS / "unit").glob("test_*.py")),
    "view": ["view"],
}
_STREET = "streets/test_streets.py::test_every_asker_agrees_with_what_went_in"
STREETS = [f"{_STREET}[{cell}]" for cell in ("rows_ragged-folder_north_gzip", "writer_sequence-file_none")]

COMPARES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}


@dataclass
class Mutant:
    """A change at the `place`-th node of a module that can be changed."""

    room: str
    path: str
    place: int
    line: int = 0
    change: str = ""
    verdict: str = ""


def change(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of a node, or None if there is no change for it."""
    node = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARES:
            node.ops = [COMPARES[type(op)]()]
        case ast.BoolOp(op=ast.And()):
            node.op = ast.Or()
        case ast.BoolOp(op=ast.Or()):
            node.op = ast.And()
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            node.op = OPERATORS[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.If(test=test) | ast.IfExp(test=test):
            return ast.UnaryOp(ast.Not(), test)
        case ast.Continue():
            return ast.Break()
        case _:
            return None
    return node


@dataclass
class Mutate(ast.NodeTransformer):
    """Counts the places of a module, and puts a switch at the chosen ones: `changed if is_on(number) else node`."""

    source: str
    chosen: dict[int, tuple[int, Mutant]] = field(default_factory=dict)
    found: list[tuple[int, str]] = field(default_factory=list)  # line and change of each place

    @functools.cached_property
    def lines(self) -> list[bytes]:
        return self.source.encode().splitlines()  # columns count bytes

    def transform(self) -> ast.Module:
        return self.visit(ast.parse(self.source))

    def format_change(self, node: ast.AST, changed: ast.AST) -> str:
        """The line, with the change in place of the node."""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        before, after = lines[0][: node.col_offset].decode(), lines[-1][node.end_col_offset :].decode()
        return f"{before.strip()} {{{ast.unparse(node)} -> {ast.unparse(changed)}}} {after.strip()}".strip()

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.MatchValue, ast.MatchMapping)):
            return node  # messages are tested by their words; patterns have no place for a switch
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node
        kept = {name: getattr(node, name, None) for name in ("annotation", "returns", "decorator_list")}
        for name in kept:
            if hasattr(node, name):  # annotations and decorators are not code
                setattr(node, name, [] if name == "decorator_list" else None)
        place, changed = len(self.found), change(node)
        if changed is not None:
            before = node.test if isinstance(node, (ast.If, ast.IfExp)) else node
            self.found.append((node.lineno, self.format_change(before, changed)))
        if place in self.chosen and changed is not None:
            number, mutant = self.chosen[place]
            mutant.line, mutant.change = self.found[place]
            node = self.put_switch(number, self.generic_visit(node))
        else:
            self.generic_visit(node)
        for name, value in kept.items():
            if hasattr(node, name):
                setattr(node, name, value)
        return node

    def put_switch(self, number: int, node: ast.AST) -> ast.AST:
        is_on = ast.Call(ast.Name("_is_mutant_on", ast.Load()), [ast.Constant(number)], [])
        if isinstance(node, ast.Continue):
            return ast.If(is_on, [ast.Break()], [node])
        if isinstance(node, (ast.If, ast.IfExp)):
            node.test = ast.IfExp(is_on, change(node), node.test)
            return node
        return ast.IfExp(is_on, change(node), node)


def list_rooms() -> list[str]:
    """Folders of the package, and the name of the package for its modules that are in none."""
    return sorted([PACKAGE.name, *(path.name for path in PACKAGE.iterdir() if any(path.glob("*.py")))])


def choose_mutants(room: str, number: int, seed: int) -> list[Mutant]:
    """The sample of a room is the same whichever other rooms are tried.

    Places are ranked by a hash of their module and change: code that comes, goes or moves leaves the rank of all other
    places as it is, so that a sample of today has nearly all mutants of yesterday's.
    """
    ranked: list[tuple[bytes, Mutant]] = []
    for path in sorted(PACKAGE.glob("*.py") if room == PACKAGE.name else (PACKAGE / room).rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name == "_limits.py" or (name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None):
            continue
        counter = Mutate(path.read_text())
        counter.transform()
        seen: collections.Counter[str] = collections.Counter()  # the same change of equal lines
        for place, (line, change) in enumerate(counter.found):
            text = f"{seed}\0{name}\0{change}\0{seen[change]}"
            seen[change] += 1
            ranked.append((hashlib.blake2b(text.encode()).digest(), Mutant(room, name, place, line, change)))
    ranked.sort(key=lambda one: one[0])
    return [mutant for _, mutant in ranked[: number + len(ranked) // PLACES_PER_EXTRA]]


def write_package(mutants: list[Mutant], scratch: Path) -> None:
    """Copy the package, with a switch at every mutant."""
    copied = scratch / PACKAGE.name
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    chosen: dict[str, dict[int, tuple[int, Mutant]]] = collections.defaultdict(dict)
    for number, mutant in enumerate(mutants):
        chosen[mutant.path][mutant.place] = number, mutant
    for path in chosen:
        tree = Mutate((PACKAGE / path).read_text(), chosen[path]).transform()
        # The docstring and imports from __future__ stay first.
        first = ast.get_docstring(tree) is not None
        first += sum(isinstance(one, ast.ImportFrom) and one.module == "__future__" for one in tree.body)
        tree.body[first:first] = ast.parse("from mutant_switch import is_on as _is_mutant_on").body
        (copied / path).write_text(ast.unparse(ast.fix_missing_locations(tree)))
    compileall.compile_dir(copied, quiet=2)


def find_tests(rooms: list[str]) -> list[str]:
    found = [f"unit/{room}" for room in rooms if (TESTS / "unit" / room).is_dir()]
    found += [path for room in rooms for path in ELSEWHERE.get(room, [])]
    return [str(TESTS / path) for path in dict.fromkeys(found + STREETS)]


@dataclass(eq=False)  # plugins are hashed
class Trial:
    """A plugin of pytest: collects the tests once, and tries each mutant in a fork with those that reach it."""

    mutants: list[Mutant]
    scratch: Path
    out: TextIO  # pytest captures what is printed
    is_verbose: bool
    seconds: dict[str, float] = field(default_factory=dict)  # of the tests that pass
    outcome: str = ""  # of the test that runs, in a fork

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # while collecting
        items = {item.nodeid: item for item in session.items}
        reached = self.run_unchanged(items)
        for number, mutant in enumerate(self.mutants):
            if mutant.verdict:
                continue
            tests = self.choose_tests(mutant, reached[number])
            test = ""
            if not tests or not reached[number]:
                mutant.verdict = "unreached"
            elif "" in reached[number]:
                mutant.verdict, test = self.try_import(number, tests)
            else:
                mutant.verdict, test = self.try_fork(number, [items[one] for one in tests])
            if self.is_verbose or mutant.verdict not in NOTICED:
                self.print(
                    f"{mutant.verdict}: {mutant.path}:{mutant.line}: {mutant.change} [{len(tests)} tests] {test}"
                )
        return True

    def print(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def run_unchanged(self, items: dict[str, pytest.Item]) -> dict[int, set[str]]:
        """Find the tests that pass with every mutant off, and those that reach each mutant."""
        lines = self.fork("unchanged", list(items.values()), mutant_switch.RECORD, deadline=7200)
        self.seconds = {test: float(took) for outcome, test, took in lines if outcome == "passed"}
        self.print(f"{len(self.seconds)} tests pass on unchanged code in {sum(self.seconds.values()):.0f} seconds")
        for outcome, test, _ in lines:
            if outcome not in ("passed", "skipped"):
                self.print(f"not used, {outcome} on unchanged code: {test}")
        if len(lines) < len(items):
            pytest.exit("the tests end early on unchanged code", returncode=1)
        for test, took in self.seconds.items():  # short, so that mutants that hang cost little
            items[test].add_marker(pytest.mark.timeout(SECONDS + 20 * took), append=False)
        reached: dict[int, set[str]] = collections.defaultdict(set)
        for line in (self.scratch / "reached").read_text().splitlines():
            number, _, test = line.partition("\t")
            reached[int(number)].add(test)
        return reached

    def choose_tests(self, mutant: Mutant, reached: set[str]) -> list[str]:
        """Tests that reach the mutant, those of its module first, then the fastest; then all others of its module."""
        stem = Path(mutant.path).stem

        def is_own(test: str) -> bool:
            name = Path(test.partition("::")[0]).stem.removeprefix("test_")
            return f"{name}_".startswith(f"{stem}_") or f"{stem}_".startswith(f"{name}_")

        places = tuple(f"tests/{place}" for place in (f"unit/{mutant.room}", *ELSEWHERE.get(mutant.room, [])))

        def is_reaching(test: str) -> bool:
            return test in reached or ("" in reached and test.startswith(places))  # "": an import

        chosen = [test for test in self.seconds if is_own(test) or is_reaching(test)]
        chosen.sort(key=lambda test: (not is_reaching(test), not is_own(test), self.seconds[test]))
        totals = itertools.accumulate(self.seconds[test] for test in chosen)
        return [
            test
            for number, (test, total) in enumerate(zip(chosen, totals, strict=True))
            if not number or total < MAX_SECONDS
        ]

    def try_fork(self, number: int, items: list[pytest.Item]) -> tuple[str, str]:
        deadline = 2 * SECONDS + 40 * sum(self.seconds[item.nodeid] for item in items)
        outcome, test, _ = self.fork(str(number), items, number, deadline)[-1]
        return ("survived", "") if outcome == "passed" else (outcome, test)

    def fork(self, name: str, items: list[pytest.Item], active: int, deadline: float) -> list[list[str]]:
        """Run tests in a child, with a mutant until one fails. Returns outcome, test and seconds of each."""
        report, temporary = self.scratch / f"report-{name}", self.scratch / f"tmp-{name}"
        temporary.mkdir()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(temporary)
            os.environ["TFRKIT_MUTANT"] = str(active)
            mutant_switch.active = active
            try:
                with report.open("w", buffering=1) as file:
                    self.run_items(items, file, stops=active >= 0)
                os._exit(0)
            finally:
                os._exit(3)
        stop = time.monotonic() + deadline
        while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < stop:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # also what tests have started
        lines = [line.split("\t") for line in report.read_text().splitlines()]
        # The last line of a test is its outcome.
        lines = list({test: [outcome, test, took] for outcome, test, took in lines}.values())
        if not ended[0]:
            os.waitpid(child, 0)
        elif lines[-1][0] == "hangs":  # pytest-timeout ends the process with 1
            lines[-1][0] = "timeout" if os.waitstatus_to_exitcode(ended[1]) == 1 else "crashed"
        shutil.rmtree(temporary, ignore_errors=True)
        return lines

    def run_items(self, items: list[pytest.Item], report: TextIO, *, stops: bool) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            print("hangs", item.nodeid, 0, sep="\t", file=report)
            self.outcome, start = "passed", time.monotonic()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            print(self.outcome, item.nodeid, time.monotonic() - start, sep="\t", file=report)
            if stops and self.outcome == "failed":
                break

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed and self.outcome != "failed":
            self.outcome = report.outcome

    def try_import(self, number: int, tests: list[str]) -> tuple[str, str]:
        """Try a mutant that is reached while modules load, in a fresh process."""
        command = [sys.executable, "-m", "pytest", *PYTEST, "-x", "-vv", "-o", f"timeout={3 * SECONDS}", *tests]
        environment = {**os.environ, "TFRKIT_MUTANT": str(number)}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            return "survived", ""
        named = [word for word in ran.stdout.split() if word.startswith("tests/") and "::" in word]
        return ("timeout" if "+ Timeout +" in ran.stdout else "failed"), (named or ["while collecting"])[-1]


def run_trial(rooms: list[str], mutants: list[Mutant], scratch: Path, *, is_verbose: bool) -> int:
    out = os.fdopen(os.dup(1), "w")
    log = os.open(scratch / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    paths = [str(scratch), str(HERE), str(PACKAGE.parent)]
    sys.path[:0] = [*paths, str(ROOT)]  # the last as `python -m pytest` does, for processes that tests spawn
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "TFRKIT_MUTANT": str(mutant_switch.RECORD),
        "TFRKIT_MUTANTS_REACHED": str(scratch / "reached"),
    }
    (scratch / "reached").touch()
    mutant_switch.active = mutant_switch.RECORD
    os.chdir(ROOT)
    del sys.modules["__main__"].__file__  # they would import this program
    trial = Trial(mutants, scratch, out, is_verbose)
    status = pytest.main([*PYTEST, *find_tests(rooms)], plugins=[trial])
    trial.print((scratch / "log").read_text()[-2000:] if status else "\n".join(format_table(mutants)))
    return int(status)


def read_equivalent() -> set[tuple[str, str]]:
    """Modules and changes, of lines `module: change # reason`."""
    lines = [line for line in EQUIVALENT.read_text().splitlines() if line and not line.startswith("#")]
    return {tuple(line.rpartition(" # ")[0].split(": ", 1)) for line in lines}


def format_table(mutants: list[Mutant]) -> Iterator[str]:
    yield "| room | sampled | equivalent | noticed | by a timeout | share |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for room in [*dict.fromkeys(one.room for one in mutants), "all"]:
        counts = collections.Counter(one.verdict for one in mutants if room in (one.room, "all"))
        noticed = sum(counts[verdict] for verdict in NOTICED)
        total = counts.total() - counts["equivalent"]
        share = f"{100 * noticed // total} %" if total else ""
        yield f"| {room} | {counts.total()} | {counts['equivalent']} | {noticed} | {counts['timeout']} | {share} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=15, help="mutants of each room; large rooms have more")
    parser.add_argument("--room", choices=list_rooms(), action="append", help="only these; may be repeated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--verbose", action="store_true", help="print every mutant, and the test that noticed it")
    options = parser.parse_args()
    print(f"seed {options.seed}, {datetime.now(UTC):%Y-%m-%d}", flush=True)
    rooms = options.room or list_rooms()
    if missing := [name for name, package in NEEDS.items() if importlib.util.find_spec(package) is None]:
        print(f"left out, their packages are not here: {', '.join(missing)}", flush=True)
    mutants = [mutant for room in rooms for mutant in choose_mutants(room, options.number, options.seed)]
    with tempfile.TemporaryDirectory() as folder:
        write_package(mutants, Path(folder))
        equivalent = read_equivalent()
        for mutant in mutants:
            if (mutant.path, mutant.change) in equivalent:
                mutant.verdict = "equivalent"
        return run_trial(rooms, mutants, Path(folder), is_verbose=options.verbose)


if __name__ == "__main__":
    sys.exit(main())
