"""What can be wrong with a page that running it does not show: links, options, pages that nothing leads to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from writers.pages import read_headings, slug

from runner.run import ROOT, is_generated

DOCS = ROOT / "docs"
EXTERNAL = DOCS / "runner" / "external_links.txt"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
# Of pages that are in no list.
HEADINGS = {
    "README.md": ("tfrkit", "Tour", "What it does", "Numbers", "Limits"),
    "README.zh.md": ("tfrkit", "快速上手", "能做什么", "性能", "限制"),
    "docs/index.md": ("tfrkit",),
    "docs/zh/index.md": ("tfrkit",),
}
# Options of other programs that pages name.
FOREIGN = {"--rows", "--threads", "--rounds", "--records", "--update", "--fences", "--stamp"}
FOREIGN |= {"--upgrade", "--only-binary", "--no-index", "--find-links", "--no-cache-dir"}  # of pip
FOREIGN |= {"--data"}  # of docs/run_pages.py


def find_all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def list_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) outside of fences."""
    is_code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def check_links(path: Path) -> list[str]:
    """Links that lead nowhere: files, headings, addresses that nobody has looked at."""
    name = path.relative_to(ROOT).as_posix()
    known = set(EXTERNAL.read_text(encoding="utf-8").split())
    found = []
    for number, line in list_lines(path):
        for target in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
            where, _, anchor = target.partition("#")
            file = path.parent / where if where else path
            if "://" in target:
                if target not in known:
                    found.append(f"{name}:{number}: {target} is not in {EXTERNAL.relative_to(ROOT)}")
            elif not file.exists():
                found.append(f"{name}:{number}: {target} leads nowhere")
            elif path.is_relative_to(DOCS) and not file.resolve().is_relative_to(DOCS):
                found.append(f"{name}:{number}: {target} leads out of docs, and the site has nothing else")
            elif anchor and anchor not in list_anchors(file):
                found.append(f"{name}:{number}: {target}: no such heading")
    return found


def list_anchors(path: Path) -> set[str]:
    return {slug(text) for _, text, _ in read_headings(path)}


def check_headings(path: Path) -> list[str]:
    """Headings that the list of all pages does not have: changed by a slip, or the list is not current."""
    name = path.relative_to(ROOT).as_posix()
    if name in HEADINGS:
        listed = HEADINGS[name]
        return [f"{name}:{line}: heading {text!r}" for _, text, line in read_headings(path) if text not in listed]
    root = DOCS / "zh" if name.startswith("docs/zh/") else DOCS
    if not name.startswith("docs/") or path.parent == root or "look-up" in path.parts:
        return []
    contents = (root / "contents.md").read_text(encoding="utf-8")
    where = path.relative_to(root).as_posix()
    found = []
    for level, text, line in read_headings(path):
        entry = f"[{text}]({where})" if level == 1 else f"[{text}]({where}#{slug(text)})"
        if level <= 2 and entry not in contents:
            found.append(f"{name}:{line}: heading {text!r} is not in {root.relative_to(ROOT)}/contents.md: make docs")
    return found


def check_options(path: Path) -> list[str]:
    """Commands and options in the text that tfr does not have."""
    if is_generated(path):
        return []
    name = path.relative_to(ROOT).as_posix()
    verbs, options = read_interface()
    found = []
    for number, line in list_lines(path):
        for code in _CODE.findall(line):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code):
                if option not in options | FOREIGN:
                    found.append(f"{name}:{number}: no command has {option}")
            if (verb := re.match(r"tfr ([a-z][a-z-]*)", code)) and verb[1] not in verbs:
                found.append(f"{name}:{number}: there is no tfr {verb[1]}")
    return found


@cache
def read_interface() -> tuple[frozenset[str], frozenset[str]]:
    """The commands of tfr and all options."""
    import typer.main
    from writers.cli import walk_commands

    from tfrkit.cli.main import make_app

    commands = dict(walk_commands(typer.main.get_command(make_app()), "tfr"))
    options = {
        name for command in commands.values() for one in command.params for name in [*one.opts, *one.secondary_opts]
    }
    return frozenset(name.split()[1] for name in commands), frozenset(options | {"--help", "--version"})


def find_lonely(limit: int = 3) -> list[str]:
    """Pages that take more than `limit` clicks from the first page; the list of all pages does not count."""
    reached = {DOCS / "index.md"}
    edge = set(reached)
    for _ in range(limit):
        edge = {target for path in edge if path.name != "contents.md" for target in follow(path)} - reached
        reached |= edge
    return [path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md") if path not in reached]


def follow(path: Path) -> set[Path]:
    targets = [target.partition("#")[0] for _, line in list_lines(path) for target in _LINK.findall(line)]
    return {(path.parent / target).resolve() for target in targets if target.endswith(".md") and "://" not in target}
