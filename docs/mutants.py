"""Change one thing in one page, many times, and see whether a check fails: `make docs-mutants`.

    python docs/mutants.py [--count 50] [--seed 0]

Each change is one of four kinds: a printed character, a heading, a link, an option. The page is changed in a copy of
docs/, so that nothing is left behind. A change that no check reports is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from runner.blocks import Block, parse_page  # noqa: E402
from runner.compare import ANY, VOLATILE_TEXT  # noqa: E402
from runner.drive import find_print_comments, split_commands  # noqa: E402
from runner.run import find_missing, find_pages, is_generated  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Place(NamedTuple):
    """A character of a page: line from 0, column from 0."""

    line: int
    column: int


def find_places(text: str, kind: str) -> list[Place]:
    """The characters that a change of this kind may replace."""
    if kind in ("printed", "option in a command"):
        blocks = [one for one in parse_page(text) if isinstance(one, Block) and "not run" not in one.marks]
        return [
            place
            for block, before in zip(blocks, [None, *blocks], strict=False)
            for place in _in_block(block, before, kind)
        ]
    places = []
    is_code = False
    patterns = {
        "heading": r"(?<=# )(.+)$",
        "link": r"(?<=\]\()([^)]+)(?=\))",
        "option in the text": r"`(?:[^`]* )?(--[a-z][a-z-]+)[^`]*`",
    }
    for number, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (kind != "heading" or line.startswith("#")):
            for found in re.finditer(patterns[kind], line):
                columns = range(found.start(1), found.end(1))
                places += [Place(number, column) for column in columns if line[column].isalnum()]
    return places


def _in_block(block: Block, before: Block | None, kind: str) -> list[Place]:
    if block.kind == "console":
        places = []
        for line, command, shown in split_commands(block):
            if kind == "printed":
                first = line + command.count("\n")
                places += [place for number, one in enumerate(shown, first) for place in _printed(number, one)]
            else:
                for found in re.finditer(r"(?<= )--[a-z][a-z-]+", command.split("\n")[0].split("  #")[0]):
                    # The page has "$ " before the command.
                    places += [Place(line - 1, column + 2) for column in range(found.start() + 2, found.end())]
        return places
    if kind != "printed" or "file" in block.marks:
        return []
    if (
        block.kind == "text"
        and block.follows
        and before is not None
        and before.kind == "python"
        and "file" not in before.marks
    ):
        return [place for n, one in enumerate(block.text.split("\n")) for place in _printed(block.line + n, one)]
    if block.kind == "python":
        lines = block.text.split("\n")
        comments = find_print_comments(block.text)
        return [
            Place(block.line + number - 1, len(lines[number - 1]) - len(comment) + column)
            for number, comment in comments.items()
            for column, letter in enumerate(comment)
            if letter.isalnum()
        ]
    return []


def _printed(number: int, line: str) -> list[Place]:
    """What must be equal: not what differs between runs, and nothing where a line has a `...`."""
    if ANY in line:
        return []
    volatile = {column for found in VOLATILE_TEXT.finditer(line) for column in range(*found.span())}
    return [Place(number, column) for column, letter in enumerate(line) if letter.isalnum() and column not in volatile]


def change(text: str, place: Place, choose: random.Random) -> str:
    lines = text.split("\n")
    line = lines[place.line]
    old = line[place.column]
    pool = "0123456789" if old.isdigit() else LETTERS if old.isascii() else "的一是在不了有和人这"
    new = choose.choice([letter for letter in pool if letter != old.lower()])
    lines[place.line] = line[: place.column] + new + line[place.column + 1 :]
    return "\n".join(lines)


def find_failure(copy: Path, page: str, kind: str) -> str:
    """The check that reports the changed page; empty if none does.

    What is printed and what is run has to be found by running the page: its twin could have the same mistake.
    """
    if kind in ("printed", "option in a command"):
        done = subprocess.run(
            [sys.executable, "docs/run_pages.py", page], cwd=copy, capture_output=True, text=True, check=False
        )
        return done.stdout.strip().split("\n")[0] if done.returncode else ""
    static = (
        "import sys; sys.path.insert(0, 'docs')\n"
        "from pathlib import Path\n"
        "from runner import checks, twins\n"
        f"page = Path({page!r}).resolve()\n"
        "found = checks.check_links(page) + checks.check_options(page) + checks.check_headings(page)\n"
        "pairs = {one: other for one, other in twins.find_twins().items() if page in (one, other)}\n"
        "found += [line for pair in pairs.items() for line in twins.list_problems(*pair)]\n"
        "from writers.pages import make_pages\n"
        "found += [f'docs/{name} is not current' for name, text in make_pages().items()\n"
        "          if Path('docs', name).read_text(encoding='utf-8') != text]\n"
        "print('\\n'.join(found[:1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", static], cwd=copy, capture_output=True, text=True, check=False)
    return done.stdout.strip() or (done.stderr.strip().split("\n")[-1] if done.returncode else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    choose = random.Random(options.seed)
    pages = [page for page in find_pages() if not is_generated(ROOT / page) and not find_missing(ROOT / page)]
    kinds = ("printed", "heading", "link", "option in a command", "option in the text")
    missed = 0
    with tempfile.TemporaryDirectory() as top:
        copy = Path(top)
        for name in ("docs", "src", "examples", "benchmarks"):
            ignore = shutil.ignore_patterns("__pycache__", ".bench")
            shutil.copytree(ROOT / name, copy / name, ignore=ignore)
        for path in ROOT.glob("*.md"):
            shutil.copy(path, copy)
        for number in range(options.count):
            kind = kinds[number % len(kinds)]
            page, place = choose_place(pages, kind, choose)
            original = (ROOT / page).read_text(encoding="utf-8")
            changed = change(original, place, choose)
            (copy / page).write_text(changed, encoding="utf-8")
            failure = find_failure(copy, page, kind)
            (copy / page).write_text(original, encoding="utf-8")
            missed += not failure
            print(
                f"{number + 1:3} {kind}, {page}:{place.line + 1}: {changed.split(chr(10))[place.line].strip()[:60]!r}"
            )
            print(f"    {'caught: ' + failure[:150] if failure else 'NOT CAUGHT'}", flush=True)
    print(f"seed {options.seed}: {options.count - missed} of {options.count} caught")
    sys.exit(1 if missed else 0)


def choose_place(pages: list[str], kind: str, choose: random.Random) -> tuple[str, Place]:
    while True:
        page = choose.choice(pages)
        places = find_places((ROOT / page).read_text(encoding="utf-8"), kind)
        if places:
            return page, choose.choice(places)


if __name__ == "__main__":
    main()
