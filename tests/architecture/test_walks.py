"""Files and functions that docs/design/walks.md and CONTRIBUTING.md name exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "tfrkit"
STEP = re.compile(r"\d+\. `([\w/]+\.py)` ((?:`[\w.]+`(?:, )?)+):")


def read_steps(text: str) -> list[tuple[str, str]]:
    """(file, function) of every step."""
    return [(file, name) for file, names in STEP.findall(text) for name in re.findall(r"`([\w.]+)`", names)]


def list_functions(path: Path) -> set[str]:
    """Functions of a module, and methods as Class.method."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else ():
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def find_missing(text: str) -> list[tuple[str, str]]:
    return [(file, name) for file, name in read_steps(text) if name not in list_functions(SRC / file)]


def test_functions_of_the_walks_exist() -> None:
    text = (ROOT / "docs" / "design" / "walks.md").read_text(encoding="utf-8")
    assert find_missing(text) == []
    assert len(STEP.findall(text)) == len(re.findall(r"^\d+\. ", text, re.MULTILINE)) > 60


def test_missing_function_and_missing_file_are_reported() -> None:
    text = "1. `_threads.py` `run_ahead`, `no_such`: words\n2. `no/such.py` `main`: words\n"
    assert find_missing(text) == [("_threads.py", "no_such"), ("no/such.py", "main")]


def test_files_where_things_are_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Where is what")[1].split("\n## ")[0]
    named = re.findall(r"`([\w/]+/\w+(?:\.\w+)?|\w+\.py)`", table)
    assert len(named) > 20
    assert [name for name in named if not (SRC / name).exists() and not (ROOT / name).exists()] == []
