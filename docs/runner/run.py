"""Run pages, each in an empty folder and a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runner.blocks import Data, read_needs, read_page

ROOT = Path(__file__).parents[2]
TIMEOUT = 600


@dataclass
class Result:
    """What running a page found: (line, what) each; `updated` is the page with what was printed."""

    failures: list[tuple[int, str]]
    updated: str

    def describe(self, page: str) -> str:
        return "\n".join(f"{page}:{line}: {what}" for line, what in self.failures)


def find_pages() -> list[str]:
    """Every page with blocks that are run: the READMEs and all below docs that is not generated."""
    pages = [*ROOT.glob("README*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in pages if not is_generated(path)]


def is_generated(path: Path) -> bool:
    """Pages that are written from the code are compared with it instead."""
    return path.read_text(encoding="utf-8").startswith("<!-- Written by ")


def find_missing(page: Path) -> list[str]:
    """Modules that the page needs and this environment lacks."""
    needs = read_needs(page.read_text(encoding="utf-8"))
    return [name for name in needs if importlib.util.find_spec(name) is None]


def run_page(page: Path, *, timeout: int = TIMEOUT) -> Result:
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as top:
        folder, result = Path(top) / "work", Path(top) / "result.json"
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "runner.drive", str(page.resolve()), str(result)],
            cwd=folder,
            env=make_environment(Path(top)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            printed, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return Result([(1, f"the page was not done after {timeout} s")], page.read_text(encoding="utf-8"))
        finally:
            if process.returncode is None:  # with its commands, which would go on writing into the folder
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if not result.exists():
            return Result([(1, f"the page stopped\n{printed}")], page.read_text(encoding="utf-8"))
        found = json.loads(result.read_text(encoding="utf-8"))
        return Result([(line, what) for line, what in found["failures"]], found["updated"])


def make_environment(top: Path) -> dict[str, str]:
    """That of a reader with an empty home: no colours, no caches, English numbers."""
    paths = [str(ROOT / "docs"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TFR_", "PYTEST_"))},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONWARNINGS": "default",
        "PYTHONHASHSEED": "0",
        "HOME": str(top),
        "XDG_CACHE_HOME": str(top / "cache"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def make_data(page: Path) -> None:
    """Make what a page starts from, in the current folder, for a reader who follows it."""
    from runner.data import Fixtures

    for step in read_page(page):
        if isinstance(step, Data):
            Fixtures().make(step.words)
        elif step.kind != "sh":
            return


def main() -> None:
    """`python docs/run_pages.py [--update] [PAGE...]`, or `--data PAGE...`."""
    arguments = sys.argv[1:]
    if "--data" in arguments:
        for name in arguments[1:]:
            make_data(ROOT / "docs" / f"{name}.md")
        return
    update = "--update" in arguments
    names = [one for one in arguments if not one.startswith("--")] or find_pages()
    num_failed = 0
    for name in names:
        path = Path(name)
        result = run_page(path)
        if update and result.updated != path.read_text(encoding="utf-8"):
            path.write_text(result.updated, encoding="utf-8")
            print(f"{name}: written")
        stopped = [failure for failure in result.failures if failure[1].startswith(("stopped", "the page stopped"))]
        shown = stopped if update else result.failures
        if shown:
            num_failed += 1
            print(Result(shown, "").describe(name))
    sys.exit(1 if num_failed else 0)


if __name__ == "__main__":
    main()
