"""Exit codes: one table, which every command uses and the help shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import tfrkit.cli
import tfrkit_start
from tfrkit.cli.endings import Terminated
from tfrkit.cli.exit_codes import ExitCode, code_of_error, list_codes
from tfrkit.cli.main import HELP

FILES = sorted(Path(tfrkit.cli.__file__).parent.glob("*.py"))


def test_codes_are_those_that_scripts_rely_on() -> None:
    numbers = {code.name: code.value for code in ExitCode}
    expected = {"DONE": 0, "FOUND": 1, "USAGE": 2, "FAILED": 3, "INTERRUPTED": 130, "TERMINATED": 143}
    assert numbers == expected


def test_start_ends_with_the_codes_of_the_table() -> None:
    assert (tfrkit_start.INTERRUPTED, tfrkit_start.TERMINATED) == (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


def test_help_lists_the_codes_of_the_table() -> None:
    assert f"Exit codes: {list_codes(ExitCode.FAILED)}.\n" in HELP


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("wrong argument"), ExitCode.USAGE),
        (json.JSONDecodeError("contents of a file", "", 0), ExitCode.FAILED),
        (FileNotFoundError(), ExitCode.FAILED),
        (KeyError("a bug"), ExitCode.FAILED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
        (Terminated(), ExitCode.TERMINATED),
    ],
)
def test_error_has_its_code(error: BaseException, code: ExitCode) -> None:
    assert code_of_error(error) is code


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_command_returns_no_bare_number(path: Path) -> None:
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("run"):
            returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
            bare = [node for value in returned if value for node in ast.walk(value) if isinstance(node, ast.Constant)]
            assert not [node.value for node in bare if isinstance(node.value, int)]
