"""The generated pages are current, and everything public is documented."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tfrkit
from tfrkit import errors

ROOT = Path(__file__).parents[2]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load_generator()


@pytest.mark.parametrize("name", list(GENERATOR.PAGES))
def test_generated_page_is_current(name: str) -> None:
    if name == "python.md" and sys.version_info[:2] != (3, 11):
        pytest.skip("how annotations print differs between Python versions; the page is written with 3.11")
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == GENERATOR.PAGES[name](), "run `make docs`"


def test_every_command_and_option_is_documented() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    from tfrkit.cli.main import COMMANDS
    from tfrkit.cli.options import spread_groups

    for name, command in COMMANDS.items():
        section = page.split(f"\n## tfr {name}\n")[1].split("\n## ")[0]
        for parameter in inspect.signature(spread_groups(command.run)).parameters.values():
            declared = parameter.annotation.__metadata__[0]
            # In an annotation, typer stores the first option name as the default.
            names = [declared.default, *(getattr(declared, "param_decls", None) or ())]
            options = [name for name in names if isinstance(name, str)] or [declared.metavar]
            for option in options:
                assert f"`{option}" in section, f"{option} of tfr {name}"
            assert declared.help in section


@pytest.mark.parametrize("name", tfrkit.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(tfrkit, name).__doc__ or name == "__version__"
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert f"## tfr.{name}\n" in page or name == "__version__"


def test_every_name_of_compat_is_described() -> None:
    page = (ROOT / "docs" / "compat.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.split("\n") if line.startswith("| `")]
    assert [row[0] for row in rows if not row[1].strip(" |")] == []
    for path, names in GENERATOR.walk_namespaces("tf", GENERATOR.NAMES):
        section = page.split(f"\n## {path}\n")[1].split("\n## ")[0]
        assert [name for name in names if f"| `{name}` |" not in section] == []
    assert "| `Dataset.prefetch` | accepted, and does nothing |" in page


def test_every_error_is_documented() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.TfrkitError):
            assert f"| `{name}` |" in page
            assert f"── {name}" in (errors.__doc__ or "") or kind is errors.TfrkitError
