"""Change one thing in the Python code, and see whether the tests of that room notice.

python tests/trust/mutants.py [--number 40] [--room orders] [--seed N]

A mutant is a comparison, an operator, a constant or a condition that is another one. Only the tests in
tests/unit/<room> are run, each with a timeout; a hang counts as noticed. Prints the seed, the survivors, and the share
that was noticed in each room. Nothing in this folder changes: mutants live in a copy of the package.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import tfrkit

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = Path(tfrkit.__file__).parent
UNIT = ROOT / "tests" / "unit"
SECONDS = 30  # for one test

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
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Continue():
            return ast.Break()
        case _:
            return None
    return node


class Mutate(ast.NodeTransformer):
    """Changes the `number`-th node that can be changed; counts them."""

    def __init__(self, number: int | None = None) -> None:
        self.number, self.count, self.line = number, 0, 0

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.AnnAssign, ast.arg)) and isinstance(getattr(node, "annotation", None), ast.AST):
            kept, node.annotation = node.annotation, None  # annotations are not code
            self.generic_visit(node)
            node.annotation = kept
            return node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node
        if isinstance(node, (ast.JoinedStr, ast.Raise)):
            return node  # the text of messages is tested by its words
        changed = change(node)
        if changed is not None:
            self.count += 1
            if self.count - 1 == self.number:
                self.line = getattr(node, "lineno", 0)
                return ast.copy_location(changed, node)
        return self.generic_visit(node)


def list_rooms() -> list[str]:
    return sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and (UNIT / path.name).is_dir())


def list_mutants(room: str) -> Iterator[tuple[Path, int]]:
    for path in sorted((PACKAGE / room).rglob("*.py")):
        counter = Mutate()
        counter.visit(ast.parse(path.read_text()))
        yield from ((path, number) for number in range(counter.count))


def find_tests(path: Path, room: str) -> list[str]:
    """The tests of the module, if it has some of its own, else those of the room."""
    folder = UNIT / path.relative_to(PACKAGE).parent
    own = sorted(folder.glob(f"test_{path.stem}.py")) + sorted(folder.glob(f"test_{path.stem}_*.py"))
    return [str(one) for one in own] + [str(UNIT / room)]


def try_mutant(path: Path, number: int, room: str, scratch: Path) -> tuple[str, str]:
    """Return "noticed", "hangs" or "survived", and the change."""
    source = path.read_text()
    mutate = Mutate(number)
    tree = ast.fix_missing_locations(mutate.visit(ast.parse(source)))
    place = scratch / "tfrkit" / path.relative_to(PACKAGE)
    before = source.splitlines()[mutate.line - 1].strip()
    # Only the changed node: unparsing drops comments, which nothing tests.
    place.write_text(ast.unparse(tree))
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", f"timeout={SECONDS}"]
        ran = subprocess.run(
            [*command, *find_tests(path, room)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=900,
        )
    except subprocess.TimeoutExpired:
        return "hangs", before
    finally:
        place.write_text(source)
    after = ast.unparse(ast.parse(source)) != ast.unparse(tree)
    verdict = "survived" if ran.returncode == 0 else "hangs" if "Timeout" in ran.stdout else "noticed"
    return (verdict if after else "same"), before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=40, help="mutants, over all rooms")
    parser.add_argument("--room", choices=list_rooms(), action="append", help="only these; may be repeated")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    chooser = random.Random(options.seed)
    rooms = options.room or list_rooms()
    counts: dict[str, collections.Counter[str]] = {room: collections.Counter() for room in rooms}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        shutil.copytree(PACKAGE, scratch / "tfrkit", ignore=shutil.ignore_patterns("__pycache__"))
        mutants = {room: list(list_mutants(room)) for room in rooms}
        for turn in range(options.number):
            room = rooms[turn % len(rooms)]
            if not mutants[room]:
                continue
            path, number = mutants[room].pop(chooser.randrange(len(mutants[room])))
            verdict, line = try_mutant(path, number, room, scratch)
            counts[room][verdict] += 1
            if verdict == "survived":
                print(f"survived: {path.relative_to(PACKAGE)} change {number}: {line}", flush=True)
    for room, found in counts.items():
        total = found.total() - found["same"]
        if total:
            num_noticed = total - found["survived"]
            print(f"{room:<12}{num_noticed:>4} of {total:>4} noticed, {found['hangs']} by a timeout")
    total = sum(found.total() - found["same"] for found in counts.values())
    survived = sum(found["survived"] for found in counts.values())
    print(f"{total - survived} of {total} mutants noticed ({100 * (total - survived) / max(total, 1):.0f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
