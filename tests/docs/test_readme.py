"""README and tour: every block runs, in order, and prints the documented output."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "README.zh.md"]

_BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(r"^print\(.*\)\s{2,}# (.*)$", re.MULTILINE)


def read_blocks(page: str) -> list[tuple[str, str]]:
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def run_python(source: str, names: dict[str, object]) -> None:
    """Run a block; each `print(...)  # text` at its top level must print that text."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "README", "exec"), names)
    expected = _PRINTED.findall(source)
    if expected:
        assert printed.getvalue().splitlines() == expected


def run_console(source: str, folder: Path) -> None:
    """Run each `$ command`; lines that follow must equal its output, `...` matches anything."""
    for part in re.split(r"^\$ ", source, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        words = shlex.split(command, comments=True)
        program = shutil.which(words[0], path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert program, f"{words[0]} is not installed"
        done = subprocess.run(
            [program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        if expected.strip():
            pattern = re.escape(expected.rstrip()).replace(r"\.\.\.", ".*")
            assert re.fullmatch(pattern, done.stdout.rstrip(), re.DOTALL), done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_readme_blocks_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    blocks = read_blocks(page)
    assert {kind for kind, _ in blocks} == {"python", "console"}
    names: dict[str, object] = {"__name__": "README"}
    for kind, source in blocks:
        if kind == "python":
            run_python(source, names)
        else:
            run_console(source, tmp_path)


def test_readme_code_is_the_same_in_both_languages() -> None:
    def code_of(page: str) -> list[str]:
        return [re.sub(r"\s+#.*", "", source) for _, source in read_blocks(page)]

    assert code_of("README.md") == code_of("README.zh.md")


@pytest.mark.parametrize("page", PAGES)
def test_readme_names_the_two_commands_to_start_with(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_readme_tour_is_short() -> None:
    tour = next(source for kind, source in read_blocks("README.md") if kind == "python")
    assert len(tour.splitlines()) <= 25


@pytest.mark.parametrize(
    "page", [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (path.parent / target).exists(), f"{page} links to {target}"
